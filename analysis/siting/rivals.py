"""Whether any other choice may be as good, given the intervals, and where that hangs.

The comparison is paired: a region that keeps its site in both choices cancels out. The other choice
gets its lower interval ends, the recommended one its upper ends; a pair that nobody knows is as
quick as light. One more program finds the strongest such rival.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting import rival_words as words
from pathbudget.analysis.siting.losses import SECONDS, Solver, solved
from pathbudget.analysis.siting.programs import Aim, Answer, Program
from pathbudget.analysis.siting.scene import Scene

Matrix = npt.NDArray[np.float64]

SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Rivals:
    """What stands against a choice."""

    possible: bool = False
    advantage: float = 0.0
    """How much better the strongest rival may be, in the unit of the value."""
    pairs: tuple[str, ...] = ()
    """Where that hangs, the weightiest first."""
    why: str = ""
    """What keeps the data from telling, where a rival is possible."""


NONE = Rivals()


def rivals_of(
    scene: Scene,
    program: Program,
    best: Answer,
    *,
    seconds: float = SECONDS,
    solver: Solver = solved,
) -> Rivals:
    """The rivals of the best choice under the same constraints."""
    if program.aim is Aim.COVERING:
        return _covering(scene, program, best, seconds, solver)
    program = _with_backers(scene, program)
    shares = _shares(program, best)
    served = shares.sum(axis=1) > SLACK
    paid = _paid(scene, shares)
    keeps = shares > 0
    if program.aim is Aim.P_CENTER:
        cost = np.where(keeps, scene.ceiling, scene.optimistic)
        limit = float(paid[served].max(initial=-np.inf))
        rival = _rival(program, best, cost, seconds, solver)
        advantage = limit - (rival.value if rival.value is not None else np.inf)
    else:
        known = served & np.isfinite(paid)
        cost = scene.optimistic.copy()
        cost[known] -= paid[known, None]
        rise = np.where(keeps, scene.ceiling, 0.0) - np.where(known, paid, 0.0)[:, None]
        cost = np.where(keeps & known[:, None], rise, cost)
        rival, advantage = _paired(program, best, cost, seconds, solver)
    if not rival.feasible or rival.unserved_weight > best.unserved_weight + SLACK:
        return NONE
    opened = [i for i, j in enumerate(rival.assignment) if j is not None and not served[i]]
    if not opened and advantage < -SLACK and not _may_be_better(rival, advantage):
        return NONE
    known = served & np.isfinite(paid)
    gain = scene.optimistic - np.where(known, paid, 0.0)[:, None]
    gain[~known] = -np.inf
    gain[keeps] = 0.0
    serving = [tuple(int(j) for j in np.flatnonzero(row)) for row in keeps]
    worst = paid >= paid[served].max(initial=-np.inf) - advantage - SLACK
    counted = worst | ~served if program.aim is Aim.P_CENTER else np.ones(len(served), np.bool_)
    return Rivals(
        possible=True,
        advantage=0.0 if opened else max(0.0, advantage),
        pairs=words.deciding_pairs(scene, serving, rival.assignment, gain, counted),
        why=words.why_undecided(scene, best, rival, opened, gain),
    )


def _paired(
    program: Program, best: Answer, gain: Matrix, seconds: float, solver: Solver
) -> tuple[Answer, float]:
    """The rival by differences of costs, which are lifted for solvers that want none below 0."""
    finite = gain[np.isfinite(gain)]
    lift = max(0.0, -float(finite.min(initial=0.0)))
    rival = _rival(program, best, gain + lift, seconds, solver)
    if rival.value is None:
        return rival, -np.inf
    return rival, lift * (1 - rival.unserved_weight) - rival.value


def _with_backers(scene: Scene, program: Program) -> Program:
    """Backups are those that may be near enough: the costs of rivals are no times any more."""
    if not program.backup or program.backup_limit is None:
        return program
    return replace(program, backers=scene.optimistic <= program.backup_limit)


def _rival(program: Program, best: Answer, cost: Matrix, seconds: float, solver: Solver) -> Answer:
    barred = (*program.forbidden, best.columns)
    return solver(replace(program, cost=cost, forbidden=barred), seconds)


def _may_be_better(rival: Answer, advantage: float) -> bool:
    """Whether the search ended before it could tell: its bound leaves room for a rival."""
    if rival.proved or rival.value is None:
        return False
    return rival.bound is None or rival.value - rival.bound >= -advantage


def _covering(
    scene: Scene, program: Program, best: Answer, seconds: float, solver: Solver
) -> Rivals:
    """What the chosen sites may cover beyond what is sure counts for both choices, so for none."""
    cost = scene.optimistic
    cost[:, list(best.columns)] = scene.ceiling[:, list(best.columns)]
    rival = _rival(program, best, cost, seconds, solver)
    advantage = best.unserved_weight - rival.unserved_weight
    if not rival.feasible or advantage < -SLACK:
        return NONE
    new = [column for column in rival.columns if column not in best.columns]
    maybe = _perhaps(scene, rival.columns, new)
    return Rivals(
        possible=True,
        advantage=max(0.0, advantage),
        pairs=words.straddling_pairs(scene, new),
        why=words.why_as_much(scene, rival.columns, new, maybe),
    )


def _perhaps(scene: Scene, columns: Sequence[int], new: Sequence[int]) -> list[int]:
    """Rows that are covered by a new site at best, and by none of the choice for sure."""
    limit = scene.allowances[:, None]
    hopeful = (scene.optimistic[:, list(new)] <= limit).any(axis=1)
    sure = (scene.ceiling[:, list(columns)] <= limit).any(axis=1)
    return [int(row) for row in np.flatnonzero(hopeful & ~sure)]


def _shares(program: Program, best: Answer) -> Matrix:
    """Rows x sites, as the program serves them."""
    if best.shares is not None:
        return np.where(best.shares > SLACK, best.shares, 0.0)
    shares = np.zeros(program.cost.shape)
    for row, column in enumerate(best.assignment):
        if column is not None:
            shares[row, column] = 1.0
    return shares


def _paid(scene: Scene, shares: Matrix) -> Matrix:
    """Upper end of what each row costs; ``inf`` for a row that nothing serves."""
    total = shares.sum(axis=1)
    sums = (np.where(shares > 0, scene.ceiling, 0.0) * shares).sum(axis=1)
    paid: Matrix = np.divide(sums, total, out=np.full(len(total), np.inf), where=total > 0)
    return paid
