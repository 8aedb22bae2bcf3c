"""The quantile of traffic that is a mixture of connection modes.

F(x) = sum of w_m F_m(x). The interval bounds every F_m at x by Clopper-Pearson, with the error
shared out over the modes (Bonferroni), and inverts the weighted sums of the bounds. So it covers at
least as often as it says, for any distributions.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from pathbudget.analysis.quantiles import Estimate, Values
from pathbudget.analysis.request import Distribution


@dataclass(frozen=True, slots=True)
class Part:
    """One mode of the mixture: share of the traffic, and its distribution."""

    weight: float
    distribution: Distribution

    def share_below(self, x: float) -> float:
        """Empirical F(x) of this mode."""
        ordered = self.distribution.ordered
        return float(np.searchsorted(ordered, x, side="right")) / len(ordered)


def mixture_estimate(
    parts: Sequence[Part], p: float, *, missing_weight: float = 0.0, confidence: float = 0.95
) -> Estimate:
    """Quantile `p` of the mixture. Weights of parts and of what is missing sum to 1.

    Modes that were not measured count as unbounded in the value and the upper end, and as taking
    no time in the lower end: the interval holds whatever they are. At least one part.
    """
    if len(parts) == 1 and missing_weight <= 0:
        return parts[0].distribution.estimate(p, confidence)
    grid = np.unique(np.concatenate([part.distribution.ordered for part in parts]))
    grid = grid[np.isfinite(grid)]
    tail = (1 - confidence) / 2 / len(parts)

    def point(x: float) -> float:
        return sum(part.weight * part.share_below(x) for part in parts)

    def upper(x: float) -> float:
        return missing_weight + sum(part.weight * _upper_share(part, x, tail) for part in parts)

    def lower(x: float) -> float:
        return sum(part.weight * _lower_share(part, x, tail) for part in parts)

    value = first_reaching(grid, point, p)
    low = 0.0 if upper(-1.0) >= p else first_reaching(grid, upper, p)
    high = first_reaching(grid, lower, p)
    return Estimate(
        value=value,
        low=min(low, value),
        high=max(high, value),
        n=sum(part.distribution.n for part in parts),
        n_effective=sum(part.distribution.n_effective for part in parts),
    )


def first_reaching(grid: Values, rising: Callable[[float], float], p: float) -> float:
    """Smallest x of the sorted grid where the rising function reaches `p`; inf where it never does.

    The slack of 1e-12 is for weights whose sum misses 1 by a rounding.
    """
    first, last = 0, len(grid)
    while first < last:
        middle = (first + last) // 2
        if rising(float(grid[middle])) >= p - 1e-12:
            last = middle
        else:
            first = middle + 1
    return float(grid[first]) if first < len(grid) else float("inf")


def _upper_share(part: Part, x: float, tail: float) -> float:
    """Clopper-Pearson upper limit of F(x), at the effective size."""
    n = max(1.0, part.distribution.n_effective)
    hits = part.share_below(x) * n
    return 1.0 if hits >= n else float(special.betaincinv(hits + 1, n - hits, 1 - tail))


def _lower_share(part: Part, x: float, tail: float) -> float:
    """Clopper-Pearson lower limit of F(x), at the effective size."""
    n = max(1.0, part.distribution.n_effective)
    hits = part.share_below(x) * n
    return 0.0 if hits <= 0 else float(special.betaincinv(hits, n - hits + 1, tail))
