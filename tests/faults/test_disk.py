"""A disk of an agent that fills up while it measures, and is emptied again.

The disk is a small tmpfs in a mount namespace of its own, where agents run; the store is elsewhere.
How many samples were made is told by their numbers, which nobody but the schedule gives.
"""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.daemon.conftest import PATIENCE_S, AgentHost, until

SIZE = 3 << 20
HOLD = """
import subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=" + sys.argv[2], "tmpfs", sys.argv[1]], check=True)
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
print("ready", flush=True)
sys.stdin.read()
"""  # noqa: E501
FILLER = "filler"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[AgentHost]:
    """Agents whose folder is on a disk of `SIZE` bytes."""
    one = AgentHost(tmp_path)
    one.write(interval="10ms")
    one.state.mkdir()
    namespaces = ["unshare", "--user", "--map-root-user", "--mount", "--net"]
    with subprocess.Popen(
        [*namespaces, sys.executable, "-c", HOLD, str(one.state), str(SIZE)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        enter = ["nsenter", f"--target={holder.pid}", "--user", "--mount", "--net"]
        change = ["sh", "-c", 'cd "$0" && exec "$@"', str(tmp_path)]
        one.inside = (*enter, "--preserve-credentials", *change)
        one.state = Path(f"/proc/{holder.pid}/root") / one.state.relative_to("/")
        yield one
        for process in one.running:
            process.kill()
            process.wait(PATIENCE_S)
        holder.kill()


def fill(host: AgentHost) -> None:
    """Take every byte that is left."""
    with (host.state / FILLER).open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass


@pytest.mark.needs("lab")
def test_what_a_full_disk_does_not_take_is_counted_and_the_rest_arrives(host: AgentHost) -> None:
    host.start("--spool-bytes", str(1 << 20))
    host.await_samples(100)
    fill(host)
    until(lambda: "the disk is full" in host.log, "the trouble in the log")
    (host.state / FILLER).unlink()
    host.count_anew()
    host.await_samples(100)
    assert host.end() == 0
    spool = host.status["spool"]
    assert spool.get("waiting_samples", 0) == 0
    stored = host.everything()
    found = sum(len(one.samples) for one in stored)
    assert found == spool["acknowledged_samples"]
    assert spool["made_samples"] == found + spool["dropped_samples"]["disk_full"]
    assert {*spool["dropped_samples"]} == {"disk_full"}
    sent = [sample.seq for sample in host.samples()]
    assert len(sent) == len(set(sent))
    missing = max(sent) + 1 - len(sent)
    assert 0 < missing == spool["dropped_samples"]["disk_full"]
    assert not [*host.state.glob("open/*")]


@pytest.mark.needs("lab")
def test_a_journal_that_a_full_disk_keeps_out_of_the_spool_waits_there(host: AgentHost) -> None:
    """Killed, started on a full disk, which measures nothing to keep, and told to stop."""
    host.start("--spool-bytes", str(1 << 20))
    host.await_samples(100)
    host.end(signal.SIGKILL)
    fill(host)
    host.start("--spool-bytes", str(1 << 20))
    until(lambda: "the disk is full" in host.log, "the trouble in the log")
    assert host.end() == 0
    (host.state / FILLER).unlink()
    (left,) = host.state.glob("open/*.jsonl")
    assert left.read_bytes().count(b'{"in":') >= 100
    host.start("--spool-bytes", str(1 << 20))
    host.await_samples(20)
    assert host.end() == 0
    spool = host.status["spool"]
    found = sum(len(one.samples) for one in host.everything())
    assert found == spool["acknowledged_samples"]
    assert spool["made_samples"] == found + spool["dropped_samples"]["disk_full"]
    lives: dict[object, list[int]] = {}
    for one in host.stored():
        lives.setdefault(one.options["run"], []).extend(sample.seq for sample in one.samples)
    assert [sorted(sent) for sent in lives.values()] == [
        [*range(len(one))] for one in lives.values()
    ]
    assert len(lives) == 2
