"""Whether the two sides of a cut are two levels, or what the series does anyway.

Segmentation takes values for independent, and delays are not. So each cut is held against the
series itself: how far do the levels of two neighbouring blocks of values usually lie apart
(`usual_swing`)? A series that swings slowly swings so everywhere; a step is seen once.
"""

from collections.abc import Callable

import numpy as np

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.routes.rank_cuts import gains_of_cuts

SWINGS = 6.0
"""A shift is larger than so many usual swings (benchmarks/false_alarms.py)."""

SUPPORT = 3.0
"""Places whose log-likelihood is less than this below the best may be the true one."""

NEAR = 256
"""Values on either side of a cut that are looked at."""

BLOCKS = 16
"""At least so many blocks of the series say how far it usually swings."""

TO_DEVIATION = 1 / 0.6745
"""Standard deviation of a normal variable from the median of its absolute value."""

Measure = Callable[[Values], Values]
"""A number for each row."""


def level_of(rows: Values) -> Values:
    """Median of each row."""
    result: Values = np.median(rows, axis=-1)
    return result


def spread_of(rows: Values) -> Values:
    """Logarithm of the distance from the 10th to the 90th percentile of each row."""
    low, high = np.quantile(rows, (0.1, 0.9), axis=-1)
    result: Values = np.log(np.maximum(high - low, 1.0))
    return result


def share_of(rows: Values) -> Values:
    """Mean of each row: the loss ratio of noughts and ones."""
    result: Values = np.mean(rows, axis=-1)
    return result


def usual_swing(values: Values, size: int, measure: Measure) -> float:
    """Standard deviation of the difference between neighbouring blocks of `size` values.

    From the median of the absolute differences, so that the shifts to be judged do not count.
    Blocks are laid at two offsets, because there may be few of them.
    """
    found = [_differences(values[offset:], size, measure) for offset in (0, size // 2)]
    steps = np.abs(np.concatenate(found))
    if not len(steps):
        return float("inf")
    return float(np.median(steps)) * TO_DEVIATION


def _differences(values: Values, size: int, measure: Measure) -> Values:
    blocks = len(values) // size
    return np.diff(measure(values[: blocks * size].reshape(blocks, size)))


def swings_between(
    values: Values, first: int, cut: int, end: int, measure: Measure, least: int
) -> float:
    """By how many usual swings of the series the two sides of a cut differ."""
    before, after = values[max(first, cut - NEAR) : cut], values[cut : min(end, cut + NEAR)]
    if min(len(before), len(after)) < least:
        return 0.0
    moved = abs(float(measure(after)) - float(measure(before)))
    swing = swing_around(values, first, cut, end, measure, least)
    return moved / swing if swing > 0 else float("inf") if moved > 0 else 0.0


def swing_around(
    values: Values, first: int, cut: int, end: int, measure: Measure, least: int
) -> float:
    """The usual swing of blocks as long as the shorter side of a cut, in the unit of `measure`."""
    shorter = min(cut - first, end - cut, NEAR)
    return usual_swing(values, max(least, min(shorter, len(values) // BLOCKS)), measure)


def place_of_cut(values: Values, first: int, cut: int, end: int) -> tuple[int, int]:
    """Smallest and largest index at which the segment may begin, given where it is likeliest."""
    start, stop = max(first, cut - NEAR), min(end, cut + NEAR)
    inside = gains_of_cuts(values[start:stop], cut - start)[1:-1]
    likely = np.flatnonzero(inside >= inside.max() - SUPPORT) + 1 + start
    return min(cut, int(likely[0])), max(cut, int(likely[-1]))


def is_gradual(values: Values, first: int, cut: int, end: int) -> bool:
    """Whether a bent line describes the neighbourhood of the cut better than a step.

    Outliers are clipped first. The line is continuous with one bend, wherever it fits best.
    """
    reach = min(cut - first, end - cut, NEAR)
    near = values[cut - reach : cut + reach]
    near = np.clip(near, *np.quantile(near, (0.05, 0.95)))
    return _bent_line(near) < _step(near, reach)


def _step(values: Values, cut: int) -> float:
    return sum(float(np.sum((part - part.mean()) ** 2)) for part in (values[:cut], values[cut:]))


def _bent_line(values: Values) -> float:
    times = np.linspace(-1.0, 1.0, len(values))
    best = float("inf")
    for bend in np.linspace(-0.9, 0.9, 13):
        columns = np.stack([np.ones_like(times), times, np.maximum(times - bend, 0.0)], axis=1)
        fit = np.linalg.lstsq(columns, values, rcond=None)[0]
        best = min(best, float(np.sum((values - columns @ fit) ** 2)))
    return best
