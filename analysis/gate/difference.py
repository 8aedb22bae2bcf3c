"""Is it slower than it was? The difference of two quantiles, with an interval made of both theirs.

Each interval is turned into a spread on its own side, and the spreads add as squares: Zou and
Donner, Construction of confidence limits about effect measures (Statistics in Medicine 27, 2008),
for independent estimates whose intervals may be lopsided. Where an estimate has no limit, its
outermost ends are subtracted, which covers more often than it says.
"""

import math
from statistics import NormalDist

from pathbudget.analysis.gate.checks import Difference, Numbers


def difference(before: Numbers, now: Numbers, stretch: float = 1.0) -> tuple[float, float]:
    """Lower and upper end of now less before in ms; infinite where nothing limits it.

    `stretch` widens both intervals about their values (see `stretch_for`).
    """
    a, a_low, a_high = _ends(before, stretch)
    b, b_low, b_high = _ends(now, stretch)
    if math.isinf(a_low) and math.isinf(b_low):
        return -math.inf, math.inf  # no limit then and none now: nothing to subtract
    return _lower(a, a_high, b, b_low), -_lower(b, b_high, a, a_low)


def shown(before: Numbers, now: Numbers, stretch: float = 1.0) -> Difference:
    """The difference as it is handed out: None where there is no limit."""
    low, high = difference(before, now, stretch)
    known = before.value_ms is not None and now.value_ms is not None
    return Difference(
        value_ms=(now.value_ms or 0.0) - (before.value_ms or 0.0) if known else None,
        low_ms=low if math.isfinite(low) else None,
        high_ms=high if math.isfinite(high) else None,
    )


def stretch_for(comparisons: int, confidence: float) -> float:
    """How much wider intervals must be so that all of so many comparisons hold together.

    The error is shared out over them (Bonferroni), and the width follows the normal quantile.
    """
    tail = (1 - confidence) / 2
    normal = NormalDist()
    return normal.inv_cdf(1 - tail / max(1, comparisons)) / normal.inv_cdf(1 - tail)


def _lower(a: float, a_high: float, b: float, b_low: float) -> float:
    """Lower end of b less a: the larger a may be and the smaller b, the smaller it is."""
    if math.isinf(a_high):
        return -math.inf
    if math.isinf(b):
        return b_low - a_high
    return b - a - math.hypot(a_high - a, b - b_low)


def _ends(numbers: Numbers, stretch: float) -> tuple[float, float, float]:
    """Value, lower and upper end, infinite where there is none."""
    value, low, high = (
        math.inf if end is None else end
        for end in (numbers.value_ms, numbers.low_ms, numbers.high_ms)
    )
    if math.isinf(value):
        return value, low, high
    return value, value - stretch * (value - low), value + stretch * (high - value)
