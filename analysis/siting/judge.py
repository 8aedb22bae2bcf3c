"""What a given choice of sites is worth, computed directly; no capacity is looked at here."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.vocabulary import Aim, Mask, Program, Survive

Indices = npt.NDArray[np.int64]

SLACK = 1e-6
"""Caps may be overrun by this much, relative to their size: what solvers call feasible."""


@dataclass(frozen=True, slots=True)
class Worth:
    """Value of a choice by the program's aim, and the weight that it leaves unserved."""

    value: float
    unserved_weight: float


def assign(program: Program, columns: Sequence[int]) -> Indices:
    """Site of each region, -1 where it has none; by the given routing or by the cost."""
    chosen = np.array(sorted(columns), dtype=np.int64)
    if not chosen.size:
        return np.full(program.rows, -1, dtype=np.int64)
    usable = program.usable
    if program.preference is None:
        rank = np.where(usable, program.cost, np.inf)[:, chosen]
    else:
        rank = program.preference[:, chosen]
    site = chosen[np.argmin(rank, axis=1)]
    served = np.isfinite(rank.min(axis=1)) & usable[np.arange(program.rows), site]
    return np.where(served, site, -1)


def after_losses(program: Program, columns: Sequence[int]) -> dict[int, Worth]:
    """Worth of what is left after the loss of each chosen site."""
    return {lost: _worth(program, columns, lost=lost) for lost in sorted(columns)}


def judge(program: Program, columns: Sequence[int]) -> Worth:
    """Worth of a choice: as it is, or after losses where the program is about those."""
    if program.survive is None:
        return _worth(program, columns)
    losses = list(after_losses(program, columns).values())
    values = [loss.value for loss in losses]
    unserved = max(loss.unserved_weight for loss in losses)
    if program.survive is Survive.MEAN:
        return Worth(float(np.mean(values)) + _opening(program, columns), unserved)
    values.append(_worth(program, columns).value)  # routing may serve better after a loss
    worst = min(values) if program.aim is Aim.COVERING else max(values)
    return Worth(worst + _opening(program, columns), unserved)


def _worth(program: Program, columns: Sequence[int], lost: int | None = None) -> Worth:
    """Backups are counted before the loss."""
    site = assign(program, [column for column in columns if column != lost])
    counted = site >= 0
    if program.aim is Aim.COVERING and program.backup:
        counted &= program.backing[:, list(columns)].sum(axis=1) > program.backup
    cost = program.cost[np.arange(program.rows), site]
    unserved = float(program.weights @ ~counted)
    if program.aim is Aim.COVERING:
        return Worth(float(program.weights @ counted), unserved)
    if program.aim is Aim.P_CENTER:
        return Worth(float(np.max(cost[counted], initial=-np.inf)), unserved)
    total = float(program.weights[counted] @ cost[counted])
    opening = 0.0 if program.survive else _opening(program, columns)
    return Worth(total + opening, unserved)


def _opening(program: Program, columns: Sequence[int]) -> float:
    return 0.0 if program.opening is None else float(program.opening[list(columns)].sum())


def needed(program: Program) -> Mask:
    """Regions that backups and losses are asked of: those that some site can serve."""
    if program.serve_all:
        return np.ones(program.rows, dtype=np.bool_)
    return np.asarray(program.usable.any(axis=1), dtype=np.bool_)


def allowed(program: Program, columns: Sequence[int]) -> bool:
    """Whether a choice keeps every constraint but the capacities."""
    chosen = list(columns)
    if not chosen or (program.k is not None and len(chosen) != program.k):
        return False
    if not set(program.must_have) <= set(chosen) or set(program.must_not) & set(chosen):
        return False
    if any(tuple(sorted(chosen)) == tuple(sorted(barred)) for barred in program.forbidden):
        return False
    if any(
        values[chosen].sum() > cap + SLACK * max(1.0, abs(cap)) for _, values, cap in program.caps
    ):
        return False
    if program.aim is Aim.COVERING and not program.serve_all:
        return True
    wanted = needed(program)
    if program.backup:
        counts = program.backing[:, chosen].sum(axis=1)
        if (counts[wanted] <= program.backup).any():
            return False
    if program.survive is None:
        return not program.serve_all or bool((assign(program, chosen) >= 0).all())
    left = [[column for column in chosen if column != lost] for lost in (*chosen, None)]
    return all(bool((assign(program, rest)[wanted] >= 0).all()) for rest in left)
