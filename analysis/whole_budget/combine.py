"""Several terms as one time: by convolution, request by request, or by a bound that always holds.

Quantiles do not add up. The sum of the terms' p95s is neither an estimate of the p95 of the sum
nor a bound of it; it is here to be shown beside them under that name.

The interval of a convolution. F(x) = P(sum <= x) is a generalised U-statistic of the terms'
samples: its variance is the sum over the terms of Var(P(sum <= x | the term)) / n (Hoeffding,
Annals of Mathematical Statistics 19, 1948), n being what its samples are worth. So F(x) is known as
well as from F (1 - F) / variance independent sums, never from fewer than the smallest n; the
Clopper-Pearson limits at that size are inverted for the quantile. Beyond that the upper end must
hold if any one term has slow times that its samples missed: of n samples none may be among the
(1 - (alpha/2)^(1/n)) slowest. With one sampled term this is the order-statistic interval itself.
Coverage by simulation: docs/whole-budget.md.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from pathbudget.analysis.quantiles import Estimate, Values, empirical_quantile, widened_ranks
from pathbudget.analysis.request import Distribution
from pathbudget.analysis.whole_budget.convolution import CELLS, Convolution
from pathbudget.analysis.whole_budget.groups import joined
from pathbudget.analysis.whole_budget.terms import Term

PARTS = 500
"""Into how many parts the bound divides the share of requests that may be slower."""

FINE_ENOUGH = 5e-4
"""What the grid may add, as a share of a quantile, before a finer one is made."""

ROUNDING = 1e-9

EXACT = 1e-14
"""A variance of a share that is none but for the rounding of floats."""


class Sum:
    """The sum of independent terms: its share within a time, its quantiles, both with limits."""

    def __init__(
        self,
        terms: Sequence[Distribution],
        confidence: float = 0.95,
        reach_ns: float | None = None,
        *,
        p: float = 0.95,
        worth: Sequence[float] | None = None,
        cells: int = CELLS,
    ) -> None:
        """`reach_ns`, `cells` as in `Convolution`; `worth` of each term where it is known."""
        if not terms:
            raise ValueError("no terms, no sum")
        self.confidence = confidence
        self._tail = (1 - confidence) / 2
        self._constant_ns = math.fsum(float(term.ordered[0]) for term in terms if is_constant(term))
        self._terms = tuple(terms)
        self._parts = [term for term in terms if not is_constant(term)]
        worth = [worth_of(term, p, confidence) for term in terms] if worth is None else worth
        self.worth = tuple(worth)
        """What the samples of each term are worth in it."""
        self._worth = [w for w, term in zip(worth, terms, strict=True) if not is_constant(term)]
        self.failing = 1 - math.prod(1 - term.losses / term.n for term in terms)
        """Share of the requests in which at least one term failed."""
        self._estimates: dict[float, Estimate] = {}
        self._grid: Convolution | None = None
        if len(self._parts) > 1:
            reach = None if reach_ns is None else reach_ns - self._constant_ns
            self._grid = Convolution([part.ordered for part in self._parts], reach, cells)

    @property
    def n(self) -> int:
        """Samples of the term that has the fewest; 0 where nothing was sampled."""
        sampled = [part.n for part in self._parts if math.isfinite(part.n_effective)]
        return min(sampled, default=0)

    @property
    def fewest(self) -> float:
        """What the samples of the term that has the fewest are worth; inf for none."""
        return min(self._worth, default=math.inf)

    @property
    def rounding_ns(self) -> float:
        """How much the grid may have added to a time."""
        return 0.0 if self._grid is None else self._grid.step_ns * len(self._parts)

    def share_within(self, time_ns: float) -> float:
        """P(sum <= time)."""
        time_ns -= self._constant_ns
        if not self._parts:
            return float(time_ns >= -ROUNDING)
        if self._grid is None:
            ordered = self._parts[0].ordered
            return float(np.searchsorted(ordered, time_ns + ROUNDING, side="right")) / len(ordered)
        return self._grid.share_at(self._grid.place(time_ns))

    def rest_within(self, place: int, times_ns: Values) -> Values:
        """P(the sum of all terms but that one <= time), for each time."""
        if is_constant(self._terms[place]):
            own = float(self._terms[place].ordered[0])
            return np.array([self.share_within(float(time) + own) for time in times_ns])
        times = times_ns - self._constant_ns
        if self._grid is None:
            return np.asarray(times >= -ROUNDING, dtype=np.float64)
        part = sum(not is_constant(term) for term in self._terms[:place])
        return self._grid.rest_within(part, times)

    def slower(self, time_ns: float) -> tuple[float, float, float]:
        """P(sum > time) with the ends of its interval."""
        share, worth = self.share_within(time_ns), self.fewest
        if self._grid is not None:
            worth = self._size(self._grid, self._grid.place(time_ns - self._constant_ns))
        low, high = Limits(0.0, self._tail, self.fewest).of(share, worth)
        return 1 - share, max(0.0, 1 - high), min(1.0, 1 - low)

    def estimate(self, p: float) -> Estimate:
        """Quantile `p` of the sum with its interval."""
        if p not in self._estimates:
            self._estimates[p] = self._estimate(p)
        return self._estimates[p]

    def _estimate(self, p: float) -> Estimate:
        if not self._parts:
            value = self._constant_ns
            return Estimate(value=value, low=value, high=value, n=0, n_effective=math.inf)
        if self._grid is None:
            return self._shifted(self._parts[0], p)
        return self._of_grid(self._grid, p)

    def _shifted(self, part: Distribution, p: float) -> Estimate:
        """Of one term that varies: its own quantile and interval, later by the constants."""
        if math.isinf(part.n_effective):
            value = empirical_quantile(part.ordered, p) + self._constant_ns
            return Estimate(value=value, low=value, high=value, n=0, n_effective=math.inf)
        found, add = part.estimate(p, self.confidence), self._constant_ns
        low = found.low + add
        return replace(found, value=found.value + add, low=low, high=found.high + add)

    def quantile(self, p: float) -> float:
        """Quantile `p` alone, which is quicker than with its interval."""
        grid = self._grid
        if grid is None:
            return self.estimate(p).value
        return self._first(grid, lambda place: grid.share_at(place) >= p - ROUNDING)

    def surely_within(self, p: float, time_ns: float) -> bool:
        """Whether the upper end of the interval of quantile `p` is within a time."""
        grid = self._grid
        if grid is None:
            return self.estimate(p).high <= time_ns
        place = grid.place(time_ns - self._constant_ns)
        reached = Limits(p - ROUNDING, self._tail, self.fewest)
        return place >= 0 and reached.surely(*self._known(grid, place))

    def _of_grid(self, grid: Convolution, p: float) -> Estimate:
        reached = Limits(p - ROUNDING, self._tail, self.fewest)
        value = self.quantile(p)
        low = self._first(grid, lambda place: reached.perhaps(*self._known(grid, place)))
        high = self._first(grid, lambda place: reached.surely(*self._known(grid, place)))
        at = grid.place(value - self._constant_ns) if math.isfinite(value) else grid.cells - 1
        rounded_down = max(self._constant_ns + grid.least_ns, low - self.rounding_ns)
        return Estimate(
            value=value,
            low=min(rounded_down, value) if math.isfinite(low) else low,
            high=max(high, value),
            n=self.n,
            n_effective=self._size(grid, at),
        )

    def _first(self, grid: Convolution, reached: Callable[[int], bool]) -> float:
        """First time at which a share is reached; inf where it never is."""
        first, last = 0, grid.cells
        while first < last:
            middle = (first + last) // 2
            if reached(middle):
                last = middle
            else:
                first = middle + 1
        return grid.time_ns(first) + self._constant_ns if first < grid.cells else math.inf

    def _known(self, grid: Convolution, place: int) -> tuple[float, float]:
        """The share at a place, and how many independent sums it is known as well as from."""
        return grid.share_at(place), self._size(grid, place)

    def _size(self, grid: Convolution, place: int) -> float:
        """How many independent sums the share at a place is known as well as from."""
        variances = grid.variances(place)
        spread = sum(one / worth for one, worth in zip(variances, self._worth, strict=True))
        share = grid.share_at(place)
        if not 0 < share < 1:
            return self.fewest
        if spread <= EXACT:
            return math.inf  # it depends on terms alone that nobody sampled
        return max(self.fewest, share * (1 - share) / spread)


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a share that is known as well as from `worth` independent sums, and whether
    they reach `p`: told by the beta distribution itself, for its inverse takes a hundred times as
    long.
    """

    p: float
    tail: float
    fewest: float
    """What the samples of the term that has the fewest are worth."""

    def of(self, share: float, worth: float) -> tuple[float, float]:
        """Both limits; the lower one also if a term has slow times that its samples missed."""
        if math.isinf(worth):
            return self._seen(share), share
        hits = share * worth
        low = float(special.betaincinv(hits, worth - hits + 1, self.tail)) if hits > 0 else 0.0
        if hits >= worth:
            return min(low, self._seen(share)), 1.0
        high = float(special.betaincinv(hits + 1, worth - hits, 1 - self.tail))
        return min(low, self._seen(share)), high

    def surely(self, share: float, worth: float) -> bool:
        """Whether the lower limit is `p` or more."""
        if self._seen(share) < self.p or share <= 0:
            return False
        if math.isinf(worth):
            return True
        hits = share * worth
        return float(special.betainc(hits, worth - hits + 1, self.p)) <= self.tail

    def perhaps(self, share: float, worth: float) -> bool:
        """Whether the upper limit is `p` or more."""
        if math.isinf(worth):
            return share >= self.p
        hits = share * worth
        if hits >= worth:
            return True
        return float(special.betainc(hits + 1, worth - hits, self.p)) <= 1 - self.tail

    def _seen(self, share: float) -> float:
        unseen: float = self.tail ** (1 / self.fewest)
        return share * unseen


def worth_of(term: Distribution, p: float, confidence: float) -> float:
    """What a term's samples are worth in a sum: at the quantile or in the middle, whichever less.

    A sum asks of each term how its times lie over all of their range.
    """
    if math.isinf(term.n_effective):
        return math.inf
    least = min(term.n_effective, term.worth(p, confidence), term.worth(0.5, confidence))
    return max(1.0, min(least, term.n))


def is_constant(term: Distribution) -> bool:
    """Whether it is one number that nobody sampled: an allowance."""
    return math.isinf(term.n_effective) and bool(term.ordered[0] == term.ordered[-1] < math.inf)


def independent(terms: Sequence[Distribution], p: float, *, confidence: float = 0.95) -> Estimate:
    """Quantile `p` of the sum of independent terms, in ns, by convolution on one grid.

    Times are rounded up, so the value and the upper end are never too small; the lower end is
    taken down by as much. Failures are at +inf. Raises ValueError for no terms.
    """
    return sum_of(terms, p, confidence=confidence).estimate(p)


def sum_of(
    terms: Sequence[Distribution],
    p: float,
    *,
    confidence: float = 0.95,
    also_ns: float = 0.0,
) -> Sum:
    """The sum on the finest grid that still holds quantile `p`, its interval and `also_ns`."""
    coarse = Sum(terms, confidence, p=p)
    if not coarse.rounding_ns:
        return coarse
    found = coarse.estimate(p)
    ends = [end for end in (found.value, found.high) if math.isfinite(end)]
    if not ends or coarse.rounding_ns <= FINE_ENOUGH * min(ends):
        return coarse
    reach_ns = max(*ends, also_ns) + coarse.rounding_ns
    fine = Sum(terms, confidence, reach_ns, p=p, worth=coarse.worth)
    return fine if fine.rounding_ns < coarse.rounding_ns else coarse


def joint(terms: Sequence[Term], p: float, *, confidence: float = 0.95) -> Estimate:
    """Quantile `p` of the sums of the terms request by request, in ns; no independence is assumed.

    Requests that lack one of the terms are left out (`groups.joined` counts them). Raises
    ValueError where a term has no ids, or where no request has all terms.
    """
    return joined(terms).distribution.estimate(p, confidence)


def sum_of_quantiles(terms: Sequence[Distribution], p: float) -> float:
    """Each term's own quantile `p`, added up, in ns: neither an estimate nor a bound."""
    return math.fsum(empirical_quantile(term.ordered, p) for term in terms)


@dataclass(frozen=True, slots=True)
class Bound:
    """A time that the sum exceeds in at most a share 1 - p of requests, however terms depend.

    `value` takes the samples for the truth, `high` the upper ends of the terms' quantiles at the
    same shares, each with the confidence that all of them hold together; inf where there is none.
    """

    value: float
    high: float
    shares: tuple[float, ...]
    """u of each term, in the order of the terms: the value is the sum of the terms' Q(u)."""


def guaranteed_bound(terms: Sequence[Distribution], p: float, *, confidence: float = 0.95) -> Bound:
    """The smallest sum of Q_i(u_i) with sum (1 - u_i) = 1 - p, in ns.

    P(sum > that) <= sum P(X_i > Q_i(u_i)) <= 1 - p whatever the dependence (Boole; for two terms no
    smaller bound holds: Makarov 1981, Rueschendorf 1982). The shares are multiples of (1 - p) /
    500, found exactly by dynamic programming. Raises ValueError for no terms.
    """
    if not terms:
        raise ValueError("no terms, no bound")
    unit = (1 - p) / PARTS
    shares: Values = 1 - unit * np.arange(PARTS + 1, dtype=np.float64)
    varying = [place for place, term in enumerate(terms) if not is_constant(term)]
    exact = [1.0] * len(terms)
    costs = [_quantiles(terms[place], shares) for place in varying]
    for place, spent in zip(varying, _cheapest(costs), strict=True):
        exact[place] = float(shares[spent])
    each = 1 - (1 - confidence) / max(1, len(varying))
    high = (_upper_end(term, u, each) for term, u in zip(terms, exact, strict=True))
    value = math.fsum(
        float(_quantiles(term, np.array([u]))[0]) for term, u in zip(terms, exact, strict=True)
    )
    return Bound(value, max(value, math.fsum(high)), tuple(exact))


def _quantiles(term: Distribution, shares: Values) -> Values:
    """Smallest times within which at least each share falls."""
    ranks = np.ceil(shares * term.n - ROUNDING).astype(np.int64)
    return term.ordered[np.clip(ranks, 1, term.n) - 1]


def _cheapest(costs: Sequence[Values]) -> list[int]:
    """How many parts each term gets, all of them together `PARTS`, at the smallest sum."""
    if not costs:
        return []
    total, chosen = costs[0], [np.arange(PARTS + 1)]
    for cost in costs[1:]:
        # own[j, i]: this term gets i of j parts
        own = np.full((PARTS + 1, PARTS + 1), math.inf)
        for parts in range(PARTS + 1):
            own[parts, : parts + 1] = total[parts::-1] + cost[: parts + 1]
        best = np.argmin(own, axis=1)
        total = own[np.arange(PARTS + 1), best]
        chosen.append(best)
    left, spent = PARTS, [0] * len(costs)
    for place in range(len(costs) - 1, 0, -1):
        spent[place] = int(chosen[place][left])
        left -= spent[place]
    spent[0] = left
    return spent


def _upper_end(term: Distribution, share: float, confidence: float) -> float:
    """Upper limit of a quantile, one-sided; inf where the samples set none."""
    if math.isinf(term.n_effective):
        return float(_quantiles(term, np.array([share]))[0])
    if share >= 1:
        return math.inf
    both = 1 - 2 * (1 - confidence)
    _, upper = widened_ranks(term.n, min(term.worth(share), term.n), share, both)
    return math.inf if upper is None else float(term.ordered[upper - 1])
