"""Which way leads to the answer of which program."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from pathbudget.analysis.siting.capacity import MOST_PAIRS as MOST_WITH_CAPACITIES
from pathbudget.analysis.siting.capacity import capacitated
from pathbudget.analysis.siting.clash import conflicts
from pathbudget.analysis.siting.cover import cover_model, solve_covering
from pathbudget.analysis.siting.dense import dense
from pathbudget.analysis.siting.first import first, offer_with_room
from pathbudget.analysis.siting.interchange import Interchange
from pathbudget.analysis.siting.judge import needed
from pathbudget.analysis.siting.median import median
from pathbudget.analysis.siting.radii import center
from pathbudget.analysis.siting.room import without_capacities
from pathbudget.analysis.siting.run import EQUAL, Run
from pathbudget.analysis.siting.vocabulary import Aim, Program, Survive

MOST_PAIRS = 300_000
"""Pairs over all losses of the full model, at most."""


def best(run: Run) -> None:
    """Fill the run: at first at once, then exactly."""
    first(run)
    way_of(run)(run)
    if not run.columns and not run.over():
        run.conflicts = conflicts(run.program)


def way_of(run: Run) -> Callable[[Run], None]:
    """The exact way to the answer."""
    program = run.program
    if program.capacities is not None:
        simple = program.survive is None and program.preference is None
        return capacitated if simple and program.aim is Aim.P_MEDIAN else by_easier
    if program.preference is not None:
        return dense
    if program.aim is Aim.P_CENTER:
        return center
    if program.aim is Aim.COVERING:
        return by_easier if program.survive is not None else covering
    if program.survive is Survive.WORST:
        return by_easier
    if not everyone_is_served(run):
        return dense
    return median


def covering(run: Run) -> None:
    """Maximal covering: regions with the same sites near them are one."""
    solved = solve_covering(run.program, run.program.usable, run.left())
    total = float(run.program.weights.sum())
    run.method = "interchange and covering program"
    if solved.x is not None:
        run.offer(np.flatnonzero(solved.x[: run.program.sites] > 0.5).tolist())
    run.prove(total - solved.bound)


def by_easier(run: Run) -> None:
    """The full model where it is small; else the bound of an easier program, and its choice."""
    program = run.program
    losses = 1 if program.survive is None else program.sites
    most = MOST_PAIRS if program.capacities is None else MOST_WITH_CAPACITIES
    if int(program.usable.sum()) * losses <= most:
        dense(run)
        return
    easier, name = _easier(program)
    inner = Run(easier, run.left(), None, run.clock)
    best(inner)
    run.method = f"interchange, bound of {name}"
    if inner.columns and program.capacities is not None:
        offer_with_room(run, inner.columns)
    elif inner.columns:
        run.offer(inner.columns)
    run.least_unserved = inner.least_unserved
    if inner.bound is not None:
        run.prove(inner.bound)


def _easier(program: Program) -> tuple[Program, str]:
    """A program whose every choice is worth at least as much, and what it leaves out.

    The worst loss is no better than the mean of the losses, and a loss no better than none.
    """
    if program.capacities is not None:
        return without_capacities(program), "no capacities"
    if program.aim is Aim.P_MEDIAN and program.k is not None and program.survive is Survive.WORST:
        return replace(program, survive=Survive.MEAN), "the mean loss"
    return replace(program, survive=None), "no loss"


def everyone_is_served(run: Run) -> bool:
    """Whether a choice is known that leaves only those unserved whom no site can serve."""
    program = run.program
    wanted = needed(program)
    structural = float(program.weights @ ~wanted)
    if not wanted.any():
        return False
    if not run.columns or run.worth.unserved_weight > structural + EQUAL * max(1.0, structural):
        _search_cover(run)
    found = bool(run.columns) and (
        run.worth.unserved_weight <= structural + EQUAL * max(1.0, structural)
    )
    if found:
        run.least_unserved = structural
    return found


def _search_cover(run: Run) -> None:
    program = run.program
    model, y = cover_model(program, program.usable, needed(program))
    solved = model.minimise(np.zeros(model.size), run.left())
    if solved.x is not None:
        columns = np.flatnonzero(solved.x[y] > 0.5).tolist()
        run.offer(columns)
        run.offer(Interchange(program).improve(columns, run.over))
