"""A first answer to every program, within a second of the clock where there is one.

Without capacities it is interchange. A p-center is first looked for as a p-median, which reaches
everybody much sooner. With capacities interchange chooses as if there were none; the choice is
judged with them, and sites are swapped while that helps, first until everybody has room.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from pathbudget.analysis.siting.interchange import Interchange, quick
from pathbudget.analysis.siting.judge import allowed
from pathbudget.analysis.siting.room import Fitted, fitted, without_capacities
from pathbudget.analysis.siting.run import Run
from pathbudget.analysis.siting.vocabulary import Aim, Matrix

FIRST_SECONDS = 0.5
"""Nothing is swapped any more after this, whether or not the answer could still be improved."""
MOST_FITS = 300
"""Choices judged with their capacities, at most: one takes milliseconds."""
ADDED = 8
"""Sites that are tried in the place of one, at most."""


def first(run: Run) -> None:
    """Offer what is found at once; nothing where no choice that keeps the constraints is found."""

    def until(seconds: float) -> Callable[[], bool]:
        return lambda: run.over() or run.spent() > seconds

    limited = run.program.capacities is not None
    program = without_capacities(run.program)
    enough = until(FIRST_SECONDS / 2 if limited else FIRST_SECONDS)
    chosen = None
    if program.aim is Aim.P_CENTER:
        chosen = quick(replace(program, aim=Aim.P_MEDIAN), enough)
        _offer(run, chosen)
    better = quick(program, enough)
    _offer(run, better)
    if limited:
        Swaps(run, until(FIRST_SECONDS)).improve(better or chosen)


def offer_with_room(run: Run, columns: tuple[int, ...]) -> None:
    """Offer a choice to a program with capacities, if everybody who must be served has room."""
    found = fitted(run.program, columns)
    if found.short <= 0:
        run.offer(columns, found.shares, found.worth)


def _offer(run: Run, columns: tuple[int, ...] | None) -> None:
    if columns is None:
        return
    if run.program.capacities is None:
        run.offer(columns)
    else:
        offer_with_room(run, columns)


class Swaps:
    """Interchange whose choices are judged with their capacities."""

    def __init__(self, run: Run, enough: Callable[[], bool]) -> None:
        self.run = run
        self.program = run.program
        self.enough = enough
        self.search = Interchange(without_capacities(run.program))
        self.left = MOST_FITS

    def improve(self, columns: tuple[int, ...] | None) -> list[int]:
        """Swap while it helps, and offer what keeps the constraints; the last choice."""
        chosen = list(columns or self.search.greedy(self.enough) or ())
        if not chosen:
            return chosen
        now = fitted(self.program, chosen)
        while not self.enough():
            found = self._better(chosen, now)
            if found is None:
                break
            chosen, now = found
            if now.short <= 0:
                self.run.offer(chosen, now.shares, now.worth)
        return chosen

    def _better(self, chosen: list[int], now: Fitted) -> tuple[list[int], Fitted] | None:
        rank = self._rank(chosen, now)
        for following in self._neighbours(chosen, now):
            if self.left <= 0 or self.enough():
                return None
            self.left -= 1
            found = fitted(self.program, following)
            if self._rank(following, found) < rank:
                return following, found
        return None

    def _neighbours(self, chosen: list[int], now: Fitted) -> Iterator[list[int]]:
        """One site more where the number is free and room is short; then one for another.

        The one with the most room to spare is given up first.
        """
        if self.program.k is None and now.short > 0:
            for added in self._added(chosen, chosen, now):
                yield [*chosen, added]
        spare = self._capacities()[chosen] - now.load[chosen]
        for place in np.argsort(-spare if now.short > 0 else spare, kind="stable").tolist():
            if chosen[place] in self.search.kept:
                continue
            rest = [*chosen[:place], *chosen[place + 1 :]]
            for added in self._added(rest, chosen, now):
                yield [*rest, added]

    def _added(self, rest: list[int], chosen: list[int], now: Fitted) -> list[int]:
        """Sites to try beside some: what they would save as if all had room, or how much they hold.

        Where room is short, half of them are of either kind.
        """
        closed = ~self.search.open
        closed[chosen] = True
        values = self.search.measure.with_each(rest)
        by_worth = _least(np.where(closed, np.inf, values))
        if now.short <= 0:
            return by_worth[:ADDED]
        by_room = _least(np.where(closed, np.inf, -np.minimum(self._capacities(), 1e300)))
        return list(dict.fromkeys([*by_worth[: ADDED // 2], *by_room[: ADDED // 2]]))

    def _capacities(self) -> Matrix:
        capacities = self.program.capacities
        return np.full(self.program.sites, np.inf) if capacities is None else capacities

    def _rank(self, chosen: list[int], found: Fitted) -> tuple[bool, float, float, float]:
        """Smaller is better: constraints kept, room, weight unserved, value."""
        covering = self.program.aim is Aim.COVERING
        worth, value = found.worth, -found.worth.value if covering else found.worth.value
        unserved = 0.0 if covering or self.program.survive else round(worth.unserved_weight, 9)
        return not allowed(self.program, chosen), round(found.short, 9), unserved, value


def _least(values: Matrix) -> list[int]:
    order = np.argsort(values, kind="stable")
    return [int(one) for one in order[: ADDED + 1] if np.isfinite(values[one])]
