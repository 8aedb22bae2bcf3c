"""Two sites, or two periods, compared: how much slower is one, and can the data tell?

The difference of two quantiles gets its interval from the two intervals (MOVER: Zou and Donner,
Statistics in Medicine 27, 2008), each valid under autocorrelation. Samples taken at the same time
swing together where they share a path; slow swings that show in both narrow the interval of the
difference, or widen it where they are opposed. Hours of the day that only one of the two measured
are left out: a night is not compared with an evening.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
import numpy.typing as npt
from scipy import stats

from pathbudget.analysis.distribution import Distribution, distribution_of
from pathbudget.analysis.intervals.timeline import DAY_NS, HOURS
from pathbudget.analysis.quantiles import Estimate, Values
from pathbudget.analysis.track import Track

SWINGS = 16
"""Slow cosines that tell whether two tracks swing together."""
TOGETHER = 0.9
"""Part of the longer span that both must cover for that."""
ALIKE_CHANCE = 0.01
UNEVEN = 0.1
"""Part of the samples that would have to be at other hours to spread both alike."""


class Order(StrEnum):
    """What the interval of the difference says."""

    FIRST_FASTER = "first faster"
    SECOND_FASTER = "second faster"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Comparison:
    """Quantile `p` of the second track less that of the first, ns."""

    p: float
    confidence: float
    first: Estimate
    second: Estimate
    difference: float
    """NaN where both are lost."""
    low: float
    high: float
    """Infinite where the data sets no limit."""
    relative: float | None
    """Difference over the first quantile; None where either is lost."""
    superiority: float
    """Chance that a sample of the second is slower than one of the first, 0.5 for no difference."""
    hours: tuple[int, ...]
    """Hours of the day (UTC) that both measured; all others are left out."""
    left_out: tuple[int, int]
    """Samples of the first and the second at other hours."""
    shared: float
    """Correlation of their slow swings that is in the interval; 0 where it may be chance."""
    uneven: bool
    """The two are spread differently over the hours that both measured."""

    @property
    def order(self) -> Order:
        """Which is faster; undecided where the interval holds 0."""
        if self.low > 0:
            return Order.FIRST_FASTER
        return Order.SECOND_FASTER if self.high < 0 else Order.UNDECIDED


def compare(
    track_a: Track, track_b: Track, p: float, *, confidence: float = 0.95
) -> Comparison | None:
    """Quantile `p` of `track_b` less that of `track_a`; None where no hour was measured by both."""
    first_hours, second_hours = _hours(track_a), _hours(track_b)
    hours = np.intersect1d(first_hours, second_hours)
    if not len(hours):
        return None
    kept_a, kept_b = np.isin(first_hours, hours), np.isin(second_hours, hours)
    first, second = distribution_of(_of(track_a, kept_a)), distribution_of(_of(track_b, kept_b))
    a, b = first.estimate(p, confidence), second.estimate(p, confidence)
    together = _overlap(track_a, track_b) >= TOGETHER
    shared = _shared(first, second, a.value, b.value) if together else 0.0
    low, high = _interval(a, b, shared)
    difference = math.nan if math.isinf(a.value) and math.isinf(b.value) else b.value - a.value
    known = math.isfinite(a.value) and math.isfinite(b.value)
    return Comparison(
        p=p,
        confidence=confidence,
        first=a,
        second=b,
        difference=difference,
        low=low,
        high=high,
        relative=(b.value - a.value) / a.value if known and a.value > 0 else None,
        superiority=superiority(first.ordered, second.ordered),
        hours=tuple(int(hour) for hour in hours),
        left_out=(int(np.count_nonzero(~kept_a)), int(np.count_nonzero(~kept_b))),
        shared=shared,
        uneven=_unevenness(first_hours[kept_a], second_hours[kept_b]) > UNEVEN,
    )


def superiority(first: Values, second: Values) -> float:
    """P(second > first), ties by halves, of two sorted arrays; losses are slower than anything."""
    below = np.searchsorted(first, second, side="left")
    within = np.searchsorted(first, second, side="right")
    return float((below + within).mean()) / 2 / len(first)


def _interval(a: Estimate, b: Estimate, shared: float) -> tuple[float, float]:
    if math.isinf(a.value) or math.isinf(b.value):
        return _lost(a, b)
    down = _reach(b.value - b.low, a.high - a.value, shared)
    up = _reach(b.high - b.value, a.value - a.low, shared)
    return b.value - a.value - down, b.value - a.value + up


def _lost(a: Estimate, b: Estimate) -> tuple[float, float]:
    """One quantile, or both, are lost: what the far ends say."""
    low = -math.inf if math.isinf(a.high) else b.low - a.high
    high = math.inf if math.isinf(b.high) else b.high - a.low
    return low, high


def _reach(one: float, other: float, shared: float) -> float:
    if math.isinf(one) or math.isinf(other):
        return math.inf
    return math.sqrt(max(0.0, one**2 + other**2 - 2 * shared * one * other))


def _shared(first: Distribution, second: Distribution, q_a: float, q_b: float) -> float:
    """Correlation of the slow swings of both shares, scaled by what of their scatter is slow."""
    if first.timeline is None or second.timeline is None:
        return 0.0
    a, b = first.timeline.scatter(q_a), second.timeline.scatter(q_b)
    rows = min(SWINGS, len(a.slow), len(b.slow))
    found = _correlation(a.slow[:rows], b.slow[:rows])
    chance = stats.t.ppf(1 - ALIKE_CHANCE / 2, rows)
    stands_out = abs(found) > chance / math.sqrt(rows + chance**2)
    return found if stands_out else 0.0


def _correlation(a: Values, b: Values) -> float:
    power = float(a @ a) * float(b @ b)
    return float(a @ b) / math.sqrt(power) if power > 0 else 0.0


def _hours(track: Track) -> npt.NDArray[np.int64]:
    return track.sent_unix_ns % DAY_NS * HOURS // DAY_NS


def _of(track: Track, kept: npt.NDArray[np.bool_]) -> Track:
    if kept.all():
        return track
    return Track(track.sent_unix_ns[kept], track.values_ns[kept], track.vantages[kept])


def _overlap(a: Track, b: Track) -> float:
    starts = int(a.sent_unix_ns[0]), int(b.sent_unix_ns[0])
    ends = int(a.sent_unix_ns[-1]), int(b.sent_unix_ns[-1])
    whole = max(ends) - min(starts)
    return (min(ends) - max(starts)) / whole if whole > 0 else 0.0


def _unevenness(a: Sequence[int] | npt.NDArray[np.int64], b: npt.NDArray[np.int64]) -> float:
    """Half of the absolute difference of the shares of the hours."""
    shares = [np.bincount(hours, minlength=HOURS) / len(hours) for hours in (np.asarray(a), b)]
    return float(np.abs(shares[0] - shares[1]).sum()) / 2
