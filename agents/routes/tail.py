"""What a running campaign has written so far, before the tables of the store have it.

A journal is read from where the last look ended. Each piece is a measurement that holds the samples
that are new; a trace comes whole, once its destination's sample says that it ended. What the tables
bring later of the same measurement begins behind what has been seen.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from pathbudget.agents.store.journal_lines import Line
from pathbudget.probes.codec import from_raw
from pathbudget.probes.errors import RecordError
from pathbudget.probes.record import Measurement, Metric, Sample

CHUNK = 1 << 20
TRACE = "trace"

_decoder = msgspec.json.Decoder(Line)


@dataclass(slots=True)
class _Series:
    envelope: Measurement
    fresh: list[Sample] = field(default_factory=list[Sample])
    waiting: dict[int, list[Sample]] = field(default_factory=dict[int, list[Sample]])
    """Hops of traces that have not ended yet."""

    def take(self, sample: Sample) -> None:
        if self.envelope.probe != TRACE:
            self.fresh.append(sample)
        elif sample.metric == Metric.HOP_RTT:
            self.waiting.setdefault(sample.seq, []).append(sample)
        else:
            self.fresh += [*self.waiting.pop(sample.seq, ()), sample]


@dataclass(slots=True)
class _File:
    offset: int = 0
    series: dict[int, _Series] = field(default_factory=dict[int, _Series])


class Tail:
    """Journals of one store. `whole` is asked of every measurement out of the tables."""

    def __init__(self) -> None:
        self._files: dict[Path, _File] = {}
        self._taken: dict[str, int] = {}
        """By id: samples that were handed out, in the order of the journal."""
        self._traced: dict[str, set[int]] = {}
        """By id: traces that were handed out, whole."""

    def look(self, spool: Path) -> Iterator[Measurement]:
        """What is new in the journals there. One that has gone is forgotten."""
        paths = sorted(spool.glob("*.jsonl"))
        self._files = {path: self._files.get(path, _File()) for path in paths}
        for path, file in self._files.items():
            for line in _new_lines(path, file):
                self._sort_in(file, line)
            yield from self._pieces(file)

    def rest(self, measurement: Measurement) -> Measurement | None:
        """What was not handed out yet of a measurement that the tables have; None: nothing."""
        taken = self._taken.pop(measurement.id, 0)
        if not taken:
            return measurement
        traced = self._traced.pop(measurement.id, None)
        if traced is None:
            left = measurement.samples[taken:]
        else:
            left = tuple(one for one in measurement.samples if one.seq not in traced)
        return msgspec.structs.replace(measurement, samples=left) if left else None

    def _sort_in(self, file: _File, text: bytes) -> None:
        """Lines that cannot be read are left to `pathbudget store recover`, which names them."""
        try:
            line = _decoder.decode(text)
            if line.begin is not None and line.measurement is not None:
                file.series[line.begin] = _Series(from_raw(line.measurement))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, RecordError):
            return
        if line.in_ in file.series and line.sample is not None:
            file.series[line.in_].take(line.sample)

    def _pieces(self, file: _File) -> Iterator[Measurement]:
        for series in file.series.values():
            if series.fresh:
                samples, series.fresh = tuple(series.fresh), []
                name = series.envelope.id
                self._taken[name] = self._taken.get(name, 0) + len(samples)
                if series.envelope.probe == TRACE:
                    ended = {one.seq for one in samples if one.metric == Metric.RTT}
                    self._traced.setdefault(name, set()).update(ended)
                yield msgspec.structs.replace(series.envelope, samples=samples)


def _new_lines(path: Path, file: _File) -> Iterator[bytes]:
    """Whole lines behind the last look; the one that is being written waits for the next."""
    try:
        with path.open("rb") as stream:
            stream.seek(file.offset)
            rest = b""
            while chunk := stream.read(CHUNK):
                written, unused, _ = chunk.partition(b"\0")  # space reserved, not used yet
                lines, newline, rest = (rest + written).rpartition(b"\n")
                file.offset += len(lines) + len(newline)
                yield from lines.splitlines()
                if unused:
                    return
    except OSError:  # committed and removed meanwhile: the tables have it
        return
