"""The quantile of traffic that is a mixture of connection modes.

F(x) = sum of w_m F_m(x). What k of m independent samples below x say of F_m(x) is a beta
distribution (that of Clopper and Pearson's limits); the weighted sum of these is taken as the beta
distribution of the same mean and variance, and its limits are inverted. One mode alone has exactly
the order statistics of any other line. Every mode counts with what its samples are worth: modes
that swing together, because they share a path, are worth less (`intervals.timeline`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy import special

from pathbudget.analysis.intervals.bursts import Bursts, most_beyond, none_in_bursts
from pathbudget.analysis.intervals.timeline import ANY_NUMBER, inflation, losses_decide
from pathbudget.analysis.quantiles import Estimate, Values
from pathbudget.analysis.request import Distribution

SLACK = 1e-12
"""Weights may miss a sum of 1 by a rounding."""


@dataclass(frozen=True, slots=True)
class Part:
    """One mode of the mixture: share of the traffic, and its distribution."""

    weight: float
    distribution: Distribution

    def share_below(self, x: float) -> float:
        """Empirical F(x) of this mode."""
        ordered = self.distribution.ordered
        return float(ordered.searchsorted(x, side="right")) / len(ordered)


def mixture_estimate(
    parts: Sequence[Part], p: float, *, missing_weight: float = 0.0, confidence: float = 0.95
) -> Estimate:
    """Quantile `p` of the mixture. Weights of parts and of what is missing sum to 1.

    Modes that were not measured count as unbounded in the value and the upper end, and as taking
    no time in the lower end: the interval holds whatever they are. At least one part.
    """
    if len(parts) == 1 and missing_weight <= 0:
        return parts[0].distribution.estimate(p, confidence)

    def point(x: float) -> float:
        return sum(part.weight * part.share_below(x) for part in parts)

    value = _first_of(parts, point, p)
    limits = _Limits(parts, _sizes(parts, value, p, confidence), missing_weight, p, confidence)
    low = 0.0 if limits.upper(-1.0) >= p else _first_of(parts, limits.upper, p)
    high = _first_of(parts, limits.lower, p)
    return Estimate(
        value=value,
        low=min(low, value),
        high=max(high, value),
        n=sum(part.distribution.n for part in parts),
        n_effective=sum(limits.sizes),
    )


def _sizes(parts: Sequence[Part], value: float, p: float, confidence: float) -> list[float]:
    """What the samples of each part are worth at the quantile of the mixture."""
    shared = _shared(parts, value, confidence)
    lost = sum(part.weight * part.distribution.losses / part.distribution.n for part in parts)
    if losses_decide(lost, p):
        shared = max(shared, _shared(parts, ANY_NUMBER, confidence))
    return [
        max(1.0, part.distribution.n / shared)
        if part.distribution.timeline is not None
        else max(1.0, min(part.distribution.n, part.distribution.n_effective))
        for part in parts
    ]


def _shared(parts: Sequence[Part], value: float, confidence: float) -> float:
    """How many times more the share below a value varies than by independent samples."""
    timed = [
        (part.weight, part.distribution.timeline.scatter(value))
        for part in parts
        if part.distribution.timeline is not None
    ]
    return inflation(timed, confidence) if timed else 1.0


def _first_of(parts: Sequence[Part], rising: Callable[[float], float], p: float) -> float:
    """Smallest time of any part where the rising function reaches `p`; inf where it never does.

    Part by part, and in each only below what is known already: nothing is put together or sorted.
    """
    found = float("inf")
    for part in parts:
        ordered = part.distribution.ordered
        earlier = ordered[: ordered.searchsorted(found)]
        if len(earlier) and rising(float(earlier[-1])) >= p - SLACK:
            found = first_reaching(earlier, rising, p)
    return found


def first_reaching(grid: Values, rising: Callable[[float], float], p: float) -> float:
    """Smallest x of the sorted grid where the rising function reaches `p`; inf where it never does.

    Forgives `SLACK`.
    """
    first, last = 0, len(grid)
    while first < last:
        middle = (first + last) // 2
        if rising(float(grid[middle])) >= p - SLACK:
            last = middle
        else:
            first = middle + 1
    return float(grid[first]) if first < len(grid) else float("inf")


@dataclass(slots=True)
class _Limits:
    """Limits of the share of the mixture below a value."""

    parts: Sequence[Part]
    sizes: list[float]
    missing_weight: float
    p: float
    confidence: float
    _known: float = field(init=False)
    _bursts: list[Bursts] = field(init=False)
    """Losses of each part; empty where none came in bursts."""

    def __post_init__(self) -> None:
        self._known = sum(part.weight for part in self.parts)
        found = [part.distribution.bursts() for part in self.parts]
        self._bursts = (
            [
                none_in_bursts(part.distribution.losses, part.distribution.n)
                if one is None
                else one
                for part, one in zip(self.parts, found, strict=True)
            ]
            if any(found)
            else []
        )

    @property
    def tail(self) -> float:
        """Chance that the truth is beyond one end."""
        return (1 - self.confidence) / 2

    def upper(self, x: float) -> float:
        """Largest share that is below `x`; what was not measured may all be."""
        return self.missing_weight + self._limit(x, 1 - self.tail, one_more=1)

    def lower(self, x: float) -> float:
        """Smallest share that is below `x`."""
        least = self._limit(x, self.tail, one_more=0)
        return min(least, self._known - self._beyond(x)) if self._bursts else least

    def _beyond(self, x: float) -> float:
        """Largest share that is above `x` or lost, were the bursts of losses as few by chance."""
        slow = [
            burst.n - burst.lost - float(np.searchsorted(part.distribution.ordered, x, "right"))
            if any(one.are_few for one in self._bursts)
            else 0.0
            for part, burst in zip(self.parts, self._bursts, strict=True)
        ]
        weights = [part.weight for part in self.parts]
        weighted = list(zip(weights, self._bursts, strict=True))
        return most_beyond(weighted, slow, self.p, self.confidence)

    def _limit(self, x: float, tail: float, one_more: int) -> float:
        """Quantile `tail` of the sum of the parts' beta distributions, scaled by their weights."""
        mean = variance = 0.0
        for part, size in zip(self.parts, self.sizes, strict=True):
            n, ordered = part.distribution.n, part.distribution.ordered
            rank = float(ordered.searchsorted(x, side="right"))
            inside = len(self.parts) == 1 or (rank > 0 and ordered[int(rank) - 1] == x)
            # Between two samples of a part its share is that of neither: take the middle.
            share = min(rank + (one_more if inside else 0.5), n + 1) / (n + 1)
            mean += part.weight * share
            variance += part.weight**2 * share * (1 - share) / (size + 2)
        return _beta_quantile(mean / self._known, variance / self._known**2, tail) * self._known


def _beta_quantile(mean: float, variance: float, tail: float) -> float:
    """Quantile of the beta distribution of that mean and variance; a certain mean is itself."""
    if variance <= 0 or not 0 < mean < 1:
        return min(1.0, max(0.0, mean))
    both = mean * (1 - mean) / variance - 1
    return float(special.betaincinv(mean * both, (1 - mean) * both, tail))
