"""What a model leaves over, smoothed over pairs whose two ends are near each other.

Kernel ridge regression (simple kriging with a nugget, Cressie 1993) of the logarithm of true over
predicted; the likeness of two pairs is exp(-distance of their regions - distance of their sites).
"""

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.filling_known import Known

Matrix = npt.NDArray[np.float64]

NUGGET = 0.1
"""Share of what is left over that is noise of the single pair."""

MOST_PAIRS = 1_500
"""Pairs that are learned from; of more, an even choice. The work grows with the third power."""

LARGEST = 1.0
"""Logarithms of larger errors are cut: one broken pair must not colour its neighbours."""


def smoothed(known: Known, predicted: Matrix, regions: Matrix, sites: Matrix) -> Matrix:
    """Factor for every pair (regions x sites). Distances are in units of the reach."""
    rows, columns = known.pairs
    if len(rows) > MOST_PAIRS:
        kept = np.linspace(0, len(rows) - 1, MOST_PAIRS).astype(np.intp)
        rows, columns = rows[kept], columns[kept]
    left = np.log(known.costs[rows, columns] / predicted[rows, columns])
    left = np.clip(left, -LARGEST, LARGEST)
    near_regions, near_sites = np.exp(-regions), np.exp(-sites)
    likeness = near_regions[np.ix_(rows, rows)] * near_sites[np.ix_(columns, columns)]
    likeness[np.diag_indices_from(likeness)] += NUGGET
    weights = np.zeros(known.costs.shape)
    weights[rows, columns] = np.linalg.solve(likeness, left)
    factor: Matrix = np.exp(near_regions @ weights @ near_sites)
    return factor
