"""What is left of a choice of sites while one of them is lost (N-1)."""

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.decision import LossOf, Moved
from pathbudget.analysis.siting.judge import assign, judge
from pathbudget.analysis.siting.programs import Aim, Answer, Program, answer
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.score import Columns
from pathbudget.analysis.siting.served_rows import filled_share, finite_ms, shares_of
from pathbudget.analysis.siting.wishes import Wishes

Matrix = npt.NDArray[np.float64]
Solver = Callable[[Program, float | None], Answer]

SECONDS = 20.0
"""For one search by a solver that has a clock; what is not proved by then is said with its gap."""


def solved(program: Program, _seconds: float | None = None) -> Answer:
    """The proved answer, however long it takes: the analysis has no clock of its own."""
    return answer(program)


def value_of(program: Program, found: Answer) -> float | None:
    """Mean cost of the served weight in ms, largest cost in ms, or covered share."""
    if found.value is None or not math.isfinite(found.value):
        return None
    if program.aim is not Aim.P_MEDIAN:
        return found.value
    served = 1 - found.unserved_weight
    return found.value / served if served > 1e-9 else None


def failover_of(
    scene: Scene, wishes: Wishes, program: Program, best: Answer, solver: Solver
) -> tuple[LossOf, ...]:
    """Who goes where, and at what cost, while each chosen site is lost."""
    before = shares_of(scene, wishes, best)
    return tuple(
        _loss(scene, wishes, program, (best, before), lost, solver) for lost in best.columns
    )


def _loss(
    scene: Scene,
    wishes: Wishes,
    program: Program,
    now: tuple[Answer, Matrix],
    lost: int,
    solver: Solver,
) -> LossOf:
    name = scene.sites[lost].name
    left = tuple(column for column in now[0].columns if column != lost)
    every = tuple(scene.row_name(row) for row in range(len(scene.rows)))
    if not left:
        return LossOf(lost_site=name, unserved=every, unserved_share=1.0)
    rest = assigned(program, left, solver)
    if not rest.feasible:
        return LossOf(lost_site=name, unserved=every, unserved_share=1.0)
    after = shares_of(scene, wishes, rest)
    moved = [
        Moved(
            region=scene.rows[row].region.name,
            tier=scene.rows[row].tier,
            weight=float(scene.weights[row]),
            site=scene.sites[int(column)].name,
            share=float(after[row, column]),
            before_ms=finite_ms(float(_paid(scene, now[1], row))),
            after_ms=finite_ms(float(scene.cost[row, column])),
            filled=bool(scene.filled[row, column]),
            before_filled=bool((scene.filled[row] & (now[1][row] > 0)).any()),
        )
        for row in map(int, np.flatnonzero(now[1][:, lost] > 0))
        for column in np.flatnonzero(after[row])
    ]
    gone = [int(row) for row in np.flatnonzero(after.sum(axis=1) < 1 - 1e-6)]
    return LossOf(
        lost_site=name,
        value=value_of(program, rest),
        moved=tuple(moved),
        unserved=tuple(scene.row_name(row) for row in gone),
        unserved_share=float(sum(scene.weights[row] * (1 - after[row].sum()) for row in gone)),
        filled_share=filled_share(scene, after),
    )


def _paid(scene: Scene, shares: Matrix, row: int) -> float:
    used = shares[row] > 0
    return float(shares[row][used] @ scene.cost[row][used] / shares[row][used].sum())


def assigned(program: Program, columns: Columns, solver: Solver = solved) -> Answer:
    """Who is served from where by exactly these sites; a program only where sites may be full."""
    given = fixed(program, columns)
    if given.capacities is not None:
        return solver(given, SECONDS)
    worth = judge(given, columns)
    sites = [int(site) for site in assign(given, columns)]
    return Answer(
        columns=columns,
        assignment=tuple(site if site >= 0 else None for site in sites),
        value=worth.value,
        unserved_weight=worth.unserved_weight,
        bound=worth.value,
        proved=True,
        method="assignment",
        seconds=0.0,
    )


def fixed(program: Program, columns: Columns) -> Program:
    """The same program with exactly these sites, and nothing asked but who serves whom."""
    others = tuple(one for one in range(program.sites) if one not in columns)
    return replace(
        program,
        k=len(columns),
        must_have=columns,
        must_not=others,
        price_cap=None,
        power_cap=None,
        backup=0,
        survive=None,
        serve_all=False,
        forbidden=(),
    )
