"""Models of unmeasured pairs that know where places are: light in fibre, and what adds to it."""

from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from pathbudget.analysis.siting.filling_known import Known
from pathbudget.analysis.siting.filling_smooth import smoothed

Matrix = npt.NDArray[np.float64]

ROUNDS = 12
"""Of reweighting: enough for the weights to settle."""

REACH_MS = 64.0
"""Round trip of light over which the inflation of two region pairs is still alike (6,500 km)."""

SHORTEST_MS = 0.5
"""Light floors below this are put to it: two places in one metro have a last mile, too."""

NEAR_MS = 3.0
"""Added before a logarithm is taken: what the last mile costs, where the fibre is short."""


def floor_times_inflation(known: Known) -> Matrix:
    """The light floor times the median inflation of the known pairs."""
    floors = _floors(known)
    pairs = known.pairs
    inflation = float(np.median(known.costs[pairs] / np.maximum(floors[pairs], SHORTEST_MS)))
    return np.maximum(floors, SHORTEST_MS) * inflation


def fibre_terms(known: Known) -> Matrix:
    """A term of the region, one of the site, and s times the light floor; by relative error."""
    floors = _floors(known)
    true = np.maximum(known.costs, 1.0)
    fitted = _terms(known, known.costs, [np.ones_like(floors), floors], 1 / true, 0.02)
    return np.maximum(fitted, np.maximum(floors, SHORTEST_MS))


def zones(known: Known) -> Matrix:
    """Inflation over the light floor by region pair.

    The logarithm of the cost is a curve of the floor plus a term of each place; what is left is
    smoothed over pairs whose two ends are both near. So whole zones (Europe to South America) get
    an inflation of their own where there are pairs to learn it from, and the common one elsewhere.
    """
    floors = _floors(known)
    near = np.log(floors + NEAR_MS)
    curve = [np.ones_like(near), near, near**2]
    logs = np.log(known.costs)
    fitted = np.exp(_terms(known, logs, curve, np.ones_like(logs), 0.5))
    reach = [_there(one) / REACH_MS for one in (known.region_floors, known.site_floors)]
    left = smoothed(known, fitted, *reach)
    return np.maximum(fitted * left, np.maximum(floors, 0.01))


def _floors(known: Known) -> Matrix:
    return _there(known.floors)


def _there(floors: Matrix | None) -> Matrix:
    if floors is None:
        raise ValueError("this model needs the coordinates of every place")
    return floors


def _terms(
    known: Known, wanted: Matrix, curve: list[Matrix], scale: Matrix, ridge: float
) -> Matrix:
    """Terms of places (drawn to 0 by `ridge`) and coefficients of `curve`, by robust regression.

    `scale` is what an error is multiplied with before it is weighed; errors far beyond the usual
    count linearly (Huber, 1964), so that a few detours do not bend everything else.
    """
    rows, columns = known.pairs
    regions, sites = known.costs.shape
    every, ones = np.arange(len(rows)), np.ones(len(rows))
    places = sparse.csr_array(
        (np.tile(ones, 2), (np.tile(every, 2), np.concatenate([rows, regions + columns]))),
        shape=(len(rows), regions + sites),
    )
    along = np.stack([part[rows, columns] for part in curve], axis=1)
    design = sparse.hstack([places, sparse.csr_array(along)], format="csr")
    penalty = np.concatenate([np.full(regions + sites, ridge), np.full(len(curve), 1e-9)])
    factors = scale[rows, columns]
    found = _robust(design, wanted[rows, columns], factors, penalty)
    slope = sum(
        (one * part for one, part in zip(found[regions + sites :], curve, strict=True)),
        np.zeros_like(curve[0]),
    )
    return found[:regions, None] + found[None, regions : regions + sites] + slope


def _robust(design: Any, wanted: Matrix, factors: Matrix, penalty: Matrix) -> Matrix:
    """Coefficients of a sparse design (pairs x terms); the penalty keeps the squares solvable."""
    base = (factors / np.sqrt(np.mean(factors**2))) ** 2
    trust = np.ones(len(wanted))
    found = np.zeros(design.shape[1])
    for _ in range(ROUNDS):
        weighted = sparse.diags_array(base * trust) @ design
        squares = (design.T @ weighted).toarray() + np.diag(penalty)
        found = np.linalg.solve(squares, weighted.T @ wanted)
        off = np.abs(wanted - design @ found) * factors
        usual = 1.4826 * float(np.median(off)) + 1e-9
        trust = np.minimum(1.0, 1.5 * usual / np.maximum(off, 1e-12))
    return found
