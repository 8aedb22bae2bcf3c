"""An agent of an ordinary user: with one capability, with none, and with none but a kernel that
lets everybody send echo requests.

Each in a user and network namespace of its own, as user 1000: nothing of the machine counts.
"""

from pathlib import Path

import pytest
from tests.daemon.conftest import PATIENCE_S, AgentHost, until

NET_RAW = 1 << 13
USER = "1000"
PING = f'echo "{USER} {USER}" > /proc/sys/net/ipv4/ping_group_range'
"""A new network namespace lets nobody."""
TCP = """
[[probe]]
kind = "tcp"
interval = "200ms"
port = 9
"""


def become_user(host: AgentHost, *capabilities: str, ping: bool = False) -> None:
    """Agents of `host` run as user 1000 with these capabilities alone."""
    kept = ",".join(("-all", *(f"+{one}" for one in capabilities)))
    script = f"ip link set lo up && {PING if ping else 'true'} && exec setpriv"
    host.inside = (
        *("unshare", "--user", f"--map-user={USER}", f"--map-group={USER}", "--net", "--keep-caps"),
        *("sh", "-c", f'{script} "$@"', "sh", f"--bounding-set={kept}"),
        *(f"--inh-caps={kept}", f"--ambient-caps={kept}", "--"),
    )


def process_word(host: AgentHost, word: str) -> str:
    lines = Path(f"/proc/{host.running[-1].pid}/status").read_text().splitlines()
    return next(line.partition(":")[2].strip() for line in lines if line.startswith(word))


@pytest.mark.needs("lab")
@pytest.mark.parametrize("ping", [False, True])
def test_one_capability_or_a_kernel_that_allows_it_is_enough(host: AgentHost, ping: bool) -> None:
    become_user(host, *(() if ping else ("net_raw",)), ping=ping)
    host.start()
    host.await_samples(20)
    assert int(process_word(host, "CapEff"), 16) == (0 if ping else NET_RAW)
    assert host.end() == 0
    assert all(sample.value_ns for sample in host.samples())
    host.made()


@pytest.mark.needs("lab")
def test_without_any_it_says_what_it_lacks_and_sends_nothing(host: AgentHost) -> None:
    become_user(host)
    host.start()
    assert host.running[-1].wait(PATIENCE_S) == 3
    said = " ".join(host.log.split())
    assert "cap_net_raw" in said
    assert "ping_group_range" in said
    assert not [*host.state.glob("open/*.jsonl")]


@pytest.mark.needs("lab")
def test_what_it_may_do_it_does_and_the_rest_is_in_its_status(host: AgentHost) -> None:
    campaign = host.folder / "campaign.toml"
    campaign.write_text(campaign.read_text() + TCP)
    become_user(host)
    host.start()
    host.await_samples(40)
    until(lambda: host.status.get("samples"), "the status")
    assert any("cap_net_raw" in text for text in host.status["problems"])
    assert "probe icmp does not run" in host.log
    assert host.end() == 0
    by_probe: dict[str, set[str]] = {}
    for one in host.stored():
        kinds = {"" if each.failure is None else str(each.failure.kind) for each in one.samples}
        by_probe.setdefault(one.probe, set()).update(kinds)
    assert by_probe["icmp"] == {"permission"}
    assert by_probe["tcp"] == {""}  # refused at once, which is a round trip
    host.made()
