"""Which of several equally good choices is taken: the cheaper one, the quicker one, the first name.

Solvers stop at any best choice. The same data must always give the same answer, though, and nobody
pays more for nothing; so equals are looked for around what a solver found.
"""

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.judge import allowed, assign, judge
from pathbudget.analysis.siting.programs import Aim, Answer, Program
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.score import Columns, neighbours

Matrix = npt.NDArray[np.float64]
Choices = npt.NDArray[np.int64]

TIE = 1e-6
"""Numbers closer than this, relative to their size, are equal."""

MOST_CELLS = 8_000_000
"""Rows x sites of choices that are looked at; three of a hundred sites and 16 regions."""

CELLS_AT_ONCE = 4_000_000
MOST_STEPS = 20


@dataclass(frozen=True, slots=True)
class _Worths:
    """Of choices, one number each."""

    unserved: Matrix
    value: Matrix
    price: Matrix
    cost: Matrix


def prices_of(scene: Scene) -> Matrix:
    """Per month; all 0 where one is unknown, since they cannot be compared then."""
    prices = [site.price_per_month for site in scene.sites]
    known = all(price is not None for price in prices)
    return np.array([price or 0.0 if known else 0.0 for price in prices], dtype=np.float64)


def first_of_equals(program: Program, found: Answer, prices: Matrix) -> Answer:
    """The proved answer, or the first of its equals: by price, then mean cost, then names.

    Every choice of as many sites is looked at where they are few, else those that differ in one
    site, as long as that leads on; where even these are too many, the answer stands.
    """
    if not (found.feasible and found.proved and _is_simple(program)):
        return found
    columns = found.columns
    every = math.comb(program.sites, len(columns)) * _cells(program, columns) <= MOST_CELLS
    for _ in range(1 if every else MOST_STEPS):
        choices = (
            list(combinations(range(program.sites), len(columns)))
            if every
            else _around(program, columns)
        )
        after = _first(program, prices, columns, np.array(choices, dtype=np.int64))
        if after == columns:
            break
        columns = after
    return found if columns == found.columns else _moved(program, found, columns)


def _is_simple(program: Program) -> bool:
    """Whether each region goes to its cheapest site and nothing else counts."""
    return (
        program.capacities is None
        and program.preference is None
        and program.survive is None
        and program.opening is None
        and not (program.backup and program.aim is Aim.COVERING)
    )


def _cells(program: Program, columns: Columns) -> int:
    return program.rows * len(columns)


def _around(program: Program, columns: Columns) -> list[Columns]:
    near = len(columns) * (program.sites - len(columns)) * _cells(program, columns)
    return [columns, *(neighbours(columns, program.sites) if near <= MOST_CELLS else ())]


def _first(program: Program, prices: Matrix, best: Columns, choices: Choices) -> Columns:
    worths = _worths(program, prices, choices)
    mine = _worths(program, prices, np.array([best], dtype=np.int64))
    as_good = _least(worths.unserved, mine.unserved[0]) & _least(worths.value, mine.value[0])
    left = [
        int(i)
        for i in np.flatnonzero(as_good)
        if allowed(program, tuple(int(column) for column in choices[i]))
    ]
    for stage in (worths.price, worths.cost):
        least = min((float(stage[i]) for i in left), default=0.0)
        left = [i for i in left if stage[i] <= least + _slack(least)]
    return min((tuple(int(column) for column in choices[i]) for i in left), default=best)


def _least(numbers: Matrix, least: float) -> npt.NDArray[np.bool_]:
    return numbers <= least + _slack(least)


def _slack(least: float) -> float:
    return TIE * max(1.0, abs(least)) if math.isfinite(least) else 0.0


def _worths(program: Program, prices: Matrix, choices: Choices) -> _Worths:
    usable = np.where(program.usable, program.cost, np.inf)
    step = max(1, CELLS_AT_ONCE // max(1, usable.shape[0] * choices.shape[1]))
    unserved, value, cost = (np.zeros(len(choices)) for _ in range(3))
    for first in range(0, len(choices), step):
        some = slice(first, first + step)
        cheapest = usable[:, choices[some]].min(axis=2)
        served = np.isfinite(cheapest)
        unserved[some] = program.weights @ ~served
        cost[some] = program.weights @ np.where(served, cheapest, 0.0)
        if program.aim is Aim.P_CENTER:
            value[some] = np.where(served, cheapest, -np.inf).max(axis=0, initial=-np.inf)
    if program.aim is Aim.P_MEDIAN:
        value = cost
    return _Worths(unserved, value, prices[choices].sum(axis=1), cost)


def _moved(program: Program, found: Answer, columns: Columns) -> Answer:
    worth = judge(program, columns)
    sites = [int(site) for site in assign(program, columns)]
    return replace(
        found,
        columns=columns,
        assignment=tuple(site if site >= 0 else None for site in sites),
        value=worth.value,
        unserved_weight=worth.unserved_weight,
    )
