"""Measurements of many files as one stream in the order of their ids.

Files are opened when their first id comes up, so memory holds one row group of each file whose
ids overlap with those of others at that point; `pathbudget store compact` makes them few.
"""

import heapq
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pathbudget.agents.store.layout import MEASUREMENTS, Layout, date_of
from pathbudget.agents.store.table_files import SampleRows, envelope_counts, first_id, whole
from pathbudget.probes.record import Measurement


@dataclass(frozen=True, slots=True)
class Selection:
    """Which measurements are wanted; None is no restriction. `until_unix_ns` is excluded."""

    campaign: str | None = None
    since_unix_ns: int | None = None
    until_unix_ns: int | None = None
    region: str | None = None
    vantage: str | None = None
    site: str | None = None
    target: str | None = None
    probe: str | None = None
    family: str | None = None

    def takes(self, envelope: Measurement) -> bool:
        """Whether this measurement is wanted."""
        started = envelope.started_unix_ns
        pairs = (
            (self.campaign, envelope.campaign),
            (self.region, envelope.vantage.region),
            (self.vantage, envelope.vantage.name),
            (self.site, envelope.target.site),
            (self.target, envelope.target.name),
            (self.probe, envelope.probe),
            (self.family, envelope.family),
        )
        return (
            all(wanted is None or wanted == value for wanted, value in pairs)
            and (self.since_unix_ns is None or started >= self.since_unix_ns)
            and (self.until_unix_ns is None or started < self.until_unix_ns)
        )

    def takes_date(self, date: str) -> bool:
        """Whether a measurement of this day can be wanted."""
        since, until = self.since_unix_ns, self.until_unix_ns
        return (since is None or date >= date_of(since)) and (
            until is None or date <= date_of(until)
        )


def measurement_files(layout: Layout, selection: Selection) -> list[Path]:
    """Files that can hold wanted measurements."""
    dates = [date for date in layout.dates() if selection.takes_date(date)]
    return [path for date in dates for path in layout.files(MEASUREMENTS, date)]


def merged(layout: Layout, files: Iterable[Path], selection: Selection) -> Iterator[Measurement]:
    """Every wanted measurement of `files` once, with its samples, in the order of ids.

    Raises StoreError for a damaged file.
    """
    streams = (_Lazy(path, layout) for path in files)
    return _merge([stream for stream in streams if stream.first is not None], selection)


class _Lazy:
    """A file that has not been opened yet, except for its first id."""

    def __init__(self, path: Path, layout: Layout) -> None:
        self.first = first_id(path)
        self._path = path
        self._layout = layout

    def open(self, selection: Selection) -> Iterator[Measurement]:
        """Its wanted measurements. The samples of others are passed over unread."""
        sample_path = self._layout.sample_file(self._path)
        rows = SampleRows(sample_path)
        for envelope, count, _ in envelope_counts(self._path):
            if selection.takes(envelope):
                yield whole(sample_path, envelope, count, rows)
            else:
                rows.skip(count)


def _merge(streams: list[_Lazy], selection: Selection) -> Iterator[Measurement]:
    waiting = sorted(streams, key=lambda stream: stream.first or "", reverse=True)
    heads: list[tuple[str, int, Measurement, Iterator[Measurement]]] = []
    last, turn = "", 0
    while waiting or heads:
        while waiting and (not heads or (waiting[-1].first or "") <= heads[0][0]):
            turn += 1
            _push(heads, turn, waiting.pop().open(selection))
        if not heads:
            continue
        name, number, measurement, rest = heapq.heappop(heads)
        _push(heads, number, rest)
        if name != last:  # copied files may hold one measurement twice
            yield measurement
        last = name


def _push(
    heads: list[tuple[str, int, Measurement, Iterator[Measurement]]],
    number: int,
    stream: Iterator[Measurement],
) -> None:
    head = next(stream, None)
    if head is not None:
        heapq.heappush(heads, (head.id, number, head, stream))
