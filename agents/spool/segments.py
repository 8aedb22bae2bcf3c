"""The files of a spool in their order, and the sums of those that are gone."""

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from pathbudget.agents.spool.frames import AGED, Frame
from pathbudget.agents.spool.segment import TORN, Segment


class Segments:
    """Entries are added to the last file; files in front go when nothing in them waits."""

    def __init__(
        self,
        folder: Path,
        segments: Sequence[Segment],
        acknowledged_before: int,
        dropped_before: Counter[str],
    ) -> None:
        self._folder = folder
        self._segments = list(segments)
        self._leaving: list[tuple[Path, int]] = []
        self.acknowledged_before = acknowledged_before
        """Samples acknowledged in files that are gone."""
        self.dropped_before = dropped_before

    def __iter__(self) -> Iterator[Segment]:
        return iter(self._segments)

    @property
    def size(self) -> int:
        """Bytes of all files, those that are about to go too."""
        return sum(one.size for one in self._segments) + sum(size for _, size in self._leaving)

    def acknowledged(self) -> int:
        """All samples that were ever acknowledged."""
        return self.acknowledged_before + sum(one.acknowledged_samples for one in self._segments)

    def dropped(self) -> Counter[str]:
        """All samples that were dropped out of files, by reason."""
        total = Counter(self.dropped_before)
        for segment in self._segments:
            total.update(segment.dropped_samples)
        return total

    def first_number(self, following: int) -> int:
        """The lowest number that may still be in a file; `following` where there is none."""
        return self._segments[0].first if self._segments else following

    def written_before(self, written: int) -> int:
        """Samples of the files that are gone; `written` where all are."""
        return self._segments[0].written_before if self._segments else written

    def append(self, frame: bytes, most: int, number: int, written: int) -> None:
        """Add a frame, to a new file where the last one would have over `most` bytes. OSError."""
        last = self._segments[-1] if self._segments else None
        if last is None or (last.last >= last.first and last.size + len(frame) > most):
            last = Segment.create(self._folder, number, written)
            self._segments.append(last)
        last.append(frame)

    def waiting(self, after: int) -> Iterator[tuple[Segment, int]]:
        """The places of what waits, in order of numbers, from above `after`."""
        for segment in tuple(self._segments):
            if segment.last > after and segment.waiting_entries:
                for index in segment.waiting(after):
                    yield segment, index

    def anything_waits(self) -> bool:
        """Whether any entry waits."""
        return any(one.waiting_entries for one in self._segments)

    def oldest(self) -> tuple[Segment, int, Frame] | None:
        """The first that waits."""
        for segment, index in self.waiting(0):
            frame = segment.header(index)
            if frame is not None:
                return segment, index, frame
            segment.settle(index, AGED, TORN)  # the disk has lost it
        return None

    def settle(self, number: int, state: bytes, reason: str = "") -> None:
        """An entry waits no more; nothing where it does not wait."""
        for segment in self._segments:
            if segment.first <= number <= segment.last:
                index = segment.find(number)
                if index is not None:
                    segment.settle(index, state, reason)
                return

    def retire_settled(self) -> bool:
        """Files in front where nothing waits are about to go, but for the last one."""
        before = len(self._segments)
        while len(self._segments) > 1 and not self._segments[0].waiting_entries:
            self._retire("")
        return len(self._segments) < before

    def drop_oldest(self, reason: str) -> bool:
        """The oldest file is about to go; what waits in it is dropped. False: there is none."""
        if not self._segments:
            return False
        self._retire(reason)
        return True

    def _retire(self, reason: str) -> None:
        oldest = self._segments.pop(0)
        if oldest.waiting_samples:
            self.dropped_before[reason] += oldest.waiting_samples
        self.dropped_before.update(oldest.dropped_samples)
        self.acknowledged_before += oldest.acknowledged_samples
        oldest.close()
        self._leaving.append((oldest.path, oldest.size))

    def take_leaving(self) -> list[Path]:
        """The files that nobody needs; whoever takes them removes them."""
        leaving, self._leaving = self._leaving, []
        return [path for path, _ in leaving]

    def remove_leaving(self) -> bool:
        """Remove them at once. False: there are none."""
        found = self.take_leaving()
        for path in found:
            with contextlib.suppress(OSError):
                path.unlink()
        return bool(found)

    def close(self) -> None:
        """Let go of all files."""
        for segment in self._segments:
            segment.close()
