"""What the whole is made of at its percentile, what each term has left, and what to fix first.

    contribution   mean of the term over requests about as slow as the percentile: the bars add up
    stretch        by which factor all of its times may grow until the percentile meets the target
    relief         fewer breaches per millisecond taken off its mean, all times by the same factor

A millisecond off *every* request helps equally in whichever term; what differs is how much of a
term's time falls into the slow requests. So terms are compared by shrinking them as they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.whole_budget.combine import Sum, is_constant
from pathbudget.analysis.whole_budget.groups import Group
from pathbudget.analysis.whole_budget.terms import Term

WINDOW = 0.02
"""Share of the requests on each side of the percentile that the contributions are means of."""

RELIEF_STEP = 0.01
"""How much is taken off a term's mean to see what it helps, as a share of the target."""

ENOUGH = 20_000
"""Requests of a group that are looked at one by one; of more, as many evenly spread ones."""

WIDEST = 1e6
"""Stretch that is as good as any."""


@dataclass(frozen=True, slots=True)
class Anatomy:
    """The sum of groups; `whole` is the sum of their distributions in the same order."""

    groups: tuple[Group, ...]
    whole: Sum

    @property
    def terms(self) -> list[tuple[int, int, Term]]:
        """Every term with the number of its group and its own number within it."""
        return [
            (g, t, term)
            for g, group in enumerate(self.groups)
            for t, term in enumerate(group.terms)
        ]

    def contributions(self, p: float, value_ns: float) -> list[float]:
        """Mean of each term, ns, given a sum near its quantile `p`, which is `value_ns`.

        They add up to it exactly: what the window is off the quantile is shared out over the terms
        by how far each is above its smallest time. Raises ValueError for an infinite quantile.
        """
        if math.isinf(value_ns):
            raise ValueError("requests that fail are made of no times")
        low, high = self._window(p, value_ns)
        means: list[float] = []
        least: list[float] = []
        for place, group in enumerate(self.groups):
            weights = self._weights(place, low, high)
            total = float(weights.sum())
            for values in group.values_ns:
                finite = np.where(np.isfinite(values), values, 0.0)
                means.append(float(weights @ finite) / total if total > 0 else float(finite.min()))
                least.append(float(finite[np.isfinite(values)].min()))
        return _adding_up(means, least, value_ns)

    def _window(self, p: float, value_ns: float) -> tuple[float, float]:
        share = min(WINDOW, (1 - p) / 2, p / 2)
        low = self.whole.estimate(p - share).value
        high = self.whole.estimate(p + share).value
        edge = self.whole.rounding_ns + 1.0
        return min(low, value_ns) - edge, (value_ns if math.isinf(high) else high) + edge

    def _weights(self, place: int, low: float, high: float) -> Values:
        """For each request of a group the chance that the rest takes it into the window."""
        group = self.groups[place]
        if is_constant(group.distribution):
            return np.ones(len(group.sums_ns))
        sums = group.sums_ns
        finite = np.where(np.isfinite(sums), sums, 0.0)
        within = self.whole.rest_within(place, high - finite)
        within = within - self.whole.rest_within(place, low - finite)
        return np.where(np.isfinite(sums), within, 0.0)

    def stretch(self, group: int, term: int, p: float, target_ns: float) -> float | None:
        """Largest factor on a term that keeps quantile `p` within the target; None for none.

        0 is the least: below it there is nothing to take away.
        """
        sums, values = self._thinned(group, term)

        def holds(factor: float) -> bool:
            return self._share(group, sums + (factor - 1) * values, target_ns) >= p - 1e-9

        if not holds(0.0):
            return None
        if holds(WIDEST):
            return math.inf
        low, high = 0.0, 1.0
        while holds(high):
            low, high = high, 2 * high
        for _ in range(52):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

    def relief(self, group: int, term: int, at_ns: float, step_ns: float) -> float:
        """How much smaller P(sum > at) becomes per ns taken off the mean of a term."""
        sums, values = self._thinned(group, term)
        known = values[np.isfinite(values)]
        mean = float(known.mean()) if len(known) else 0.0
        if mean <= 0:
            return 0.0
        share = min(1.0, step_ns / mean)
        after = self._share(group, sums - share * values, at_ns)
        return max(0.0, after - self._share(group, sums, at_ns)) / (share * mean)

    def _thinned(self, place: int, term: int) -> tuple[Values, Values]:
        """Sums of a group and the times of one of its terms; 0 where the request failed."""
        group = self.groups[place]
        sums, values = group.sums_ns, group.values_ns[term]
        if len(sums) > ENOUGH:
            order = np.argsort(sums, kind="stable")
            kept = order[(np.arange(ENOUGH) + 0.5).astype(np.int64) * len(order) // ENOUGH]
            sums, values = sums[kept], values[kept]
        return sums, np.where(np.isfinite(sums), values, 0.0)

    def _share(self, place: int, sums: Values, time_ns: float) -> float:
        """P(whole <= time) with other sums in the place of a group's."""
        finite = np.isfinite(sums)
        if is_constant(self.groups[place].distribution):
            return self.whole.share_within(
                time_ns + float(self.groups[place].sums_ns[0]) - float(sums[0])
            )
        within = self.whole.rest_within(place, time_ns - np.where(finite, sums, 0.0))
        return float(np.where(finite, within, 0.0).mean())


def _adding_up(means: Sequence[float], least: Sequence[float], value: float) -> list[float]:
    """The means with what they miss of the value shared out; the last rounding at the largest."""
    missing = value - math.fsum(means)
    above = [max(0.0, mean - low) for mean, low in zip(means, least, strict=True)]
    total = math.fsum(above)
    shares = [one / total for one in above] if total > 0 else [1 / len(means)] * len(means)
    found = [mean + missing * share for mean, share in zip(means, shares, strict=True)]
    largest = max(range(len(found)), key=lambda i: found[i])
    found[largest] = value - math.fsum(found[:largest] + found[largest + 1 :])
    return found
