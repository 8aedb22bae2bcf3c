"""One search under way: the best choice so far, the bound proved so far, and the seconds left."""

from collections.abc import Callable, Sequence

import numpy as np

from pathbudget.analysis.siting.judge import Worth, allowed, assign, judge
from pathbudget.analysis.siting.vocabulary import Aim, Answer, Conflict, Matrix, Program

EQUAL = 1e-6
"""Values closer than this are equal, relative to their size (covering: to all the weight)."""


class Run:
    """What the ways to an answer write to; offers that are no better are ignored."""

    def __init__(
        self,
        program: Program,
        seconds: float | None,
        on_better: Callable[[Answer], None] | None,
        clock: Callable[[], float],
    ) -> None:
        self.program = program
        self.on_better = on_better
        self.clock = clock
        self.started = clock()
        self.ends = None if seconds is None else self.started + seconds
        self.columns: tuple[int, ...] = ()
        self.worth = Worth(np.nan, np.inf)
        self.shares: Matrix | None = None
        self.bound: float | None = None
        self.least_unserved: float | None = None
        self.method = "interchange"
        self.conflicts: tuple[Conflict, ...] = ()

    @property
    def covering(self) -> bool:
        """Whether larger values are better."""
        return self.program.aim is Aim.COVERING

    def spent(self) -> float:
        """Seconds since the start."""
        return self.clock() - self.started

    def left(self) -> float | None:
        """Seconds that are left; None for as many as it takes."""
        return None if self.ends is None else max(0.0, self.ends - self.clock())

    def over(self) -> bool:
        """Whether the seconds are over."""
        return self.ends is not None and self.clock() >= self.ends

    def offer(
        self,
        columns: Sequence[int],
        shares: Matrix | None = None,
        worth: Worth | None = None,
    ) -> bool:
        """Take a choice if it keeps the constraints and is better than the one so far.

        With capacities, `shares` is the assignment; with losses too, `worth` says what it is worth.
        """
        if not allowed(self.program, columns):
            return False
        if worth is None:
            worth = judge(self.program, columns) if shares is None else self._worth(columns, shares)
        if not self._better(worth):
            return False
        self.columns, self.worth = tuple(sorted(int(column) for column in columns)), worth
        self.shares = shares
        if self.on_better is not None:
            self.on_better(self.answer())
        return True

    def prove(self, bound: float) -> None:
        """Note that no choice is better than `bound`; the tightest counts."""
        if np.isnan(bound):
            return
        if self.bound is None:
            self.bound = bound
        else:
            self.bound = min(self.bound, bound) if self.covering else max(self.bound, bound)

    def proved(self) -> bool:
        """Whether the choice is known to be the best."""
        return bool(self.columns) and self._leaves_least() and self._reached()

    def answer(self) -> Answer:
        """The state as an answer."""
        return Answer(
            columns=self.columns,
            assignment=self._assignment(),
            value=self.worth.value if self.columns else None,
            unserved_weight=self.worth.unserved_weight,
            bound=self._bound(),
            proved=self.proved() or bool(self.conflicts),
            method=self.method,
            seconds=self.spent(),
            conflicts=self.conflicts,
            shares=self.shares,
        )

    def _bound(self) -> float | None:
        """What was proved, never past the value itself (solvers round)."""
        if self.bound is None or not self.columns or not self._leaves_least():
            return self.bound if self.covering else None
        value = self.worth.value
        return max(self.bound, value) if self.covering else min(self.bound, value)

    def _leaves_least(self) -> bool:
        """Bounds on the cost hold among the choices that leave the least weight unserved."""
        if self.covering or self.program.serve_all or self.program.survive is not None:
            return True
        least = self.least_unserved
        return least is not None and self.worth.unserved_weight <= least + EQUAL * max(1.0, least)

    def _reached(self) -> bool:
        if self.bound is None or self.bound == self.worth.value:
            return self.bound is not None
        short = self.bound - self.worth.value if self.covering else self.worth.value - self.bound
        size = float(self.program.weights.sum()) if self.covering else abs(self.worth.value)
        return short <= 2 * EQUAL * max(1.0, size)  # solvers round by as much as one of them

    def _better(self, worth: Worth) -> bool:
        if not self.columns:
            return True
        tie = EQUAL * max(1.0, self.worth.unserved_weight)
        more = worth.unserved_weight - self.worth.unserved_weight
        if not self.covering and self.program.survive is None and abs(more) > tie:
            return more < 0
        tie = 1e-9 * max(1.0, abs(self.worth.value))
        if self.covering:
            return worth.value > self.worth.value + tie
        return worth.value < self.worth.value - tie

    def _worth(self, columns: Sequence[int], shares: Matrix) -> Worth:
        program = self.program
        served = shares.sum(axis=1)
        unserved = float(program.weights @ (1 - served))
        if self.covering:
            return Worth(float(program.weights @ served), max(0.0, unserved))
        cost = np.where(shares > 0, program.cost, 0.0)
        if program.aim is Aim.P_CENTER:
            some = shares > EQUAL
            return Worth(float(np.max(program.cost[some], initial=-np.inf)), max(0.0, unserved))
        opening = 0.0 if program.opening is None else float(program.opening[list(columns)].sum())
        return Worth(
            float(program.weights @ (shares * cost).sum(axis=1)) + opening, max(0.0, unserved)
        )

    def _assignment(self) -> tuple[int | None, ...]:
        if not self.columns:
            return ()
        if self.shares is not None:
            most, site = self.shares.max(axis=1), self.shares.argmax(axis=1)
            return tuple(int(j) if m > EQUAL else None for m, j in zip(most, site, strict=True))
        return tuple(int(j) if j >= 0 else None for j in assign(self.program, self.columns))
