"""The time to first token that a scheduler may take while the whole keeps its target."""

import math
from collections.abc import Sequence
from dataclasses import replace

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.whole_budget.anatomy import Anatomy
from pathbudget.analysis.whole_budget.combine import Sum, is_constant, sum_of, worth_of
from pathbudget.analysis.whole_budget.groups import Group
from pathbudget.analysis.whole_budget.question import Request
from pathbudget.analysis.whole_budget.results import Deadline
from pathbudget.analysis.whole_budget.terms import TermName

STEPS = 12
"""Halvings of the factor that the upper interval end still allows: to 0.03 %."""
CELLS = 1 << 13
"""Steps of the grid from the smallest sum to the target meanwhile: 0.02 % each, rounded up."""


def deadline_of(groups: Sequence[Group], whole: Sum, request: Request) -> Deadline | None:
    """What follows for the time to first token; None where there is no such term.

    Two readings. *At the percentile*: TTFT keeps its spread, all of its times are stretched by one
    factor, and the deadline is for its own quantile. *Hard*: a time that no request exceeds. Each
    with the value of the whole, and, to be safe, with the upper end of its interval.
    """
    at = next(
        (
            (g, t)
            for g, group in enumerate(groups)
            for t, term in enumerate(group.terms)
            if term.name is TermName.TTFT
        ),
        None,
    )
    if at is None:
        return None
    own = groups[at[0]].terms[at[1]].distribution
    quantile = Sum([own], request.confidence, p=request.p).estimate(request.p).value
    stretch = Anatomy(tuple(groups), whole).stretch(*at, request.p, request.target_ns)
    safe = _safe_stretch(groups, whole, at, stretch, request)
    hard, hard_safe = _hard(groups, at, request)
    return Deadline(
        at_percentile_ms=_ms(stretch, quantile),
        at_percentile_safe_ms=_ms(safe, quantile),
        hard_ms=hard,
        hard_safe_ms=hard_safe,
    )


def _ms(stretch: float | None, quantile: float) -> float | None:
    """None where it would have to be nothing at all, or may be anything."""
    if not stretch or not math.isfinite(stretch * quantile):
        return None
    return stretch * quantile / NS_PER_MS


def _safe_stretch(
    groups: Sequence[Group],
    whole: Sum,
    at: tuple[int, int],
    stretch: float | None,
    request: Request,
) -> float | None:
    """The largest factor with which the upper end of the interval is within the target."""
    if not stretch or all(math.isinf(group.n_effective) for group in groups):
        return stretch

    distributions = [group.distribution for group in groups]
    worth, target = list(whole.worth), request.target_ns

    def holds(factor: float) -> bool:
        distributions[at[0]] = own = _stretched(groups[at[0]], at[1], factor).distribution
        worth[at[0]] = worth_of(own, request.p, request.confidence)
        changed = Sum(
            distributions, request.confidence, target, p=request.p, worth=worth, cells=CELLS
        )
        return changed.surely_within(request.p, target)

    if holds(stretch):
        return stretch
    if not holds(0.0):
        return None
    low, high = 0.0, stretch
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def _stretched(group: Group, term: int, factor: float) -> Group:
    values: list[Values] = list(group.values_ns)
    values[term] = values[term] * factor if factor else _emptied(values[term])
    return replace(group, values_ns=tuple(values))


def _emptied(values: Values) -> Values:
    """No time at all, but for the requests that fail."""
    emptied = values.copy()
    emptied[values < math.inf] = 0.0
    return emptied


def _hard(
    groups: Sequence[Group], at: tuple[int, int], request: Request
) -> tuple[float | None, float | None]:
    """Target less the quantile, and less its upper end, of all terms but that one."""
    rest = [group for place, group in enumerate(groups) if place != at[0]]
    group = groups[at[0]]
    if len(group.terms) > 1:
        terms = tuple(term for place, term in enumerate(group.terms) if place != at[1])
        values = tuple(one for place, one in enumerate(group.values_ns) if place != at[1])
        rest.append(replace(group, terms=terms, values_ns=values))
    if not rest:
        return request.tier.target_ms, request.tier.target_ms
    distributions = [group.distribution for group in rest]
    found = sum_of(distributions, request.p, confidence=request.confidence).estimate(request.p)
    value, high = (request.target_ns - end for end in (found.value, found.high))
    if all(is_constant(one) for one in distributions):
        high = value
    return _positive(value), _positive(high)


def _positive(left_ns: float) -> float | None:
    return left_ns / NS_PER_MS if left_ns >= 0 else None
