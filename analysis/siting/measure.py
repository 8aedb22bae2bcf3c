"""What adding each site to a choice would give: the one question that interchange asks.

Every aim is one of two sums over costs: of the first site of each region, and of its second, to
which it goes when the first is lost. Covering is the p-median of costs 0 (within the limit) and 1.
What no solution may do costs so much that it is not done: a region left unserved, a missing
backup, a cap overrun.
"""

from collections.abc import Sequence

import numpy as np

from pathbudget.analysis.siting.judge import SLACK, Indices, needed
from pathbudget.analysis.siting.vocabulary import Aim, Matrix, Program, Survive


class Measure:
    """Values of choices, smaller is better. Matrices are sites x regions, for speed."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.center = program.aim is Aim.P_CENTER
        self.weights = program.weights
        usable = program.usable.T
        if program.aim is Aim.COVERING:
            self.dear = 1.0
            self.cost = np.where(usable, 0.0, 1.0)
        else:
            self.dear = self._dear(usable)
            self.cost = np.where(usable, program.cost.T, self.dear)
        self.rank = self._rank()
        self.breach = 1e3 * self.dear * max(1.0, float(self.weights.sum()))
        self.buffer = np.empty_like(self.cost)
        soft = program.aim is Aim.COVERING and not program.serve_all
        self.backing = program.backing.T if program.backup else None
        self.counts_backups = self.backing is not None and soft
        self.wanted = needed(program) & (self.backing is not None) & (not soft)
        self.simple = (
            program.survive is None
            and program.preference is None
            and self.backing is None
            and not self.center
        )

    def of(self, chosen: Sequence[int]) -> float:
        """Value of a choice."""
        if self.simple:
            least = self.cost[list(chosen)].min(axis=0)
            opening = self.program.opening
            extra = 0.0 if opening is None else float(opening[list(chosen)].sum())
            rest = list(chosen[:-1])
            over = self._breaches(rest)[chosen[-1]] if self.program.caps else 0.0
            return float(least @ self.weights) + extra + float(over)
        return float(self.with_each(chosen[:-1])[chosen[-1]])

    def with_each(self, rest: Sequence[int]) -> Matrix:
        """Value of `rest` with each site added."""
        first, second = self._nearest(rest)
        values = self._costs(rest, first, second)
        return values + self._breaches(rest)

    def _dear(self, usable: np.ndarray) -> float:
        """A cost for unserved regions that no saving elsewhere makes up for."""
        finite = self.program.cost.T[usable]
        span = float(finite.max() - finite.min()) if finite.size else 0.0
        positive = self.weights[self.weights > 0]
        ratio = float(self.weights.sum() / positive.min()) if positive.size else 1.0
        opening = 0.0 if self.program.opening is None else float(self.program.opening.sum())
        least = float(positive.min()) if positive.size else 1.0
        top = float(finite.max()) if finite.size else 0.0
        return top + 1.0 + span * min(ratio, 1e6) + opening / least

    def _rank(self) -> Matrix:
        """By which a region picks its site; no two sites of a region are equal under routing."""
        preference = self.program.preference
        if preference is None:
            return self.cost
        order = np.argsort(preference, axis=1, kind="stable")
        rank = np.argsort(order, axis=1).astype(np.float64)
        return np.where(np.isfinite(preference), rank, np.inf).T

    def _nearest(self, rest: Sequence[int]) -> tuple[Indices, Indices]:
        """Index in `rest` of the first and second site of each region, -1 for none."""
        regions = self.cost.shape[1]
        if not rest:
            return np.full(regions, -1), np.full(regions, -1)
        if self.program.survive is None and self.program.preference is None:
            return np.zeros(regions, dtype=np.int64), np.full(regions, -1)
        rank = self.rank[list(rest)]
        first = np.argmin(rank, axis=0)
        if len(rest) == 1:
            return first, np.full(regions, -1)
        rank = rank.copy()
        rank[first, np.arange(regions)] = np.inf
        return first, np.argmin(rank, axis=0)

    def _costs(self, rest: Sequence[int], first: Indices, second: Indices) -> Matrix:
        if self.program.survive is None:
            return self._total(self._first(rest, first)) + self._opening(rest)
        return self._after_losses(rest, first, second) + self._opening(rest)

    def _first(self, rest: Sequence[int], first: Indices) -> Matrix:
        """Cost of each region's site, for each site added: in the buffer."""
        if not rest:
            np.copyto(self.buffer, self.cost)
        elif self.program.preference is None:
            least = self.cost[list(rest)].min(axis=0)
            np.minimum(self.cost, least, out=self.buffer)
        else:
            rank, cost = self._at(self.rank, rest, first), self._at(self.cost, rest, first)
            np.copyto(self.buffer, np.where(self.rank < rank, self.cost, cost))
        if self.counts_backups and self.backing is not None:
            counts = self.backing[list(rest)].sum(axis=0) if rest else np.zeros(self.cost.shape[1])
            self.buffer[counts + self.backing <= self.program.backup] = self.dear
        return self.buffer

    def _after_losses(self, rest: Sequence[int], first: Indices, second: Indices) -> Matrix:
        rank1, cost1 = self._at(self.rank, rest, first), self._at(self.cost, rest, first)
        rank2, cost2 = self._at(self.rank, rest, second), self._at(self.cost, rest, second)
        ahead, behind = self.rank < rank1, self.rank < rank2
        one = np.where(ahead, self.cost, cost1)
        two = np.where(ahead, cost1, np.where(behind, self.cost, cost2))
        if self.counts_backups and self.backing is not None:
            counts = self.backing[list(rest)].sum(axis=0) if rest else np.zeros(self.cost.shape[1])
            short = counts + self.backing <= self.program.backup
            one[short] = two[short] = self.dear
        if self.center:
            worst: Matrix = np.maximum(two, one).max(axis=1)
            return worst
        base, k = one @ self.weights, len(rest) + 1
        more = two - one
        if self.program.survive is Survive.MEAN:
            mean: Matrix = base + (more @ self.weights) / k
            return mean
        worst = np.where(ahead, more, 0.0) @ self.weights
        for place in range(len(rest)):
            mine = first == place
            theirs = np.where(ahead[:, mine], 0.0, more[:, mine]) @ self.weights[mine]
            worst = np.maximum(worst, theirs)
        total: Matrix = base + worst
        return total

    def _at(self, matrix: Matrix, rest: Sequence[int], place: Indices) -> Matrix:
        """Entries of each region's site; what is dear or last where there is none."""
        none = np.inf if matrix is self.rank and matrix is not self.cost else self.dear
        if not rest:
            return np.full(matrix.shape[1], none)
        values = matrix[np.array(rest)[place], np.arange(matrix.shape[1])]
        return np.where(place >= 0, values, none)

    def _total(self, cost: Matrix) -> Matrix:
        return cost.max(axis=1) if self.center else cost @ self.weights

    def _opening(self, rest: Sequence[int]) -> Matrix | float:
        opening = self.program.opening
        return 0.0 if opening is None else opening + float(opening[list(rest)].sum())

    def _breaches(self, rest: Sequence[int]) -> Matrix:
        """Cost of overrun caps and missing backups."""
        values = np.zeros(self.program.sites)
        for _, sums, cap in self.program.caps:
            over = sums + float(sums[list(rest)].sum()) - cap
            room = SLACK * max(1.0, abs(cap)) / 2
            values += np.where(over > room, 1.0 + over / max(cap, 1e-9), 0.0)
        if self.backing is not None and self.wanted.any():
            near = self.backing[:, self.wanted]
            counts = near[list(rest)].sum(axis=0) if rest else np.zeros(near.shape[1])
            missing = np.maximum(0, self.program.backup + 1 - counts)
            values += np.where(missing > 0, np.maximum(0, missing - near), 0).sum(axis=1)
        return values * self.breach
