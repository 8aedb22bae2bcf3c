"""The verdict on a whole budget, and the sentences that say why."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.quantiles import Estimate, fewest_samples
from pathbudget.analysis.report.words import counted
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.whole_budget.groups import NETWORK
from pathbudget.analysis.whole_budget.lost_words import QUANTILES, lost_words
from pathbudget.analysis.whole_budget.question import Request
from pathbudget.analysis.whole_budget.results import Combine, WholeTerm, WholeVerdict
from pathbudget.analysis.whole_budget.terms import Term, TermSource

JOINED = " terms joined by request"
"""What several are called, after their number."""

CLEARLY = 1.05
"""Leverage from which a term is worth naming: a shift of any term has 1."""


@dataclass(frozen=True, slots=True)
class Judged:
    """What a verdict rests on."""

    request: Request
    estimate: Estimate
    combine: Combine
    failing: float
    assumed: tuple[str, ...]
    terms: int
    fewest: str
    """The sampled term whose samples are worth the least."""
    fewest_n: int
    fewest_worth: float


def judged(asked: Judged) -> tuple[WholeVerdict, str]:
    """Pass where all of the interval is within the target, fail where all of it is above.

    What is assumed is said in the reason, whatever the verdict.
    """
    verdict, reason = _verdict(asked)
    return verdict, f"{reason} {_assumed(asked)}".rstrip()


def _verdict(asked: Judged) -> tuple[WholeVerdict, str]:
    request, estimate = asked.request, asked.estimate
    target, floor = request.tier.target_ms, request.noise_floor_ns / NS_PER_MS
    low, high = estimate.low / NS_PER_MS, estimate.high / NS_PER_MS
    if missing := request.selection.missing:
        modes = " and ".join(missing)
        return WholeVerdict.UNDECIDED, (
            f"no {modes} connections were measured, and they are part of the mixture."
        )
    if low > target:
        if low - target < floor and estimate.n:
            return WholeVerdict.UNDECIDED, _too_fine(low, target, floor)
        return WholeVerdict.FAIL, _above(asked)
    if high > target:
        return WholeVerdict.UNDECIDED, _open(asked)
    if target - high < floor and estimate.n:
        return WholeVerdict.UNDECIDED, _too_fine(high, target, floor)
    if request.cautions:
        return WholeVerdict.UNDECIDED, " ".join(request.cautions)
    return WholeVerdict.PASS, _within(asked)


def _label(asked: Judged) -> str:
    p = f"p{asked.request.tier.percentile:g}"
    return f"the bound of {p}" if asked.combine is Combine.BOUND else p


def _interval(asked: Judged) -> str:
    return f"{asked.request.confidence:.0%} interval"


def _within(asked: Judged) -> str:
    value, high = asked.estimate.value / NS_PER_MS, asked.estimate.high / NS_PER_MS
    target = f"the target of {asked.request.tier.target_ms:g} ms"
    if not asked.estimate.n:
        return f"{value:,.2f} ms are within {target}."
    return f"{_label(asked)} is {value:,.2f} ms, at most {high:,.2f} ms, within {target}."


def _above(asked: Judged) -> str:
    value, low = asked.estimate.value / NS_PER_MS, asked.estimate.low / NS_PER_MS
    target = f"the target of {asked.request.tier.target_ms:g} ms"
    if math.isinf(low):
        return (
            f"{_label(asked)} has no limit: {asked.failing:.1%} of the requests "
            f"{_fail(asked.request.selection.terms)}, more than it can bear."
        )
    if not asked.estimate.n:
        return f"{value:,.2f} ms are above {target}."
    stated = "has no limit" if math.isinf(value) else f"is {value:,.2f} ms"
    return f"{_label(asked)} {stated}, at least {low:,.2f} ms, above {target}."


def _open(asked: Judged) -> str:
    request, estimate = asked.request, asked.estimate
    target = f"the target of {request.tier.target_ms:g} ms"
    if math.isinf(estimate.high):
        needed = fewest_samples(request.p, request.confidence)
        if asked.combine is Combine.BOUND:
            return (
                f"{_label(asked)} has no upper limit: it needs each term at a higher percentile "
                "than its samples reach."
            )
        if asked.fewest_worth < needed:
            return (
                f"{_label(asked)} has no upper limit: {asked.fewest} {_has(asked.fewest)} "
                f"{counted(asked.fewest_n, 'sample')}, worth {math.floor(asked.fewest_worth)}; "
                f"{needed} are needed ({_interval(asked)})."
            )
        return (
            f"{_label(asked)} has no upper limit: {asked.failing:.1%} of the requests "
            f"{_fail(asked.request.selection.terms)} ({_interval(asked)})."
        )
    ends = f"{estimate.low / NS_PER_MS:,.2f} to {estimate.high / NS_PER_MS:,.2f} ms"
    if asked.combine is Combine.BOUND:
        return f"it depends on how the terms depend on each other: {ends} contain {target}."
    return (
        f"{_label(asked)} is {estimate.value / NS_PER_MS:,.2f} ms, and its interval from {ends} "
        f"contains {target}; more samples of {asked.fewest} narrow it."
    )


def _has(name: str) -> str:
    return "have" if name.endswith(JOINED) else "has"


def _too_fine(end: float, target: float, floor: float) -> str:
    return (
        f"the interval ends {abs(end - target):.3f} ms from the target of {target:g} ms, finer "
        f"than the noise floor of the measuring host ({floor:.3f} ms)."
    )


def _assumed(asked: Judged) -> str:
    if not asked.assumed:
        return ""
    if len(asked.assumed) == asked.terms:
        return (
            f"All {asked.terms} terms are assumed at the tier's allowances, not measured: this "
            "is what the tier plans, not what any system does."
        )
    names = ", ".join(asked.assumed)
    one = len(asked.assumed) == 1
    return (
        f"Assumed, not measured: {names} {'stands at its allowance' if one else ''}"
        f"{'' if one else 'stand at their allowances'}."
    )


def first_to_fix(terms: Sequence[WholeTerm], density: float = 0.0) -> WholeTerm | None:
    """The term of which a millisecond is worth most; None where none is clearly worth more.

    `density` of the sums at the target, per ms, is what a ms off every request is worth there,
    whichever term it is taken off: more than that must be in a term for it to go first. Where none
    is so, and the target is missed: the one term that can bring the whole within it by itself.
    """
    worth = [term.relief_per_ms / density if density else term.leverage for term in terms]
    best = max(range(len(terms)), key=lambda place: worth[place])
    if worth[best] >= CLEARLY:
        return terms[best]
    able = [term for term in terms if term.stretch is not None and 0 < term.stretch < 1]
    return able[0] if len(able) == 1 else None


def _fail(terms: Sequence[Term]) -> str:
    lost = [(term.name, term.origin) for term in terms if np.isinf(term.values_ns).any()]
    return lost_words(lost)


def first_name(terms: Sequence[WholeTerm], first: WholeTerm) -> str:
    """Its name; ``network`` where both ways of a round trip are worth the same."""
    same = {term.name for term in terms if math.isclose(term.leverage, first.leverage)}
    return "network" if set(NETWORK) <= same and first.name in NETWORK else first.name


def fix_reason(
    terms: Sequence[WholeTerm], first: WholeTerm | None, percentile: float, density: float = 0.0
) -> str:
    """Why that term goes first; or why none does."""
    if first is None:
        failing = max(terms, key=lambda term: term.losses / max(1, term.n))
        if failing.losses and QUANTILES in failing.origin:
            return f"nothing is known of {failing.name} beyond its largest quantile: state more."
        if failing.losses:
            return f"{failing.name} fails in {failing.losses} of {failing.n} requests."
        return "a millisecond of one term is worth about one of any other."
    by = {term.name: term.relief_per_ms if density else term.leverage for term in terms}
    name = first_name(terms, first)
    if by[first.name] < CLEARLY * (density or 1.0):
        return _alone(first, percentile)
    what = f"each ms off the mean of {name}, all of its times by the same factor,"
    if density:
        points = f"{100 * first.relief_per_ms:.2g} percentage points"
        words = f"{what} takes {points} of the requests below the target"
    else:
        words = f"{what} takes {first.leverage:.2f} ms off p{percentile:g}"
    ours = NETWORK if name == "network" else (first.name,)
    second = max((one for one in by if one not in ours), key=lambda one: by[one], default="")
    if not second or by[second] <= 0:
        return f"{words}."
    return f"{words}, {by[first.name] / by[second]:.2f} times what {second} does."


def _alone(first: WholeTerm, percentile: float) -> str:
    """``only ttft can bring the whole within its target by itself: its p95 from 778 to 522 ms``."""
    words = f"only {first.name} can bring the whole within its target by itself"
    if first.value_ms is None or first.stretch is None:
        return f"{words}."
    wanted = first.value_ms * first.stretch
    return f"{words}: its p{percentile:g} from {first.value_ms:,.0f} to {wanted:,.0f} ms."


def source_words(source: TermSource) -> str:
    """For people, where a term does not say more."""
    return "assumed at its allowance" if source is TermSource.TIER else f"{source}"
