"""What a siting program asks for, and what an answer says. Regions are rows, sites are columns.

p-median after Hakimi (1964), p-center after Minieka (1970), maximal covering after Church and
ReVelle (1974), backup cover after Hogan and ReVelle (1986), given assignment (the simple plant
location problem with preference orders) after Hanjoul and Peeters (1987).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, cast

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


class Aim(StrEnum):
    """What a program optimises."""

    P_MEDIAN = "p-median"
    """Smallest sum of weight x cost, and of the opening costs."""
    P_CENTER = "p-center"
    """Smallest largest cost."""
    COVERING = "covering"
    """Largest weight of regions within the limit."""


class Survive(StrEnum):
    """What is optimised when the program is about the loss of any one chosen site."""

    MEAN = "mean"
    """The mean over the losses of each chosen site."""
    WORST = "worst"
    """The worst of nothing lost and of each loss of one chosen site."""


class Clash(StrEnum):
    """A kind of constraint that may be part of a conflict."""

    COUNT = "count"
    """Exactly k sites."""
    MUST_HAVE = "must-have"
    MUST_NOT = "must-not"
    PRICE_CAP = "price-cap"
    POWER_CAP = "power-cap"
    CAPACITY = "capacity"
    SERVE = "serve"
    """A region must be served."""
    BACKUP = "backup"
    """A region needs `backup` further sites."""
    SURVIVE = "survive"
    """A region must still be served after the loss of any one site."""
    FORBIDDEN = "forbidden"
    """A choice that was ruled out."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """One constraint of a smallest conflicting set; with all others in it, none can be dropped."""

    code: Clash
    row: int | None = None
    """The region, for SERVE, BACKUP and SURVIVE."""
    column: int | None = None
    """The site, for MUST_HAVE and MUST_NOT."""


@dataclass(frozen=True, slots=True)
class Program:
    """One choice of sites to be made. Every field after `aim` may be left out.

    Costs are in any one unit; ``inf`` where a site cannot serve a region. As little weight as
    possible is left unserved before anything else is looked at; with `serve_all` none is.
    Raises ValueError where shapes do not fit or numbers make no sense.
    """

    cost: Matrix
    """regions x sites."""
    weights: Matrix
    aim: Aim = Aim.P_MEDIAN
    k: int | None = None
    """How many sites exactly; None for as many as the other constraints and the aim want."""
    limit: float | Matrix | None = None
    """A site may serve a region at this cost or less: one number, or one per region."""
    opening: Matrix | None = None
    """Cost of taking each site, added to the p-median sum."""
    prices: Matrix | None = None
    price_cap: float | None = None
    powers: Matrix | None = None
    power_cap: float | None = None
    capacities: Matrix | None = None
    """Most demand of each site."""
    demands: Matrix | None = None
    """Demand of each region; the weights when not given."""
    whole: bool = False
    """With capacities: a region's demand goes to one site and is not split."""
    must_have: tuple[int, ...] = ()
    must_not: tuple[int, ...] = ()
    backup: int = 0
    """Each region needs this many chosen sites more that could serve it (r-cover)."""
    backup_limit: float | None = None
    """A backup counts at this cost or less; the limit when not given."""
    backers: Mask | None = None
    """Which site counts as a backup of which region, where the costs do not say so."""
    survive: Survive | None = None
    preference: Matrix | None = None
    """Given assignment: a region goes where this is least among the chosen sites (routing)."""
    serve_all: bool = False
    forbidden: tuple[tuple[int, ...], ...] = field(default=(), repr=False)
    """Choices that are ruled out."""

    def __post_init__(self) -> None:
        from pathbudget.analysis.siting import sense

        cast("Callable[[Any], None]", sense.check)(self)

    @property
    def rows(self) -> int:
        """How many regions there are."""
        return int(self.cost.shape[0])

    @property
    def sites(self) -> int:
        """How many candidate sites there are."""
        return int(self.cost.shape[1])

    @property
    def usable(self) -> Mask:
        """Which site may serve which region."""
        return np.isfinite(self.cost) & (self.cost <= self._limit_column(self.limit))

    @property
    def backing(self) -> Mask:
        """Which site counts as a backup of which region."""
        if self.backers is not None:
            return self.backers
        limit = self.limit if self.backup_limit is None else self.backup_limit
        return np.isfinite(self.cost) & (self.cost <= self._limit_column(limit))

    @property
    def demand(self) -> Matrix:
        """Demand of each region."""
        return self.weights if self.demands is None else self.demands

    @property
    def caps(self) -> tuple[tuple[Clash, Matrix, float], ...]:
        """Sums over the chosen sites that are capped."""
        found: list[tuple[Clash, Matrix, float]] = []
        if self.price_cap is not None and self.prices is not None:
            found.append((Clash.PRICE_CAP, self.prices, self.price_cap))
        if self.power_cap is not None and self.powers is not None:
            found.append((Clash.POWER_CAP, self.powers, self.power_cap))
        return tuple(found)

    def _limit_column(self, limit: float | Matrix | None) -> Matrix:
        return np.reshape(np.asarray(np.inf if limit is None else limit, dtype=np.float64), (-1, 1))


@dataclass(frozen=True, slots=True)
class Answer:
    """The best choice found, how good it is, and how much better any other could be."""

    columns: tuple[int, ...]
    """Chosen sites in order; empty where the constraints clash."""
    assignment: tuple[int | None, ...]
    """Site of each region (the largest share of a split one); None where it is not served."""
    value: float | None
    """Weight x cost with the opening costs, largest cost or covered weight, by the aim."""
    unserved_weight: float
    bound: float | None
    """No choice does better than this."""
    proved: bool
    """No choice does better, beyond rounding."""
    method: str
    seconds: float
    conflicts: tuple[Conflict, ...] = ()
    """A smallest set of constraints that cannot hold together, where there is no choice."""
    shares: Matrix | None = field(default=None, repr=False)
    """regions x sites: shares of a region's demand, where it may be split."""

    @property
    def feasible(self) -> bool:
        """Whether there is a choice."""
        return bool(self.columns)

    @property
    def gap(self) -> float | None:
        """Distance of the bound relative to the value; 0 when proved, None when unknown."""
        if self.value is None:
            return None
        if self.proved:
            return 0.0
        if self.bound is None or not np.isfinite(self.bound):
            return None
        return abs(self.value - self.bound) / max(abs(self.value), 1e-12)
