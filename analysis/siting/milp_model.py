"""A mixed-integer program under construction, and its solution by HiGHS through scipy."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import optimize, sparse

from pathbudget.analysis.siting.judge import Indices
from pathbudget.analysis.siting.vocabulary import Matrix
from pathbudget.probes.silence import nothing_printed

TIE = 1e-6
"""Objectives closer than this, relative to their size, are equal."""
INFEASIBLE = 2
"""Status of scipy.optimize.milp."""


@dataclass(frozen=True, slots=True)
class Solved:
    """What a solver found: a solution or none, and the bound that it proved."""

    x: Matrix | None
    bound: float
    infeasible: bool


class Model:
    """A mixed-integer program under construction; variables lie between 0 and an upper bound."""

    def __init__(self) -> None:
        self.upper: list[Matrix] = []
        self.whole: list[Matrix] = []
        self.size = 0
        self.parts: list[tuple[Indices, Indices, Matrix]] = []
        self.low: list[Matrix] = []
        self.high: list[Matrix] = []
        self.height = 0

    def variables(self, count: int, *, whole: bool, upper: float = 1.0) -> Indices:
        """Indices of new variables."""
        self.upper.append(np.full(count, upper))
        self.whole.append(np.full(count, 1.0 if whole else 0.0))
        self.size += count
        return np.arange(self.size - count, self.size, dtype=np.int64)

    def rows(
        self, entries: Sequence[tuple[Indices, Indices, Matrix | float]], low: Matrix, high: Matrix
    ) -> None:
        """New constraints; entries as (row, variable, coefficient), rows counted from 0."""
        for row, variable, value in entries:
            values = np.broadcast_to(np.asarray(value, dtype=np.float64), row.shape)
            self.parts.append((row + self.height, variable, np.array(values)))
        self.low.append(low)
        self.high.append(high)
        self.height += len(low)

    def row(self, variables: Indices, values: Matrix | float, low: float, high: float) -> None:
        """One new constraint."""
        zeros = np.zeros(len(variables), dtype=np.int64)
        self.rows([(zeros, variables, values)], np.array([low]), np.array([high]))

    def minimise(self, objective: Matrix, seconds: float | None = None) -> Solved:
        """Solve; HiGHS stumbles over a few programs in its presolve step, but not without it."""
        for presolve in (True, False):
            options: Any = {"mip_rel_gap": 0.0, "presolve": presolve}
            if seconds is not None:
                options["time_limit"] = max(0.05, seconds)
            with nothing_printed():
                result = optimize.milp(
                    objective,
                    integrality=np.concatenate(self.whole),
                    bounds=optimize.Bounds(0, np.concatenate(self.upper)),
                    constraints=[self._constraint()],
                    options=options,
                )
            bound = getattr(result, "mip_dual_bound", None)
            lowest = -np.inf if bound is None else float(bound)
            if result.x is not None:
                return Solved(np.asarray(result.x, dtype=np.float64), lowest, infeasible=False)
            if result.status == INFEASIBLE:
                return Solved(None, np.inf, infeasible=True)
            if result.status == 1:
                return Solved(None, lowest, infeasible=False)
        raise ArithmeticError(f"the choice of sites cannot be solved: {result.message}")

    def _constraint(self) -> optimize.LinearConstraint:
        rows = np.concatenate([part[0] for part in self.parts])
        columns = np.concatenate([part[1] for part in self.parts])
        values = np.concatenate([part[2] for part in self.parts])
        matrix = sparse.csr_array((values, (rows, columns)), shape=(self.height, self.size))
        return optimize.LinearConstraint(
            matrix, np.concatenate(self.low), np.concatenate(self.high)
        )
