"""What a level is, and by how much it moved: numbers with intervals, whatever the distribution.

Each interval is of order statistics at the effective size of what is autocorrelated; a difference
has the far ends of two intervals at half of the permitted error each.
"""

import math
from statistics import NormalDist

import numpy as np

from pathbudget.analysis.quantiles import (
    Values,
    empirical_quantile,
    independent_size,
    loss_interval,
    widened_ranks,
)
from pathbudget.analysis.routes.model import Estimate

RUN = 8
"""So many values on end are a level that was reached."""

LOWEST, HIGHEST = 0.1, 0.9
"""Spread is the distance between these quantiles."""

FLOOR = 0.05
"""What the path is, whatever queues there are: this quantile."""


def level(values: Values, confidence: float) -> Estimate:
    """Median of finite values in order of time, ns."""
    low, high = _interval(np.sort(values), independent_size(values), 0.5, confidence)
    return Estimate(empirical_quantile(np.sort(values), 0.5), low, high, confidence)


def spread(values: Values, confidence: float) -> Estimate:
    """From the 10th to the 90th percentile, ns: variation of delay in the sense of RFC 5481."""
    ordered, worth = np.sort(values), independent_size(values)
    each = 1 - (1 - confidence) / 2
    lowest = _interval(ordered, worth, LOWEST, each)
    highest = _interval(ordered, worth, HIGHEST, each)
    value = empirical_quantile(ordered, HIGHEST) - empirical_quantile(ordered, LOWEST)
    low, high = max(0.0, highest[0] - lowest[1]), highest[1] - lowest[0]
    return Estimate(value, min(low, value), max(high, value), confidence)


def with_extremes(level: Estimate, values: Values) -> Estimate:
    """The level of a stage of a swell: anything that it was for a few values on end."""
    blocks = len(values) // RUN
    runs = np.median(values[: blocks * RUN].reshape(blocks, RUN), axis=1)
    low, high = min(level.low_ns, float(runs.min())), max(level.high_ns, float(runs.max()))
    return Estimate(level.value_ns, low, high, level.confidence)


def loss(lost: Values, confidence: float) -> Estimate:
    """Loss ratio of noughts and ones in order of time (RFC 7680); a share, not ns."""
    n = len(lost)
    worth = max(1, int(independent_size(lost)))
    ratio = float(lost.mean())
    low, high = loss_interval(round(ratio * worth), worth, confidence)
    exact = loss_interval(int(lost.sum()), n, confidence)
    return Estimate(ratio, min(low, exact[0]), max(high, exact[1]), confidence)


def difference(
    before: Estimate, after: Estimate, confidence: float, *, floor_ns: float = 0.0
) -> Estimate:
    """`after` less `before`, both at half of the permitted error, each no finer than the floor."""
    return Estimate(
        after.value_ns - before.value_ns,
        after.low_ns - before.high_ns - 2 * floor_ns,
        after.high_ns - before.low_ns + 2 * floor_ns,
        confidence,
    )


def with_swing(cost: Estimate, swing: float) -> Estimate:
    """A difference no better known than neighbouring blocks of the series differ anyway: `swing`
    is the standard deviation of that, ns. What wanders slowly, or a host that is busier now than
    then, moves both sides of a cut, and no spread within either of them shows it.
    """
    if not math.isfinite(swing):
        return cost
    reach = NormalDist().inv_cdf(half_error(cost.confidence)) * swing
    low, high = min(cost.low_ns, cost.value_ns - reach), max(cost.high_ns, cost.value_ns + reach)
    return Estimate(cost.value_ns, low, high, cost.confidence)


def floor_moved(before: Values, after: Values) -> float:
    """By how much the quickest twentieth moved, ns."""
    return float(np.quantile(after, FLOOR) - np.quantile(before, FLOOR))


def half_error(confidence: float) -> float:
    """Confidence of each of two intervals that shall hold together."""
    return 1 - (1 - confidence) / 2


def _interval(ordered: Values, worth: float, p: float, confidence: float) -> tuple[float, float]:
    """Order statistics around a quantile; the extremes stand in where the data sets no limit."""
    lower, upper = widened_ranks(len(ordered), worth, p, confidence)
    low = ordered[lower - 1] if lower else ordered[0]
    high = ordered[upper - 1] if upper is not None else ordered[-1]
    return float(low), float(high)
