"""What choices of sites cost when every pair has been drawn anew: many draws at once."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.vocabulary import Aim

Matrix = npt.NDArray[np.float64]
Columns = tuple[int, ...]

CEILING = 2.0
"""A pair that cannot serve costs so many times the largest cost that is known."""


@dataclass(frozen=True, slots=True)
class Score:
    """How costs of rows become one number, the smaller the better.

    `fixed` holds shares of rows (rows x columns) by choice, where something else than the nearest
    site decides who is served from where: capacities, or steering.
    """

    aim: Aim
    weights: Matrix
    limits: Matrix | None = None
    """Covering: what a row may cost."""
    backup: int = 0
    """Covering: so many chosen sites more must be within the limit of a backup."""
    backup_limits: Matrix | None = None
    fixed: dict[Columns, Matrix] = field(default_factory=dict[Columns, Matrix])

    def of(self, drawn: Matrix, columns: Columns) -> Matrix:
        """Value of one choice in every draw; `drawn` is draws x rows x columns, finite."""
        return self.of_rows(self.row_costs(drawn, columns))

    def row_costs(self, drawn: Matrix, columns: Columns) -> Matrix:
        """What each row pays in every draw."""
        shares = self.fixed.get(columns)
        if shares is None:
            mine = drawn[:, :, list(columns)]
            nearest: Matrix = mine.min(axis=2)
            if self.backup and self.backup_limits is not None:
                near = (mine <= self.backup_limits[:, None]).sum(axis=2)
                nearest[near <= self.backup] = np.inf
            return nearest
        paid: Matrix = np.einsum("brc,rc->br", drawn, shares)
        return paid

    def of_rows(self, rows: Matrix) -> Matrix:
        """Value from the costs of rows (draws x rows)."""
        value: Matrix
        if self.aim is Aim.P_CENTER:
            value = rows[:, self.weights > 0].max(axis=1)
        elif self.aim is Aim.COVERING and self.limits is not None:
            value = (rows > self.limits) @ self.weights
        else:
            value = rows @ self.weights
        return value


def finite(drawn: Matrix) -> Matrix:
    """The draws with what is unbounded put to the ceiling."""
    known = drawn[np.isfinite(drawn)]
    ceiling = CEILING * float(known.max()) if known.size else 1.0
    return np.where(np.isfinite(drawn), drawn, ceiling)


def every_choice(sites: int, k: int, most: int) -> list[Columns] | None:
    """All choices of k sites; None where there are more than `most`."""
    if math.comb(sites, k) > most:
        return None
    return list(itertools.combinations(range(sites), k))


def neighbours(columns: Columns, sites: int) -> list[Columns]:
    """The choices that differ in one site."""
    others = [column for column in range(sites) if column not in columns]
    return [
        tuple(sorted({*columns} - {leaving} | {coming})) for leaving in columns for coming in others
    ]


def values_of(score: Score, drawn: Matrix, choices: Sequence[Columns]) -> Matrix:
    """Draws x choices."""
    return np.stack([score.of(drawn, columns) for columns in choices], axis=1)
