"""Numbers of small groups of requests as a person reads them, each with its interval."""

import math
from collections.abc import Iterable

import numpy as np

from pathbudget.analysis.distribution import distribution_of
from pathbudget.analysis.quantiles import (
    Values,
    empirical_quantile,
    independent_size,
    loss_interval,
    widened_ranks,
)
from pathbudget.analysis.request_results import Range
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.stream_results import Bounded
from pathbudget.analysis.summary import milliseconds
from pathbudget.analysis.track import Track


def quantile_ms(track: Track, p: float, confidence: float) -> Bounded:
    """Quantile of durations, ns in and ms out; the track has at least one."""
    found = distribution_of(track).estimate(p, confidence)
    return Bounded(
        value_ms=milliseconds(found.value),
        low_ms=milliseconds(found.low),
        high_ms=milliseconds(found.high),
    )


def signed_quantile(values: Values, p: float, confidence: float) -> Range | None:
    """Quantile of numbers that may be below zero, in order of time; None for no numbers.

    Distribution-free like all others; an end that the data does not set is None.
    """
    if not len(values):
        return None
    ordered = np.sort(values)
    lower, upper = widened_ranks(len(values), independent_size(values), p, confidence)
    value = empirical_quantile(ordered, p)
    low = float(ordered[lower - 1]) if lower else -math.inf
    high = math.inf if upper is None else float(ordered[upper - 1])
    return Range(value=_finite(value), low=_finite(min(low, value)), high=_finite(max(high, value)))


def signed_quantile_ms(values_ns: Values, p: float, confidence: float) -> Bounded | None:
    """The same of nanoseconds, in milliseconds."""
    found = signed_quantile(values_ns / NS_PER_MS, p, confidence)
    if found is None:
        return None
    return Bounded(value_ms=found.value, low_ms=found.low, high_ms=found.high)


def share_of(hits: int, n: int, confidence: float) -> Range | None:
    """A share with the interval of Clopper and Pearson; None of nothing."""
    if not n:
        return None
    low, high = loss_interval(hits, n, confidence)
    return Range(value=hits / n, low=low, high=high)


def median_ms(values_ns: Values) -> float | None:
    """Median of durations; None for none, or where half of them are lost."""
    return milliseconds(empirical_quantile(np.sort(values_ns), 0.5)) if len(values_ns) else None


def middle(numbers: Iterable[int]) -> int | None:
    """Median of whole numbers, one that is among them; None for none."""
    ordered = sorted(numbers)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
