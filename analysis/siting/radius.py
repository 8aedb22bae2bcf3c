"""The p-median as a program of radii: is there a chosen site within this distance of a region?

After Garcia, Labbe and Marin (2011). A region costs its smallest distance, and for every larger one
the step to it where no chosen site is nearer. The chain `z[t] + (chosen at t) >= z[t-1]` has three
entries a row or so, where a model of pairs has one row for every pair. A region that may lose its
site has a second chain above the first: two sites are wanted, and each that is missing costs.
"""

from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.siting.judge import Indices
from pathbudget.analysis.siting.milp_model import Model
from pathbudget.analysis.siting.vocabulary import Matrix


@dataclass(frozen=True, slots=True)
class Radii:
    """Variables of the chains, and the cost that does not depend on them."""

    variables: Indices
    steps: Matrix
    constant: float


def add_radii(
    model: Model, y: Indices, cost: Matrix, farthest: Matrix, levels: tuple[float, ...]
) -> Radii:
    """Chains for all regions. `cost` is regions x the sites of `y`, weighted.

    No site farther than `farthest` serves a region (the last of its sites, with two).
    """
    row, column, value = _pairs(cost, farthest)
    new = np.ones(len(row), dtype=bool)
    new[1:] = (row[1:] != row[:-1]) | (value[1:] > value[:-1])
    ring = np.cumsum(new) - 1
    ring_row, ring_value = row[new], value[new]
    rings = len(ring_row)
    first = np.ones(rings, dtype=bool)
    first[1:] = ring_row[1:] != ring_row[:-1]
    last = np.append(first[1:], True)[:rings]
    following = np.append(ring_value[1:], 0.0)[:rings]
    step = np.where(last, 0.0, following - ring_value)
    upper = np.where(last, 0.0, 1.0)
    z = [_missing(model, upper) for _ in levels]
    later = np.flatnonzero(~first)
    entries: list[tuple[Indices, Indices, float]] = [(ring, y[column], 1.0)]
    for own in z:
        every = np.arange(rings)
        entries += [(every, own, 1.0), (later, own[later - 1], -1.0)]
    low = np.where(first, float(len(levels)), 0.0)
    model.rows(entries, low, np.full(rings, np.inf))
    constant = float(sum(levels) * ring_value[first].sum())
    steps = np.concatenate([share * step for share in levels])
    return Radii(np.concatenate(z), steps, constant)


def _missing(model: Model, upper: Matrix) -> Indices:
    variables = model.variables(len(upper), whole=False)
    model.upper[-1] = upper.copy()
    return variables


def _pairs(cost: Matrix, farthest: Matrix) -> tuple[Indices, Indices, Matrix]:
    """Pairs by region and distance."""
    row, column = np.nonzero(np.isfinite(cost) & (cost <= farthest[:, None]))
    value = cost[row, column]
    order = np.lexsort((column, value, row))
    return row[order], column[order], value[order]
