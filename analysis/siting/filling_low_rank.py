"""Unmeasured pairs by completing the matrix with one of low rank: a candidate to compare with.

Terms of places plus a product of factors in the logarithm, by alternating ridge regressions
(Koren, Bell and Volinsky, "Matrix factorization techniques", Computer 42, 2009).
"""

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.filling_known import Known

Matrix = npt.NDArray[np.float64]

RANK = 3
RIDGE = 0.6
ROUNDS = 25


def low_rank(known: Known) -> Matrix:
    """Exponential of region term + site term + a product of rank 3."""
    seen = ~np.isnan(known.costs)
    logs = np.where(seen, np.log(np.where(seen, known.costs, 1.0)), 0.0)
    mean = float(logs[seen].mean())
    rows, columns = _terms(np.where(seen, logs - mean, 0.0), seen)
    terms = mean + rows[:, None] + columns
    left, right = _factors(np.where(seen, logs - terms, 0.0), seen)
    completed: Matrix = np.exp(terms + left @ right.T)
    return completed


def _terms(values: Matrix, seen: npt.NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
    rows, columns = np.zeros(values.shape[0]), np.zeros(values.shape[1])
    for _ in range(10):
        rows = ((values - columns) * seen).sum(axis=1) / (seen.sum(axis=1) + 0.5)
        columns = ((values - rows[:, None]) * seen).sum(axis=0) / (seen.sum(axis=0) + 0.5)
    return rows, columns


def _factors(values: Matrix, seen: npt.NDArray[np.bool_]) -> tuple[Matrix, Matrix]:
    rank = min(RANK, *values.shape)
    rng = np.random.default_rng(0)
    left = rng.normal(scale=0.1, size=(values.shape[0], rank))
    right = rng.normal(scale=0.1, size=(values.shape[1], rank))
    for _ in range(ROUNDS):
        left = _half(values, seen, right)
        right = _half(values.T, seen.T, left)
    return left, right


def _half(values: Matrix, seen: npt.NDArray[np.bool_], other: Matrix) -> Matrix:
    """The factors of the rows, given those of the columns: one small ridge regression per row."""
    squares = np.einsum("rc,ca,cb->rab", seen.astype(np.float64), other, other)
    squares += RIDGE * np.eye(other.shape[1])
    return np.linalg.solve(squares, (values @ other)[..., None])[..., 0]
