"""Reading a spool file back, also one whose writer was killed or whose disk was full.

Every whole line counts. A line that is cut off or damaged is named and passed over; what stands
before and after it is kept. Memory holds one measurement at a time and 8 bytes per sample.
"""

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from pathbudget.agents.store.disk import explain_os_error
from pathbudget.agents.store.journal_lines import JOURNAL_VERSION, End, Line
from pathbudget.probes.codec import explain, from_raw
from pathbudget.probes.errors import RecordError, SpoolError
from pathbudget.probes.record import Measurement, Sample

INCOMPLETE = "incomplete"
"""Counter of a measurement whose end was never written: its writer was killed."""


_line_decoder = msgspec.json.Decoder(Line)


@dataclass(slots=True)
class _Series:
    """What was found of one series: the envelope, and where its samples stand."""

    envelope: Measurement | None = None
    offsets: "array[int]" = field(default_factory=lambda: array("Q"))
    counters: dict[str, int] = field(default_factory=dict[str, int])
    end: End | None = None


@dataclass(frozen=True, slots=True)
class JournalContents:
    """`complete`: every measurement has its end, and no line is damaged."""

    measurements: tuple[Measurement, ...]
    complete: bool
    problems: tuple[str, ...]


class JournalReader:
    """One pass over the file at the start; the measurements are then put together one by one."""

    def __init__(self, path: Path) -> None:
        """Raises SpoolError when the file cannot be read, RecordError for a newer version.

        `problems` then names what could not be read; `damaged` says that more is lost than the
        line that was being written when the end came.
        """
        self.path = path
        self.problems: list[str] = []
        self.damaged = False
        self._series: dict[int, _Series] = {}
        try:
            with path.open("rb") as file:
                self._index(file)
        except OSError as error:
            raise SpoolError(f"{path}: cannot be read: {explain_os_error(error)}") from None
        for number, series in self._series.items():
            if series.envelope is None and series.offsets:
                lost = len(series.offsets)
                self.problems.append(f"series {number}: {lost} samples without their beginning")
                self.damaged = True

    @property
    def complete(self) -> bool:
        """Every measurement has its end, and no line is damaged."""
        return not self.problems and all(
            series.end for series in self._series.values() if series.envelope is not None
        )

    def measurements(self) -> Iterator[Measurement]:
        """In the order in which they began."""
        with self.path.open("rb") as file:
            for series in self._series.values():
                if series.envelope is not None:
                    yield _assemble(series, _samples(file, series.offsets))

    def _index(self, file: BinaryIO) -> None:
        offset = 0
        for number, line in enumerate(file, start=1):
            if line.strip(b"\0\n"):  # reserved space that was never used is zero bytes
                self._take(number, offset, line)
            offset += len(line)
        if offset == 0:
            self.problems.append("the file is empty")

    def _take(self, number: int, offset: int, text: bytes) -> None:
        try:
            line = _line_decoder.decode(text)
            self._sort_in(number, offset, line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            cut = not text.endswith(b"\n")
            self.damaged = self.damaged or not cut
            problem = "cut off" if cut else explain(error)
            self.problems.append(f"line {number}: {problem}; passed over")

    def _sort_in(self, number: int, offset: int, line: Line) -> None:
        if line.in_ is not None and line.sample is not None:
            self._of(line.in_).offsets.append(offset)
        elif line.count is not None:
            counters = self._of(line.count).counters
            counters[line.word] = counters.get(line.word, 0) + line.number
        elif line.begin is not None and line.measurement is not None:
            self._begin(number, line.begin, line.measurement)
        elif line.end is not None and line.with_ is not None:
            self._of(line.end).end = line.with_
        elif line.journal is not None:
            self._check_version(line.journal)

    def _begin(self, number: int, series: int, raw: dict[str, Any]) -> None:
        try:
            self._of(series).envelope = from_raw(raw)
        except RecordError as error:
            self.problems.append(f"line {number}: {error}; passed over")

    def _check_version(self, version: int) -> None:
        if version > JOURNAL_VERSION:
            raise RecordError(
                f"{self.path}: written by a newer pathbudget; journal version {version}, "
                f"this one reads up to {JOURNAL_VERSION}"
            )

    def _of(self, number: int) -> _Series:
        return self._series.setdefault(number, _Series())


def read_journal(path: Path) -> JournalContents:
    """Everything of one journal, in memory. For large ones use `JournalReader`."""
    reader = JournalReader(path)
    return JournalContents(tuple(reader.measurements()), reader.complete, tuple(reader.problems))


def _samples(file: BinaryIO, offsets: "array[int]") -> Iterator[Sample]:
    for offset in offsets:
        file.seek(offset)
        sample = _line_decoder.decode(file.readline()).sample
        if sample is not None:
            yield sample


def _assemble(series: _Series, found: Iterator[Sample]) -> Measurement:
    assert series.envelope is not None
    envelope, samples = series.envelope, tuple(found)
    counters = dict(envelope.counters)
    for word, number in series.counters.items():
        counters[word] = counters.get(word, 0) + number
    if series.end is not None:
        end = series.end
        changes: dict[str, Any] = {"duration_ns": end.duration_ns}
        changes |= {"clock": end.clock or envelope.clock, "noise": end.noise or envelope.noise}
    else:
        counters[INCOMPLETE] = 1
        changes = {"duration_ns": _known_duration_ns(envelope, samples)}
    return msgspec.structs.replace(envelope, samples=samples, counters=counters, **changes)


def _known_duration_ns(envelope: Measurement, samples: tuple[Sample, ...]) -> int:
    """From the start to the last thing that is known to have happened."""
    last = max((s.sent_unix_ns + max(s.value_ns or 0, 0) for s in samples), default=0)
    return max(last - envelope.started_unix_ns, 0)
