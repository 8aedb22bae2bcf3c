"""The hosts file: what is right, and every fault in one go."""

from pathlib import Path

import pytest

from pathbudget.agents.ssh.hosts_file import load_hosts
from pathbudget.probes.errors import ConfigError

GOOD = """
give_up = "2m"
[defaults]
user = "probe"
keys = ["key"]
known_hosts = "known"
[[jump]]
name = "bastion"
host = "192.0.2.1"
[[host]]
vantage = "one"
host = "192.0.2.10"
jump = "bastion"
folder = "/srv/probe/"
[[host]]
vantage = "two"
host = "two.example"
port = 2222
user = "other"
agent = false
"""


def write(folder: Path, text: str) -> Path:
    for name in ("key", "known"):
        (folder / name).write_text("")
    path = folder / "hosts.toml"
    path.write_text(text)
    return path


def test_defaults_hold_for_hosts_and_jump_hosts(tmp_path: Path) -> None:
    hosts = load_hosts(write(tmp_path, GOOD))
    one, two = hosts.by_vantage["one"], hosts.by_vantage["two"]
    assert hosts.give_up_ns == 120_000_000_000
    assert [way.user for way in (*one.jumps, one.way, two.way)] == ["probe", "probe", "other"]
    assert one.jumps[0].keys == one.way.keys == (tmp_path / "key",)
    assert two.way.known_hosts == (tmp_path / "known",)
    assert (two.way.address, two.way.agent, one.way.agent) == ("two.example:2222", False, True)
    assert (one.bundles, one.runs) == ("/srv/probe/bundles", "/srv/probe/runs")
    assert (two.bundles, two.runs) == (".cache/pathbudget/bundles", ".local/state/pathbudget/runs")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('jump = "bastion"', 'jump = "bastoin"', '"bastion" (did you mean that?)'),
        ("port = 2222", "port = 70000", "a port, 1 to 65535"),
        ('vantage = "two"', 'vantage = "one"', "has a host already"),
        ('keys = ["key"]', 'keys = ["away"]', "no such file"),
        ('known_hosts = "known"', 'known_hosts = "away"', "no such file"),
        ('folder = "/srv/probe/"', 'folder = "a/../../b"', "a folder without .."),
        ("agent = false", 'agent = "no"', "true or false"),
        ('host = "two.example"', 'host = "-oProxyCommand=x"', "a name or an address"),
        ('user = "other"', 'pasword = "x"', "unknown key"),
        ('give_up = "2m"', "give_up = 2", "a unit"),
        ('[[jump]]\nname = "bastion"', '[[jump]]\nname = "bastion"\nfolder = "x"', "unknown key"),
    ],
)
def test_faults_say_where_and_what_is_right(
    tmp_path: Path, before: str, after: str, said: str
) -> None:
    assert before in GOOD
    with pytest.raises(ConfigError) as error:
        load_hosts(write(tmp_path, GOOD.replace(before, after)))
    assert said in str(error.value)


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    text = GOOD.replace("2222", "0").replace('"bastion"\nhost', '"bastion"\nhots')
    with pytest.raises(ConfigError) as error:
        load_hosts(write(tmp_path, text))
    assert len(error.value.faults) >= 2
