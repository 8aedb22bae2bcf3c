"""Where samples go while they are taken: the journal on disk, or memory for a quick look."""

from collections.abc import Sequence
from typing import Protocol

import msgspec

from pathbudget.probes.record import ClockQuality, Measurement, NoiseFloor, Sample


class SampleSink(Protocol):
    """Takes the samples of many measurements at once; `series` tells them apart."""

    def begin(self, series: int, measurement: Measurement) -> None:
        """Open a measurement; its samples are empty yet."""
        ...

    def append(self, series: int, sample: Sample) -> None:
        """Keep one sample."""
        ...

    def count(self, series: int, word: str) -> None:
        """Count something that is no sample."""
        ...

    def end(
        self,
        series: int,
        *,
        clock: ClockQuality | None,
        noise: NoiseFloor | None,
        duration_ns: int,
    ) -> None:
        """Close a measurement."""
        ...


class MemorySink:
    """Keeps everything in memory."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[Measurement, list[Sample], dict[str, int]]] = {}
        self._ended: list[Measurement] = []

    def begin(self, series: int, measurement: Measurement) -> None:
        """See `SampleSink.begin`."""
        self._open[series] = (measurement, [], {})

    def append(self, series: int, sample: Sample) -> None:
        """See `SampleSink.append`."""
        self._open[series][1].append(sample)

    def count(self, series: int, word: str) -> None:
        """See `SampleSink.count`."""
        if series in self._open:
            counters = self._open[series][2]
            counters[word] = counters.get(word, 0) + 1

    def end(
        self,
        series: int,
        *,
        clock: ClockQuality | None,
        noise: NoiseFloor | None,
        duration_ns: int,
    ) -> None:
        """See `SampleSink.end`."""
        measurement, samples, counters = self._open.pop(series)
        ended = msgspec.structs.replace(
            measurement,
            samples=tuple(samples),
            counters=counters,
            clock=clock,
            noise=noise,
            duration_ns=duration_ns,
        )
        self._ended.append(ended)

    def measurements(self) -> Sequence[Measurement]:
        """Everything that has ended."""
        return self._ended
