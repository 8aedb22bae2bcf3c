"""p-median: interchange, Lagrangian bound, sites that it decides, and a program of what is left.

Also with opening costs, caps, backups, ruled-out choices, and the mean over losses. Regions that no
site can serve are left out; all others are served, which the caller has made sure of.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pathbudget.analysis.siting.branch import Branching
from pathbudget.analysis.siting.choice_rows import add_backup, add_choice
from pathbudget.analysis.siting.interchange import Interchange
from pathbudget.analysis.siting.judge import Indices, needed
from pathbudget.analysis.siting.lagrange import Relaxation, Sites
from pathbudget.analysis.siting.milp_model import Model, Solved
from pathbudget.analysis.siting.radius import add_radii
from pathbudget.analysis.siting.run import EQUAL, Run
from pathbudget.analysis.siting.vocabulary import Matrix, Program

STEPS = 6000
"""Steps of the relaxation at most."""
FEW_PAIRS = 20_000
"""So few are left to the program sooner."""
SMALL = 3_000
"""Variables that a general solver is quick with; more are branched on with our own bound."""
POLISHED = 12
"""Choices of the relaxation that interchange tries to improve, at most."""


@dataclass(frozen=True, slots=True)
class Narrowed:
    """What the bound leaves open: sites that may be chosen, and how far each region may go."""

    program: Program
    """The program of the regions to be served and of the sites left."""
    columns: Indices
    """Their numbers in the program as it was asked."""
    farthest: Matrix
    """Most weight x cost of each region's (last) site."""


class Median:
    """The relaxation of one run, and the program that it leaves."""

    def __init__(self, run: Run) -> None:
        self.run = run
        program = run.program
        barred = np.isin(np.arange(program.sites), list(program.must_not))
        self.columns = np.flatnonzero(~barred)
        self.rows = needed(program)
        self.levels = levels_of(program)
        weighted = (program.weights[:, None] * program.cost)[self.rows][:, self.columns]
        usable = program.usable[self.rows][:, self.columns]
        self.weighted = np.where(usable, weighted, np.inf)
        self.grain = grain_of(program, self.weighted)
        self.relaxation = Relaxation(self._sites(), self._start())
        self.search = Interchange(program)
        self.seen: set[tuple[int, ...]] = set()
        self.polished = 0

    def bound(self) -> None:
        """Raise the bound until it meets the value, stands still or time is over."""
        self.run.method = "interchange and Lagrangian bound"
        steps = STEPS if self.weighted.size > FEW_PAIRS else STEPS // 8
        self.relaxation.climb(self.run.worth.value, self._found, self._enough, steps)
        self.run.prove(self.lifted(self.relaxation.best.value))

    def lifted(self, bound: float) -> float:
        """The bound raised to the next value that there can be: sums of whole numbers are whole."""
        if not self.grain or not np.isfinite(bound):
            return bound
        return float(np.ceil((bound - EQUAL) / self.grain) * self.grain)

    def cutoff(self) -> float:
        """A choice is better only if it is at most this."""
        value = self.run.worth.value
        return value - (self.grain * (1 - EQUAL) if self.grain else EQUAL / 2 * abs(value))

    def narrowed(self, most: float) -> Narrowed:
        """The program of every choice of at most `most`, with fewer sites and shorter ways."""
        inside, outside = self.relaxation.decided(most)
        left = ~outside
        columns = self.columns[left]
        program = sites_of(self.run.program, columns)
        fixed = tuple(int(j) for j in np.flatnonzero(inside[left]))
        return Narrowed(
            replace(program, must_have=tuple(sorted({*program.must_have, *fixed}))),
            columns,
            self.relaxation.farthest(most),
        )

    def model(self, most: float) -> tuple[Model, Matrix, float, Indices]:
        """The model of `narrowed`: with its objective, the constant beside it, and its sites."""
        narrow = self.narrowed(most)
        model = Model()
        y = add_choice(model, narrow.program)
        add_backup(model, y, narrow.program)
        place = np.searchsorted(self.columns, narrow.columns)
        radii = add_radii(model, y, self.weighted[:, place], narrow.farthest, self.levels)
        objective = np.zeros(model.size)
        objective[radii.variables] = radii.steps
        if narrow.program.opening is not None:
            objective[y] = narrow.program.opening
        return model, objective, radii.constant, narrow.columns

    def solve(self) -> None:
        """Look for a better choice among what the bound leaves; none is a proof."""
        model, objective, constant, columns = self.model(self.cutoff())
        if not len(columns):
            self.run.prove(self.run.worth.value)
            return
        if model.size > SMALL:
            self._branch()
            return
        solved = model.minimise(objective, self.run.left())
        self.run.method = "interchange, Lagrangian bound and radius program"
        self._take(solved, constant, columns)

    def _branch(self) -> None:
        run = self.run
        run.method = "interchange, Lagrangian bound, branch and bound"
        branching = Branching(
            self.relaxation.sites, self.relaxation, self._cut, self.cutoff, run.over
        )
        if branching.search(lambda bound: run.prove(min(run.worth.value, self.lifted(bound)))):
            run.prove(run.worth.value)

    def _cut(self, picked: Sequence[int]) -> float:
        self._found(picked)
        return self.cutoff()

    def _take(self, solved: Solved, constant: float, columns: Indices) -> None:
        if solved.x is not None:
            self.run.offer(columns[np.flatnonzero(solved.x[: len(columns)] > 0.5)].tolist())
        elsewhere = self.run.worth.value
        self.run.prove(min(elsewhere, self.lifted(solved.bound + constant)))

    def _sites(self) -> Sites:
        program, columns = self.run.program, self.columns
        caps = program.caps
        side = [values[columns] for _, values, _ in caps]
        most = [cap for _, _, cap in caps]
        if program.backup:
            near = program.backing[self.rows][:, columns]
            side += list(-near.astype(np.float64))
            most += [-(program.backup + 1.0)] * len(near)
        opening = np.zeros(program.sites) if program.opening is None else program.opening
        return Sites(
            cost=np.ascontiguousarray(self.weighted.T),
            opening=opening[columns],
            taken=np.isin(columns, list(program.must_have)),
            k=program.k,
            side=np.array(side).reshape(len(side), len(columns)),
            most=np.array(most),
            levels=self.levels,
        )

    def _start(self) -> Matrix:
        """First multipliers: what each region pays for its sites now."""
        place = np.searchsorted(self.columns, list(self.run.columns))
        nearest = np.sort(self.weighted[:, place], axis=1)
        nearest = np.where(np.isfinite(nearest), nearest, 0.0)
        last = nearest.shape[1] - 1
        return np.array([s * nearest[:, min(i, last)] for i, s in enumerate(self.levels)])

    def _enough(self) -> bool:
        bound = self.lifted(self.relaxation.best.value)
        return self.run.over() or bound >= self.run.worth.value * (1 - 1e-9)

    def _found(self, picked: Sequence[int]) -> float:
        """Offer what the relaxation picked, and now and then what interchange makes of it."""
        run = self.run
        columns = tuple(sorted(int(self.columns[place]) for place in picked))
        if columns not in self.seen:
            self.seen.add(columns)
            if run.offer(columns) or len(self.seen) % 8 == 0:
                self._polish(columns)
        return run.worth.value

    def _polish(self, columns: tuple[int, ...]) -> None:
        if self.polished < POLISHED:
            self.polished += 1
            self.run.offer(self.search.improve(list(columns), self.run.over))


def median(run: Run) -> None:
    """Bound the value, narrow the program down, and solve what is left."""
    way = Median(run)
    way.bound()
    if not run.proved() and not run.over():
        way.solve()


def levels_of(program: Program) -> tuple[float, ...]:
    """Shares of a region's first and second site in the value."""
    if program.survive is None:
        return (1.0,)
    k = float(program.k or 1)
    return ((k - 1) / k, 1 / k)


def grain_of(program: Program, weighted: Matrix) -> float:
    """Distance of the values there can be, where costs are whole numbers; 0 where they are not."""
    opening = np.zeros(1) if program.opening is None else program.opening
    every = np.concatenate([weighted[np.isfinite(weighted)], opening])
    if np.any(every != np.round(every)) or np.abs(every).sum() > 2**50:
        return 0.0
    return 1.0 if program.survive is None else 1.0 / (program.k or 1)


def sites_of(program: Program, columns: Indices) -> Program:
    """The program of some sites alone."""
    place = {int(column): number for number, column in enumerate(columns)}

    def some(values: Matrix | None) -> Matrix | None:
        return None if values is None else values[columns]

    return replace(
        program,
        cost=program.cost[:, columns],
        opening=some(program.opening),
        prices=some(program.prices),
        powers=some(program.powers),
        capacities=some(program.capacities),
        must_have=tuple(place[column] for column in program.must_have),
        must_not=tuple(place[column] for column in program.must_not if column in place),
        preference=None if program.preference is None else program.preference[:, columns],
        backers=None if program.backers is None else program.backers[:, columns],
        forbidden=tuple(
            tuple(place[column] for column in barred)
            for barred in program.forbidden
            if all(column in place for column in barred)
        ),
    )
