"""The exact choice of k sites, by the quicker of two ways that agree.

A few hundred thousand choices are looked at one by one, in seconds even where the integer program
is hard; beyond that the program is solved.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.median import Median
from pathbudget.analysis.siting.model import TIE, Choice, Matrix, Problem, assess, solve_program
from pathbudget.analysis.siting.route import everyone_is_served, start
from pathbudget.analysis.siting.run import Run
from pathbudget.analysis.siting.vocabulary import Program

MOST_LOOKED_AT = 200_000
"""Choices that are enumerated: three of a hundred sites are 161,700."""

CELLS_AT_ONCE = 4_000_000


def solve(problem: Problem, k: int, *, forbidden: Sequence[Sequence[int]] = ()) -> Choice | None:
    """The best choice of exactly `k` sites that is none of `forbidden`; None if there is none."""
    if math.comb(problem.cost.shape[1], k) <= MOST_LOOKED_AT:
        return look_at_all(problem, k, forbidden=forbidden)
    left = hopeful(problem, k, forbidden)
    if left is None:
        return solve_program(problem, k, forbidden=forbidden)
    place = {int(column): number for number, column in enumerate(left)}
    barred = [tuple(place[j] for j in one) for one in forbidden if all(j in place for j in one)]
    few = Problem(problem.cost[:, left], problem.weights, problem.prices[left])
    found = solve_program(few, k, forbidden=barred)
    return None if found is None else assess(problem, [int(left[j]) for j in found.columns])


def hopeful(
    problem: Problem, k: int, forbidden: Sequence[Sequence[int]] = ()
) -> npt.NDArray[np.int64] | None:
    """Sites in any choice that is as good as the best, by a Lagrangian bound; None: not known.

    Known for the p-median where one choice can serve every region that any site can serve.
    """
    if problem.limit is not None or (problem.weights < 0).any():
        return None
    barred = tuple(tuple(int(j) for j in sorted(one)) for one in forbidden)
    program = Program(problem.cost, problem.weights, k=k, forbidden=barred)
    run = Run(program, None, None, lambda: 0.0)
    start(run)
    if not everyone_is_served(run):
        return None
    way = Median(run)
    way.bound()
    value = run.worth.value
    narrowed = way.narrowed(value + 10 * TIE * max(1.0, abs(value)))
    return narrowed.columns


def look_at_all(
    problem: Problem, k: int, *, forbidden: Sequence[Sequence[int]] = ()
) -> Choice | None:
    """`solve` by enumeration, in the order of the names."""
    sites = range(problem.cost.shape[1])
    barred = {tuple(sorted(columns)) for columns in forbidden}
    every = [columns for columns in itertools.combinations(sites, k) if columns not in barred]
    if not every:
        return None
    choices = np.array(every, dtype=np.int64)
    unserved, cost = _values(problem, choices)
    price = problem.prices[choices].sum(axis=1)
    stages = [unserved, cost, price] if problem.limit is None else [unserved, price, cost]
    left = np.arange(len(choices))
    for stage in stages:
        best = float(stage[left].min())
        left = left[stage[left] <= best + TIE * max(1.0, abs(best))]
    return assess(problem, [int(column) for column in choices[left[0]]])


def _values(problem: Problem, choices: npt.NDArray[np.int64]) -> tuple[Matrix, Matrix]:
    """Unserved weight and weighted cost of each choice."""
    usable = np.where(problem.usable, problem.cost, np.inf)
    step = max(1, CELLS_AT_ONCE // max(1, usable.shape[0] * choices.shape[1]))
    unserved, cost = np.zeros(len(choices)), np.zeros(len(choices))
    for first in range(0, len(choices), step):
        some = slice(first, first + step)
        cheapest = usable[:, choices[some]].min(axis=2)
        served = np.isfinite(cheapest)
        unserved[some] = problem.weights @ ~served
        cost[some] = problem.weights @ np.where(served, cheapest, 0.0)
    return unserved, cost
