"""Round trips of a store compared: two sites of each region, or two periods or campaigns of a pair.

The round trips are those that the budget lines of the pair rest on (`path_choice`).
"""

import math
from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from pathbudget.analysis.intervals.comparison import Comparison, Order, compare
from pathbudget.analysis.path_choice import path_candidates
from pathbudget.analysis.series import NS_PER_MS, Series, SeriesCollector
from pathbudget.analysis.track import Track
from pathbudget.probes.record import Measurement

Pair = tuple[str, str]
"""Region and site."""


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """One row: a quantile of two tracks, and what may be said of their difference (ms)."""

    region: str
    first: str
    """Site, campaign or period."""
    second: str
    site: str = ""
    """The site of both; empty where two sites are compared."""
    percentile: float
    n_first: int = 0
    n_second: int = 0
    first_ms: float | None = None
    second_ms: float | None = None
    difference_ms: float | None = None
    low_ms: float | None = None
    """None in low or high is unbounded."""
    high_ms: float | None = None
    relative: float | None = None
    superiority: float | None = None
    """Chance that a round trip of the second is slower than one of the first."""
    shared: float = 0.0
    left_out_first: int = 0
    left_out_second: int = 0
    uneven_hours: bool = False
    order: Order = Order.UNDECIDED
    reason: str = ""
    """Why there is no difference to show; empty where there is."""


def round_trips(measurements: Iterable[Measurement]) -> dict[Pair, Track]:
    """The round trips of every pair that has any, without what our own traffic loaded."""
    collector = SeriesCollector()
    for measurement in measurements:
        collector.add(measurement)
    by_pair: dict[Pair, list[Series]] = {}
    for key, series in collector.finish()[0].items():
        if not key.loaded:
            by_pair.setdefault((key.region, key.site), []).append(series)
    found: dict[Pair, Track] = {}
    for pair, every in by_pair.items():
        track = path_candidates(every)[0].round_trips
        if track is not None:
            found[pair] = track
    return found


def compare_sites(
    tracks: Mapping[Pair, Track],
    first: str,
    second: str,
    percentiles: Sequence[float],
    confidence: float = 0.95,
) -> list[Compared]:
    """Two sites, seen from every region that measured either."""
    regions = dict.fromkeys(region for region, site in tracks if site in (first, second))
    return [
        _row(
            tracks.get((region, first)),
            tracks.get((region, second)),
            Compared(region=region, first=first, second=second, percentile=percentile),
            confidence,
        )
        for region in regions
        for percentile in percentiles
    ]


def compare_pairs(
    before: Mapping[Pair, Track],
    after: Mapping[Pair, Track],
    names: tuple[str, str],
    percentiles: Sequence[float],
    confidence: float = 0.95,
) -> list[Compared]:
    """Every pair of a region and a site, in two periods or campaigns."""
    return [
        _row(
            before.get((region, site)),
            after.get((region, site)),
            Compared(
                region=region, first=names[0], second=names[1], site=site, percentile=percentile
            ),
            confidence,
        )
        for region, site in dict.fromkeys([*before, *after])
        for percentile in percentiles
    ]


def split(
    tracks: Mapping[Pair, Track], at_unix_ns: int
) -> tuple[dict[Pair, Track], dict[Pair, Track]]:
    """What was sent before a moment, and what from then on."""
    before: dict[Pair, Track] = {}
    after: dict[Pair, Track] = {}
    for pair, track in tracks.items():
        is_after = track.sent_unix_ns >= at_unix_ns
        for part, kept in ((before, ~is_after), (after, is_after)):
            if kept.any():
                part[pair] = _of(track, kept)
    return before, after


def _of(track: Track, kept: npt.NDArray[np.bool_]) -> Track:
    return Track(track.sent_unix_ns[kept], track.values_ns[kept], track.vantages[kept])


def _row(a: Track | None, b: Track | None, row: Compared, confidence: float) -> Compared:
    for track, name in ((a, row.first), (b, row.second)):
        if track is None:
            return msgspec.structs.replace(row, reason=f"{name} was not measured.")
    assert a is not None
    assert b is not None
    found = compare(a, b, row.percentile / 100, confidence=confidence)
    if found is None:
        return msgspec.structs.replace(
            row, n_first=a.n, n_second=b.n, reason="not one hour of the day was measured in both."
        )
    return _filled(row, found)


def _filled(row: Compared, found: Comparison) -> Compared:
    return msgspec.structs.replace(
        row,
        n_first=found.first.n,
        n_second=found.second.n,
        first_ms=_ms(found.first.value),
        second_ms=_ms(found.second.value),
        difference_ms=_ms(found.difference),
        low_ms=_ms(found.low),
        high_ms=_ms(found.high),
        relative=found.relative,
        superiority=found.superiority,
        shared=found.shared,
        left_out_first=found.left_out[0],
        left_out_second=found.left_out[1],
        uneven_hours=found.uneven,
        order=found.order,
    )


def _ms(value_ns: float) -> float | None:
    return value_ns / NS_PER_MS if math.isfinite(value_ns) else None
