"""The spool file: what is in it after an orderly end, a kill, and on a bad disk."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from pathbudget.agents.store.journal import Journal, read_journal
from pathbudget.probes.errors import RecordError, SpoolError
from pathbudget.probes.record import ClockQuality, ClockSource, Measurement, NoiseFloor, SyncState

CLOCK = ClockQuality(SyncState.SYNCHRONISED, "adjtimex", 1_000_000)
NOISE = NoiseFloor(11_000, ClockSource.KERNEL, 60_000, 180_000)
Make = Callable[..., Measurement]


def spool(journal: Journal, *measurements: Measurement, end: bool = True) -> None:
    """Write all of them as a campaign does: begun together, samples in turn."""
    for series, measurement in enumerate(measurements):
        journal.begin(series, measurement)
    for turn in range(max(len(measurement.samples) for measurement in measurements)):
        for series, measurement in enumerate(measurements):
            for sample in measurement.samples[turn : turn + 1]:
                journal.append(series, sample)
    for series, measurement in enumerate(measurements if end else ()):
        journal.end(series, clock=CLOCK, noise=NOISE, duration_ns=measurement.duration_ns)


def ended(measurement: Measurement) -> Measurement:
    return msgspec.structs.replace(measurement, clock=CLOCK, noise=NOISE)


@pytest.mark.parametrize("reserve_bytes", [0, 100, 1 << 20])
def test_what_was_spooled_comes_back(tmp_path: Path, make: Make, reserve_bytes: int) -> None:
    path = tmp_path / "a.jsonl"
    one, two = make(1, samples=7), make(2, samples=3)
    with Journal.create(path, reserve_bytes=reserve_bytes) as journal:
        spool(journal, one, two)
    contents = read_journal(path)
    assert contents.measurements == (ended(one), ended(two))
    assert contents.complete
    assert contents.problems == ()
    assert not path.read_bytes().endswith(b"\0")


def test_space_is_set_aside_at_once_and_given_back(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "a.jsonl"
    journal = Journal.create(path, reserve_bytes=1 << 20)
    assert path.stat().st_blocks * 512 >= 1 << 20
    journal.close()
    assert path.stat().st_size < 100


def test_an_open_journal_with_reserved_space_is_readable(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "a.jsonl"
    with Journal.create(path, reserve_bytes=1 << 16) as journal:
        spool(journal, make(1), end=False)
        contents = read_journal(path)
    assert contents.measurements[0].samples == make(1).samples
    assert contents.problems == ()
    assert not contents.complete


def test_counts_add_up(tmp_path: Path, make: Make) -> None:
    with Journal.create(tmp_path / "a.jsonl") as journal:
        journal.begin(0, make(5))
        journal.count(0, "late")
        journal.count(0, "late")
        journal.flush()
        journal.count(0, "late")
        journal.count(0, "foreign")
        journal.end(0, clock=None, noise=None, duration_ns=1)
    (measurement,) = read_journal(journal.path).measurements
    assert measurement.counters == {"late": 3, "foreign": 6}  # 5 were in the envelope


def test_counts_of_no_series_are_no_trouble(tmp_path: Path, make: Make) -> None:
    with Journal.create(tmp_path / "a.jsonl") as journal:
        journal.count(-1, "foreign")
        spool(journal, make(1))
    contents = read_journal(journal.path)
    assert contents.complete
    assert contents.problems == ()


def test_a_measurement_without_end_gets_what_is_known(tmp_path: Path, make: Make) -> None:
    with Journal.create(tmp_path / "a.jsonl") as journal:
        spool(journal, make(1, samples=3), end=False)
    contents = read_journal(journal.path)
    (measurement,) = contents.measurements
    assert not contents.complete
    assert measurement.counters == {"foreign": 1, "incomplete": 1}
    assert measurement.duration_ns == 500_000_000 + 15_000_002
    assert measurement.samples == make(1, samples=3).samples


def test_kill_loses_at_most_the_sample_in_flight(tmp_path: Path) -> None:
    program = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from conftest import measurement\n"
        "from pathlib import Path\n"
        "from pathbudget.agents.store.journal import Journal\n"
        "journal = Journal.create(Path(sys.argv[1]), reserve_bytes=1 << 20)\n"
        "journal.begin(0, measurement(1, samples=0))\n"
        "for sample in measurement(1, samples=10**5).samples:\n"
        "    journal.append(0, sample)\n"
        "    print(sample.seq, flush=True)\n"
    )
    path = tmp_path / "a.jsonl"
    command = [sys.executable, "-c", program, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        told = 0
        while told < 500:
            told = int(writer.stdout.readline())
        writer.send_signal(signal.SIGKILL)
        told = max([told, *map(int, writer.stdout.read().split())])
    contents = read_journal(path)
    numbers = [sample.seq for sample in contents.measurements[0].samples]
    assert numbers in (list(range(told + 1)), list(range(told + 2)))
    assert contents.problems == ()


@pytest.mark.parametrize("cut", [1, 5, 60, 120])
def test_everything_before_a_cut_is_kept(tmp_path: Path, make: Make, cut: int) -> None:
    path = tmp_path / "a.jsonl"
    with Journal.create(path) as journal:
        spool(journal, make(1, samples=8), end=False)
    data = path.read_bytes()
    path.write_bytes(data[:-cut])
    lines_left = data[:-cut].count(b"\n")
    contents = read_journal(path)
    kept = contents.measurements[0].samples
    assert len(kept) >= lines_left - 2  # the lines of the journal and of the envelope
    assert kept == make(1, samples=8).samples[: len(kept)]
    assert not contents.complete


def test_a_cut_line_is_named(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "a.jsonl"
    with Journal.create(path) as journal:
        spool(journal, make(1, samples=8))
    path.write_bytes(path.read_bytes()[:-10])
    contents = read_journal(path)
    assert contents.problems == ("line 11: cut off; passed over",)
    assert contents.measurements[0].samples == make(1, samples=8).samples
    assert contents.measurements[0].counters["incomplete"] == 1


def test_damage_in_the_middle_costs_only_its_line(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "a.jsonl"
    with Journal.create(path) as journal:
        spool(journal, make(1, samples=8))
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = b"\0" * 40 + lines[4][40:]
    path.write_bytes(b"".join(lines))
    contents = read_journal(path)
    assert [sample.seq for sample in contents.measurements[0].samples] == [0, 1, 3, 4, 5, 6, 7]
    assert len(contents.problems) == 1
    assert contents.problems[0].startswith("line 5: no valid JSON")
    assert not contents.complete


def test_samples_whose_beginning_is_lost_are_named(tmp_path: Path, make: Make) -> None:
    path = tmp_path / "a.jsonl"
    with Journal.create(path) as journal:
        spool(journal, make(1))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))
    contents = read_journal(path)
    assert contents.measurements == ()
    assert contents.problems == ("series 0: 4 samples without their beginning",)


def test_a_newer_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"journal":2}\n')
    with pytest.raises(RecordError, match="written by a newer pathbudget; journal version 2"):
        read_journal(path)


def test_a_series_begins_once(tmp_path: Path, make: Make) -> None:
    with Journal.create(tmp_path / "a.jsonl") as journal:
        journal.begin(0, make(1))
        with pytest.raises(ValueError, match="series 0 has begun already"):
            journal.begin(0, make(2))


def test_an_existing_file_is_never_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("precious")
    with pytest.raises(SpoolError, match="there is a journal of this name already"):
        Journal.create(path)
    assert path.read_text() == "precious"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_hard_links_will_do(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def link(source: Path, target: Path) -> None:
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", link)
    with Journal.create(tmp_path / "a.jsonl") as journal:
        spool(journal, make(1))
    assert read_journal(journal.path).complete
    assert list(tmp_path.iterdir()) == [journal.path]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SpoolError, match="no journal can be begun: the folder does not exist"):
        Journal.create(tmp_path / "no" / "a.jsonl")


def test_a_folder_of_another_user_is_named(
    public_folder: Path, as_ordinary_user: Callable[[Callable[[], str]], str]
) -> None:
    public_folder.chmod(0o555)

    def create() -> str:
        try:
            Journal.create(public_folder / "a.jsonl")
        except SpoolError as error:
            return str(error)
        return "it was created"

    assert as_ordinary_user(create).endswith("this user may not write here")


def test_too_little_room_is_noticed_before_anything_is_written(
    tmp_path: Path, with_file_limit: Callable[[int, Callable[[], str]], str]
) -> None:
    def create() -> str:
        try:
            Journal.create(tmp_path / "a.jsonl", reserve_bytes=1 << 20)
        except SpoolError as error:
            return str(error)
        return "it was created"

    answer = with_file_limit(1 << 16, create)
    assert answer.endswith(
        "no journal can be begun: the file would be larger than this process may write"
    )
    assert list(tmp_path.iterdir()) == []


def test_what_was_written_before_the_disk_filled_up_is_kept(
    tmp_path: Path, make: Make, with_file_limit: Callable[[int, Callable[[], str]], str]
) -> None:
    path = tmp_path / "a.jsonl"
    samples = make(1, samples=200).samples

    def write() -> str:
        journal = Journal.create(path)
        journal.begin(0, make(1, samples=0))
        written = 0
        try:
            for sample in samples:
                journal.append(0, sample)
                written += 1
        except SpoolError as error:
            journal.close()
            return f"{written} {error}"
        return "all were written"

    number, _, message = with_file_limit(8_000, write).partition(" ")
    assert "the journal takes no more samples" in message
    contents = read_journal(path)
    assert contents.measurements[0].samples == samples[: int(number)]
    assert 10 < int(number) < 200
    assert contents.problems == ()


def test_after_a_full_disk_nothing_follows_the_torn_line(
    tmp_path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = Journal.create(tmp_path / "a.jsonl")
    journal.begin(0, make(1))
    real, room = os.write, [150]

    def write(descriptor: int, data: bytes) -> int:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = real(descriptor, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", write)
    first, second, third, *_ = make(1).samples
    journal.append(0, first)
    with pytest.raises(SpoolError, match="the disk is full; those up to here are kept"):
        journal.append(0, second)
    room[0] = 10**6
    with pytest.raises(SpoolError, match="the disk is full"):
        journal.append(0, third)
    journal.close()
    assert read_journal(journal.path).measurements[0].samples == (first,)
