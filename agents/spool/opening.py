"""Opening a spool: what a crash, a power cut or a bad disk left is put in order and counted."""

import fcntl
import itertools
import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pathbudget.agents.spool.checkpoint import Checkpoint, CheckpointFile
from pathbudget.agents.spool.segment import ENDING, TORN, Segment
from pathbudget.probes.errors import SpoolError

LOCK, CHECKPOINT = "lock", "checkpoint"


@dataclass
class Opened:
    """What there is. `checkpoint` holds the sums of what is in no segment any more."""

    folder: Path
    lock: int
    checkpoints: CheckpointFile
    checkpoint: Checkpoint
    segments: list[Segment] = field(default_factory=list[Segment])
    problems: list[str] = field(default_factory=list[str])
    torn_names: set[str] = field(default_factory=set[str])
    written: int = 0
    next: int = 1
    spool_ns: int = 0


def open_folder(folder: Path, unix_ns: int) -> Opened:
    """Read a spool and hold its lock. Nothing of it is changed yet but files that are gone by the
    checkpoint. Raises OSError, and SpoolError where another process has it.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    lock = _lock(folder)
    try:
        checkpoints = CheckpointFile(folder / CHECKPOINT)
        is_new = checkpoints.is_new()
        checkpoint = checkpoints.read()
        opened = Opened(folder, lock, checkpoints, checkpoint or Checkpoint())
        if checkpoint is None and not is_new:
            opened.problems.append("the checkpoint is damaged: sums begin anew")
        _load(opened)
        if checkpoint is None and opened.segments:
            _begin_sums_at(opened, opened.segments[0].written_before)
        _note_torn(opened)
        _reconcile(opened)
        opened.spool_ns = _clock(opened, unix_ns)
    except BaseException:
        os.close(lock)
        raise
    return opened


def _lock(folder: Path) -> int:
    descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise SpoolError(f"{folder}: another process has this spool") from None
    return descriptor


def _load(opened: Opened) -> None:
    above, written = 0, opened.checkpoint.retired
    for path in sorted(opened.folder.glob(f"*{ENDING}")):
        if int(path.name.partition(".")[0]) < opened.checkpoint.first:
            path.unlink(missing_ok=True)
            continue
        segment = Segment.load(path, above, written)
        opened.segments.append(segment)
        above, written = max(above, segment.last), segment.written_after


def _begin_sums_at(opened: Opened, written: int) -> None:
    opened.checkpoint = msgspec.structs.replace(
        opened.checkpoint, first=opened.segments[0].first, retired=written, base=written
    )


def _note_torn(opened: Opened) -> None:
    for segment in opened.segments:
        for torn in segment.torn:
            opened.problems.append(f"{torn.place}: damaged, passed over")
            if torn.name:
                opened.torn_names.add(torn.name)


def _reconcile(opened: Opened) -> None:
    """Give every sample that was written and is in no frame its place among the torn ones."""
    checkpoint, segments = opened.checkpoint, opened.segments
    written = max(checkpoint.written, checkpoint.retired)
    number = checkpoint.next
    for segment in segments:
        number = max(number, segment.last + 1)
        for frame in (torn.frame for torn in segment.torn if torn.frame is not None):
            written = max(written, frame.written_before + frame.samples)
            number = max(number, frame.number + 1)
    for segment, following in itertools.pairwise(segments):
        segment.lose(max(0, following.written_before - segment.written_after))
    before_all = segments[0].written_before if segments else written
    if (missing := before_all - checkpoint.retired) > 0:
        dropped = Counter(checkpoint.dropped) + Counter({TORN: missing})
        opened.checkpoint = msgspec.structs.replace(
            checkpoint, dropped=dict(dropped), retired=before_all
        )
        opened.problems.append(f"{missing} samples were in a file that is not there")
    if segments:
        segments[-1].lose(max(0, written - segments[-1].written_after))
        written = segments[-1].written_after
    opened.written, opened.next = written, number


def _clock(opened: Opened, unix_ns: int) -> int:
    """What the clock of the spool shows: it stood at the last thing written, and ran on since by
    the wall clock, which may not go back.
    """
    last = opened.segments[-1] if opened.segments else None
    spool_ns, then_ns = opened.checkpoint.spool_ns, opened.checkpoint.unix_ns
    if last is not None and last.spool_ns > spool_ns:
        spool_ns, then_ns = last.spool_ns, last.unix_ns
    return spool_ns + (max(0, unix_ns - then_ns) if then_ns else 0)
