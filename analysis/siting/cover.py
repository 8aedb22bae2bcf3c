"""Programs in the sites alone: who is near enough to whom. Set cover, and covering itself."""

import numpy as np

from pathbudget.analysis.siting.choice_rows import add_backup, add_choice, add_cover
from pathbudget.analysis.siting.judge import Indices, needed
from pathbudget.analysis.siting.milp_model import TIE, Model, Solved
from pathbudget.analysis.siting.vocabulary import Aim, Mask, Matrix, Program


def cover_model(program: Program, near: Mask, wanted: Mask) -> tuple[Model, Indices]:
    """A model in which each wanted region has a chosen site near it, after any loss too."""
    model = Model()
    y = add_choice(model, program)
    add_backup(model, y, program)
    add_served(model, y, program, near, wanted)
    return model, y


def add_served(model: Model, y: Indices, program: Program, near: Mask, wanted: Mask) -> None:
    """Each wanted region has a chosen site near it, after any loss too where that is asked."""
    times = 1 if program.survive is None else 2
    if program.preference is not None:
        near = near & np.isfinite(program.preference)
    add_cover(model, y, near, wanted, times)
    if program.preference is not None:
        _routing(model, y, program.preference, near, wanted, times)


def _routing(
    model: Model, y: Indices, preference: Matrix, near: Mask, wanted: Mask, times: int
) -> None:
    """A site that is not near is chosen only beside `times` near ones that routing prefers."""
    for row in np.flatnonzero(wanted):
        order = np.argsort(preference[row], kind="stable")
        order = order[np.isfinite(preference[row, order])]
        good = near[row, order]
        for place in np.flatnonzero(~good):
            before = order[:place][good[:place]]
            values = np.append(np.ones(len(before)), -float(times))
            model.row(np.append(y[before], y[order[place]]), values, 0.0, np.inf)


def solve_covering(program: Program, near: Mask, seconds: float | None) -> Solved:
    """Least unserved weight; x begins with the sites.

    Not for given routing, capacities or losses. Regions that the same sites are near to are one.
    """
    times = 1 if program.aim is not Aim.COVERING else program.backup + 1
    both = np.hstack([near, program.backing])
    patterns, group = np.unique(both, axis=0, return_inverse=True)
    weights = np.bincount(group.reshape(-1), weights=program.weights, minlength=len(patterns))
    model = Model()
    y = add_choice(model, program)
    add_backup(model, y, program)
    short = model.variables(len(patterns), whole=times > 1)
    every = np.arange(len(patterns))
    counts = ((1, patterns[:, : program.sites]), (times, patterns[:, program.sites :]))
    for count, some in counts if times > 1 else counts[:1]:
        row, column = np.nonzero(some)
        low = np.full(len(patterns), float(count))
        entries = [(row, y[column], 1.0), (every, short, float(count))]
        model.rows(entries, low, np.full(len(patterns), np.inf))
    objective = np.zeros(model.size)
    objective[short] = weights
    if program.serve_all:
        model.row(short, 1.0, 0.0, 0.0)
    return model.minimise(objective, seconds)


def least_cover(near: Mask, most: int, seconds: float | None) -> Solved:
    """Sites, `most` or fewer, with one near every region; x is by site.

    Regions whose sites include all those of another are served with it, and sites near to no more
    regions than another are not needed (Toregas and ReVelle 1973).
    """
    rows = _hardest(near)
    columns = _widest(near[rows])
    small = near[np.ix_(rows, columns)]
    model = Model()
    y = model.variables(len(columns), whole=True)
    add_cover(model, y, small, np.ones(len(rows), dtype=np.bool_), 1)
    solved = model.minimise(np.ones(model.size), seconds)  # far quicker than "at most so many"
    if solved.x is None or solved.x[y].sum() > most + 0.5:
        return Solved(
            None, solved.bound, infeasible=solved.infeasible or solved.bound > most + 0.01
        )
    full = np.zeros(near.shape[1])
    full[columns] = solved.x
    return Solved(full, solved.bound, infeasible=False)


def _hardest(near: Mask) -> Indices:
    """Regions that are not served as soon as another one is; of equal ones the first."""
    ones = near.astype(np.float32)
    within = ones @ ones.T >= ones.sum(axis=1)[:, None]  # [i, j]: the sites of i are sites of j
    easier = within & ~within.T
    equal = within & within.T
    return np.flatnonzero(~easier.any(axis=0) & ~np.triu(equal, 1).any(axis=0))


def _widest(near: Mask) -> Indices:
    """Sites that no other one makes needless; of equal ones the first."""
    ones = near.astype(np.float32)
    within = ones.T @ ones >= ones.sum(axis=0)[:, None]  # [i, j]: the regions of i are regions of j
    narrower = within & ~within.T
    equal = within & within.T
    return np.flatnonzero(~narrower.any(axis=1) & ~np.triu(equal, 1).any(axis=0))


def feasible_within(
    program: Program, near: Mask, spare: float | None, left: float | None
) -> Solved:
    """Sites that leave at most `spare` weight without one near them; None: every needed region."""
    if spare is None:
        model, _ = cover_model(program, near, needed(program))
        return model.minimise(np.zeros(model.size), left)
    model = Model()
    y = add_choice(model, program)
    add_backup(model, y, program)
    short = model.variables(program.rows, whole=True)
    row, column = np.nonzero(near)
    ones = np.ones(program.rows)
    model.rows([(row, y[column], 1.0), (np.arange(program.rows), short, 1.0)], ones, ones + np.inf)
    model.row(short, program.weights, -np.inf, spare + TIE * max(1.0, spare))
    return model.minimise(np.zeros(model.size), left)
