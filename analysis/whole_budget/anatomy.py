"""What the whole is made of at its percentile, what each term has left, and what to fix first.

    contribution   mean of the term over requests about as slow as the percentile: the bars add up
    stretch        by which factor all of its times may grow until the percentile meets the target
    leverage       what the percentile falls by per ms taken off its mean, all times by one factor

A millisecond off *every* request helps equally in whichever term; what differs is how much of a
term's time falls into the slow requests. So terms are compared by shrinking them as they are. Per
ms off a term's mean the share of breaches falls by the density of the sums at the target times the
term's leverage there.
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

NEAR = 0.02
"""What counts as about the target, on each side, as a share of it."""

FEWEST_NEAR = 0.002
"""Share of the requests that must be about the target for anything to be said of them."""

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
        means = self.means_between(*self._window(p, value_ns))
        least = [
            float(values[np.isfinite(values)].min()) if np.isfinite(values).any() else 0.0
            for group in self.groups
            for values in group.values_ns
        ]
        return _adding_up(least if means is None else means, least, value_ns)

    def means_between(self, low_ns: float, high_ns: float) -> list[float] | None:
        """Mean of each term, ns, over requests of which the sum is within; None where none is."""
        means: list[float] = []
        for place, group in enumerate(self.groups):
            weights = self._weights(place, low_ns, high_ns)
            total = float(weights.sum())
            if total <= 0:
                return None
            for values in group.values_ns:
                finite = np.where(np.isfinite(values), values, 0.0)
                means.append(float(weights @ finite) / total)
        return means

    def leverages(self, low_ns: float, high_ns: float) -> list[float] | None:
        """How much each term's mean within is above its mean over all requests that did not fail.

        That is by how many ms a quantile there falls per ms taken off the term's mean, all of its
        times by the same factor: d Q / d factor = E(term | sum = Q). 1 for a constant.
        """
        inside = self.means_between(low_ns, high_ns)
        if inside is None:
            return None
        overall = [
            float(values[np.isfinite(values)].mean()) if np.isfinite(values).any() else 0.0
            for group in self.groups
            for values in group.values_ns
        ]
        return [
            mine / mean if mean > 0 else 0.0 for mine, mean in zip(inside, overall, strict=True)
        ]

    def about_target(self, target_ns: float) -> tuple[float, float, float]:
        """The ends of what is about the target, ns, and the density of the sums there, per ns.

        0 where too few requests are there for anything to be said of them.
        """
        half = NEAR * target_ns
        low, high = target_ns - half, target_ns + half
        inside = self.whole.share_within(high) - self.whole.share_within(low)
        return low, high, inside / (2 * half) if inside >= FEWEST_NEAR else 0.0

    def about(self, p: float, value_ns: float) -> tuple[float, float]:
        """The ends of what is about quantile `p`, `value_ns`; everything where that is inf."""
        if math.isinf(value_ns):
            return -1.0, math.inf
        return self._window(p, value_ns)

    def _window(self, p: float, value_ns: float) -> tuple[float, float]:
        share = min(WINDOW, (1 - p) / 2, p / 2)
        low = self.whole.quantile(p - share)
        high = self.whole.quantile(p + share)
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
        """Largest factor on a term that keeps quantile `p` within the target; None for no limit.

        0 also where the target is missed without the term: there is nothing more to take away.
        """
        sums, values = self._thinned(group, term)

        def holds(factor: float) -> bool:
            return self._share(group, sums + (factor - 1) * values, target_ns) >= p - 1e-9

        if not holds(0.0):
            return 0.0
        if holds(WIDEST):
            return None
        low, high = 0.0, 1.0
        while holds(high):
            low, high = high, 2 * high
        for _ in range(52):
            middle = (low + high) / 2
            low, high = (middle, high) if holds(middle) else (low, middle)
        return low

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
