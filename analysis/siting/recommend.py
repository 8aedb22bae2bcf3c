"""Which k sites to take, on what was measured, and whether the data can tell (docs/siting.md)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import (
    Assignment,
    Failover,
    Finding,
    Objective,
    Recommendation,
    SiteInfo,
    Verdict,
)
from pathbudget.analysis.siting import words
from pathbudget.analysis.siting.ground import Ground
from pathbudget.analysis.siting.model import Choice, Problem, assess, serving
from pathbudget.analysis.siting.solve import solve


def recommend(ground: Ground, objective: Objective, k: int) -> Recommendation:
    """The exact choice of `k` candidates. Where there is none, `sites` is empty and says why."""
    problem = ground.problem(objective, ground.high)
    best = solve(problem, k) if ground.sites and len(ground.regions) else None
    if best is None:
        return _infeasible(ground, objective, k, words.no_choice(len(ground.sites), k))
    every = range(len(ground.sites))
    hopeful = every if objective is Objective.COVERING else best.columns
    if ground.served_share(hopeful) < words.SERVED_AT_LEAST - 1e-9:
        return _infeasible(ground, objective, k, words.too_few_served(ground, hopeful))
    if best.unserved_weight >= 1 - 1e-9:
        return _infeasible(ground, objective, k, words.nobody_served(objective, ground))
    next_best = solve(problem, k, forbidden=[best.columns])
    rivals = _rivals(ground, objective, best, k)
    value = value_of(objective, best)
    next_value = None if next_best is None else value_of(objective, next_best)
    return Recommendation(
        tier=ground.tier,
        objective=objective,
        k=k,
        sites=ground.names(best.columns),
        value=value,
        next_best_sites=() if next_best is None else ground.names(next_best.columns),
        next_best_value=next_value,
        margin=_margin(objective, best, next_best),
        decided=not rivals.possible,
        reasons=(
            *words.reasons(ground, objective, best, next_best, rivals.advantage),
            *((f"Undecided: {rivals.why}.",) if rivals.why else ()),
        ),
        would_change=rivals.pairs,
        assignments=_assignments(ground, best),
        uncovered=_unserved(ground, problem, best.columns),
        price_per_month=_price(ground, best),
        failover=_failover(ground, problem, objective, best),
        served_share=ground.served_share(best.columns),
        next_best_served_share=0.0 if next_best is None else ground.served_share(next_best.columns),
        measured_share=ground.measured_share,
        why_undecided=rivals.why,
    )


def value_of(objective: Objective, choice: Choice) -> float | None:
    """Weighted mean cost of the served regions in ms, or the covered share."""
    served = 1 - choice.unserved_weight
    if objective is Objective.COVERING:
        return max(0.0, min(1.0, served))
    return choice.objective / served if served > 1e-9 else None


def _margin(objective: Objective, best: Choice, next_best: Choice | None) -> float | None:
    """Distance to the next best; None where it serves other weight and so cannot be compared."""
    if next_best is None:
        return None
    if objective is Objective.COVERING:
        return max(0.0, next_best.unserved_weight - best.unserved_weight)
    if abs(next_best.unserved_weight - best.unserved_weight) > 1e-9:
        return None
    served = 1 - best.unserved_weight
    return max(0.0, (next_best.objective - best.objective) / served)


@dataclass(frozen=True, slots=True)
class _Rivals:
    """Whether any other choice may be as good, given the intervals, and where that hangs."""

    possible: bool
    advantage: float
    """How much better the strongest rival may be, in the unit of the value."""
    pairs: tuple[str, ...]
    why: str = ""
    """What keeps the data from telling, where a rival is possible."""


def _rivals(ground: Ground, objective: Objective, best: Choice, k: int) -> _Rivals:
    if objective is Objective.COVERING:
        return _covering_rivals(ground, best, k)
    served_by = serving(ground.problem(objective, ground.high), best.columns)
    gain = ground.low.copy()
    for row, column in enumerate(served_by):
        if column is not None:
            gain[row] -= ground.high[row, column]
            gain[row, column] = 0.0
    rival = solve(ground.problem(objective, gain), k, forbidden=[best.columns])
    if rival is None:
        return _Rivals(possible=False, advantage=0.0, pairs=())
    rival_by = serving(ground.problem(objective, gain), rival.columns)
    open_rows = [r for r, s in enumerate(served_by) if s is None and rival_by[r] is not None]
    loses = rival.unserved_weight > best.unserved_weight + 1e-9
    possible = not loses and (bool(open_rows) or rival.objective <= 1e-9)
    if not possible:
        return _Rivals(possible=False, advantage=0.0, pairs=())
    pairs = words.deciding_pairs(ground, served_by, rival_by, gain)
    advantage = 0.0 if open_rows else max(0.0, -rival.objective)
    why = words.why_undecided(ground, best, rival, open_rows, rival_by, gain)
    return _Rivals(True, advantage, pairs, why)


def _covering_rivals(ground: Ground, best: Choice, k: int) -> _Rivals:
    optimistic = ground.problem(Objective.COVERING, ground.low)
    rival = solve(optimistic, k, forbidden=[best.columns])
    if rival is None or rival.unserved_weight > best.unserved_weight + 1e-9:
        return _Rivals(possible=False, advantage=0.0, pairs=())
    pairs = words.straddling_pairs(ground, rival.columns)
    why = words.why_as_much(ground, rival)
    return _Rivals(True, best.unserved_weight - rival.unserved_weight, pairs, why)


def _assignments(ground: Ground, choice: Choice) -> tuple[Assignment, ...]:
    """Each region to the cheapest chosen site, whether or not that is within the allowance."""
    by_cost = ground.problem(Objective.P_MEDIAN, ground.high)
    return tuple(
        _assignment(ground, row, column)
        for row, column in enumerate(serving(by_cost, choice.columns))
    )


def _assignment(ground: Ground, row: int, column: int | None) -> Assignment:
    region = ground.regions[row]
    site = "" if column is None else ground.sites[column].name
    line = ground.lines.get((region.name, site))
    return Assignment(
        region=region.name,
        weight=region.weight,
        site=site,
        cost_ms=None if line is None else line.high_ms,
        value_ms=None if line is None else line.value_ms,
        low_ms=None if line is None else line.low_ms,
        verdict=_verdict(ground, row) if line is None else line.verdict,
    )


def _verdict(ground: Ground, row: int) -> Verdict:
    """Of a region that no chosen site serves: there may be samples that set no limit, or none."""
    return Verdict.UNDECIDED if ground.measured(row) else Verdict.NOT_MEASURED


def _unserved(ground: Ground, problem: Problem, columns: Sequence[int]) -> tuple[str, ...]:
    served = serving(problem, columns)
    return tuple(r.name for r, site in zip(ground.regions, served, strict=True) if site is None)


def _failover(
    ground: Ground, problem: Problem, objective: Objective, choice: Choice
) -> tuple[Failover, ...]:
    rows: list[Failover] = []
    for lost in choice.columns:
        left = [column for column in choice.columns if column != lost]
        rows.append(
            Failover(
                lost_site=ground.sites[lost].name,
                value=value_of(objective, assess(problem, left)),
                unserved=_unserved(ground, problem, left),
            )
        )
    return tuple(rows)


def _price(ground: Ground, choice: Choice) -> float | None:
    prices = [ground.sites[column].price_per_month for column in choice.columns]
    known = [price for price in prices if price is not None]
    return math.fsum(known) if len(known) == len(prices) else None


def _infeasible(ground: Ground, objective: Objective, k: int, why: str) -> Recommendation:
    return Recommendation(
        tier=ground.tier,
        objective=objective,
        k=k,
        sites=(),
        value=0.0 if objective is Objective.COVERING and ground.sites else None,
        next_best_sites=(),
        next_best_value=None,
        margin=None,
        decided=False,
        reasons=(why, *words.not_candidates(ground.unmeasured_sites)),
        would_change=(),
        assignments=(),
        uncovered=tuple(region.name for region in ground.regions),
        price_per_month=None,
        served_share=0.0,
        next_best_served_share=0.0,
        measured_share=ground.measured_share,
    )


def capacity_findings(
    recommendation: Recommendation, sites: Sequence[SiteInfo]
) -> tuple[Finding, ...]:
    """Chosen sites that get more weight than they have capacity. The choice does not avoid that."""
    found: list[Finding] = []
    for site in sites:
        load = math.fsum(a.weight for a in recommendation.assignments if a.site == site.name)
        if site.name in recommendation.sites and site.capacity is not None and load > site.capacity:
            text = (
                f"{recommendation.tier}, {recommendation.objective}, k = {recommendation.k}: "
                f"{load:g} of weight is assigned to a capacity of {site.capacity:g}; the choice "
                "does not spread the load."
            )
            found.append(Finding(kind=FindingKind.CAPACITY, region="", site=site.name, text=text))
    return tuple(found)
