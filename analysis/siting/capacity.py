"""p-median with capacities: a choice at once, a Lagrangian bound, and the full model while time is.

The bound relaxes "each region once" as without capacities; what is left of a site is a knapsack of
the regions that pay, filled by worth per demand (for whole regions too, where that is weaker than
the integer knapsack but as valid). Choices come from the sites that the bound picks: regions go to
their cheapest site with room, the ones that lose most by waiting first; then they shift and swap.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import optimize, sparse

from pathbudget.analysis.siting.dense import dense
from pathbudget.analysis.siting.first import Swaps
from pathbudget.analysis.siting.interchange import Enough, Interchange
from pathbudget.analysis.siting.judge import Indices, Worth, needed
from pathbudget.analysis.siting.lagrange import MEMORY
from pathbudget.analysis.siting.room import fitted, without_capacities
from pathbudget.analysis.siting.run import EQUAL, Run
from pathbudget.analysis.siting.vocabulary import Matrix
from pathbudget.probes.silence import nothing_printed

STEPS = 2000
PATIENCE = 40
MOST_PAIRS = 60_000
"""The full model of more pairs finds nothing in minutes."""
FAR = 0.02
"""A better assignment than first fit gains less than this, as a rule."""
SWAPPED = 12
"""Choices that interchange tries to improve in the end, at most."""
ROUNDS = 60
"""Rounds of moving sites within their clusters at most."""


class Capacitated:
    """The relaxation of one run; every region that some site can serve is served."""

    def __init__(self, run: Run, capacities: Matrix) -> None:
        program = self.program = run.program
        self.run = run
        self.capacities = capacities
        self.rows = np.flatnonzero(needed(program))
        weighted = program.weights[:, None] * program.cost
        self.cost = np.where(program.usable, weighted, np.inf)[self.rows]
        self.demand = program.demand[self.rows]
        self.opening = np.zeros(program.sites) if program.opening is None else program.opening
        self.tried: set[tuple[int, ...]] = set()
        self.rough: list[tuple[float, tuple[int, ...]]] = []
        """Choices with what first fit makes of them."""

    def climb(self) -> None:
        """Raise the bound; try the sites it picks on the way."""
        run = self.run
        finite = np.where(np.isfinite(self.cost), self.cost, np.nan)
        rows = np.nanmin(finite, axis=1) + np.nanmean(finite, axis=1) / 4
        best, kept, length, idle = -np.inf, rows, 1.0, 0
        direction = np.zeros_like(rows)
        for step in range(STEPS):
            reduced, share = self._sites(rows)
            picked = self._picked(reduced)
            bound = float(rows.sum() + reduced[picked].sum())
            if bound > best:
                best, kept, idle = bound, rows, 0
                run.prove(bound)
            else:
                idle += 1
            if step % 5 == 0:
                self.attempt(picked)
            if run.over() or run.proved() or length < 1e-3:
                return
            if idle >= PATIENCE:
                length, idle, rows = length / 2, 0, kept
                direction = np.zeros_like(rows)
                continue
            direction = 1 - share[picked].sum(axis=0) + MEMORY * direction
            value = run.worth.value if run.columns else 1.1 * abs(bound) + 1
            norm = float(direction @ direction)
            if norm <= 0:
                return
            rows = rows + length * max(value - bound, 1e-6 * abs(value)) / norm * direction

    def _sites(self, rows: Matrix) -> tuple[Matrix, Matrix]:
        """Worth of each site, and the share of each region that it takes: sites x regions."""
        gain = np.minimum(self.cost - rows[:, None], 0.0).T
        demand = np.maximum(self.demand, 1e-12)
        order = np.argsort(gain / demand, axis=1, kind="stable")
        wanted = np.where(np.take_along_axis(gain, order, axis=1) < 0, demand[order], 0.0)
        room = np.maximum(self.capacities[:, None] - (np.cumsum(wanted, axis=1) - wanted), 0.0)
        taken = np.minimum(wanted, room) / demand[order]
        share = np.zeros_like(gain)
        np.put_along_axis(share, order, taken, axis=1)
        reduced = (gain * share).sum(axis=1) + self.opening
        return reduced, share

    def _picked(self, reduced: Matrix) -> Indices:
        program = self.program
        reduced = reduced.copy()
        reduced[list(program.must_not)] = np.inf
        reduced[list(program.must_have)] = -np.inf
        order = np.argsort(reduced, kind="stable")
        if program.k is not None:
            return order[: program.k]
        return order[: max(1, int((reduced < 0).sum()))]

    def attempt(self, picked: Sequence[int] | Indices) -> None:
        """Serve everyone from some sites, then move the sites to where their regions are."""
        columns = self._with_room([int(column) for column in picked])
        for _ in range(ROUNDS):
            if tuple(columns) in self.tried or self.run.over():
                return
            self.tried.add(tuple(columns))
            rough = fitted(self.program, columns)
            if rough.short <= 0:
                self.run.offer(columns, rough.shares, rough.worth)
                self.rough.append((rough.worth.value, tuple(columns)))
            if rough.shares is not None and self._is_far(rough.worth):
                shares: Matrix | None = rough.shares[self.rows][:, columns]
            else:
                shares = self.serve(columns)
            if shares is None:
                return
            self.run.offer(columns, self._whole_matrix(columns, shares))
            columns = self._moved(columns, shares)

    def swap(self) -> None:
        """Swap sites of the best choices so far, as long as there is time."""
        for _, columns in sorted(self.rough)[:SWAPPED]:
            better = Swaps(self.run, self.run.over).improve(columns)
            self.attempt(better)

    def _is_far(self, worth: Worth) -> bool:
        """Whether first fit is so much worse than the best choice that a better fit is idle."""
        best = self.run.worth
        served = worth.unserved_weight <= best.unserved_weight + EQUAL
        return bool(self.run.columns) and served and worth.value > best.value * (1 + FAR)

    def _with_room(self, columns: list[int]) -> list[int]:
        """The sites, the smallest changed for the largest until there is room for everybody."""
        program, columns = self.program, list(columns)
        while self.capacities[columns].sum() < self.demand.sum():
            small = [j for j in columns if j not in program.must_have]
            large = np.setdiff1d(np.arange(program.sites), [*columns, *program.must_not])
            if not small or not len(large):
                break
            out = min(small, key=lambda j: self.capacities[j])
            into = int(large[np.argmax(self.capacities[large])])
            if self.capacities[into] <= self.capacities[out]:
                break
            columns[columns.index(out)] = into
        return sorted(columns)

    def serve(self, columns: Sequence[int]) -> Matrix | None:
        """Shares (regions x `columns`) of an assignment that keeps the capacities, or None."""
        cost, room = self.cost[:, columns], self.capacities[columns]
        if self.demand.sum() > room.sum() * (1 + 1e-9):
            return None
        if self.program.whole:
            return whole_assignment(cost, self.demand, room, self.run.over)
        return split_assignment(cost, self.demand, room)

    def _moved(self, columns: Sequence[int], shares: Matrix) -> list[int]:
        """Each site to where its own regions would be served best, if it has the room."""
        moved = list(columns)
        for place in range(len(columns)):
            if moved[place] in self.program.must_have:
                continue
            mine = shares[:, place] > EQUAL
            load = float(self.demand @ shares[:, place])
            total = shares[mine, place] @ self.cost[mine] + self.opening
            total[self.capacities < load - EQUAL] = np.inf
            taken = [j for other, j in enumerate(moved) if other != place]
            total[[*taken, *self.program.must_not]] = np.inf
            if np.isfinite(total).any():
                moved[place] = int(np.argmin(total))
        return sorted(moved)

    def _whole_matrix(self, columns: Sequence[int], shares: Matrix) -> Matrix:
        full = np.zeros(self.program.cost.shape)
        full[np.ix_(self.rows, np.array(columns, dtype=np.int64))] = shares
        return full


def split_assignment(cost: Matrix, demand: Matrix, room: Matrix) -> Matrix | None:
    """The cheapest split assignment: a transport problem, solved as a linear program."""
    if not np.isfinite(cost).any(axis=1).all():
        return None
    row, column = np.nonzero(np.isfinite(cost))
    pair = np.arange(len(row))
    once = sparse.csr_array((np.ones(len(row)), (row, pair)), shape=(len(cost), len(row)))
    load = sparse.csr_array((demand[row], (column, pair)), shape=(len(room), len(row)))
    most = np.minimum(room, demand.sum())
    solve: Any = optimize.linprog  # its types know no sparse matrices
    ones = np.ones(len(cost))
    with nothing_printed():
        solved = solve(cost[row, column], A_ub=load, b_ub=most, A_eq=once, b_eq=ones, bounds=(0, 1))
    if solved.x is None or solved.status != 0:
        return None
    shares = np.zeros(cost.shape)
    shares[row, column] = np.where(solved.x > 1e-9, solved.x, 0.0)
    return shares


def whole_assignment(cost: Matrix, demand: Matrix, room: Matrix, enough: Enough) -> Matrix | None:
    """Whole regions to sites: by regret (Martello and Toth 1981), then shifts and swaps."""
    site = _by_regret(cost, demand, room)
    if site is None:
        return None
    site = _shifted_and_swapped(site, cost, demand, room, enough)
    shares = np.zeros(cost.shape)
    shares[np.arange(len(site)), site] = 1.0
    return shares


def _by_regret(cost: Matrix, demand: Matrix, room: Matrix) -> Indices | None:
    left, site = room.copy(), np.full(len(cost), -1)
    for _ in range(len(cost)):
        open_rows = np.flatnonzero(site < 0)
        fits = demand[open_rows, None] <= left + 1e-9
        here = np.where(fits, cost[open_rows], np.inf)
        best = here.min(axis=1)
        if not np.isfinite(best).all():
            return None
        if here.shape[1] > 1:
            second = np.partition(here, 1, axis=1)[:, 1]
        else:
            second = np.full(len(here), np.inf)
        regret = np.where(np.isfinite(second), second - best, 1e18 + demand[open_rows])
        at = int(np.argmax(regret))
        column = int(np.argmin(here[at]))
        site[open_rows[at]] = column
        left[column] -= demand[open_rows[at]]
    return site


def _shifted_and_swapped(
    site: Indices, cost: Matrix, demand: Matrix, room: Matrix, enough: Enough
) -> Indices:
    """Move one region, or exchange two, while that is cheaper and there is room."""
    every = np.arange(len(site))
    left = room - np.bincount(site, weights=demand, minlength=len(room))
    for _ in range(20 * len(site)):
        if enough():
            break
        own = cost[every, site]
        shift = np.where(demand[:, None] <= left + 1e-9, cost - own[:, None], np.inf)
        at = int(np.argmin(shift))
        row, column = divmod(at, cost.shape[1])
        if shift[row, column] < -1e-9:
            left[site[row]] += demand[row]
            left[column] -= demand[row]
            site[row] = column
            continue
        across = cost[:, site] - own[:, None]
        swap = across + across.T
        more = demand[None, :] - demand[:, None]
        fits = (more <= left[site][:, None] + 1e-9) & (-more <= left[site][None, :] + 1e-9)
        swap = np.where(fits & (site[:, None] != site[None, :]), swap, np.inf)
        one, two = divmod(int(np.argmin(swap)), len(site))
        if not swap[one, two] < -1e-9:
            break
        left[site[one]] += demand[one] - demand[two]
        left[site[two]] += demand[two] - demand[one]
        site[one], site[two] = site[two], site[one]
    return site


def capacitated(run: Run) -> None:
    """A choice at once, then the bound with better choices on the way, then the full model."""
    program = run.program
    if program.capacities is None:
        return
    way = Capacitated(run, program.capacities)
    chosen = run.columns or Interchange(without_capacities(program)).greedy(run.over)
    if chosen and len(way.rows):
        way.attempt(chosen)
    served = float(program.weights.sum() - program.weights[way.rows].sum())
    if len(way.rows) and run.columns and run.worth.unserved_weight <= served + EQUAL:
        run.least_unserved = served
        run.method = "shift and swap, Lagrangian bound"
        way.climb()
    if run.proved() or run.over():
        return
    if np.isfinite(way.cost).sum() > MOST_PAIRS:
        way.swap()
    else:
        run.method = "shift and swap, Lagrangian bound, full model"
        dense(run)
