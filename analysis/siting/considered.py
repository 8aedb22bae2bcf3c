"""A question about sites, answered as far as reports and commands have it in common.

The best choice, the next one, what may be as good, or why there is none: by one rule for
everybody who recommends.
"""

from dataclasses import dataclass

from pathbudget.analysis.siting.clashes import why_impossible
from pathbudget.analysis.siting.losses import SECONDS, Solver, solved, value_of
from pathbudget.analysis.siting.pick import Pick, pick
from pathbudget.analysis.siting.programs import Aim, Answer, Program
from pathbudget.analysis.siting.rivals import NONE, Rivals, rivals_of
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.wishes import Wishes, program_of
from pathbudget.analysis.siting.words import SERVED_AT_LEAST, nobody_covered, too_few_served


@dataclass(frozen=True, slots=True)
class Considered:
    """A choice and what was compared with it."""

    program: Program
    found: Pick
    rivals: Rivals = NONE

    @property
    def margin(self) -> float | None:
        """How far the next choice is behind; None where it serves other weight."""
        best, second = self.found.best, self.found.second
        if second is None or not second.feasible:
            return None
        first, other = value_of(self.program, best), value_of(self.program, second)
        if first is None or other is None:
            return None
        if self.program.aim is Aim.COVERING:
            return max(0.0, first - other)
        if abs(best.unserved_weight - second.unserved_weight) > 1e-9:
            return None
        return max(0.0, other - first)


def consider(
    scene: Scene,
    wishes: Wishes,
    *,
    seconds: float = SECONDS,
    compared: bool = True,
    resampled: bool = True,
    solver: Solver = solved,
) -> Considered | tuple[str, ...]:
    """The choice, or sentences why there is none.

    Raises ValueError for wishes that the scene has no numbers for.
    """
    if not scene.sites or not scene.rows:
        return why_impossible(scene, wishes, ())
    program = program_of(scene, wishes)
    found = pick(
        scene,
        wishes,
        program,
        seconds=seconds,
        compared=compared,
        resampled=resampled,
        solver=solver,
    )
    if why := _why_none(scene, wishes, found.best):
        return why
    if not compared:
        return Considered(program, found)
    rivals = rivals_of(scene, program, found.best, seconds=seconds, solver=solver)
    return Considered(program, found, rivals)


def _why_none(scene: Scene, wishes: Wishes, best: Answer) -> tuple[str, ...]:
    """Clashes, or too little that is known: a mean over few regions says nothing of the others."""
    if not best.feasible:
        if not best.conflicts and not best.proved:
            return ("No choice was found in time; more seconds may find one (--seconds).",)
        return why_impossible(scene, wishes, best.conflicts)
    covers = wishes.objective is Aim.COVERING
    hopeful = range(len(scene.sites)) if covers else best.columns
    if scene.limited_share(hopeful) < SERVED_AT_LEAST - 1e-9:
        return (too_few_served(scene, hopeful),)
    if covers and best.unserved_weight >= 1 - 1e-9:
        return (nobody_covered(scene),)
    return ()
