"""p-center by binary search: the smallest radius within which every region can be served."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.siting.cover import feasible_within, least_cover, solve_covering
from pathbudget.analysis.siting.judge import needed
from pathbudget.analysis.siting.milp_model import TIE, Solved
from pathbudget.analysis.siting.run import Run
from pathbudget.analysis.siting.vocabulary import Mask, Program


@dataclass(frozen=True, slots=True)
class Found:
    """What is known of one radius: impossible, or a choice was found; neither when time was up."""

    impossible: bool
    unserved: float | None = None
    """Weight that the choice leaves unserved; None where none was found."""
    least: bool = False
    """Whether no choice leaves less."""


Within = Callable[[float, float | None], Found]
"""Whether there is a choice within a radius that leaves no more than a weight unserved."""


def search_radii(run: Run, within: Within) -> None:
    """First without a radius, for the least unserved weight; then halve the radii that are left."""
    program = run.program
    radii = np.unique(program.cost[program.usable])
    widest = within(np.inf, None)
    if widest.unserved is None:
        return
    if widest.least:
        run.least_unserved = widest.unserved
    low, high = 0, _place(radii, run.worth.value)
    while low < high and not run.over():
        middle = (low + high) // 2
        found = within(float(radii[middle]), widest.unserved)
        if found.impossible:
            low = middle + 1
            run.prove(float(radii[low]))
        elif found.unserved is None:
            return
        else:
            high = min(middle, _place(radii, run.worth.value))
    if low >= high and len(radii):
        run.prove(float(radii[high]))
    if not len(radii):
        run.prove(-np.inf)


def _place(radii: np.ndarray, value: float) -> int:
    return int(np.searchsorted(radii, value)) if np.isfinite(value) else 0


def center(run: Run) -> None:
    """p-center without capacities and given routing: set cover for every radius."""
    program = run.program
    structural = float(program.weights @ ~program.usable.any(axis=1))

    def within(radius: float, spare: float | None) -> Found:
        near = program.usable & (program.cost <= radius)
        if spare is None or spare <= structural + TIE:
            solved = _everyone(program, near, run.left())
            unserved = structural
            if spare is None and solved.infeasible and not asked:
                solved = solve_covering(program, near, run.left())
                unserved = np.nan
        else:
            solved = feasible_within(program, near, spare, run.left())
            unserved = spare
        if solved.x is None:
            return Found(solved.infeasible)
        columns = [int(column) for column in np.flatnonzero(solved.x[: program.sites] > 0.5)]
        run.offer(columns if program.k is None else _filled(columns, program.k, program.sites))
        if np.isnan(unserved):
            unserved = run.worth.unserved_weight
            return Found(False, unserved, solved.bound >= unserved - TIE * max(1.0, unserved))
        return Found(False, unserved, True)

    asked = program.serve_all or program.survive is not None
    search_radii(run, within)


def _everyone(program: Program, near: Mask, seconds: float | None) -> Solved:
    """A choice with a site near every region that is to be served."""
    bound = program.caps or program.must_have or program.must_not or program.forbidden
    if bound or program.backup or program.survive is not None or program.k is None:
        return feasible_within(program, near, None, seconds)
    if program.k > program.sites:
        return Solved(None, np.inf, infeasible=True)
    return least_cover(near[needed(program)], program.k, seconds)


def _filled(columns: list[int], k: int, sites: int) -> list[int]:
    """As many sites as are asked for: the first ones beside those that are needed."""
    others = [column for column in range(sites) if column not in columns]
    return sorted(columns + others[: max(0, k - len(columns))])
