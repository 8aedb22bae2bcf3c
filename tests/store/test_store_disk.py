"""A disk that is full or read-only: a real one, made of memory, in a namespace of our own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pathbudget.agents.store.journal import Journal
from pathbudget.agents.store.parquet import Store
from pathbudget.agents.store.recovery import commit_journal
from pathbudget.probes.errors import StoreError
from pathbudget.probes.record import Measurement

Make = Callable[..., Measurement]

SCENARIO = """
import os, subprocess, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from conftest import measurement
from pathbudget.agents.store.journal import Journal, read_journal
from pathbudget.agents.store.parquet import Store
from pathbudget.agents.store.recovery import commit_journal
from pathbudget.probes.errors import SpoolError, StoreError

disk = Path(sys.argv[2])
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", disk], check=True)
store = Store(disk / "store")

def fill(left):
    with (disk / "filler").open("wb", buffering=0) as file:
        room = os.statvfs(disk).f_bavail * 4096 - left
        file.write(b"x" * room)

def remount(mode):
    subprocess.run(["mount", "-o", f"remount,bind,{mode}", disk], check=True)

def refused(action):
    try:
        action()
    except (SpoolError, StoreError) as error:
        return str(error)
    raise SystemExit("it was not refused")

def spooled(name, number, samples):
    with Journal.create(store.spool / name) as journal:
        journal.begin(0, measurement(number, samples=0))
        for sample in measurement(number, samples=samples).samples:
            journal.append(0, sample)
        duration = measurement(number, samples=samples).duration_ns
        journal.end(0, clock=None, noise=None, duration_ns=duration)
    return journal.path

def cli(*arguments):
    start = "from pathbudget.agents.cli.main import run; run()"
    command = [sys.executable, "-c", start, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True)
"""


@pytest.fixture
def scenario(tmp_path: Path) -> Callable[[str], None]:
    """Run statements on a disk of 4 MB; an assertion that fails there fails the test."""

    def run(statements: str) -> None:
        disk = tmp_path / "disk"
        disk.mkdir()
        command = ["unshare", "--user", "--map-root-user", "--mount", sys.executable, "-c"]
        arguments = [SCENARIO + statements, str(Path(__file__).parent), str(disk)]
        done = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return run


@pytest.mark.needs("lab")
def test_a_full_disk_is_noticed_before_measuring(scenario: Callable[[str], None]) -> None:
    scenario(
        """
store.check_writable()
fill(100_000)
assert refused(store.check_writable).endswith("cannot be written: the disk is full")
create = lambda: Journal.create(store.spool / "a.jsonl", reserve_bytes=1 << 20)
assert refused(create).endswith("no journal can be begun: the disk is full")
assert list(store.spool.iterdir()) == []
assert store.verify() == []
"""
    )


@pytest.mark.needs("lab")
def test_a_journal_on_a_disk_that_fills_up_keeps_what_it_has(
    scenario: Callable[[str], None],
) -> None:
    scenario(
        """
store.check_writable()
journal = Journal.create(store.spool / "a.jsonl")
journal.begin(0, measurement(1, samples=0))
fill(20_000)
samples = measurement(1, samples=2000).samples
written = 0
def append():
    global written
    for sample in samples:
        journal.append(0, sample)
        written += 1
assert "the disk is full; those up to here are kept" in refused(append)
journal.close()
contents = read_journal(journal.path)
assert contents.measurements[0].samples == samples[:written], (written, contents)
assert written > 20 and contents.problems == ()
"""
    )


@pytest.mark.needs("lab")
def test_a_commit_on_a_full_disk_is_finished_later(scenario: Callable[[str], None]) -> None:
    scenario(
        """
store.check_writable()
store.write([measurement(1)])
journal = spooled("a.jsonl", 2, samples=5000)
fill(30_000)
message = refused(lambda: commit_journal(journal, store))
assert "cannot be written: the disk is full" in message, message
assert f"What was measured is kept in {journal}." in message
command = message.rpartition("run: ")[2]
assert command.startswith("pathbudget store recover ")
assert journal.exists()
assert list(store.measurements()) == [measurement(1)]
assert [problem.path for problem in store.verify()] == [journal]

again = cli(*command.split()[1:])
assert again.returncode == 5 and "the disk is full" in again.stderr, again
(disk / "filler").unlink()
again = cli(*command.split()[1:])
assert again.returncode == 0 and "1 measurement brought into the store" in again.stdout, again
assert list(store.measurements()) == [measurement(1), measurement(2, samples=5000)]
assert not journal.exists() and store.verify() == []
"""
    )


@pytest.mark.needs("lab")
def test_a_read_only_disk(scenario: Callable[[str], None]) -> None:
    scenario(
        """
store.check_writable()
store.write([measurement(1)])
journal = spooled("a.jsonl", 2, samples=4)
remount("ro")
read_only = "the file system is read-only"
assert refused(store.check_writable).endswith(read_only)
assert read_only in refused(lambda: store.write([measurement(3)]))
assert read_only in refused(store.compact)
assert read_only in refused(lambda: Journal.create(store.spool / "b.jsonl"))
assert "pathbudget store recover" in refused(lambda: commit_journal(journal, store))
assert list(store.measurements()) == [measurement(1)]
assert cli("store", "list", store.path).returncode == 0
assert cli("store", "recover", store.path).returncode == 5
remount("rw")
assert cli("store", "recover", store.path).returncode == 0
assert list(store.measurements()) == [measurement(1), measurement(2)]
"""
    )


@pytest.mark.needs("lab")
def test_a_compaction_on_a_full_disk_leaves_all_as_it_was(
    scenario: Callable[[str], None],
) -> None:
    scenario(
        """
records = [measurement(number, samples=2000) for number in range(10)]
for record in records:
    store.write([record])
fill(20_000)
assert "the disk is full" in refused(store.compact)
assert list(store.measurements()) == records
assert store.verify() == []
(disk / "filler").unlink()
store.compact()
assert list(store.measurements()) == records
assert store.verify() == []
"""
    )


def test_a_write_that_finds_no_room_leaves_no_trace(
    tmp_path: Path, make: Make, with_file_limit: Callable[[int, Callable[[], str]], str]
) -> None:
    """The same for every user and kernel: a limit on the size of files stands for the disk."""
    store = Store(tmp_path / "store")
    store.write([make(1)])

    def write() -> str:
        try:
            store.write([make(2, samples=50_000)])
        except StoreError as error:
            return str(error)
        return "it was written"

    assert with_file_limit(10_000, write).endswith(
        "cannot be written: the file would be larger than this process may write"
    )
    assert list(store.measurements()) == [make(1)]
    assert store.verify() == []


def test_a_journal_is_kept_when_the_store_has_no_room(
    tmp_path: Path, make: Make, with_file_limit: Callable[[int, Callable[[], str]], str]
) -> None:
    store = Store(tmp_path / "store")
    store.check_writable()
    with Journal.create(store.spool / "a.jsonl") as journal:
        journal.begin(0, make(1, samples=0))
        for sample in make(1, samples=20_000).samples:
            journal.append(0, sample)

    def commit() -> str:
        try:
            commit_journal(journal.path, store)
        except StoreError as error:
            return str(error)
        return "it was committed"

    answer = with_file_limit(10_000, commit)
    assert answer.endswith(f"run: pathbudget store recover {store.path}")
    assert journal.path.exists()
    assert commit_journal(journal.path, store).written == 1
    assert not journal.path.exists()


def test_a_store_of_another_user_is_readable_and_says_so(
    public_folder: Path, make: Make, as_ordinary_user: Callable[[Callable[[], str]], str]
) -> None:
    store = Store(public_folder / "store")
    store.write([make(1)])
    for path in [store.path, *store.path.rglob("*")]:
        path.chmod(0o555 if path.is_dir() else 0o444)

    def tell() -> str:
        said: list[str] = [str([record.id for record in store.measurements()])]
        for action in (store.check_writable, lambda: store.write([make(2)]), store.compact):
            try:
                action()
            except StoreError as error:
                said.append(str(error))
        return "\n".join(said)

    answer = as_ordinary_user(tell).split("\n")
    for path in [store.path, *store.path.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    assert answer[0] == str([make(1).id])
    assert [line.rpartition(": ")[2] for line in answer[1:]] == ["this user may not write here"] * 3
