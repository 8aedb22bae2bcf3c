"""One decision about sites under all that was asked: the choice, its proof, its backups, its risks.

`answer` (programs.py) finds the choice; this says what it means in regions, sites and words.
"""

import math
from collections.abc import Iterable

from msgspec.structs import replace as changed

from pathbudget.analysis.siting import decision_words as words
from pathbudget.analysis.siting.considered import Considered, consider
from pathbudget.analysis.siting.decision import Decision, TierShare
from pathbudget.analysis.siting.judged import measured_next, site_facts
from pathbudget.analysis.siting.losses import SECONDS, Solver, failover_of, solved, value_of
from pathbudget.analysis.siting.programs import Aim, Answer, Program
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.served_rows import (
    assignments_of,
    filled_share,
    loads_of,
    shares_of,
)
from pathbudget.analysis.siting.steering import steering_effect
from pathbudget.analysis.siting.wishes import Wishes


def decide(
    scene: Scene,
    wishes: Wishes,
    *,
    seconds: float = SECONDS,
    robust: bool = True,
    solver: Solver = solved,
) -> Decision:
    """The decision; without `robust` nothing is compared with it.

    Raises ValueError for wishes that the scene has no numbers for.
    """
    empty = Decision(
        objective=str(wishes.objective),
        k=wishes.k,
        tiers=_tiers(scene),
        asked=words.asked(scene, wishes),
        notes=words.notes(scene, wishes),
    )
    found = consider(scene, wishes, seconds=seconds, compared=robust, solver=solver)
    if isinstance(found, tuple):
        return changed(empty, clashes=found)
    program, best = found.program, found.found.best
    decision = _described(scene, wishes, program, best, empty)
    if decision.steering is not None and program.aim is Aim.P_MEDIAN:
        decision = changed(decision, value=decision.steering.value_ms)
    decision = changed(decision, failover=failover_of(scene, wishes, program, best, solver))
    return _compared(scene, found, decision) if robust else decision


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
        within_share=_within_share(program, best),
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


def _compared(scene: Scene, considered: Considered, decision: Decision) -> Decision:
    """The same beside the next best choice and those that may be as good, and resampled."""
    found, rivals = considered.found, considered.rivals
    decision = changed(
        decision,
        decided=not rivals.possible,
        why_undecided=rivals.why,
        would_change=rivals.pairs,
        may_be_better=rivals.advantage,
    )
    if found.second is not None:
        decision = changed(
            decision,
            next_best_sites=scene.names(found.second.columns),
            next_best_value=value_of(considered.program, found.second),
            margin=considered.margin,
        )
    if found.resampled is None:
        return decision
    robust = measured_next(scene, found.score, found.resampled, found.rivals)
    return changed(decision, robustness=robust)


def _within_share(program: Program, best: Answer) -> float | None:
    """What is covered with a backup or without, where only the former counts."""
    if program.aim is not Aim.COVERING or not program.backup or program.serve_all:
        return None
    near = program.usable[:, list(best.columns)].any(axis=1)
    return min(1.0, float(program.weights @ near))


def _bound(program: Program, best: Answer) -> float | None:
    served = 1 - best.unserved_weight
    if best.bound is None or not math.isfinite(best.bound):
        return None
    return best.bound / served if program.aim is Aim.P_MEDIAN and served > 1e-9 else best.bound


def _sum(numbers: Iterable[float | None]) -> float | None:
    """None where one is unknown."""
    every = list(numbers)
    known = [one for one in every if one is not None]
    return math.fsum(known) if len(known) == len(every) else None


def _tiers(scene: Scene) -> tuple[TierShare, ...]:
    shares = {row.tier: row.share for row in scene.rows}
    return tuple(TierShare(tier=name, share=share) for name, share in shares.items())
