"""Samples of a run without an end, in journals of a minute or so: what is closed can be sent on.

Every sample is with the kernel before `append` returns, so `kill -9` loses at most the line in
flight. A measurement of a campaign becomes many here: each piece has an id of its own, and clock
and noise as they were at its end.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

import msgspec

from pathbudget.agents.store.journal import Journal
from pathbudget.probes.clock import Clock
from pathbudget.probes.errors import SpoolError
from pathbudget.probes.record import ClockQuality, Measurement, NoiseFloor, Sample

ENDING = ".jsonl"


class Pieces:
    """A `SampleSink` that is cut by `roll`. A disk that takes nothing loses samples, not the run:
    `lost` is told how many, and the next piece is tried anew.
    """

    def __init__(
        self,
        folder: Path,
        *,
        clock: Clock,
        new_id: Callable[[int], str],
        closed: Callable[[Path], None],
        lost: Callable[[int], None],
    ) -> None:
        """`new_id` makes the id of a measurement that begins at a time (ns since 1970)."""
        self.trouble = ""
        """Why the disk took no sample last time; empty when it did."""
        self._folder = folder
        self._clock = clock
        self._new_id = new_id
        self._closed = closed
        self._lost = lost
        self._open: dict[int, tuple[Measurement, int]] = {}
        """Measurement and monotonic time at which its piece began, by series."""
        self._journal: Journal | None = None

    def begin(self, series: int, measurement: Measurement) -> None:
        """See `SampleSink.begin`."""
        self._open[series] = measurement, self._clock.monotonic_ns()
        if self._journal is None:
            self._new_journal()  # with this one in it
        else:
            try:
                self._journal.begin(series, measurement)
            except SpoolError as error:
                self._give_up(error)

    def append(self, series: int, sample: Sample) -> None:
        """See `SampleSink.append`."""
        if self._journal is None:
            self._lost(1)
            return
        try:
            self._journal.append(series, sample)
        except SpoolError as error:
            self._lost(1)
            self._give_up(error)

    def count(self, series: int, word: str) -> None:
        """See `SampleSink.count`."""
        if self._journal is not None:
            self._journal.count(series, word)

    def end(
        self,
        series: int,
        *,
        clock: ClockQuality | None,
        noise: NoiseFloor | None,
        duration_ns: int,
    ) -> None:
        """See `SampleSink.end`; the duration is that of the piece, not of the whole."""
        del duration_ns
        _, began_ns = self._open.pop(series)
        if self._journal is None:
            return
        lasted_ns = self._clock.monotonic_ns() - began_ns
        try:
            self._journal.end(series, clock=clock, noise=noise, duration_ns=lasted_ns)
        except SpoolError as error:
            self._give_up(error)

    def roll(self, clock: ClockQuality | None, noise: NoiseFloor | None) -> None:
        """Close the pieces of all series and begin the next ones."""
        going_on = dict(self._open)
        for series in going_on:
            self.end(series, clock=clock, noise=noise, duration_ns=0)
        self._close()
        unix_ns, now_ns = self._clock.unix_ns(), self._clock.monotonic_ns()
        for series, (measurement, _) in going_on.items():
            following = msgspec.structs.replace(
                measurement, id=self._new_id(unix_ns), started_unix_ns=unix_ns
            )
            self._open[series] = following, now_ns
        if self._open:
            self._new_journal()

    def close(self) -> None:
        """Close the file. What was not ended is told by the samples alone."""
        self._open.clear()
        self._close()

    def _new_journal(self) -> None:
        path = self._folder / f"{self._new_id(self._clock.unix_ns())}{ENDING}"
        try:
            journal = Journal.create(path)
        except SpoolError as error:
            self.trouble = str(error)
            return
        self.trouble, self._journal = "", journal
        try:
            for series, (measurement, _) in self._open.items():
                journal.begin(series, measurement)
        except SpoolError as error:
            self._give_up(error)

    def _give_up(self, error: SpoolError) -> None:
        """Nothing may follow a torn line: what is in the file is whole, and goes on its way."""
        self.trouble = str(error)
        self._close()

    def _close(self) -> None:
        journal, self._journal = self._journal, None
        if journal is None:
            return
        with contextlib.suppress(SpoolError):  # the lines are with the kernel all the same
            journal.close()
        self._closed(journal.path)
