"""What a headline value may be, for all that was measured: its sampling distribution.

The quantile p of a bootstrap sample of size m is the empirical quantile at a level that is
Beta(k, m - k + 1) distributed, k = ceil(p m): the k-th order statistic of m uniform numbers (Efron
and Tibshirani, An Introduction to the Bootstrap, 1993). So no sample is drawn to know it; m is the
effective size, which is how the autocorrelation of the samples comes in. A table of its values at
`PROBABILITIES` is small enough to travel with a report.
"""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import special

from pathbudget.analysis.mixture import Part
from pathbudget.analysis.quantiles import Values

Matrix = npt.NDArray[np.float64]

PROBABILITIES = (0.005, 0.025, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.975, 0.995)
"""Levels at which sampling distributions are tabulated."""

_EDGES = (np.array(PROBABILITIES)[1:] + np.array(PROBABILITIES)[:-1]) / 2
LEVEL_WEIGHTS: Values = np.diff(np.concatenate([[0.0], _EDGES, [1.0]]))
"""Share of the probability that each level stands for."""

UNLIMITED_FROM = 0.9
"""Of a line without an upper limit, draws from this level up are unbounded."""

WITHOUT_LOW = 0.5
"""Spread of the logarithm downwards, where there is no lower limit to take it from."""

Z_95 = 1.959963984540054


def of_parts(parts: Sequence[Part], p: float, missing_weight: float = 0.0) -> Values:
    """Table of the headline of a mixture of measured distributions; missing modes are unbounded."""
    values = np.concatenate([part.distribution.ordered for part in parts])
    shares = np.concatenate(
        [
            np.full(len(part.distribution.ordered), part.weight / len(part.distribution.ordered))
            for part in parts
        ]
    )
    order = np.argsort(values, kind="stable")
    values, levels = values[order], np.cumsum(shares[order])
    at = min(int(np.searchsorted(levels, p - 1e-12)), len(values) - 1)
    size = _worth(parts, float(values[at]), p)
    rank = min(size, max(1.0, math.ceil(p * size - 1e-9)))
    wanted = special.betaincinv(rank, size - rank + 1, np.asarray(PROBABILITIES))
    places = np.searchsorted(levels, np.minimum(wanted, 1.0) - 1e-9)
    padded = np.append(values, np.inf if missing_weight > 0 else values[-1])
    table: Values = padded[np.minimum(places, len(values))]
    return table


def _worth(parts: Sequence[Part], x: float, p: float) -> float:
    """Effective size of a mixture at its quantile: p (1 - p) over the variance of F(x)."""
    if len(parts) == 1:
        return max(1.0, math.floor(parts[0].distribution.worth(p) + 1e-9))
    variance = 0.0
    for part in parts:
        below = min(max(part.share_below(x), 1e-3), 1 - 1e-3)
        variance += part.weight**2 * below * (1 - below) / max(1.0, part.distribution.worth(p))
    return max(1.0, math.floor(p * (1 - p) / variance)) if variance > 0 else 1.0


def of_interval(value: float, low: float, high: float) -> Values:
    """Table for a value with its 95 % interval: normal in the logarithm, each side by itself.

    For what comes without samples: a matrix file, a filled pair. Unbounded values stay so.
    """
    if not math.isfinite(value) or value <= 0:
        return np.full(len(PROBABILITIES), np.inf if not math.isfinite(value) else 0.0)
    z = special.ndtri(np.asarray(PROBABILITIES))
    up = math.log(high / value) / Z_95 if math.isfinite(high) else None
    down = math.log(value / low) / Z_95 if low > 0 else (WITHOUT_LOW if up is None else up)
    above = z * (WITHOUT_LOW if up is None else up)
    return without_limit(value * np.exp(np.where(z < 0, z * down, above)), unlimited=up is None)


def without_limit(table: Values, *, unlimited: bool) -> Values:
    """The table with its top open, where the data sets no upper limit."""
    if not unlimited:
        return table
    return np.where(np.asarray(PROBABILITIES) >= UNLIMITED_FROM, np.inf, table)


def draws(tables: Matrix, count: int, seed: int) -> Matrix:
    """Draws x rows x columns: every pair drawn by itself from its table.

    `tables` is rows x columns x levels.
    Antithetic pairs (u and 1 - u) halve the noise of means for the same number of draws.
    """
    rng = np.random.default_rng(seed)
    half = -(-count // 2)
    level = rng.random((half, *tables.shape[:2]))
    level = np.concatenate([level, 1 - level])[:count]
    return at_levels(tables, level)


def at_levels(tables: Matrix, level: Matrix) -> Matrix:
    """Values of the tables at levels (draws x rows x columns), linear between tabulated ones."""
    grid = np.asarray(PROBABILITIES)
    level = np.clip(level, grid[0], grid[-1])
    right = np.clip(np.searchsorted(grid, level, side="right"), 1, len(grid) - 1)
    share = (level - grid[right - 1]) / (grid[right] - grid[right - 1])
    rows, columns = np.indices(tables.shape[:2])
    below, above = tables[rows, columns, right - 1], tables[rows, columns, right]
    with np.errstate(invalid="ignore"):
        between = below + share * (above - below)
    values: Matrix = np.where(np.isfinite(above), between, np.where(share > 0, above, below))
    return values
