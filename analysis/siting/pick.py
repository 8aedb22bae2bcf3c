"""Which choice of sites is picked: the exact answer, or with guessed pairs the least expected cost.

Where no pair is a guess, the solver's answer stands. Where some are, their errors are large, and
users go to whichever chosen site turns out nearest: the mean of the least of several uncertain
costs is less than the least of their means. So the choice is the one with the smallest mean over
draws of all pairs (sample average approximation, Kleywegt, Shapiro and Homem-de-Mello 2002).
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.judge import allowed
from pathbudget.analysis.siting.losses import SECONDS, Solver, assigned, solved
from pathbudget.analysis.siting.programs import Aim, Answer, Program
from pathbudget.analysis.siting.robustness import ALL, Resampled, resample
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.score import Columns, Score
from pathbudget.analysis.siting.served_rows import shares_of
from pathbudget.analysis.siting.ties import first_of_equals, prices_of
from pathbudget.analysis.siting.wishes import Wishes

Matrix = npt.NDArray[np.float64]

RIVALS = 4
"""Next choices that resampling looks at where the assignment is not the nearest site."""

LEAST_MEAN = "least mean"
"""How the method of a choice begins that was made on draws."""

SLACK = 1e-9


@dataclass(frozen=True, slots=True)
class Pick:
    """The best choice, the next one, and the draws that both were judged on."""

    best: Answer
    score: Score
    second: Answer | None = None
    resampled: Resampled | None = None
    """Its first choice is the best one; None where it was not asked for."""
    rivals: tuple[Columns, ...] = field(default=())


def pick(
    scene: Scene,
    wishes: Wishes,
    program: Program,
    *,
    seconds: float = SECONDS,
    compared: bool = True,
    resampled: bool = True,
    solver: Solver = solved,
) -> Pick:
    """The choice, the next one if it is to be compared, and draws of both if asked for.

    Where pairs are guesses they are drawn in any case.
    """
    limits = scene.allowances if program.aim is Aim.COVERING else None
    score = Score(program.aim, scene.weights, limits)
    if limits is not None and program.backup and not program.serve_all:
        within = program.backup_limit
        backed = limits if within is None else np.full(len(limits), within)
        score = replace(score, backup=program.backup, backup_limits=backed)
    prices = prices_of(scene)
    best = first_of_equals(program, solver(program, seconds), prices)
    free = not wishes.steering and not wishes.limits_load
    if not best.feasible or not (compared or (scene.filling is not None and free)):
        return Pick(best, score)
    if scene.filling is not None and free:
        return _least_expected(scene, program, best, score, solver)
    others = replace(program, forbidden=(*program.forbidden, best.columns))
    second = first_of_equals(others, solver(others, seconds), prices)
    if not resampled:
        return Pick(best, score, second if second.feasible else None)
    answers = [best, *([second] if second.feasible else [])]
    if not free:
        answers = _as_much(_more(program, answers, solver))
        score = replace(score, fixed=_fixed(scene, wishes, answers))
    rivals = tuple(one.columns for one in answers[1:])
    drawn = resample(
        scene.tables, score, best.columns, rivals=rivals, allowed=_keeps(program, None)
    )
    return Pick(best, score, second if second.feasible else None, drawn, rivals)


def _least_expected(
    scene: Scene, program: Program, best: Answer, score: Score, solver: Solver
) -> Pick:
    """The choice of the smallest mean over the draws, among those that serve as much."""
    keeps = _keeps(program, best.unserved_weight)
    resampled = resample(scene.tables, score, best.columns, allowed=keeps)
    order = [int(i) for i in np.argsort(resampled.values.mean(axis=0), kind="stable")]
    first, *others = order
    if first != 0:
        others.remove(0)
        moved = [first, 0, *others]
        resampled = replace(
            resampled,
            choices=tuple(resampled.choices[i] for i in moved),
            values=resampled.values[:, moved],
        )
        others = [1, *range(2, len(moved))]
        others.sort(key=lambda i: float(resampled.values[:, i].mean()))
    chosen = resampled.choices[0]
    second = assigned(program, resampled.choices[others[0]], solver) if others else None
    proved = resampled.method == ALL
    answer = replace(
        assigned(program, chosen, solver),
        bound=None,
        proved=proved,
        method=f"{LEAST_MEAN} over {len(resampled.values)} draws",
    )
    rivals = tuple(resampled.choices[i] for i in others[:1])
    return Pick(answer, score, second, resampled, rivals)


def _keeps(program: Program, unserved: float | None) -> Callable[[Columns], bool]:
    """Whether a choice keeps the constraints, and leaves no more than `unserved` unserved."""
    usable = program.usable

    def keeps(columns: Columns) -> bool:
        if not allowed(replace(program, k=len(columns)), columns):
            return False
        if unserved is None or program.aim is Aim.COVERING:
            return True
        left = float(program.weights @ ~usable[:, list(columns)].any(axis=1))
        return left <= unserved + SLACK

    return keeps


def _more(program: Program, answers: list[Answer], solver: Solver) -> list[Answer]:
    """Next choices by the solver: where sites may be full, draws cannot tell who is served."""
    found = list(answers)
    while len(found) < RIVALS and found[-1].feasible:
        barred = tuple(one.columns for one in found)
        after = solver(replace(program, forbidden=barred), SECONDS / 4)
        if not after.feasible:
            break
        found.append(after)
    return found


def _as_much(answers: list[Answer]) -> list[Answer]:
    """Those that serve as much as the first: means over other traffic cannot be compared."""
    most = answers[0].unserved_weight + 1e-6
    return [one for one in answers if one.unserved_weight <= most]


def _fixed(scene: Scene, wishes: Wishes, answers: list[Answer]) -> dict[Columns, Matrix]:
    """Shares of rows by choice. Rows served in part count as wholly; the unserved pay nothing."""
    return {one.columns: _whole(shares_of(scene, wishes, one)) for one in answers}


def _whole(shares: Matrix) -> Matrix:
    total = shares.sum(axis=1, keepdims=True)
    whole: Matrix = np.divide(shares, total, out=np.zeros_like(shares), where=total > 0)
    return whole
