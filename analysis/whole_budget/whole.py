"""The whole budget of one (region, site, tier): all terms, one time, one verdict, what to do."""

import math
from collections.abc import Sequence

import numpy as np

from pathbudget.analysis.quantiles import Estimate
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.summary import milliseconds
from pathbudget.analysis.whole_budget.anatomy import Anatomy
from pathbudget.analysis.whole_budget.combine import (
    Bound,
    Sum,
    guaranteed_bound,
    is_constant,
    sum_of,
    sum_of_quantiles,
    worth_of,
)
from pathbudget.analysis.whole_budget.deadline import deadline_of
from pathbudget.analysis.whole_budget.groups import NETWORK, Group, grouped
from pathbudget.analysis.whole_budget.question import Request
from pathbudget.analysis.whole_budget.reasons import (
    JOINED,
    Judged,
    first_name,
    first_to_fix,
    fix_reason,
    judged,
    source_words,
)
from pathbudget.analysis.whole_budget.results import (
    Combination,
    Combine,
    Figure,
    WholeBudget,
    WholeTerm,
)
from pathbudget.analysis.whole_budget.selection import allowances
from pathbudget.analysis.whole_budget.terms import Term, TermName, TermSource

BOTH_WAYS = "network"


def whole_budget(request: Request) -> WholeBudget:
    """All that is known of the whole."""
    return _Whole(request).result()


def budget_and_figures(
    request: Request, percentiles: Sequence[float]
) -> tuple[WholeBudget, tuple[Figure, ...]]:
    """The same, and the whole at several percentiles, combined as it is for its verdict."""
    whole = _Whole(request)
    return whole.result(), tuple(whole.figure(percentile) for percentile in percentiles)


class _Whole:
    def __init__(self, request: Request) -> None:
        self.request, tier = request, request.tier
        terms = request.selection.terms
        self.apart = grouped(terms)
        self.together = grouped(terms, by_request=True)
        self.has_joint = len(self.together) < len(self.apart)
        default = Combine.JOINT if self.has_joint else Combine.INDEPENDENT
        self.combine = request.combine or default
        self.groups = self.together if self.combine is Combine.JOINT else self.apart
        self.sum = self._sum(self.groups)
        self.allowed = allowances(tier)

    def _sum(self, groups: Sequence[Group]) -> Sum:
        request = self.request
        distributions = [group.distribution for group in groups]
        target = request.target_ns
        return sum_of(distributions, request.p, confidence=request.confidence, also_ns=target)

    def estimate(self, p: float) -> Estimate:
        """Quantile `p` of the whole by the way that was asked for."""
        if self.combine is Combine.BOUND:
            return _bounded(self.groups, self._bound(p), p, self.request.confidence)
        if p == self.request.p:
            return self.sum.estimate(p)
        distributions = [group.distribution for group in self.groups]
        return sum_of(distributions, p, confidence=self.request.confidence).estimate(p)

    def figure(self, percentile: float) -> Figure:
        estimate = self.estimate(percentile / 100)
        return Figure(
            percentile=percentile,
            value_ms=milliseconds(estimate.value),
            low_ms=milliseconds(estimate.low),
            high_ms=milliseconds(estimate.high),
        )

    def _bound(self, p: float) -> Bound:
        distributions = [group.distribution for group in self.apart]
        return guaranteed_bound(distributions, p, confidence=self.request.confidence)

    def result(self) -> WholeBudget:
        request, tier = self.request, self.request.tier
        estimate = self.estimate(request.p)
        breach = self._breach()
        terms = self._terms()
        density = Anatomy(self.groups, self.sum).about_target(request.target_ns)[2] * NS_PER_MS
        first = first_to_fix(terms, density)
        assumed = tuple(term.name for term in terms if term.source == TermSource.TIER)
        fewest, count, worth = self._fewest()
        asked = Judged(
            request=request,
            estimate=estimate,
            combine=self.combine,
            failing=self.sum.failing,
            assumed=assumed,
            terms=len(terms),
            fewest=fewest,
            fewest_n=count,
            fewest_worth=worth,
        )
        verdict, reason = judged(asked)
        return WholeBudget(
            region=request.region,
            site=request.site,
            tier=tier.name,
            percentile=tier.percentile,
            target_ms=tier.target_ms,
            combine=self.combine,
            value_ms=milliseconds(estimate.value),
            low_ms=milliseconds(estimate.low),
            high_ms=milliseconds(estimate.high),
            headroom_ms=milliseconds(request.target_ns - estimate.value),
            n=estimate.n,
            n_effective=_finite(estimate.n_effective),
            breach=breach[0],
            breach_low=breach[1],
            breach_high=breach[2],
            failing=self.sum.failing,
            verdict=verdict,
            reason=reason,
            terms=terms,
            combinations=self._combinations(),
            fix_first="" if first is None else first_name(terms, first),
            fix_reason=fix_reason(terms, first, tier.percentile, density),
            deadline=deadline_of(self.groups, self.sum, request),
            assumed=assumed,
            notes=(*request.selection.notes, *self._left_out()),
        )

    def _breach(self) -> tuple[float, float, float]:
        """Share above the target with its interval; by the bound from nothing to what is sure."""
        share, low, high = self.sum.slower(self.request.target_ns)
        if self.combine is not Combine.BOUND or not self.sum.n:
            return share, low, high
        return share, 0.0, self._largest_breach()

    def _largest_breach(self) -> float:
        """Smallest 1 - p whose bound keeps the target: no dependence makes it more."""
        low, high = 0.0, 1.0
        for _ in range(12):
            middle = (low + high) / 2
            holds = middle > 0 and self._bound(1 - middle).high <= self.request.target_ns
            low, high = (low, middle) if holds else (middle, high)
        return high

    def _terms(self) -> tuple[WholeTerm, ...]:
        request, anatomy = self.request, Anatomy(self.groups, self.sum)
        value = self.sum.estimate(request.p).value
        shares: list[float] | None = None
        if math.isfinite(value):
            shares = anatomy.contributions(request.p, value)
        at_percentile = anatomy.leverages(*anatomy.about(request.p, value))
        low, high, density = anatomy.about_target(request.target_ns)
        at_target = anatomy.leverages(low, high) if density else None
        found: list[tuple[int, WholeTerm]] = []
        for place, (group, number, term) in enumerate(anatomy.terms):
            made = self._term(
                term,
                share=None if shares is None else shares[place],
                stretch=anatomy.stretch(group, number, request.p, request.target_ns),
                leverage=0.0 if at_percentile is None else at_percentile[place],
                relief=0.0 if at_target is None else at_target[place] * density * NS_PER_MS,
            )
            found.append((list(TermName).index(term.name), made))
        return tuple(term for _, term in sorted(found, key=lambda pair: pair[0]))

    def _term(
        self,
        term: Term,
        *,
        share: float | None,
        stretch: float | None,
        leverage: float,
        relief: float,
    ) -> WholeTerm:
        request = self.request
        own = Sum([term.distribution], request.confidence, p=request.p).estimate(request.p)
        known = term.values_ns[np.isfinite(term.values_ns)]
        headroom = None if stretch is None else (stretch - 1) * own.value
        return WholeTerm(
            name=self._name(term),
            source=term.source,
            origin=term.origin or source_words(term.source),
            n=0 if math.isinf(term.n_effective) else len(term.values_ns),
            n_effective=_finite(term.n_effective),
            losses=term.distribution.losses,
            allowance_ms=self.allowed.get(term.name),
            mean_ms=float(known.mean()) / NS_PER_MS if len(known) else None,
            value_ms=milliseconds(own.value),
            low_ms=milliseconds(own.low),
            high_ms=milliseconds(own.high),
            contribution_ms=None if share is None else share / NS_PER_MS,
            stretch=stretch,
            headroom_ms=None if headroom is None else milliseconds(headroom),
            leverage=leverage,
            relief_per_ms=relief,
        )

    def _name(self, term: Term) -> str:
        """One assumed number for both ways of the network is the tier's own component."""
        names = {one.name for one in self.request.selection.terms}
        alone = term.name is TermName.NETWORK_IN and TermName.NETWORK_OUT not in names
        return BOTH_WAYS if alone and term.source is TermSource.TIER else term.name

    def _combinations(self) -> tuple[Combination, ...]:
        request = self.request
        found = [_combination(Combine.INDEPENDENT, self._estimate_of(self.apart))]
        if self.has_joint:
            found.append(_combination(Combine.JOINT, self._estimate_of(self.together)))
        bound = _bounded(self.apart, self._bound(request.p), request.p, request.confidence)
        found.append(_combination(Combine.BOUND, bound))
        terms = [group.distribution for group in self.apart]
        total = milliseconds(sum_of_quantiles(terms, request.p))
        found.append(
            Combination(
                method="sum_of_quantiles",
                value_ms=total,
                low_ms=None,
                high_ms=None,
                note="for comparison alone: neither an estimate nor a bound",
            )
        )
        return tuple(found)

    def _estimate_of(self, groups: Sequence[Group]) -> Estimate:
        whole = self.sum if groups is self.groups else self._sum(groups)
        return whole.estimate(self.request.p)

    def _fewest(self) -> tuple[str, int, float]:
        """The sampled term whose samples are worth the least, how many, and what they are worth."""
        request = self.request
        least: tuple[str, int, float] = ("", 0, math.inf)
        for group in self.groups:
            worth = worth_of(group.distribution, request.p, request.confidence)
            if worth < least[2]:
                names = [term.name for term in group.terms]
                name = f"{len(names)}{JOINED}" if names[1:] else names[0]
                name = BOTH_WAYS if set(names) == set(NETWORK) else name
                least = name, group.distribution.n, worth
        return least

    def _left_out(self) -> list[str]:
        return [
            f"{group.left_out} requests lack one of {', '.join(t.name for t in group.terms)}: "
            "they are left out of what is joined."
            for group in self.groups
            if group.left_out
        ]


NOTES = {
    Combine.INDEPENDENT: "terms independent of each other: by convolution",
    Combine.JOINT: "request by request where terms share ids, else independent",
    Combine.BOUND: "surely enough, however the terms depend on each other",
}


def _combination(method: Combine, estimate: Estimate) -> Combination:
    return Combination(
        method=method,
        value_ms=milliseconds(estimate.value),
        low_ms=milliseconds(estimate.low),
        high_ms=milliseconds(estimate.high),
        note=NOTES[method],
    )


def _bounded(groups: Sequence[Group], bound: Bound, p: float, confidence: float) -> Estimate:
    """The bound as an estimate. Its lower end: the sum is at least any one of its terms."""
    terms = [group.distribution for group in groups]
    constant = math.fsum(float(term.ordered[0]) for term in terms if is_constant(term))
    sampled = [term for term in terms if not is_constant(term)]
    lows = [Sum([term], confidence, p=p).estimate(p).low for term in sampled]
    low = constant + max(lows, default=0.0)
    worth = min((term.n_effective for term in sampled), default=math.inf)
    n = min((term.n for term in sampled if math.isfinite(term.n_effective)), default=0)
    return Estimate(bound.value, min(low, bound.value), bound.high, n, worth)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
