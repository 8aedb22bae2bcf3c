"""The exact choice of k sites, by the quicker of two ways that agree.

A few hundred thousand choices are looked at one by one, in seconds even where the integer program
is hard; beyond that the program is solved.
"""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.model import TIE, Choice, Matrix, Problem, assess, solve_program

MOST_LOOKED_AT = 200_000
"""Choices that are enumerated: three of a hundred sites are 161,700."""

CELLS_AT_ONCE = 4_000_000


def solve(problem: Problem, k: int, *, forbidden: Sequence[Sequence[int]] = ()) -> Choice | None:
    """The best choice of exactly `k` sites that is none of `forbidden`; None if there is none."""
    if math.comb(problem.cost.shape[1], k) <= MOST_LOOKED_AT:
        return look_at_all(problem, k, forbidden=forbidden)
    return solve_program(problem, k, forbidden=forbidden)


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
