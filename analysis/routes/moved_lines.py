"""Budget lines before an incident and since, as the evaluation makes them, and which of them moved.

Both sides are measured: nothing is added to a line that was not. A line moved where the verdict is
another, or where the intervals of before and since have nothing in common. What other incidents did
to the same path is no part of it: neither of those that were over before, nor of later ones.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from pathbudget.analysis.budget import PathBudget
from pathbudget.analysis.path_choice import path_candidates
from pathbudget.analysis.results import BudgetLine
from pathbudget.analysis.routes.model import Incident, MovedLine
from pathbudget.analysis.series import Series, SeriesKey
from pathbudget.analysis.track import Track
from pathbudget.sites.catalogue import Tier

HORIZON_NS = 24 * 3600 * 10**9
"""So much of the time before an incident says how it was: a day has all hours."""

LEAST_MS = 0.1
"""A line that moved by less is of no interest."""

EARLIEST, LATEST = -(2**63), 2**63 - 1

Span = tuple[int, int]
"""From one time to another, in ns since 1970."""


class Lines:
    """Lines of all pairs, over any stretch of time."""

    def __init__(
        self, series: Mapping[SeriesKey, Series], tiers: Iterable[Tier], confidence: float = 0.95
    ) -> None:
        self._tiers = tuple(tiers)
        self._confidence = confidence
        self._pairs: dict[tuple[str, str], list[Series]] = {}
        for key, one in series.items():
            if not key.loaded:
                self._pairs.setdefault((key.region, key.site), []).append(one)

    def moved_by(
        self, incident: Incident, others: Iterable[Incident] = ()
    ) -> tuple[MovedLine, ...]:
        """Headline lines of every tier that the incident moved, `others` (itself or not) apart."""
        pairs = sorted(_pairs_of(incident))
        known = [one for one in others if one.window != incident.window]
        return tuple(
            line
            for pair in pairs
            for line in self._of_pair(
                pair, incident, [_span(one) for one in known if pair in _pairs_of(one)]
            )
        )

    def _of_pair(
        self, pair: tuple[str, str], incident: Incident, spans: Sequence[Span]
    ) -> list[MovedLine]:
        begin, over = incident.window, incident.over
        first, last = begin.after_unix_ns, LATEST if over is None else over.after_unix_ns
        past = [one for one in spans if one[1] <= first]
        later = [one for one in spans if one[0] >= first]
        before = self._headlines(pair, (first - HORIZON_NS, first), past)
        since = self._headlines(pair, (begin.by_unix_ns, last), later)
        return [
            _moved_line(one, since[name])
            for name, one in before.items()
            if name in since and _has_moved(one, since[name])
        ]

    def _headlines(
        self, pair: tuple[str, str], span: Span, without: Sequence[Span]
    ) -> dict[str, BudgetLine]:
        rows = (_between(one, span, without) for one in self._pairs.get(pair, ()))
        part = [one for one in rows if one is not None]
        candidates = path_candidates(part) if part else ()
        if not candidates:
            return {}
        budget = PathBudget(candidates[0], self._confidence)
        return {tier.name: budget.headline(tier) for tier in self._tiers}


def _pairs_of(incident: Incident) -> set[tuple[str, str]]:
    return {(series.region, series.site) for series in incident.series}


def _span(incident: Incident) -> Span:
    over = incident.over
    return incident.window.after_unix_ns, LATEST if over is None else over.by_unix_ns


def _between(series: Series, span: Span, without: Sequence[Span]) -> Series | None:
    """What was sent in a span of time and in none of the others."""
    track = series.track
    places = _places(track, span)
    kept = np.ones(places.stop - places.start, dtype=np.bool_)
    for other in without:
        out = _places(track, other)
        kept[max(0, out.start - places.start) : max(0, out.stop - places.start)] = False
    if not kept.any():
        return None
    part = Track(
        track.sent_unix_ns[places][kept],
        track.values_ns[places][kept],
        track.vantages[places][kept],
    )
    return replace(series, track=part)


def _places(track: Track, span: Span) -> slice:
    first, last = span
    edges = (max(first, EARLIEST), last)
    start, stop = np.searchsorted(track.sent_unix_ns, edges, side="right")
    return slice(int(start), max(int(start), int(stop)))


def _has_moved(before: BudgetLine, since: BudgetLine) -> bool:
    if before.value_ms is None and since.value_ms is None:
        return False
    if before.verdict is not since.verdict and "undecided" not in (before.verdict, since.verdict):
        return True
    ends = [(_number(one.low_ms, 0.0), _number(one.high_ms, math.inf)) for one in (before, since)]
    apart = max(low for low, _ in ends) > min(high for _, high in ends)
    return apart and abs(_number(since.value_ms) - _number(before.value_ms)) >= LEAST_MS


def _moved_line(before: BudgetLine, since: BudgetLine) -> MovedLine:
    name = f"{since.direction.value} {since.mode.value} p{since.percentile:g}"
    return MovedLine(
        region=since.region,
        site=since.site,
        tier=since.tier,
        line=name,
        before_ms=_number(before.value_ms),
        after_ms=_number(since.value_ms),
        allowance_ms=since.allowance_ms,
        verdict_before=before.verdict.value,
        verdict_after=since.verdict.value,
    )


def _number(value: float | None, otherwise: float = math.inf) -> float:
    return otherwise if value is None else value


def with_lines(incidents: Sequence[Incident], lines: Lines) -> tuple[Incident, ...]:
    """The incidents, each with the lines that it moved."""
    return tuple(replace(one, lines=lines.moved_by(one, incidents)) for one in incidents)
