"""A good choice at once: greedy addition, then interchange (Teitz and Bart 1968).

For the plain p-median all swaps are valued together (Whitaker 1983, Resende and Werneck 2007): what
an added site saves, and what a dropped one costs given the added one. Other programs are valued one
dropped site at a time.
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from scipy import sparse

from pathbudget.analysis.siting.judge import allowed
from pathbudget.analysis.siting.measure import Measure
from pathbudget.analysis.siting.vocabulary import Matrix, Program

Enough = Callable[[], bool]
AT_ONCE = 16
"""Sites that lazy greedy values together."""
TOGETHER = 24
"""Swaps that are tried after one valuation of all."""
BETTER = 1e-9
"""Improvements below this, relative to the value, are rounding."""


class Interchange:
    """One search; its choice is a list of sites in the order they came."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.measure = Measure(program)
        barred = set(program.must_not)
        self.open = np.array([j not in barred for j in range(program.sites)], dtype=bool)
        self.kept = frozenset(program.must_have)
        self.barred = {tuple(sorted(set(columns))) for columns in program.forbidden}

    def greedy(self, enough: Enough) -> list[int] | None:
        """Must-have sites, then the best site by site; None where there are too few sites.

        Once it is enough, the sites that are still wanted are the best by the last valuation.
        """
        chosen = sorted(self.kept)
        wanted = self.program.k
        if wanted is not None and self.measure.simple and not self.program.caps:
            return self._lazy(chosen, wanted, enough)
        if int(self.open.sum()) < (wanted or 1) or len(chosen) > (wanted or len(chosen)):
            return None
        value = self.measure.of(chosen) if chosen else np.inf
        while wanted is None or len(chosen) < wanted:
            values = self._open_values(self.measure.with_each(chosen), chosen)
            if wanted is not None and enough():
                order = np.argsort(values, kind="stable")
                return chosen + [int(one) for one in order[: wanted - len(chosen)]]
            best = int(np.argmin(values))
            if wanted is None and (values[best] >= value or not np.isfinite(values[best])):
                break
            chosen.append(best)
            value = float(values[best])
        return chosen or None

    def _lazy(self, chosen: list[int], wanted: int, enough: Enough) -> list[int] | None:
        """Greedy where sites only lose worth as others are added: few are valued anew each time."""
        if int(self.open.sum()) < wanted or len(chosen) > wanted:
            return None
        cost, weights, opening = self.measure.cost, self.measure.weights, self.program.opening
        extra = np.zeros(len(cost)) if opening is None else opening
        nearest = cost[chosen].min(axis=0) if chosen else np.full(cost.shape[1], self.measure.dear)
        saved = np.maximum(nearest - cost, 0.0) @ weights - extra
        saved[~self.open] = saved[chosen] = -np.inf
        while len(chosen) < wanted:
            if enough():
                order = np.argsort(-saved, kind="stable")
                return chosen + [int(one) for one in order[: wanted - len(chosen)]]
            best = int(np.argmax(saved))
            fresh = np.zeros(len(cost), dtype=bool)
            while not fresh[best]:
                some = np.argsort(-np.where(fresh, -np.inf, saved), kind="stable")[:AT_ONCE]
                some = some[np.isfinite(saved[some])]
                worth = np.maximum(nearest - cost[some], 0.0) @ weights - extra[some]
                saved[some], fresh[some] = worth, True
                best = int(np.argmax(saved))
            chosen.append(best)
            nearest = np.minimum(nearest, cost[best])
            saved[best] = -np.inf
        return chosen

    def improve(self, chosen: list[int], enough: Enough) -> list[int]:
        """Swap, and add or drop where the number is free, until nothing is better or it is enough.

        With ruled-out choices the best choice next to the last one is taken.
        """
        value = self._value(chosen)
        while not enough():
            found = self._step(chosen, value, enough)
            if found is None:
                return chosen
            chosen, value = found
        return chosen

    def _value(self, chosen: Sequence[int]) -> float:
        return np.inf if self._is_barred(chosen) else self.measure.of(list(chosen))

    def _step(
        self, chosen: list[int], value: float, enough: Enough
    ) -> tuple[list[int], float] | None:
        swaps = self._fast() if self.measure.simple and not self.program.caps else None
        if swaps is not None:
            found = self._best_of(self._all_swaps(chosen), chosen, value)
        else:
            found = self._first_better(chosen, value, enough)
        return found if found or self.program.k is not None else self._resized(chosen, value)

    def _fast(self) -> bool | None:
        return None if self.program.forbidden and self.program.sites > 5000 else True

    def _all_swaps(self, chosen: list[int]) -> Matrix:
        """Value of every swap: dropped (in the order of `chosen`) x added."""
        cost, weights = self.measure.cost, self.measure.weights
        mine = cost[chosen]
        regions = np.arange(cost.shape[1])
        first = np.argmin(mine, axis=0)
        d1 = mine[first, regions]
        if len(chosen) > 1:
            mine = mine.copy()
            mine[first, regions] = np.inf
            d2 = mine.min(axis=0)
        else:
            d2 = np.full(cost.shape[1], np.inf)
        nearest = np.minimum(cost, d1)
        saved = nearest @ weights
        dropped = np.minimum(cost, d2)
        dropped -= nearest
        dropped *= weights
        member = sparse.csr_array(
            (np.ones(len(regions)), (first, regions)), shape=(len(chosen), len(regions))
        )
        values: Matrix = saved[None, :] + (member @ dropped.T)
        opening = self.program.opening
        if opening is not None:
            total = float(opening[chosen].sum())
            values += total + opening[None, :] - opening[chosen][:, None]
        return values

    def _best_of(
        self, values: Matrix, chosen: list[int], value: float
    ) -> tuple[list[int], float] | None:
        values[:, ~self.open] = np.inf
        values[:, chosen] = np.inf
        values[[place for place, site in enumerate(chosen) if site in self.kept]] = np.inf
        before = value, list(chosen)
        for at in self._swaps(values, value):
            place, added = divmod(at, values.shape[1])
            dropped = before[1][place]
            if dropped not in chosen or added in chosen:
                continue
            following = [site for site in chosen if site != dropped] + [added]
            now = self._value(following)
            if value - now > BETTER * max(1.0, abs(now)):
                chosen, value = following, now
        return (chosen, value) if value < before[0] else None

    def _swaps(self, values: Matrix, value: float) -> list[int]:
        """The best swaps by their own, the best first: those after it may still be good."""
        flat = values.reshape(-1)
        count = min(flat.size, TOGETHER + len(self.barred))
        some = np.argpartition(flat, count - 1)[:count]
        some = some[flat[some] < value - BETTER * max(1.0, abs(value))]
        return [int(at) for at in some[np.lexsort((some, flat[some]))]]

    def _promising(self, values: Matrix, value: float) -> Iterator[int]:
        """Positions of better values, the best first; the first of equals first."""
        flat = values.reshape(-1)
        for _ in range(len(self.barred) + 1):
            at = int(np.argmin(flat))
            if not np.isfinite(flat[at]) or value - flat[at] <= BETTER * max(1.0, abs(flat[at])):
                return
            yield at
            flat[at] = np.inf

    def _first_better(
        self, chosen: list[int], value: float, enough: Enough
    ) -> tuple[list[int], float] | None:
        """The best site in the place of the first dropped one that has a better one."""
        for place, dropped in enumerate(chosen):
            if dropped in self.kept:
                continue
            if enough():
                return None
            rest = chosen[:place] + chosen[place + 1 :]
            values = self._open_values(self.measure.with_each(rest), chosen)
            found = self._best_added(values, rest, value)
            if found is not None:
                return found
        return None

    def _best_added(
        self, values: Matrix, rest: list[int], value: float
    ) -> tuple[list[int], float] | None:
        for added in self._promising(values[None, :], value):
            following = [*rest, added]
            if not self._is_barred(following):
                return following, float(self.measure.of(following))
        return None

    def _resized(self, chosen: list[int], value: float) -> tuple[list[int], float] | None:
        """One site more, or one fewer."""
        values = self._open_values(self.measure.with_each(chosen), chosen)
        found = self._best_added(values, chosen, value)
        if found is not None or len(chosen) == 1:
            return found
        for place, dropped in enumerate(chosen):
            rest = chosen[:place] + chosen[place + 1 :]
            less = np.inf if dropped in self.kept else self._value(rest)
            if less < value - BETTER * max(1.0, abs(less)):
                return rest, less
        return None

    def _open_values(self, values: Matrix, chosen: Sequence[int]) -> Matrix:
        values = np.where(self.open, values, np.inf)
        values[list(chosen)] = np.inf
        return values

    def _is_barred(self, chosen: Sequence[int]) -> bool:
        return bool(self.barred) and tuple(sorted(chosen)) in self.barred


def quick(program: Program, enough: Enough) -> tuple[int, ...] | None:
    """A choice that keeps all constraints but the capacities, by interchange; None if not found."""
    search = Interchange(program)
    chosen = search.greedy(enough)
    if chosen is None:
        return None
    chosen = search.improve(chosen, enough)
    return tuple(sorted(chosen)) if allowed(program, chosen) else None
