"""Which pair is worth measuring (more): the expected value of sample information.

What a decision is expected to lose through ignorance is the expected value of perfect information
(Raiffa and Schlaifer 1961). Knowing one pair better can at most move the choice to one that is
better on average given that pair. Of a batch of m samples on top of n, the expected cost given the
pair moves by sqrt(m / (m + n)) of its whole way (moment matching after Heath, Manolopoulou and
Baio, Medical Decision Making 38, 2018). Only p-median and covering are means over regions, so that
one pair's part in them stands alone; for p-center the pair's draws are binned.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.filling import PRIOR_SIZE
from pathbudget.analysis.siting.robustness import Resampled
from pathbudget.analysis.siting.sampling import LEVEL_WEIGHTS, PROBABILITIES
from pathbudget.analysis.siting.score import Columns, Score
from pathbudget.analysis.siting.vocabulary import Aim

Matrix = npt.NDArray[np.float64]

MOST_CHOICES = 24
"""Choices that compete: the ones that are best on average. Others win too seldom to matter."""

BINS = 10


@dataclass(frozen=True, slots=True)
class Worth:
    """What measuring one pair is worth."""

    row: int
    column: int
    reduction: float
    """Expected reduction of the regret by the batch, in the unit of the value."""


def worth_of_pairs(
    resampled: Resampled, score: Score, tables: Matrix, sizes: Matrix, batch: int, worths: Matrix
) -> list[Worth]:
    """Every pair that a batch of samples would help, the most first.

    `sizes` are the effective samples of each pair now (0: unmeasured), `worths` what one further
    sample of a pair counts (its effective over its plain number; 1 where that is unknown).
    """
    order = np.argsort(resampled.values.mean(axis=0), kind="stable")[:MOST_CHOICES]
    kept = sorted({0, *(int(index) for index in order)})
    choices = [resampled.choices[index] for index in kept]
    means = resampled.values[:, kept].mean(axis=0)
    found: list[Worth] = []
    for column in sorted({column for columns in choices for column in columns}):
        having = [i for i, columns in enumerate(choices) if column in columns]
        if len(having) == len(choices):
            continue  # in every choice: it cannot tell them apart by itself
        way = _way(resampled, score, tables, column, choices, having)
        gains = batch * worths[:, column]
        shares = np.sqrt(gains / (gains + np.maximum(PRIOR_SIZE, sizes[:, column])))
        for row in np.flatnonzero(score.weights > 0):
            reduction = _reduction(means, way[row], float(shares[row]))
            if reduction > 0:
                found.append(Worth(int(row), column, reduction))
    return sorted(found, key=lambda one: (-one.reduction, one.row, one.column))


def _reduction(means: Matrix, way: Matrix, share: float) -> float:
    """Least mean now, less the mean of the least once the pair is known better.

    The recommended choice is the first. Where another has a smaller mean already, the difference is
    not what measuring brings, so it is left out.
    """
    moved = means + share * way
    levels = LEVEL_WEIGHTS @ moved.min(axis=1)
    gain = float(means.min() - levels)
    return gain if gain > 1e-9 * max(1.0, abs(float(means.min()))) else 0.0


def _way(
    resampled: Resampled,
    score: Score,
    tables: Matrix,
    column: int,
    choices: Sequence[Columns],
    having: Sequence[int],
) -> Matrix:
    """How far the expected value of each choice moves with each pair of a site: rows x levels x
    choices, 0 on average over the levels.
    """
    rows, levels = tables.shape[0], np.minimum(tables[:, column], resampled.drawn.max())
    way = np.zeros((rows, len(PROBABILITIES), len(choices)))
    for index in having:
        if score.aim is Aim.P_CENTER:
            place = resampled.choices.index(choices[index])
            for row in range(rows):
                way[row, :, index] = _binned(resampled, (row, column), place)
        else:
            way[:, :, index] = _paid(resampled.drawn, score, column, choices[index], levels)
    return way - (LEVEL_WEIGHTS @ way)[:, None, :]


def _paid(drawn: Matrix, score: Score, column: int, columns: Columns, levels: Matrix) -> Matrix:
    """Expected part of each row in the value of a choice, by level of its pair: rows x levels."""
    weights = score.weights[:, None]
    shares = score.fixed.get(columns)
    if shares is not None:
        fixed: Matrix = weights * shares[:, column, None] * levels
        return fixed
    others = [other for other in columns if other != column]
    beside = drawn[:, :, others].min(axis=2) if others else np.full(drawn.shape[:2], np.inf)
    paid = np.minimum(levels[None], beside[:, :, None])
    if score.backup and score.backup_limits is not None:
        near = (drawn[:, :, others] <= score.backup_limits[:, None]).sum(axis=2)
        own = levels <= score.backup_limits[:, None]
        paid[near[:, :, None] + own[None] <= score.backup] = np.inf
    if score.aim is Aim.COVERING and score.limits is not None:
        over: Matrix = weights * np.mean(paid > score.limits[None, :, None], axis=0)
        return over
    mean: Matrix = weights * np.mean(paid, axis=0)
    return mean


def _binned(resampled: Resampled, pair: tuple[int, int], choice: int) -> Matrix:
    """Mean value of a choice in the draws whose pair is about as large, per tabulated level."""
    order = np.argsort(resampled.drawn[:, pair[0], pair[1]], kind="stable")
    bins = np.array_split(resampled.values[order, choice], BINS)
    centers = (np.arange(BINS) + 0.5) / BINS
    means = np.array([float(part.mean()) for part in bins])
    interpolated: Matrix = np.interp(np.array(PROBABILITIES), centers, means)
    return interpolated
