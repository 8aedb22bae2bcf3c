"""The spool of an agent: appended entries stay until they are acknowledged, or dropped and counted.

    spool = Spool.open(folder, Bounds())
    entry = spool.append(measurement.id, payload, samples)      None: dropped, and counted
    for entry in spool.waiting(after=0, most=100): ...
    spool.acknowledge([entry.number])

An entry is with the kernel when `append` returns: ``kill -9`` loses nothing. What `unsynced` gives,
called in a thread every second or so, bounds what a power cut can take. For every moment, and over
restarts: made = acknowledged + dropped + waiting, in samples (`entry.SpoolState`).
"""

import contextlib
import errno
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType

from pathbudget.agents.spool.bounds import Bounds, DropPolicy
from pathbudget.agents.spool.checkpoint import Checkpoint
from pathbudget.agents.spool.entry import Entry, SpoolState
from pathbudget.agents.spool.frames import ACKNOWLEDGED, AGED, encode_frame
from pathbudget.agents.spool.opening import Opened, open_folder
from pathbudget.agents.spool.segment import AGE, HEAD_BYTES, TORN
from pathbudget.agents.spool.segments import Segments
from pathbudget.agents.store.disk import explain_os_error, sync
from pathbudget.probes.clock import Clock, SystemClock
from pathbudget.probes.errors import SpoolError

BYTES, DISK_FULL, DISK_ERROR = "bytes", "disk_full", "disk_error"
UNDELIVERABLE = "undeliverable"
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
MOST_BYTES = 8 << 20
"""`waiting` reads no more than this at once (but always one entry)."""


class Spool:
    """Use `open`. For one event loop: no method waits for the disk but `close`."""

    def __init__(self, opened: Opened, bounds: Bounds, clock: Clock) -> None:
        self.folder = opened.folder
        self.problems = opened.problems
        """What was found damaged, in words."""
        self.trouble = ""
        """Why the disk took no entry last time; empty when it did."""
        self.bounds = bounds
        self._clock = clock
        self._lock = opened.lock
        self._checkpoints = opened.checkpoints
        self._next, self._written = opened.next, opened.written
        self._spool_ns, self._at_ns = opened.spool_ns, clock.monotonic_ns()
        start = opened.checkpoint
        self._base, self._found_again = start.base, start.found_again
        self._refused = Counter(start.refused)
        self._torn_names = opened.torn_names
        self._segments = Segments(
            opened.folder, opened.segments, start.acknowledged, Counter(start.dropped)
        )
        self._synced_to = 0
        self._save(durable=True)
        for segment in opened.segments[-1:]:
            segment.cut()

    @classmethod
    def open(
        cls, folder: Path, bounds: Bounds | None = None, clock: Clock | None = None
    ) -> "Spool":
        """Take the spool of `folder`, made where there is none. Raises SpoolError: another process
        has it, or the disk refuses. What a crash left is put in order and counted.
        """
        clock = clock or SystemClock()
        try:
            return cls(open_folder(folder, clock.unix_ns()), bounds or Bounds(), clock)
        except OSError as error:
            raise SpoolError(f"{folder}: no spool here: {explain_os_error(error)}") from None

    def append(
        self,
        id: str,  # noqa: A002
        payload: bytes,
        samples: int,
        *,
        again: bool = False,
        kept: bool = False,
    ) -> Entry | None:
        """Keep one entry. None: there was no room, its samples are counted as dropped.

        `again`: it has been in this spool before and was torn, so its samples are counted already.
        `kept`: whoever calls has it on disk and will try again, so what the disk (not a bound)
        refuses is not counted; `trouble` says so.
        """
        self._drop_aged()
        unix_ns = self._clock.unix_ns()
        frame = encode_frame(
            self._next,
            id.encode(),
            payload,
            samples=samples,
            written_before=self._written,
            spool_ns=self._now_ns(),
            unix_ns=unix_ns,
        )
        if not self._make_room(len(frame)):
            self.trouble = ""  # the disk was not asked
            self._settle_torn(id, samples, again=again)
            self._refuse(BYTES, samples)
            return None
        try:
            most = self.bounds.segment_bytes
            self._segments.append(frame, most, self._next, self._written)
        except OSError as error:
            self.trouble = explain_os_error(error)
            if not kept:
                self._settle_torn(id, samples, again=again)
                self._refuse(DISK_FULL if error.errno in _FULL else DISK_ERROR, samples)
            return None
        self.trouble = ""
        self._settle_torn(id, samples, again=again)
        self._written += samples
        self._next += 1
        return Entry(self._next - 1, id, samples, unix_ns, payload)

    def refuse(self, reason: str, samples: int) -> None:
        """Count samples that were made and could not be kept anywhere, before they came here."""
        self._refuse(reason, samples)

    def waiting(self, after: int, most: int, octets: int = MOST_BYTES) -> Sequence[Entry]:
        """The first entries that wait whose numbers are higher than `after`: at most `most`, and no
        more once they have `octets`.
        """
        self._drop_aged()
        found: list[Entry] = []
        size = 0
        for segment, index in self._segments.waiting(after):
            if len(found) >= most or size >= octets:
                break
            read = segment.read(index)
            if read is None:  # the disk has lost it since the opening
                self.problems.append(f"{segment.path.name}: an entry is damaged, passed over")
                segment.settle(index, AGED, TORN)
                continue
            frame, name, payload = read
            size += len(payload)
            found.append(Entry(frame.number, name, frame.samples, frame.unix_ns, payload))
        return found

    def acknowledge(self, numbers: Iterable[int]) -> None:
        """Somebody vouches for these. Unknown numbers, and the same ones again, change nothing."""
        for number in numbers:
            self._segments.settle(number, ACKNOWLEDGED)
        self._retire()

    def give_up(self, numbers: Iterable[int]) -> None:
        """Nobody will ever take these: they are counted as dropped."""
        for number in numbers:
            self._segments.settle(number, AGED, UNDELIVERABLE)
        self._retire()

    def state(self) -> SpoolState:
        """What waits, and every sample there has been."""
        self._drop_aged()
        segments = self._segments
        oldest = segments.oldest()
        dropped = segments.dropped() + self._refused
        dropped[TORN] -= self._found_again
        refused = self._refused.total() - self._found_again
        return SpoolState(
            waiting_entries=sum(one.waiting_entries for one in segments),
            waiting_bytes=sum(one.waiting_bytes for one in segments),
            waiting_samples=sum(one.waiting_samples for one in segments),
            oldest_unix_ns=None if oldest is None else oldest[2].unix_ns,
            made_samples=self._written - self._base + refused,
            acknowledged_samples=segments.acknowledged(),
            dropped_samples={reason: number for reason, number in dropped.items() if number},
        )

    def was_torn(self, id: str) -> bool:  # noqa: A002
        """Whether an entry of that id was found torn at the opening."""
        return id in self._torn_names

    @property
    def next_number(self) -> int:
        """What the next entry is given."""
        return self._next

    @property
    def first_number(self) -> int:
        """Entries of lower numbers are settled, and gone."""
        return self._segments.first_number(self._next)

    def names(self) -> Iterator[str]:
        """The ids of all entries that are still in a file, settled or not."""
        return (name for segment in self._segments for name in segment.names())

    def unsynced(self) -> Callable[[], None]:
        """What makes everything up to now safe against a power cut; for any thread. OSError.

        Files that are settled go then, after the checkpoint that says so.
        """
        self._save()
        since, self._synced_to = self._synced_to, self._next
        fresh = [one.duplicate() for one in self._segments if one.last >= since]
        descriptors = [*fresh, self._checkpoints.duplicate()]
        gone, folder = self._segments.take_leaving(), self.folder

        def wait() -> None:
            try:
                for descriptor in descriptors:
                    os.fdatasync(descriptor)
                for path in gone:
                    path.unlink(missing_ok=True)
                sync(folder)
            finally:
                for descriptor in descriptors:
                    os.close(descriptor)

        return wait

    def close(self) -> None:
        """Make everything durable and let go. Twice does no harm."""
        if self._lock < 0:
            return
        with contextlib.suppress(OSError):
            self.unsynced()()
        self._segments.close()
        self._checkpoints.close()
        os.close(self._lock)
        self._lock = -1

    def __enter__(self) -> "Spool":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _now_ns(self) -> int:
        """Clock of the spool: runs while the spool is open, whatever the wall clock does."""
        return self._spool_ns + self._clock.monotonic_ns() - self._at_ns

    def _refuse(self, reason: str, samples: int) -> None:
        self._refused[reason] += samples
        self._save()

    def _settle_torn(self, name: str, samples: int, *, again: bool) -> None:
        """What was torn has come again: it is counted as what becomes of it now."""
        if again:
            self._found_again += min(samples, self._torn())
            self._torn_names.discard(name)

    def _make_room(self, size: int) -> bool:
        """Whether a frame of `size` fits, after what must go has gone."""
        segments, bound = self._segments, self.bounds.bytes
        if size + HEAD_BYTES > bound:
            return False
        while segments.size + size + HEAD_BYTES > bound:
            if segments.remove_leaving():
                continue
            if self.bounds.drop is DropPolicy.NEWEST and segments.anything_waits():
                return False
            if not segments.drop_oldest(BYTES):
                return False
            self._save()  # before the file goes: what is not there must be known to be gone
        return True

    def _drop_aged(self) -> None:
        limit_ns = self._now_ns() - self.bounds.age_ns
        while (oldest := self._segments.oldest()) is not None:
            segment, index, frame = oldest
            if frame.spool_ns >= limit_ns:
                return
            segment.settle(index, AGED, AGE)
        self._retire()

    def _retire(self) -> None:
        if self._segments.retire_settled():
            self._save()

    def _torn(self) -> int:
        return self._segments.dropped()[TORN] - self._found_again

    def _save(self, *, durable: bool = False) -> None:
        """Write the checkpoint; a disk that refuses that too is told by the next `append`."""
        segments = self._segments
        checkpoint = Checkpoint(
            first=self.first_number,
            next=self._next,
            written=self._written,
            retired=segments.written_before(self._written),
            acknowledged=segments.acknowledged_before,
            dropped=dict(segments.dropped_before),
            refused=dict(self._refused),
            found_again=self._found_again,
            base=self._base,
            spool_ns=self._now_ns(),
            unix_ns=self._clock.unix_ns(),
        )
        with contextlib.suppress(OSError):
            self._checkpoints.write(checkpoint, durable=durable)
