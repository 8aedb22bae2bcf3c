"""Which k sites a report recommends, and whether the data can tell (docs/siting.md).

The choice, its margin and its rivals are those of every other question about sites
(`considered.py`); this puts them into the words of a report.
"""

import math
from collections.abc import Sequence

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import (
    Assignment,
    Failover,
    Finding,
    Objective,
    Recommendation,
    RegionInfo,
    SiteInfo,
    Verdict,
)
from pathbudget.analysis.siting import words
from pathbudget.analysis.siting.considered import Considered, consider
from pathbudget.analysis.siting.ground import Ground
from pathbudget.analysis.siting.losses import assigned, value_of
from pathbudget.analysis.siting.programs import Aim, Answer, Program
from pathbudget.analysis.siting.score import Columns
from pathbudget.analysis.siting.wishes import Wishes

AIMS = {Objective.P_MEDIAN: Aim.P_MEDIAN, Objective.COVERING: Aim.COVERING}


def recommend(ground: Ground, objective: Objective, k: int) -> Recommendation:
    """The exact choice of `k` candidates. Where there is none, `sites` is empty and says why."""
    scene = ground.scene
    if len(scene.sites) < k or not scene.rows:
        return _none(ground, objective, k, words.no_choice(len(scene.sites), k))
    found = consider(scene, Wishes(k=k, objective=AIMS[objective]), resampled=False)
    if isinstance(found, tuple):
        return _none(ground, objective, k, " ".join(found))
    program, rivals = found.program, found.rivals
    best, second = found.found.best, found.found.second
    return Recommendation(
        tier=ground.tier,
        objective=objective,
        k=k,
        sites=scene.names(best.columns),
        value=value_of(program, best),
        next_best_sites=() if second is None else scene.names(second.columns),
        next_best_value=None if second is None else value_of(program, second),
        margin=found.margin,
        decided=not rivals.possible,
        reasons=(
            *words.reasons(scene, program, best, second, rivals.advantage),
            *((f"Undecided: {rivals.why}.",) if rivals.why else ()),
        ),
        would_change=rivals.pairs,
        assignments=tuple(_assignment(ground, region, best) for region in ground.regions),
        uncovered=_unserved(ground, program, best.columns),
        price_per_month=_price(ground, best),
        failover=_failover(ground, found),
        served_share=scene.limited_share(best.columns),
        next_best_served_share=0.0 if second is None else scene.limited_share(second.columns),
        measured_share=_measured_share(ground),
        why_undecided=rivals.why,
    )


def _assignment(ground: Ground, region: RegionInfo, best: Answer) -> Assignment:
    """The cheapest chosen site, whether or not that is within the allowance."""
    site = _cheapest(ground, region, best)
    line = ground.lines.get((region.name, site))
    return Assignment(
        region=region.name,
        weight=region.weight,
        site=site,
        cost_ms=None if line is None else line.high_ms,
        value_ms=None if line is None else line.value_ms,
        low_ms=None if line is None else line.low_ms,
        verdict=_verdict(ground, region) if line is None else line.verdict,
    )


def _cheapest(ground: Ground, region: RegionInfo, best: Answer) -> str:
    """By the upper end; empty where no chosen site has one."""
    names = ground.scene.names(best.columns)
    ends = [(_end(ground, region, name), name) for name in names]
    end, site = min(ends)
    return site if math.isfinite(end) else ""


def _end(ground: Ground, region: RegionInfo, site: str) -> float:
    line = ground.lines.get((region.name, site))
    if line is None or line.n == 0 or line.high_ms is None:
        return math.inf
    return line.high_ms


def _verdict(ground: Ground, region: RegionInfo) -> Verdict:
    """Of a region that no chosen site serves: all may fail, set no limit, or have no sample."""
    some = [line for (name, _), line in ground.lines.items() if name == region.name and line.n]
    if some and all(line.verdict is Verdict.FAIL for line in some):
        return Verdict.FAIL
    return Verdict.UNDECIDED if some else Verdict.NOT_MEASURED


def _measured_share(ground: Ground) -> float:
    scene = ground.scene
    return math.fsum(w for row, w in enumerate(scene.weights) if scene.measured(row))


def _unserved(ground: Ground, program: Program, columns: Sequence[int]) -> tuple[str, ...]:
    """Regions that have no site, or none within the allowance where the choice is about that."""
    limit = math.inf if program.limit is None else ground.allowance_ms
    names = ground.scene.names(columns)
    ends = {
        region.name: min((_end(ground, region, name) for name in names), default=math.inf)
        for region in ground.regions
    }
    return tuple(name for name, end in ends.items() if math.isinf(end) or end > limit)


def _failover(ground: Ground, considered: Considered) -> tuple[Failover, ...]:
    columns = considered.found.best.columns
    return tuple(_loss(ground, considered.program, columns, lost) for lost in columns)


def _loss(ground: Ground, program: Program, columns: Columns, lost: int) -> Failover:
    left = tuple(column for column in columns if column != lost)
    nothing = 0.0 if program.aim is Aim.COVERING else None
    return Failover(
        lost_site=ground.sites[lost].name,
        value=value_of(program, assigned(program, left)) if left else nothing,
        unserved=_unserved(ground, program, left),
    )


def _price(ground: Ground, choice: Answer) -> float | None:
    prices = [ground.sites[column].price_per_month for column in choice.columns]
    known = [price for price in prices if price is not None]
    return math.fsum(known) if len(known) == len(prices) else None


def _none(ground: Ground, objective: Objective, k: int, why: str) -> Recommendation:
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
        reasons=(why, *words.not_candidates(ground.scene.left_out)),
        would_change=(),
        assignments=(),
        uncovered=tuple(region.name for region in ground.regions),
        price_per_month=None,
        served_share=0.0,
        next_best_served_share=0.0,
        measured_share=_measured_share(ground),
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
