"""The constraints on which sites are chosen, shared by all models; `y` are their variables."""

import numpy as np

from pathbudget.analysis.siting.judge import SLACK, Indices, needed
from pathbudget.analysis.siting.milp_model import Model
from pathbudget.analysis.siting.vocabulary import Aim, Mask, Program


def add_choice(model: Model, program: Program) -> Indices:
    """Variables for the sites with count, caps, must-have, must-not and ruled-out choices."""
    y = model.variables(program.sites, whole=True)
    most = np.inf if program.k is None else program.k
    model.row(y, 1.0, 1.0 if program.k is None else program.k, most)
    for _, values, cap in program.caps:
        model.row(y, values, -np.inf, cap + SLACK * max(1.0, abs(cap)) / 2)
    for columns, value in ((program.must_have, 1.0), (program.must_not, 0.0)):
        for column in columns:
            model.row(y[[column]], 1.0, value, value)
    for barred in program.forbidden:
        coefficients = np.full(program.sites, -1.0)
        coefficients[list(barred)] = 1.0
        model.row(y, coefficients, -np.inf, len(set(barred)) - 1)
    return y


def add_cover(model: Model, y: Indices, near: Mask, wanted: Mask, times: int) -> None:
    """Each wanted region has `times` chosen sites among those that are near."""
    rows = np.flatnonzero(wanted)
    row, column = np.nonzero(near[rows])
    low = np.full(len(rows), float(times))
    model.rows([(row, y[column], 1.0)], low, np.full(len(rows), np.inf))


def add_backup(model: Model, y: Indices, program: Program) -> None:
    """Backups as a constraint: where covering does not count them instead."""
    if program.backup and (program.aim is not Aim.COVERING or program.serve_all):
        add_cover(model, y, program.backing, needed(program), program.backup + 1)
