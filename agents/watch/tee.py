"""Counts what an agent measures on its way to the spool."""

from pathbudget.agents.campaign.sink import SampleSink
from pathbudget.agents.watch.book import MeterBook, SeriesMeters
from pathbudget.probes.clock import Clock
from pathbudget.probes.record import ClockQuality, Measurement, NoiseFloor, Sample


class Tee:
    """A `SampleSink` before another one: that one is told first, and what it raises is raised."""

    def __init__(self, sink: SampleSink, book: MeterBook, clock: Clock) -> None:
        self._sink = sink
        self._book = book
        self._clock = clock
        self._open: dict[int, SeriesMeters] = {}

    def begin(self, series: int, measurement: Measurement) -> None:
        """See `SampleSink.begin`."""
        self._sink.begin(series, measurement)
        self._open[series] = self._book.begin(measurement, self._clock.monotonic_ns())

    def append(self, series: int, sample: Sample) -> None:
        """See `SampleSink.append`."""
        self._sink.append(series, sample)
        self._book.note(self._open[series], sample)

    def count(self, series: int, word: str) -> None:
        """See `SampleSink.count`."""
        self._sink.count(series, word)

    def end(
        self,
        series: int,
        *,
        clock: ClockQuality | None,
        noise: NoiseFloor | None,
        duration_ns: int,
    ) -> None:
        """See `SampleSink.end`."""
        self._sink.end(series, clock=clock, noise=noise, duration_ns=duration_ns)
        self._book.end(self._open.pop(series), self._clock.monotonic_ns())
