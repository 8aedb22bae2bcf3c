"""`pathbudget run` as a user meets it: real processes, real connections on loopback, rough ends."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from pathbudget.agents.campaign.campaign_file import load_campaign
from pathbudget.agents.campaign.plan import due_shots
from pathbudget.agents.store.parquet import Store
from pathbudget.probes.record import Sample
from pathbudget.probes.table import probe_table

PATHBUDGET = (sys.executable, "-c", "from pathbudget.agents.cli.main import run; run()")

Run = Callable[..., "subprocess.CompletedProcess[str]"]


class Listener:
    """Accepts TCP connections on loopback and holds them until the other side closes."""

    def __init__(self) -> None:
        self.accepted = 0
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.port = int(self._socket.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            self.accepted += 1
            connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@pytest.fixture
def listener() -> Iterator[Listener]:
    listening = Listener()
    yield listening
    listening.close()


class Folder:
    """A campaign of two vantages against one listener, and commands run in its folder."""

    def __init__(self, path: Path, port: int, duration: str) -> None:
        self.path = path
        self.store = path / "store"
        (path / "catalogue.toml").write_text(
            '[[region]]\nname = "here"\nlatitude = 32.8\nlongitude = -96.8\n'
            '[[site]]\nname = "there"\nlatitude = 41.9\nlongitude = -87.6\n'
            f'[[site.target]]\nname = "listener"\nhost = "127.0.0.1"\nport = {port}\n'
        )
        (path / "campaign.toml").write_text(
            f'name = "rough"\ncatalogue = "catalogue.toml"\nduration = "{duration}"\nseed = 3\n'
            '[[vantage]]\nname = "one"\nregion = "here"\n'
            '[[vantage]]\nname = "two"\nregion = "here"\n'
            '[[probe]]\nkind = "tcp"\ninterval = "40ms"\ntimeout = "1s"\n'
        )

    def command(self, *arguments: str) -> list[str]:
        return [*PATHBUDGET, *arguments]

    def run(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            self.command(*arguments), cwd=self.path, capture_output=True, text=True, check=False
        )

    def measure(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return self.run("run", "campaign.toml", "--store", "store", *arguments)

    def start(self) -> "subprocess.Popen[str]":
        """A run in a process group of its own, well under way in both of its workers."""
        process = subprocess.Popen(
            self.command("run", "campaign.toml", "--store", "store"),
            cwd=self.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
        wait_for(lambda: process.poll() is not None or self.is_under_way())
        assert process.poll() is None, process.communicate()
        return process

    def journals(self) -> list[Path]:
        return sorted((self.store / "spool").glob("*.jsonl"))

    def spooled(self) -> int:
        """Samples in the journals."""
        return sum(self._spooled_by_worker())

    def is_under_way(self) -> bool:
        """On a busy host one worker may begin long after the other."""
        counts = self._spooled_by_worker()
        return len(counts) == 2 and min(counts) > 0 and sum(counts) > 60

    def _spooled_by_worker(self) -> list[int]:
        return [path.read_bytes().count(b'"sample"') for path in self.journals()]

    def planned(self) -> int:
        plan = load_campaign(self.path / "campaign.toml", probe_table()).plan
        return sum(len(list(due_shots(vantage))) for vantage in plan.vantages)

    def samples(self) -> list[tuple[str, Sample]]:
        stored = Store(self.store).measurements()
        return [(one.vantage.name, sample) for one in stored for sample in one.samples]

    def cut_off(self) -> int:
        return sum(one.counters.get("cut_off", 0) for one in Store(self.store).measurements())


@pytest.fixture
def folder(tmp_path: Path, listener: Listener) -> Folder:
    return Folder(tmp_path, listener.port, "3s")


def wait_for(happened: Callable[[], bool], seconds: float = 60.0) -> None:
    until = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < until, "it did not happen"
        time.sleep(0.02)


def workers_of(spool: Path) -> list[int]:
    """Processes that have a journal of the spool open."""
    found: list[int] = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                links = [str(link.readlink()) for link in (process / "fd").iterdir()]
            except OSError:
                continue
            if any(link.startswith(str(spool)) and ".jsonl" in link for link in links):
                found.append(int(process.name))
    return found


def test_a_run_to_its_end_stores_every_send_and_leaves_no_spool(folder: Folder) -> None:
    done = folder.measure()
    assert done.returncode == 0, done.stderr
    samples = folder.samples()
    assert len(samples) == folder.planned()
    assert {name for name, _ in samples} == {"one", "two"}
    assert all(sample.value_ns is not None for _, sample in samples)
    assert list((folder.store / "spool").iterdir()) == []
    assert f"{folder.planned()} probes sent" in done.stderr


def test_explain_prints_the_plan_and_sends_nothing(folder: Folder, listener: Listener) -> None:
    file = folder.path / "campaign.toml"
    file.write_text(file.read_text().replace('"rough"', '"rough [/draft]"'))
    done = folder.measure("--explain")
    assert done.returncode == 0, done.stderr
    assert "Campaign rough [/draft], 3s" in done.stdout
    assert listener.accepted == 0
    assert not folder.store.exists()
    for word in ("packets", "bytes", "3s", "Seed 3", "Nothing was sent"):
        assert word in done.stdout or (word == "bytes" and "kB" in done.stdout)
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP], ids=["ctrl-c", "hang-up"])
def test_a_stop_stores_what_was_measured_and_resume_does_the_rest(
    tmp_path: Path, listener: Listener, number: signal.Signals
) -> None:
    folder = Folder(tmp_path, listener.port, "4s")
    process = folder.start()
    os.killpg(process.pid, number)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert "pathbudget run campaign.toml --store store --resume" in said
    first = folder.samples()
    assert 60 < len(first) < folder.planned()
    assert folder.journals() == []

    done = folder.measure("--resume")
    assert done.returncode == 0, done.stderr
    samples = folder.samples()
    numbers = [(name, sample.seq) for name, sample in samples]
    assert len(set(numbers)) == len(numbers)
    assert len(numbers) + folder.cut_off() == folder.planned()

    again = folder.measure("--resume")
    assert again.returncode == 2
    assert "no interrupted run" in again.stderr


@pytest.mark.parametrize("group", [False, True], ids=["controller", "everything"])
def test_kill_9_loses_nothing_and_resume_goes_on(
    tmp_path: Path, listener: Listener, group: bool
) -> None:
    folder = Folder(tmp_path, listener.port, "4s")
    process = folder.start()
    (os.killpg if group else os.kill)(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)
    wait_for(lambda: workers_of(folder.store / "spool") == [])
    spooled = folder.spooled()
    assert spooled > 60

    done = folder.run("store", "recover", "store")
    assert done.returncode == 0, done.stderr
    assert len(folder.samples()) == spooled
    assert folder.journals() == []

    done = folder.measure("--resume")
    assert done.returncode == 0, done.stderr
    numbers = {(name, sample.seq) for name, sample in folder.samples()}
    assert len(numbers) + folder.cut_off() >= folder.planned() - 2  # one in flight per worker


def test_a_killed_worker_is_reported_and_its_samples_are_kept(folder: Folder) -> None:
    process = folder.start()
    victim, *others = workers_of(folder.store / "spool")
    assert others
    os.kill(victim, signal.SIGKILL)
    _, said = process.communicate(timeout=60)
    assert "its worker stopped early" in said
    assert process.returncode == 5
    samples = folder.samples()
    counts = {name: sum(1 for owner, _ in samples if owner == name) for name in ("one", "two")}
    assert min(counts.values()) > 0
    assert max(counts.values()) > folder.planned() / 2 * 0.8
    assert folder.journals() == []


def test_a_target_that_is_down_is_an_answer_with_exit_code_4(folder: Folder) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:  # its kernel drops any more SYN
        port = int(full.getsockname()[1])
        with socket.create_connection(("127.0.0.1", port)):
            folder = Folder(folder.path, port, "1s")
            done = folder.measure()
    assert done.returncode == 4, done.stderr
    assert "Not one probe succeeded" in done.stderr
    planned = folder.planned()
    assert f"{planned} probes sent, {planned} failed: " in done.stderr
    failures = [str(sample.failure.kind) for _, sample in folder.samples() if sample.failure]
    assert len(failures) == planned
    assert "timeout" in failures
    assert set(failures) <= {
        "timeout",
        "local",
    }  # local: no more half-open connections than is fair


def test_a_name_that_does_not_resolve_is_an_answer_too(folder: Folder) -> None:
    catalogue = folder.path / "catalogue.toml"
    catalogue.write_text(catalogue.read_text().replace("127.0.0.1", "nowhere.invalid"))
    done = folder.measure()
    assert done.returncode == 4, done.stderr
    assert "0 probes sent, 0 failed\n" in done.stderr
    assert f"{folder.planned()} not sent to nowhere.invalid: " in done.stderr
    assert "/etc/resolv.conf" in done.stderr
    kinds = {
        (str(sample.failure.kind), str(sample.failure.stage))
        for _, sample in folder.samples()
        if sample.failure
    }
    assert kinds <= {("name_not_found", "resolve"), ("resolver", "resolve")}
    assert kinds


def test_a_faulty_file_gets_every_fault_and_nothing_is_sent(
    folder: Folder, listener: Listener
) -> None:
    campaign = folder.path / "campaign.toml"
    campaign.write_text(
        campaign.read_text().replace('"3s"', '"soon"').replace('kind = "tcp"', 'kind = "tpc"')
    )
    done = folder.measure()
    assert done.returncode == 2
    assert "campaign.toml: duration:" in done.stderr
    assert "campaign.toml: probe[0].kind:" in done.stderr
    assert "2 faults; nothing was loaded." in done.stderr
    assert listener.accepted == 0


def test_a_changed_plan_is_not_resumed(tmp_path: Path, listener: Listener) -> None:
    folder = Folder(tmp_path, listener.port, "4s")
    process = folder.start()
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    campaign = folder.path / "campaign.toml"
    campaign.write_text(campaign.read_text().replace('"40ms"', '"50ms"'))
    done = folder.measure("--resume")
    assert done.returncode == 2
    assert "has changed since it was interrupted" in " ".join(done.stderr.split())


def test_a_store_that_cannot_be_written_is_noticed_before_anything_is_sent(
    folder: Folder, listener: Listener
) -> None:
    folder.store.write_text("not a folder")
    done = folder.measure()
    assert done.returncode == 5, done.stderr
    assert str(folder.store.name) in done.stderr
    assert listener.accepted == 0


FULL_DISK = """
import os, subprocess, sys
folder, command = sys.argv[1], sys.argv[2:]
os.mkdir(folder + "/store")
mount = ["mount", "-t", "tmpfs", "-o", "size=" + os.environ["SIZE"], "tmpfs", folder + "/store"]
subprocess.run(mount, check=True)
mode = os.environ.get("REMOUNT")
if mode:
    subprocess.run(["mount", "-o", "remount,bind," + mode, folder + "/store"], check=True)
done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
names = os.listdir(folder + "/store/spool") if os.path.isdir(folder + "/store/spool") else []
import json
print(json.dumps([done.returncode, done.stderr, names]))
"""


def on_a_disk(folder: Folder, size: str, remount: str = "") -> tuple[int, str, Sequence[str]]:
    """Run the campaign with its store on a disk of its own: exit code, stderr, spool."""
    inside = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c", FULL_DISK]
    done = subprocess.run(
        [*inside, str(folder.path), *folder.command("run", "campaign.toml", "--store", "store")],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "SIZE": size, "REMOUNT": remount},
    )
    assert done.returncode == 0, done.stderr
    code, said, names = json.loads(done.stdout)
    return code, said, names


@pytest.mark.needs("lab")
def test_a_full_disk_is_noticed_before_anything_is_sent(folder: Folder, listener: Listener) -> None:
    code, said, _ = on_a_disk(folder, "100k")
    assert code == 5, said
    assert "the disk is full" in said
    assert listener.accepted == 0


@pytest.mark.needs("lab")
def test_a_read_only_store_is_noticed_before_anything_is_sent(
    folder: Folder, listener: Listener
) -> None:
    code, said, _ = on_a_disk(folder, "8m", remount="ro")
    assert code == 5, said
    assert "read-only" in said
    assert listener.accepted == 0


def test_without_privileges_the_remedy_is_named_and_nothing_is_sent(folder: Folder) -> None:
    """A kernel that gives no ICMP socket of either kind."""
    campaign = folder.path / "campaign.toml"
    campaign.write_text(campaign.read_text().replace('kind = "tcp"', 'kind = "icmp"'))
    drop = (
        "from pathbudget.probes import network\n"
        "def refuse(family, *, privileged): raise PermissionError(1, 'no')\n"
        "network.try_icmp = refuse\n"
        "from pathbudget.agents.campaign import worker\n"
        "import asyncio, signal\n"
        "asyncio.run(worker._main())\n"
    )
    launcher = (
        "import sys\n"
        "from pathbudget.agents.campaign import channel\n"
        f"channel.WORKER = (sys.executable, '-c', {drop!r})\n"
        "from pathbudget.agents.cli.main import run\n"
        "run()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", launcher, "run", "campaign.toml", "--store", "store"],
        cwd=folder.path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3, done.stderr
    assert "cap_net_raw" in done.stderr
    assert "ping_group_range" in done.stderr
    assert folder.journals() == []
