"""What a filled pair may be: its prediction times the errors that the model made at known pairs.

The errors are taken as they are, at every level of a sampling table. A normal curve through two
ends would not do: most errors are small and a few are large, so it would be far too wide in the
middle, and the choice of sites would bet on pairs that turn out short.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import special

from pathbudget.analysis.siting.filling_known import Known
from pathbudget.analysis.siting.sampling import PROBABILITIES

Matrix = npt.NDArray[np.float64]

BANDS = 3
FEWEST_OF_BAND = 40
TAIL = 0.025
"""On either side of an interval."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Ends of 95 % intervals (regions x sites), and tables (x levels) of what is between them."""

    low: Matrix
    high: Matrix
    tables: Matrix


def spread_of(predicted: Matrix, known: Known, ratio: Matrix) -> Spread:
    """Prediction times the quantiles of the errors at pairs of about its length.

    `ratio` is true over predicted at known pairs (``nan`` elsewhere).
    """
    there = ~np.isnan(ratio)
    ratios = ratio[there]
    lengths = known.costs[there] / ratios
    bands = max(1, min(BANDS, len(ratios) // FEWEST_OF_BAND))
    edges = np.quantile(lengths, np.linspace(0, 1, bands + 1)[1:-1])
    of_known, of_open = np.searchsorted(edges, lengths), np.searchsorted(edges, predicted)
    levels = np.stack([_levels(ratios[of_known == band]) for band in range(bands)])
    middle, floor = predicted[..., None], 0.0 if known.floors is None else known.floors
    tables = middle * levels[of_open]
    tables = np.maximum(tables, np.minimum(floor, predicted)[..., None])
    low, high = (tables[..., PROBABILITIES.index(level)] for level in (TAIL, 1 - TAIL))
    return Spread(np.minimum(low, predicted), np.maximum(high, predicted), tables)


def _levels(ratios: Matrix) -> Matrix:
    """Errors at the levels of a table; the outer ones hold as `_outer` says."""
    grid = np.asarray(PROBABILITIES)
    lowest, highest = _outer(ratios)
    between: Matrix = np.quantile(ratios, grid, method="weibull")
    between[grid == TAIL], between[grid == 1 - TAIL] = lowest, highest
    between[grid < TAIL] = np.minimum(between[grid < TAIL], lowest)
    between[grid > 1 - TAIL] = np.maximum(between[grid > 1 - TAIL], highest)
    return between


def _outer(ratios: Matrix) -> tuple[float, float]:
    """The ends that hold 95 % of the errors and of one more (ranks of n + 1).

    Of fewer errors than have such ranks, the outermost ones or those of a log-normal distribution
    (Student's t), whichever are farther out.
    """
    ordered, n = np.sort(ratios), len(ratios)
    last = int(np.ceil(0.975 * (n + 1))) - 1
    if last < n:
        return float(ordered[int(np.floor(0.025 * (n + 1))) - 1]), float(ordered[last])
    logs = np.log(ratios)
    reach = float(special.stdtrit(n - 1, 0.975) * logs.std(ddof=1) * np.sqrt(1 + 1 / n))
    middle = float(logs.mean())
    low, high = np.exp(middle - reach), np.exp(middle + reach)
    return float(min(ordered[0], low)), float(max(ordered[-1], high))
