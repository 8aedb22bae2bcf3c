"""A lower bound of the p-median by Lagrangian relaxation, and what it says of single sites.

Each region's "one site" is relaxed with a multiplier (Cornuejols, Fisher and Nemhauser 1977; the
subgradient steps of Held, Wolfe and Crowder 1974), and so is what binds the sites together (caps,
backups). What is left is picked site by site. A region may need a second site too, to which it goes
when the first is lost, at its own share of the cost (`levels`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.siting.judge import Indices
from pathbudget.analysis.siting.vocabulary import Mask, Matrix

PATIENCE = 60
"""Steps without a better bound before steps are halved."""
SHORTEST = 1e-4
"""Steps shorter than this, relative to the first, are not worth taking."""
FADING = 0.05
"""Weight of the last step in how often a site is picked, which nears the LP's share of it."""
MEMORY = 0.9
"""Share of the direction before that is kept: much of it, or the steps zigzag far below the bound
that they could reach (what volume and bundle methods mend; Camerini, Fratta and Maffioli 1975)."""


@dataclass(slots=True)
class Sites:
    """What the relaxation chooses among: costs of the regions that must be served.

    Matrices are sites x regions; `side` x y <= `most` binds the sites together.
    """

    cost: Matrix
    """Weight x cost, ``inf`` where a site cannot serve."""
    opening: Matrix
    taken: Mask
    """Sites that are chosen in any case."""
    k: int | None
    side: Matrix
    most: Matrix
    levels: tuple[float, ...] = (1.0,)


@dataclass(slots=True)
class Bound:
    """The best bound so far, with the multipliers that gave it and the sites' reduced costs."""

    value: float
    rows: Matrix
    side: Matrix
    reduced: Matrix


Found = Callable[[Sequence[int]], float]
"""Told of the sites that a step picked; says the value of the best choice known."""


class Relaxation:
    """Multipliers, and one step after the other."""

    def __init__(self, sites: Sites, rows: Matrix, side: Matrix | None = None) -> None:
        self.sites = sites
        self.rows = rows.copy()
        self.side = np.zeros(len(sites.most)) if side is None else side.copy()
        self._gather()
        self.often = np.zeros(len(sites.cost))
        self.direction: tuple[Matrix, Matrix] | None = None
        self.best = Bound(-np.inf, self.rows.copy(), self.side.copy(), np.zeros(len(sites.cost)))

    def climb(
        self,
        value: float,
        found: Found,
        enough: Callable[[], bool],
        steps: int,
        length: float = 1.0,
    ) -> float:
        """Better the bound until it meets the value, gains nothing or it is enough.

        `value` is that of the best choice known; returns the best one known at the end.
        """
        idle, shortest = 0, length * SHORTEST
        for step in range(steps):
            if enough() or self.best.value > value:
                break
            reduced = self._reduced()
            picked = self._picked(reduced)
            bound = self._bound(reduced, picked)
            self.often *= 1 - FADING
            self.often[picked] += FADING
            if bound > self.best.value + 1e-6 * max(1.0, abs(bound)) * 1e-2:
                self.best = Bound(bound, self.rows.copy(), self.side.copy(), reduced)
                idle = 0
            else:
                idle += 1
            if step % 10 == 0:
                value = found([int(column) for column in picked])
            if idle >= PATIENCE:
                length, idle = length / 2, 0
                self.rows, self.side = self.best.rows.copy(), self.best.side.copy()
                self.direction = None
                if length < shortest:
                    break
                continue
            self._step(length * max(value - bound, 1e-9 * abs(value)), picked)
        return value

    def decided(self, value: float) -> tuple[Mask, Mask]:
        """Sites that every choice of at most `value` has, and those that none has."""
        sites, reduced = self.sites, self.best.reduced
        room = value - self.best.value
        free = np.where(sites.taken, np.nan, reduced)
        if sites.k is None:
            return sites.taken | (free < -room), free > room
        order = np.sort(free[~sites.taken])
        wanted = sites.k - int(sites.taken.sum())
        last = order[wanted - 1] if wanted > 0 else -np.inf
        following = order[wanted] if wanted < len(order) else np.inf
        inside = sites.taken | (following - free > room)
        return inside, ~inside & ((free - last > room) | np.bool_(wanted == 0))

    def farthest(self, value: float) -> Matrix:
        """Weight x cost of the (last) site of each region, at most, in a choice of that value."""
        shares = np.array(self.sites.levels)[:, None]
        most: Matrix = ((self.best.rows + max(0.0, value - self.best.value)) / shares).max(axis=0)
        return most

    def _highest(self) -> Matrix:
        """Cost at which each region's multipliers stop making a pair worth while."""
        shares = np.array(self.sites.levels)[:, None]
        highest: Matrix = (self.rows / shares).max(axis=0)
        return highest

    def _gather(self) -> None:
        """The pairs that the multipliers can make worth while, site by site: often few."""
        highest = self._highest()
        self.reach = highest + 0.5 * np.abs(highest) + 1e-9
        site, self.row = np.nonzero(self.sites.cost < self.reach)
        self.pair_cost = self.sites.cost[site, self.row]
        self.begins = np.searchsorted(site, np.arange(len(self.sites.cost) + 1))

    def _reduced(self) -> Matrix:
        """What each site would add, at the present multipliers."""
        if (self._highest() > self.reach).any():
            self._gather()
        shares = self.sites.levels
        gain = shares[0] * self.pair_cost - self.rows[0][self.row]
        for share, row in zip(shares[1:], self.rows[1:], strict=True):
            np.minimum(gain, share * self.pair_cost - row[self.row], out=gain)
        np.minimum(gain, 0.0, out=gain)
        total = np.concatenate([[0.0], np.cumsum(gain)])
        return np.diff(total[self.begins]) + self.sites.opening + self.side @ self.sites.side

    def _picked(self, reduced: Matrix) -> Indices:
        sites = self.sites
        order = np.argsort(np.where(sites.taken, -np.inf, reduced), kind="stable")
        if sites.k is not None:
            return order[: sites.k]
        count = max(1, int((sites.taken | (reduced < 0)).sum()))
        return order[:count]

    def _bound(self, reduced: Matrix, picked: Indices) -> float:
        return float(self.rows.sum() + reduced[picked].sum() - self.side @ self.sites.most)

    def _step(self, length: float, picked: Indices) -> None:
        sites = self.sites
        spans = [np.arange(int(self.begins[j]), int(self.begins[j + 1])) for j in picked]
        pairs = np.concatenate(spans)
        row, cost = self.row[pairs], self.pair_cost[pairs]
        gain = np.array(
            [share * cost - own[row] for share, own in zip(sites.levels, self.rows, strict=True)]
        )
        level = np.argmin(gain, axis=0)
        worth = gain[level, np.arange(len(row))] < 0
        rows = np.ones_like(self.rows)
        np.subtract.at(rows, (level[worth], row[worth]), 1.0)
        side = sites.side[:, picked].sum(axis=1) - sites.most
        side = np.where((self.side <= 0) & (side < 0), 0.0, side)
        if self.direction is not None:
            rows = rows + MEMORY * self.direction[0]
            side = side + MEMORY * self.direction[1]
        self.direction = rows, side
        norm = float((rows**2).sum() + (side**2).sum())
        if norm <= 0:
            return
        self.rows = self.rows + length / norm * rows
        self.side = np.maximum(0.0, self.side + length / norm * side)
