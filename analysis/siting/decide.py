"""One decision about sites under all that was asked: the choice, its proof, its backups, its risks.

`answer` (programs.py) finds the choice; this says what it means in regions, sites and words.
"""

import math
from collections.abc import Iterable

from msgspec.structs import replace as changed

from pathbudget.analysis.siting import decision_words as words
from pathbudget.analysis.siting.clashes import why_impossible
from pathbudget.analysis.siting.decision import Decision, TierShare
from pathbudget.analysis.siting.judged import measured_next, site_facts
from pathbudget.analysis.siting.losses import SECONDS, Solver, failover_of, solved, value_of
from pathbudget.analysis.siting.pick import Pick, pick
from pathbudget.analysis.siting.programs import Aim, Answer, Program
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.served_rows import (
    assignments_of,
    filled_share,
    loads_of,
    shares_of,
)
from pathbudget.analysis.siting.steering import steering_effect
from pathbudget.analysis.siting.wishes import Wishes, program_of


def decide(
    scene: Scene,
    wishes: Wishes,
    *,
    seconds: float = SECONDS,
    robust: bool = True,
    solver: Solver = solved,
) -> Decision:
    """The decision. Raises ValueError for wishes that the scene has no numbers for."""
    empty = Decision(
        objective=str(wishes.objective),
        k=wishes.k,
        tiers=_tiers(scene),
        asked=words.asked(scene, wishes),
        notes=words.notes(scene, wishes),
    )
    if not scene.sites or not scene.rows:
        return changed(empty, clashes=why_impossible(scene, wishes, ()))
    program = program_of(scene, wishes)
    found = pick(scene, wishes, program, seconds=seconds, robust=robust, solver=solver)
    best = found.best
    if not best.feasible:
        return changed(empty, clashes=_why_none(scene, wishes, best))
    if best.unserved_weight > 1 - 1e-9 and wishes.objective is not Aim.COVERING:
        return changed(empty, clashes=(words.nobody_served(scene),))
    decision = _described(scene, wishes, program, best, empty)
    if decision.steering is not None and program.aim is Aim.P_MEDIAN:
        decision = changed(decision, value=decision.steering.value_ms)
    decision = changed(decision, failover=failover_of(scene, wishes, program, best, solver))
    return _compared(scene, program, found, decision) if robust else decision


def _described(
    scene: Scene, wishes: Wishes, program: Program, best: Answer, empty: Decision
) -> Decision:
    """The choice itself: what it costs, who is served from where."""
    shares = shares_of(scene, wishes, best)
    chosen = [scene.sites[column] for column in best.columns]
    return changed(
        empty,
        sites=scene.names(best.columns),
        value=value_of(program, best),
        unit="share" if program.aim is Aim.COVERING else "ms",
        served_share=max(0.0, min(1.0, 1 - best.unserved_weight)),
        filled_share=filled_share(scene, shares),
        bound=_bound(program, best),
        gap=best.gap,
        proved=best.proved,
        method=best.method,
        price_per_month=_sum(site.price_per_month for site in chosen),
        power_kw=_sum(site.power_kw for site in chosen),
        assignments=assignments_of(scene, shares, best.columns),
        loads=loads_of(scene, wishes, shares, best.columns),
        facts=site_facts(scene, best.columns, shares),
        steering=steering_effect(scene, wishes, best.columns),
    )


def _compared(scene: Scene, program: Program, found: Pick, decision: Decision) -> Decision:
    """The same beside the next best choice, and resampled."""
    second = found.second
    if second is not None and second.feasible:
        decision = changed(
            decision,
            next_best_sites=scene.names(second.columns),
            next_best_value=value_of(program, second),
            margin=_margin(program, found.best, second),
        )
    if found.resampled is None:
        return decision
    robust = measured_next(scene, found.score, found.resampled, found.rivals)
    return changed(decision, robustness=robust)


def _bound(program: Program, best: Answer) -> float | None:
    served = 1 - best.unserved_weight
    if best.bound is None or not math.isfinite(best.bound):
        return None
    return best.bound / served if program.aim is Aim.P_MEDIAN and served > 1e-9 else best.bound


def _margin(program: Program, best: Answer, second: Answer) -> float | None:
    """How far the next choice is behind; None where it serves other weight."""
    first, other = value_of(program, best), value_of(program, second)
    if first is None or other is None:
        return None
    if program.aim is Aim.COVERING:
        return max(0.0, first - other)
    if abs(best.unserved_weight - second.unserved_weight) > 1e-9:
        return None
    return max(0.0, other - first)


def _sum(numbers: Iterable[float | None]) -> float | None:
    """None where one is unknown."""
    every = list(numbers)
    known = [one for one in every if one is not None]
    return math.fsum(known) if len(known) == len(every) else None


def _tiers(scene: Scene) -> tuple[TierShare, ...]:
    shares = {row.tier: row.share for row in scene.rows}
    return tuple(TierShare(tier=name, share=share) for name, share in shares.items())


def _why_none(scene: Scene, wishes: Wishes, best: Answer) -> tuple[str, ...]:
    if not best.conflicts and not best.proved:
        return ("No choice was found in time; more seconds may find one (--seconds).",)
    return why_impossible(scene, wishes, best.conflicts)
