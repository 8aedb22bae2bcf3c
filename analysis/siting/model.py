"""Exact choice of k sites as a mixed-integer program, solved by HiGHS through scipy.

Lexicographic: as little weight as possible unserved; then the cost and the price (covering: the
price and the cost); then the names, so that equal choices always come out in the same order.
p-median after Hakimi (1964) in the formulation of ReVelle and Swain (1970); maximal covering after
Church and ReVelle (1974).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy import optimize, sparse

Matrix = npt.NDArray[np.float64]

TIE = 1e-6
"""Objectives closer than this, relative to their size, are equal."""

INFEASIBLE = 2
"""Status of scipy.optimize.milp."""

NAMES_AT_ONCE = 20
"""Names decide ties by powers of two, which are exact for this many at a time."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Regions (rows) x sites (columns). Sites in the order of their names.

    `cost` is finite or ``inf`` where a site cannot serve a region. `limit` turns the p-median into
    maximal covering: a region counts where a chosen site costs at most that much.
    """

    cost: Matrix
    weights: Matrix
    prices: Matrix
    limit: float | None = None

    @property
    def usable(self) -> npt.NDArray[np.bool_]:
        """Which site may serve which region."""
        finite = np.isfinite(self.cost)
        return finite if self.limit is None else finite & (self.cost <= self.limit)


@dataclass(frozen=True, slots=True)
class Choice:
    """Chosen columns in order, what they cost, and which rows they leave unserved."""

    columns: tuple[int, ...]
    objective: float
    """Sum of weight x cost over the served rows."""
    unserved_weight: float
    price: float


def serving(problem: Problem, columns: Sequence[int]) -> list[int | None]:
    """Cheapest usable site of `columns` per row, the first of equals; None where there is none."""
    served: list[int | None] = []
    for row in range(problem.cost.shape[0]):
        usable = [column for column in columns if problem.usable[row, column]]
        served.append(min(usable, key=lambda column: problem.cost[row, column], default=None))
    return served


def assess(problem: Problem, columns: Sequence[int]) -> Choice:
    """What a given choice costs, computed directly."""
    objective = unserved = 0.0
    for row, column in enumerate(serving(problem, columns)):
        if column is None:
            unserved += float(problem.weights[row])
        else:
            objective += float(problem.weights[row] * problem.cost[row, column])
    chosen = tuple(sorted(columns))
    return Choice(chosen, objective, unserved, float(problem.prices[list(chosen)].sum()))


def solve_program(
    problem: Problem, k: int, *, forbidden: Sequence[Sequence[int]] = ()
) -> Choice | None:
    """The best choice of exactly `k` sites that is none of `forbidden`; None if there is none."""
    return _Program(problem, k, forbidden).best()


def scaled(objective: Matrix) -> Matrix:
    """The same objective with coefficients within -1..1, which solvers like."""
    largest = float(np.max(np.abs(objective), initial=0.0))
    return objective / largest if largest > 0 else objective


class _Program:
    """Variables: y (sites), then x (usable pairs), then u (unserved rows)."""

    def __init__(self, problem: Problem, k: int, forbidden: Sequence[Sequence[int]]) -> None:
        self.problem = problem
        self.rows, self.sites = problem.cost.shape
        self.pair_rows, self.pair_columns = np.nonzero(problem.usable)
        self.pairs = len(self.pair_rows)
        self.variables = self.sites + self.pairs + self.rows
        self.constraints = [self._exactly(k), self._served_once(), self._only_by_chosen()]
        self.constraints += [self._not_all_of(columns) for columns in forbidden]

    def best(self) -> Choice | None:
        """Solve one objective after the other, each within the optimum of those before."""
        prices = scaled(self._over_sites(self.problem.prices))
        objectives = [self._unserved(), self._cost(), prices]
        if self.problem.limit is not None:
            objectives[1:] = reversed(objectives[1:])
        solution = self._minimise(objectives[0])
        if solution is None:
            return None
        self._hold(objectives[0], solution)
        for objective in objectives[1:]:
            if np.any(objective):
                solution = self._improved(objective, solution)
                self._hold(objective, solution)
        for first in range(0, self.sites, NAMES_AT_ONCE):
            solution = self._improved(self._names(first), solution)
            self._fix(first, solution)
        columns = np.flatnonzero(solution[: self.sites] > 0.5)
        return assess(self.problem, [int(column) for column in columns])

    def _improved(self, objective: Matrix, solution: Matrix) -> Matrix:
        """The optimum of a later objective; the solution so far where rounding leaves none."""
        found = self._minimise(objective)
        return solution if found is None else found

    def _hold(self, objective: Matrix, solution: Matrix) -> None:
        reached = float(objective @ solution)
        slack = TIE * max(1.0, abs(reached))
        row = sparse.csr_array(objective[None, :])
        self.constraints.append(optimize.LinearConstraint(row, ub=reached + slack))

    def _minimise(self, objective: Matrix) -> Matrix | None:
        """Values of the variables; None where the constraints allow none.

        HiGHS stumbles over a few degenerate programs in its presolve step and solves them without.
        Raises ArithmeticError when it cannot solve at all.
        """
        integrality = np.zeros(self.variables, dtype=np.int64)
        integrality[: self.sites] = 1
        for presolve in (True, False):
            result = optimize.milp(
                objective,
                integrality=integrality,
                bounds=optimize.Bounds(0, 1),
                constraints=self.constraints,
                options={"mip_rel_gap": 0.0, "presolve": presolve},
            )
            if result.x is not None:
                return np.asarray(result.x, dtype=np.float64)
            if result.status == INFEASIBLE:
                return None
        raise ArithmeticError(f"the choice of sites cannot be solved: {result.message}")

    def _unserved(self) -> Matrix:
        objective = np.zeros(self.variables)
        objective[self.sites + self.pairs :] = self.problem.weights
        return objective

    def _cost(self) -> Matrix:
        objective = np.zeros(self.variables)
        cost = self.problem.cost[self.pair_rows, self.pair_columns]
        weights = self.problem.weights[self.pair_rows]
        objective[self.sites : self.sites + self.pairs] = cost * weights
        return scaled(objective)

    def _over_sites(self, values: Matrix) -> Matrix:
        objective = np.zeros(self.variables)
        objective[: self.sites] = values
        return objective

    def _names(self, first: int) -> Matrix:
        values = np.zeros(self.sites)
        chunk = min(NAMES_AT_ONCE, self.sites - first)
        values[first : first + chunk] = -(2.0 ** np.arange(chunk - 1, -1, -1))
        return self._over_sites(values)

    def _fix(self, first: int, solution: Matrix) -> None:
        chosen = np.round(solution[: self.sites])
        last = min(first + NAMES_AT_ONCE, self.sites)
        matrix = sparse.eye_array(self.sites, self.variables, format="csr")[first:last]
        wanted = chosen[first:last]
        self.constraints.append(optimize.LinearConstraint(matrix, wanted, wanted))

    def _exactly(self, k: int) -> optimize.LinearConstraint:
        row = self._over_sites(np.ones(self.sites))
        return optimize.LinearConstraint(sparse.csr_array(row[None, :]), k, k)

    def _served_once(self) -> optimize.LinearConstraint:
        """Every row by one site, or counted as unserved."""
        rows = np.concatenate([self.pair_rows, np.arange(self.rows)])
        columns = np.arange(self.sites, self.variables)
        matrix = sparse.csr_array(
            (np.ones(len(rows)), (rows, columns)), shape=(self.rows, self.variables)
        )
        return optimize.LinearConstraint(matrix, 1, 1)

    def _only_by_chosen(self) -> optimize.LinearConstraint:
        """x <= y: a site serves only where it is chosen."""
        pairs = np.arange(self.pairs)
        ones = np.ones(self.pairs)
        matrix = sparse.csr_array(
            (
                np.concatenate([ones, -ones]),
                (
                    np.concatenate([pairs, pairs]),
                    np.concatenate([self.sites + pairs, self.pair_columns]),
                ),
            ),
            shape=(self.pairs, self.variables),
        )
        return optimize.LinearConstraint(matrix, ub=0)

    def _not_all_of(self, columns: Sequence[int]) -> optimize.LinearConstraint:
        row = np.zeros(self.variables)
        row[list(columns)] = 1
        return optimize.LinearConstraint(sparse.csr_array(row[None, :]), ub=len(columns) - 1)
