"""Cuts at any byte, bytes that changed, checkpoints half written, a disk that is full."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spool.conftest import balanced

from pathbudget.agents.spool.bounds import Bounds
from pathbudget.agents.spool.frames import HEADER_BYTES
from pathbudget.agents.spool.segment import HEAD_BYTES
from pathbudget.agents.spool.spool import Spool
from pathbudget.probes.fake_time import FakeClock

Open = Callable[..., Spool]
ENTRIES, SIZE, SAMPLES = 12, 90, 5
FRAME = HEADER_BYTES + len("id-00") + SIZE
BOUNDS = Bounds(bytes=64 * 4096)


def body(number: int) -> bytes:
    return (b"%02d" % number) * (SIZE // 2)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A spool of `ENTRIES`, the third one acknowledged, orderly closed."""
    folder = tmp_path_factory.mktemp("written")
    with Spool.open(folder, BOUNDS, FakeClock()) as spool:
        for number in range(ENTRIES):
            spool.append(f"id-{number:02}", body(number), SAMPLES)
        spool.acknowledge([3])
    return folder


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("scratch")


def copied(written: Path, scratch: Path) -> tuple[Path, Path]:
    """A fresh copy and its one segment."""
    shutil.rmtree(scratch)
    shutil.copytree(written, scratch)
    return scratch, next(scratch.glob("*.segment"))


def opened(folder: Path) -> Spool:
    return Spool.open(folder, BOUNDS, FakeClock())


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(0, HEAD_BYTES + ENTRIES * FRAME), synced=st.booleans())
def test_after_a_cut_at_any_byte_all_before_it_is_there(
    cut: int, synced: bool, written: Path, scratch: Path
) -> None:
    folder, segment = copied(written, scratch)
    os.truncate(segment, cut)
    if not synced:  # the checkpoint is older than what was lost
        (folder / "checkpoint").unlink()
    whole = max(0, cut - HEAD_BYTES) // FRAME
    kept = [number for number in range(1, whole + 1) if number != 3]
    with opened(folder) as spool:
        state = spool.state()
        assert [one.number for one in spool.waiting(0, 100)] == kept
        assert [one.payload for one in spool.waiting(0, 100)] == [body(n - 1) for n in kept]
        assert balanced(state)
        lost = state.dropped_samples.get("torn", 0)
        inside = (cut - HEAD_BYTES) % FRAME >= HEADER_BYTES and cut > HEAD_BYTES
        if synced:
            assert state.made_samples == ENTRIES * SAMPLES
            assert lost == (ENTRIES - whole) * SAMPLES
        else:
            assert lost == (SAMPLES if inside else 0)
        assert bool(spool.problems) == (cut < HEAD_BYTES or (cut - HEAD_BYTES) % FRAME > 0)
        following = spool.append("after", b"x", 1)
        assert following is not None
        assert following.number > whole
        expected = state.made_samples + 1, state.waiting_samples + 1
    with opened(folder) as again:
        assert (again.state().made_samples, again.state().waiting_samples) == expected
        assert again.state().dropped_samples == state.dropped_samples
        assert [one.number for one in again.waiting(0, 100)] == [*kept, following.number]
        assert again.problems == []


@settings(max_examples=40, deadline=None)
@given(place=st.integers(HEAD_BYTES, HEAD_BYTES + ENTRIES * FRAME - 1), length=st.integers(1, 300))
def test_changed_bytes_are_passed_over_to_the_next_whole_frame(
    place: int, length: int, written: Path, scratch: Path
) -> None:
    folder, segment = copied(written, scratch)
    data = bytearray(segment.read_bytes())
    for offset in range(place, min(place + length, len(data))):
        data[offset] ^= 0x5A
    segment.write_bytes(data)
    first, last = (place - HEAD_BYTES) // FRAME, (place + length - 1 - HEAD_BYTES) // FRAME
    hurt = set(range(first + 1, min(last, ENTRIES - 1) + 2))
    with opened(folder) as spool:
        numbers = {one.number for one in spool.waiting(0, 100)}
        untouched = {number for number in range(1, ENTRIES + 1) if number not in hurt}
        assert untouched - {3} <= numbers
        state = spool.state()
        assert balanced(state)
        assert state.made_samples == ENTRIES * SAMPLES
        found = state.waiting_samples // SAMPLES + state.acknowledged_samples // SAMPLES
        assert state.dropped_samples.get("torn", 0) == (ENTRIES - found) * SAMPLES


def test_a_frame_that_the_disk_loses_later_is_counted(written: Path, scratch: Path) -> None:
    folder, segment = copied(written, scratch)
    with opened(folder) as spool:
        with segment.open("r+b") as file:
            file.seek(HEAD_BYTES + 5 * FRAME + HEADER_BYTES + 20)
            file.write(b"!!!!")
        assert 6 not in {one.number for one in spool.waiting(0, 100)}
        assert spool.state().dropped_samples == {"torn": SAMPLES}
        assert "damaged" in spool.problems[0]
        assert balanced(spool.state())


@pytest.mark.parametrize("copy", [0, 1])
def test_either_copy_of_the_checkpoint_is_enough(copy: int, written: Path, scratch: Path) -> None:
    folder, _ = copied(written, scratch)
    with opened(written) as spool:
        before = spool.state()
    with (folder / "checkpoint").open("r+b") as file:
        file.seek(copy * 4096)
        file.write(bytes(300))
    with opened(folder) as spool:
        assert spool.state() == before


def test_without_any_checkpoint_the_sums_begin_anew(written: Path, scratch: Path) -> None:
    folder, _ = copied(written, scratch)
    (folder / "checkpoint").write_bytes(b"\xff" * 8192)
    with opened(folder) as spool:
        assert spool.state().waiting_samples == (ENTRIES - 1) * SAMPLES
        assert balanced(spool.state())
        assert "checkpoint is damaged" in spool.problems[0]


def test_a_file_that_somebody_removed_is_counted(open_spool: Open, tmp_path: Path) -> None:
    spool = open_spool(BOUNDS)
    for number in range(60):
        spool.append(f"id-{number}", bytes(500), 2)
    spool.close()
    files = sorted((tmp_path / "spool").glob("*.segment"))
    assert len(files) > 4
    files[0].unlink()
    files[2].unlink()
    again = open_spool(BOUNDS)
    state = again.state()
    assert state.made_samples == 120
    assert balanced(state)
    assert state.dropped_samples["torn"] == 120 - state.waiting_samples > 0


def test_a_torn_entry_that_comes_again_counts_once(written: Path, scratch: Path) -> None:
    folder, segment = copied(written, scratch)
    os.truncate(segment, HEAD_BYTES + ENTRIES * FRAME - 1)
    with opened(folder) as spool:
        assert spool.was_torn(f"id-{ENTRIES - 1:02}")
        assert not spool.was_torn("id-00")
        spool.append(f"id-{ENTRIES - 1:02}", body(ENTRIES - 1), SAMPLES, again=True)
        before = spool.state()
        assert before.made_samples == ENTRIES * SAMPLES
        assert before.dropped_samples == {}
        assert balanced(before)
    with opened(folder) as spool:
        assert spool.state() == before


def test_a_full_disk_drops_counts_and_recovers(
    open_spool: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = open_spool(BOUNDS)
    spool.append("before", b"abc", 4)
    write = os.pwrite

    def full(descriptor: int, data: bytes, offset: int) -> int:
        if len(data) > HEADER_BYTES and offset >= HEAD_BYTES and len(data) != 4096:
            if len(data) == 1000 + HEADER_BYTES + 1:
                return write(descriptor, data[:500], offset)  # a part still fits
            raise OSError(errno.ENOSPC, "no space")
        return write(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    assert spool.append("x", bytes(1000), 7) is None
    assert spool.trouble == "the disk is full"
    spool.acknowledge([1])  # in place: needs no room
    monkeypatch.undo()
    assert spool.append("after", b"def", 2) is not None
    assert spool.trouble == ""
    state = spool.state()
    assert state.dropped_samples == {"disk_full": 7}
    assert (state.made_samples, state.acknowledged_samples, state.waiting_samples) == (13, 4, 2)
    again = open_spool(BOUNDS)
    assert again.state() == state
    assert again.problems == []
