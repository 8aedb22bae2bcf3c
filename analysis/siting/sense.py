"""Whether a siting program makes sense at all, before any solver sees it."""

import numpy as np

from pathbudget.analysis.siting.vocabulary import Aim, Matrix, Program, Survive


def check(program: Program) -> None:
    """Raise ValueError naming the first thing that makes no sense."""
    if program.cost.ndim != 2:
        raise ValueError("the costs must be a matrix of regions x sites")
    rows, sites = program.cost.shape
    _numbers("weights", program.weights, rows)
    _numbers("demands", program.demands, rows)
    for name in ("prices", "powers", "capacities", "opening"):
        _numbers(name, getattr(program, name), sites)
    if np.isnan(program.cost).any() or np.isneginf(program.cost).any():
        raise ValueError("a cost is neither a number nor infinite")
    if program.preference is not None and program.preference.shape != program.cost.shape:
        raise ValueError("the preferences must be a matrix of the same shape as the costs")
    if program.preference is not None and np.isnan(program.preference).any():
        raise ValueError("a preference is not a number")
    if program.backers is not None and program.backers.shape != program.cost.shape:
        raise ValueError("the backups must be a matrix of the same shape as the costs")
    _columns(program, sites)
    _aims(program)


def _numbers(name: str, values: Matrix | None, wanted: int) -> None:
    if values is None:
        return
    if values.shape != (wanted,):
        raise ValueError(f"{name}: {wanted} numbers wanted, not {values.size}")
    if np.isnan(values).any() or (values < 0).any():
        raise ValueError(f"{name}: a number is negative or missing")
    if name != "capacities" and np.isinf(values).any():
        raise ValueError(f"{name}: a number is infinite")


def _columns(program: Program, sites: int) -> None:
    for column in (*program.must_have, *program.must_not):
        if not 0 <= column < sites:
            raise ValueError(f"there is no site number {column}")
    if program.k is not None and program.k < 1:
        raise ValueError("at least one site must be chosen")
    if program.backup < 0:
        raise ValueError("the number of backups is negative")


def _aims(program: Program) -> None:
    if program.aim is Aim.COVERING and program.limit is None:
        raise ValueError("maximal covering needs a limit")
    if program.price_cap is not None and program.prices is None:
        raise ValueError("a price cap needs the prices of the sites")
    if program.power_cap is not None and program.powers is None:
        raise ValueError("a power cap needs the powers of the sites")
    if program.survive is Survive.MEAN and program.k is None:
        raise ValueError("the mean over losses needs the number of sites")
    if program.survive is Survive.MEAN and program.aim is Aim.P_CENTER:
        raise ValueError("p-center survives the worst loss, not the mean of them")
    if program.opening is not None and program.aim is not Aim.P_MEDIAN:
        raise ValueError("only p-median adds the opening costs")
