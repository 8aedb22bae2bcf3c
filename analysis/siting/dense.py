"""Any siting program as one mixed-integer program with a variable for every usable pair.

Simple and complete: every aim with every constraint. It is what small programs are solved with and
what the faster ways are held against; some ten thousand pairs are its limit. Where the program is
about losses there is one assignment, a `Scenario`, for the loss of each site.
"""

from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.siting.choice_rows import add_backup, add_choice
from pathbudget.analysis.siting.judge import Indices, Worth, needed
from pathbudget.analysis.siting.milp_model import TIE, Model, Solved
from pathbudget.analysis.siting.radii import Found, search_radii
from pathbudget.analysis.siting.run import Run
from pathbudget.analysis.siting.vocabulary import Aim, Mask, Matrix, Program, Survive

HELD = 1e-8
"""Room for an objective that was solved before; more would let later ones eat into it."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """One assignment of regions to chosen sites, one of which may be lost."""

    lost: int | None
    row: Indices
    column: Indices
    leads: Mask
    """Whether a pair serves; under given routing some lead where nobody is served."""
    x: Indices
    u: Indices
    missed: Indices | None
    """Covering with backups: regions that are not served, or have too few backups."""


class Dense:
    """Variables: sites, then pairs and unserved regions of each scenario, then what binds them."""

    def __init__(self, program: Program, radius: float = np.inf) -> None:
        self.program = program
        self.usable = program.usable & (program.cost <= radius)
        self.reach = self.usable if program.preference is None else np.isfinite(program.preference)
        self.model = Model()
        self.y = add_choice(self.model, program)
        add_backup(self.model, self.y, program)
        self.counted = self._counted()
        losses = [] if program.survive is None else list(range(program.sites))
        self.scenarios = [self._scenario(lost) for lost in losses]
        if not losses or program.preference is not None:
            self.scenarios.append(self._scenario(None))

    @property
    def after_losses(self) -> list[Scenario]:
        """The scenarios that are optimised over: the mean is that of the losses alone."""
        mean = self.program.survive is Survive.MEAN
        return [one for one in self.scenarios if not mean or one.lost is not None]

    def unserved(self, scenario: Scenario) -> Matrix:
        """Coefficients of the unserved weight."""
        objective = np.zeros(self.model.size)
        if scenario.missed is not None:
            objective[scenario.missed] = self.program.weights
            return objective
        objective[scenario.u] = self.program.weights
        nowhere = ~scenario.leads
        objective[scenario.x[nowhere]] = self.program.weights[scenario.row[nowhere]]
        return objective

    def cost(self, scenario: Scenario) -> Matrix:
        """Coefficients of weight x cost."""
        objective = np.zeros(self.model.size)
        row, column = scenario.row[scenario.leads], scenario.column[scenario.leads]
        objective[scenario.x[scenario.leads]] = (
            self.program.weights[row] * self.program.cost[row, column]
        )
        return objective

    def opening(self) -> Matrix:
        """Coefficients of the opening costs."""
        objective = np.zeros(self.model.size)
        if self.program.opening is not None:
            objective[self.y] = self.program.opening
        return objective

    def columns(self, x: Matrix) -> list[int]:
        """Chosen sites of a solution."""
        return [int(column) for column in np.flatnonzero(x[self.y] > 0.5)]

    def shares(self, x: Matrix) -> Matrix | None:
        """Shares of a solution with capacities; without them the sites say it all."""
        if self.program.capacities is None:
            return None
        shares = np.zeros(self.program.cost.shape)
        first = self.scenarios[0]
        leads = first.leads
        shares[first.row[leads], first.column[leads]] = np.clip(x[first.x[leads]], 0.0, 1.0)
        if first.missed is not None:
            shares[x[first.missed] > 1 - 1e-6] = 0.0
        return np.where(shares > 1e-7, shares, 0.0)

    def hold(self, objective: Matrix, reached: float) -> None:
        """Let an objective be no worse than what was reached."""
        some = np.flatnonzero(objective)
        most = reached + HELD * max(1.0, abs(reached))
        self.model.row(some, objective[some], -np.inf, most)

    def over_losses(self, parts: list[Matrix], scale: float) -> Matrix:
        """Objective: the worst of one part per loss, or their mean over the chosen sites."""
        mean = self.program.survive is Survive.MEAN
        bound = self.model.variables(len(parts) if mean else 1, whole=False, upper=np.inf)
        for number, (scenario, part) in enumerate(zip(self.after_losses, parts, strict=True)):
            some = np.flatnonzero(part)
            variables, values = (
                [some, bound[[number if mean else 0]]],
                [part[some], np.array([-1.0])],
            )
            if mean:  # counts only when that site is chosen
                variables.append(self.y[[scenario.lost or 0]])
                values.append(np.array([scale]))
            high = scale if mean else 0.0
            self.model.row(np.concatenate(variables), np.concatenate(values), -np.inf, high)
        objective = np.zeros(self.model.size)
        objective[: self.y.size] = self.opening()[self.y]
        objective[bound] = 1.0 / (self.program.k or 1) if mean else 1.0
        return objective

    def _scenario(self, lost: int | None) -> Scenario:
        row, column = np.nonzero(self.reach)
        if lost is not None:
            row, column = row[column != lost], column[column != lost]
        model, program = self.model, self.program
        x = model.variables(len(row), whole=program.whole and program.capacities is not None)
        u = model.variables(program.rows, whole=False)
        every, ones = np.arange(program.rows), np.ones(program.rows)
        model.rows([(row, x, 1.0), (every, u, 1.0)], ones, ones)
        pair, none = np.arange(len(row)), np.zeros(len(row))
        model.rows([(pair, x, 1.0), (pair, self.y[column], -1.0)], none - np.inf, none)
        scenario = Scenario(lost, row, column, self.usable[row, column], x, u, self._missed())
        if program.capacities is not None:
            self._capacity(scenario, program.capacities)
        if program.preference is not None:
            self._routing(scenario, program.preference)
        self._served(scenario)
        return scenario

    def _capacity(self, scenario: Scenario, capacities: Matrix) -> None:
        """No site gets more than its capacity; what leads nowhere loads nothing."""
        leads, sites = self.program.usable[scenario.row, scenario.column], self.program.sites
        row, column = scenario.row[leads], scenario.column[leads]
        most = np.minimum(capacities, float(self.program.demand.sum()))
        entries = [
            (column, scenario.x[leads], self.program.demand[row]),
            (np.arange(sites), self.y, -most),
        ]
        self.model.rows(entries, np.full(sites, -np.inf), np.zeros(sites))

    def _routing(self, scenario: Scenario, preference: Matrix) -> None:
        """Where a site is chosen, a region goes there or to one that routing prefers.

        `near` adds up a region's pairs in the order of its preference: 1 from its site on.
        """
        rank = preference[scenario.row, scenario.column]
        order = np.lexsort((scenario.column, rank, scenario.row))
        near = self.model.variables(len(order), whole=False)
        row, every, none = scenario.row[order], np.arange(len(order)), np.zeros(len(order))
        later = np.flatnonzero(row[1:] == row[:-1]) + 1 if len(row) else every
        entries = [
            (every, near, 1.0),
            (later, near[later - 1], -1.0),
            (every, scenario.x[order], -1.0),
        ]
        self.model.rows(entries, none, none)
        sites = self.y[scenario.column[order]]
        self.model.rows([(every, near, 1.0), (every, sites, -1.0)], none, none + np.inf)

    def _served(self, scenario: Scenario) -> None:
        """Regions that must be served are, and covering counts those with enough backups."""
        program = self.program
        must = program.serve_all or (program.survive and program.aim is not Aim.COVERING)
        pairs = scenario.x[scenario.leads]
        rows = scenario.row[scenario.leads]
        wanted = needed(program) if must else np.zeros(program.rows, dtype=bool)
        some, place = np.flatnonzero(wanted), np.cumsum(wanted) - 1
        mine = wanted[rows]
        ones = np.ones(len(some))
        self.model.rows([(place[rows[mine]], pairs[mine], 1.0)], ones, ones)
        if scenario.missed is not None and self.counted is not None:
            every, ones = np.arange(program.rows), np.ones(program.rows)
            for entries in ([(rows, pairs, 1.0)], [(every, self.counted, 1.0)]):
                self.model.rows([*entries, (every, scenario.missed, 1.0)], ones, ones + np.inf)

    def _missed(self) -> Indices | None:
        if self.counted is None:
            return None
        return self.model.variables(self.program.rows, whole=False)

    def _counted(self) -> Indices | None:
        """Covering with backups: whether a region has enough chosen sites near it."""
        program = self.program
        if program.aim is not Aim.COVERING or not program.backup:
            return None
        counted = self.model.variables(program.rows, whole=True)
        row, column = np.nonzero(program.backing)
        every, none = np.arange(program.rows), np.zeros(program.rows)
        entries = [(row, self.y[column], 1.0), (every, counted, -(program.backup + 1.0))]
        self.model.rows(entries, none, none + np.inf)
        return counted


def dense(run: Run) -> None:
    """Solve the run's program by its full model."""
    if run.program.aim is Aim.P_CENTER:
        search_radii(run, lambda radius, spare: _within(run, radius, spare))
    elif run.program.survive is not None:
        _over_losses(run)
    else:
        _plain(run)


def _plain(run: Run) -> None:
    """The least unserved weight; then the least cost."""
    model = Dense(run.program)
    unserved = model.unserved(model.scenarios[0])
    first = model.model.minimise(unserved, run.left())
    _offer(run, model, first)
    if first.x is None or run.covering:
        run.prove(float(run.program.weights.sum()) - first.bound)
        return
    least = float(unserved @ first.x)
    if first.bound >= least - TIE * max(1.0, least):
        run.least_unserved = least
    model.hold(unserved, least)
    second = model.model.minimise(model.cost(model.scenarios[0]) + model.opening(), run.left())
    _offer(run, model, second)
    run.prove(second.bound)


def _over_losses(run: Run) -> None:
    program = run.program
    model = Dense(program)
    if run.covering:
        parts = [model.unserved(scenario) for scenario in model.after_losses]
        scale = float(program.weights.sum())
    else:
        parts = [model.cost(scenario) for scenario in model.after_losses]
        usable = np.where(program.usable, program.cost, 0.0)
        scale = float(program.weights @ usable.max(axis=1, initial=0.0))
    objective = model.over_losses(parts, scale)
    solved = model.model.minimise(objective, run.left())
    total = float(program.weights.sum())
    if solved.x is not None:
        value = float(objective @ solved.x)
        worth = Worth(total - value if run.covering else value, value if run.covering else 0.0)
        run.offer(model.columns(solved.x), None, worth if program.capacities is not None else None)
    run.prove(total - solved.bound if run.covering else solved.bound)


def _within(run: Run, radius: float, spare: float | None) -> Found:
    """A choice that serves within a radius, leaving no more than the spare weight."""
    model = Dense(run.program, radius)
    unserved = None if run.program.survive else model.unserved(model.scenarios[0])
    if unserved is not None:
        if spare is not None:
            model.hold(unserved, spare)
        solved = model.model.minimise(unserved, run.left())
    else:
        solved = model.model.minimise(np.zeros(model.model.size), run.left())
    if solved.x is None:
        return Found(solved.infeasible)
    unmet = 0.0 if unserved is None else float(unserved @ solved.x)
    sure = unserved is None or solved.bound >= unmet - TIE * max(1.0, unmet)
    shares = model.shares(solved.x) if run.program.survive is None else None
    widest = float(run.program.cost[run.program.usable].max(initial=-np.inf))
    split = run.program.capacities is not None and shares is None
    worth = Worth(min(radius, widest), 0.0) if split else None
    run.offer(model.columns(solved.x), shares, worth)
    return Found(False, unmet, sure)


def _offer(run: Run, model: Dense, solved: Solved) -> None:
    if solved.x is not None:
        run.offer(model.columns(solved.x), model.shares(solved.x))
