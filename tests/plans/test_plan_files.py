"""Keys, what an agent remembers, and the commands."""

from pathlib import Path

import msgspec
import pytest
from tests.plans.conftest import DAY, NOW
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.agents.plans.from_campaign import agent_plans
from pathbudget.agents.plans.keys import generate, key_id, read_private, read_trusted
from pathbudget.agents.plans.memory import Taken, recall, remember
from pathbudget.probes.errors import ConfigError, SpoolError
from pathbudget.probes.table import probe_table

CATALOGUE = """
[[region]]
name = "dallas"
latitude = 32.7
longitude = -96.8
[[site]]
name = "s1"
latitude = 33.0
longitude = -97.0
[[site.target]]
name = "a"
host = "198.51.100.10"
port = 443
"""
CAMPAIGN = """
name = "watch"
catalogue = "catalogue.toml"
duration = "10m"
seed = 7
[[vantage]]
name = "dallas-1"
region = "dallas"
[[vantage]]
name = "dallas-2"
region = "dallas"
[[probe]]
kind = "stamp"
interval = "10s"
key_file = "secret/stamp.keys"
"""


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign of two agents with a key file."""
    (tmp_path / "catalogue.toml").write_text(CATALOGUE)
    (tmp_path / "secret").mkdir()
    keys = tmp_path / "secret" / "stamp.keys"
    keys.write_text("site-1 " + "ab" * 32 + "\n")
    keys.chmod(0o600)
    path = tmp_path / "campaign.toml"
    path.write_text(CAMPAIGN)
    return path


def run(*words: object) -> tuple[int, str]:
    result = CliRunner().invoke(application, [str(word) for word in words])
    return result.exit_code, result.output


def test_a_pair_of_keys_is_made_once_and_the_private_one_is_the_owners(tmp_path: Path) -> None:
    private, public = tmp_path / "key", tmp_path / "key.pub"
    name = generate(private, public)
    assert private.stat().st_mode & 0o777 == 0o600
    assert list(read_trusted(public)) == [name] == [key_id(read_private(private).public_key())]
    with pytest.raises(ConfigError, match="is there already"):
        generate(private, public)


def test_a_private_key_that_others_may_read_is_not_used(tmp_path: Path) -> None:
    generate(tmp_path / "key", tmp_path / "key.pub")
    (tmp_path / "key").chmod(0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        read_private(tmp_path / "key")


@pytest.mark.parametrize("content", [b"", b"no key", b"-----BEGIN PUBLIC KEY-----\nAA\n"])
def test_a_file_without_a_public_key_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "trust"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match="holds no public key"):
        read_trusted(path)


def test_several_keys_may_be_trusted_at_once(tmp_path: Path) -> None:
    names = {generate(tmp_path / one, tmp_path / f"{one}.pub") for one in ("a", "b")}
    both = tmp_path / "both"
    both.write_bytes((tmp_path / "a.pub").read_bytes() + (tmp_path / "b.pub").read_bytes())
    assert set(read_trusted(both)) == names


def test_each_vantage_becomes_the_plan_of_an_agent_that_names_no_path(campaign: Path) -> None:
    plans = agent_plans(campaign, probe_table(), issued_unix_ns=NOW, lifetime_ns=DAY)
    assert sorted(plans) == ["dallas-1", "dallas-2"]
    plan = plans["dallas-1"]
    assert (plan.serial, plan.expires_unix_ns, plan.seed) == (NOW // 1_000_000, NOW + DAY, 7)
    assert plan.series[0].options["key_file"] == "stamp.keys"
    assert str(campaign.parent) not in msgspec.json.encode(plan).decode()


def test_a_vantage_that_no_agent_can_be_called_is_a_fault(campaign: Path) -> None:
    campaign.write_text(CAMPAIGN.replace('"dallas-1"', '"../dallas"'))
    with pytest.raises(ConfigError, match=r"vantage\[0\]\.name"):
        agent_plans(campaign, probe_table(), issued_unix_ns=NOW, lifetime_ns=DAY)


def test_what_was_taken_is_remembered_whole_and_a_torn_memory_is_told(tmp_path: Path) -> None:
    path = tmp_path / "taken.json"
    assert recall(path) is None
    taken = Taken(7, "ab", b"envelope")
    remember(path, taken)
    assert recall(path) == taken
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(SpoolError, match="remove it"):
        recall(path)


def test_signed_shown_and_verified_by_the_commands(campaign: Path) -> None:
    folder = campaign.parent
    key, trust, plans = folder / "operator", folder / "operator.pub", folder / "plans"
    assert run("plan", "keygen", key)[0] == 0
    code, output = run("plan", "sign", campaign, "--key", key, "--output", plans)
    assert (code, output.count(".plan.json")) == (0, 2)
    plan = plans / "dallas-1.plan.json"
    code, output = run("plan", "show", plan, "--trust", trust)
    assert code == 0
    assert "dallas-1, region dallas" in output
    policy = folder / "policy.toml"
    policy.write_text('files = "secret"\n')
    code, output = run("plan", "verify", plan, "--trust", trust, "--policy", policy)
    assert (code, "would take it" in output) == (0, True)
    code, output = run("plan", "verify", plan, "--trust", trust)
    assert (code, "no folder of files" in output) == (1, True)


@pytest.mark.parametrize(
    ("option", "value", "told"),
    [("--expires-in", "5", "no unit"), ("--roll", "1s", "out of range"),
     ("--expires-in", "9999d", "out of range"), ("--key", "absent", "cannot be read")],
)  # fmt: skip
def test_what_cannot_be_signed_so_is_told_in_a_line(
    campaign: Path, option: str, value: str, told: str
) -> None:
    key = campaign.parent / "operator"
    run("plan", "keygen", key)
    words = ["plan", "sign", campaign, "--key", key, "--output", campaign.parent / "p"]
    code, output = run(*words, option, value)
    assert (code, told in output) == (2, True)
