"""What a choice of sites is worth where each holds only so much: who goes where, by first fit.

Regions that lose most by waiting go first, each to its cheapest site with room; where somebody is
left over, those with the largest demand go first instead. It is quick and keeps what is asked, but
is not always the best assignment of these sites. Under given routing there is nothing to choose.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pathbudget.analysis.siting.judge import Indices, Worth, assign, needed
from pathbudget.analysis.siting.vocabulary import Aim, Mask, Matrix, Program, Survive

ROOM = 1e-9
"""A demand fits that is larger than the room by this much at most, relative to the room."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Sites with an assignment."""

    worth: Worth
    short: float
    """Demand too much for its site, or weight unserved that must be served; 0 where all is kept."""
    shares: Matrix | None
    """regions x sites; None where the program is about losses, which have one assignment each."""
    load: Matrix
    """Demand on each site, with nothing lost."""


def fitted(program: Program, columns: Sequence[int]) -> Fitted:
    """The first fit of a program with capacities."""
    chosen = sorted(columns)
    counted = _counted(program, chosen)
    whole = _Assignment(program, chosen, counted)
    if program.survive is None:
        short = whole.over + (whole.missing if program.serve_all else 0.0)
        return Fitted(whole.worth(chosen), short, whole.shares, whole.load)
    parts = [
        _Assignment(program, [one for one in chosen if one != lost], counted) for lost in chosen
    ]
    must = program.serve_all or program.aim is not Aim.COVERING
    short = sum(part.over + (part.missing if must else 0.0) for part in (whole, *parts))
    values = [part.worth(chosen).value for part in parts]
    if program.survive is Survive.MEAN:
        value = float(np.mean(values))
    else:
        values.append(whole.worth(chosen).value)
        value = min(values) if program.aim is Aim.COVERING else max(values)
    unserved = max(part.unserved for part in (whole, *parts))
    return Fitted(Worth(value, unserved), short, None, whole.load)


def _counted(program: Program, chosen: list[int]) -> Mask:
    """Regions with enough backups: others count as unserved where covering counts backups."""
    if program.aim is not Aim.COVERING or not program.backup:
        return np.ones(program.rows, dtype=np.bool_)
    enough: Mask = program.backing[:, chosen].sum(axis=1) > program.backup
    return enough


class _Assignment:
    """Of all regions to the sites that are left of a choice."""

    def __init__(self, program: Program, left: list[int], counted: Mask) -> None:
        self.program = program
        self.capacities = np.zeros(program.sites)
        if program.capacities is not None:
            self.capacities[left] = program.capacities[left]
        routed = program.preference is not None
        shares = self._routed(left) if routed else self._best(left, counted)
        self.load = program.demand @ shares
        over = np.maximum(self.load - self.capacities, 0.0)
        self.over = float(over[over > 10 * ROOM * np.maximum(self.capacities, 1.0)].sum())
        self.shares = np.where(counted[:, None], shares, 0.0)
        served = np.minimum(self.shares.sum(axis=1), 1.0)
        self.unserved = float(program.weights @ (1.0 - served))
        lacking = needed(program) & (served < 1.0 - ROOM)
        self.missing = float((np.maximum(program.weights, ROOM) * (1.0 - served))[lacking].sum())

    def worth(self, chosen: list[int]) -> Worth:
        program, served = self.program, self.shares > 0
        if program.aim is Aim.COVERING:
            return Worth(float(program.weights @ self.shares.sum(axis=1)), self.unserved)
        if program.aim is Aim.P_CENTER:
            widest = float(np.max(program.cost[served], initial=-np.inf))
            return Worth(widest, self.unserved)
        cost = np.where(served, program.cost, 0.0)
        opening = 0.0 if program.opening is None else float(program.opening[chosen].sum())
        total = float(program.weights @ (self.shares * cost).sum(axis=1))
        return Worth(total + opening, self.unserved)

    def _routed(self, left: list[int]) -> Matrix:
        site = assign(self.program, left)
        shares = np.zeros(self.program.cost.shape)
        served = np.flatnonzero(site >= 0)
        shares[served, site[served]] = 1.0
        return shares

    def _best(self, left: list[int], counted: Mask) -> Matrix:
        program = self.program
        usable = program.usable[:, left] & counted[:, None]
        cost = np.where(usable, program.cost[:, left], np.inf)
        if program.aim is Aim.COVERING:
            cost = np.where(usable, 0.0, np.inf)
        orders = self._orders(cost)
        found = self._first_fit(cost, left, orders[0])
        some = np.isfinite(cost).any(axis=1)
        if (found.sum(axis=1)[some] >= 1.0 - ROOM).all():
            return found
        others = [self._first_fit(cost, left, order) for order in orders[1:]]
        return max((found, *others), key=lambda one: float(program.weights @ one.sum(axis=1)))

    def _orders(self, cost: Matrix) -> list[Indices]:
        """Regions by what they lose by waiting, by demand, and by weight for their demand."""
        weights, demand = self.program.weights, self.program.demand
        ranked = np.sort(cost, axis=1)[:, :2]
        with np.errstate(invalid="ignore"):
            regret = ranked[:, 1] - ranked[:, 0] if cost.shape[1] > 1 else np.zeros(len(cost))
            regret = np.nan_to_num(weights * regret, nan=-1.0, posinf=np.inf)
        dear = weights / np.maximum(demand, ROOM)
        if self.program.aim is Aim.COVERING:
            regret = dear
        return [np.argsort(-one, kind="stable") for one in (regret, demand, dear)]

    def _first_fit(self, cost: Matrix, left: list[int], order: Indices) -> Matrix:
        program, demands = self.program, self.program.demand.tolist()
        room = self.capacities[left].tolist()
        slack = (ROOM * np.maximum(self.capacities[left], 1.0)).tolist()
        nearest = np.argsort(cost, axis=1, kind="stable").tolist()
        reach = np.isfinite(cost).sum(axis=1).tolist()
        shares = np.zeros(program.cost.shape)
        for row in order.tolist():
            rest = demand = demands[row]
            for place in nearest[row][: reach[row]]:
                if rest <= room[place] + slack[place]:
                    room[place] -= rest
                    shares[row, left[place]] += rest / demand if demand > 0 else 1.0
                    break
                if not program.whole and room[place] > slack[place]:
                    shares[row, left[place]] = room[place] / demand
                    rest -= room[place]
                    room[place] = 0.0
        return shares


def without_capacities(program: Program) -> Program:
    """The same program where every site holds everybody: easier, and no worse."""
    return replace(program, capacities=None, whole=False)
