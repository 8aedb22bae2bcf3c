"""Who is served from where by a choice of sites, and what each of its sites carries."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from msgspec.structs import replace as changed

from pathbudget.analysis.siting.decision import Served, SiteLoad
from pathbudget.analysis.siting.programs import Answer
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.score import Columns
from pathbudget.analysis.siting.steering import given_shares
from pathbudget.analysis.siting.wishes import Wishes, capacities_of

Matrix = npt.NDArray[np.float64]


def shares_of(scene: Scene, wishes: Wishes, found: Answer) -> Matrix:
    """Which site serves which share of each row (rows x sites); rows without one are 0."""
    if found.shares is not None:
        return np.where(found.shares > 1e-9, found.shares, 0.0)
    if wishes.steering:
        return given_shares(scene, wishes, found.columns)
    shares = np.zeros(scene.value.shape)
    for row, column in enumerate(nearest(scene, found)):
        if column is not None:
            shares[row, column] = 1.0
    return shares


def filled_share(scene: Scene, shares: Matrix) -> float:
    """Share of the served traffic whose pairs are guesses of a model."""
    served = float(scene.weights @ shares.sum(axis=1))
    guessed = float(scene.weights @ np.where(scene.filled, shares, 0.0).sum(axis=1))
    return guessed / served if served > 0 else 0.0


def nearest(scene: Scene, found: Answer) -> list[int | None]:
    """Site of each row; covering sends a row that none covers to the cheapest all the same."""
    cost = scene.cost[:, list(found.columns)]
    cheapest = [found.columns[int(one)] for one in np.argmin(cost, axis=1)]
    possible = [bool(np.isfinite(row).any()) for row in cost]
    return [
        (cheapest[row] if possible[row] else None) if site is None else site
        for row, site in enumerate(found.assignment)
    ]


def assignments_of(scene: Scene, shares: Matrix, columns: Columns) -> tuple[Served, ...]:
    """One entry per row and site that serves it; one without a site where none can."""
    found: list[Served] = []
    for row in range(len(scene.rows)):
        served = [int(column) for column in np.flatnonzero(shares[row])]
        backup = _backup(scene, row, columns, served)
        found += [
            _served(scene, row, column, float(shares[row, column]), backup) for column in served
        ]
        if not served:
            found.append(_served(scene, row, None, 0.0, backup))
    return tuple(found)


def _backup(scene: Scene, row: int, columns: Columns, served: Sequence[int]) -> int | None:
    """The cheapest chosen site that does not serve the row already."""
    others = [one for one in columns if one not in served and np.isfinite(scene.cost[row, one])]
    return min(others, key=lambda one: scene.cost[row, one], default=None)


def _served(scene: Scene, row: int, column: int | None, share: float, backup: int | None) -> Served:
    one = scene.rows[row]
    base = Served(region=one.region.name, tier=one.tier, weight=float(scene.weights[row]))
    if backup is not None:
        base = changed(
            base,
            backup=scene.sites[backup].name,
            backup_ms=finite_ms(scene.cost[row, backup]),
            backup_filled=bool(scene.filled[row, backup]),
        )
    if column is None:
        return base
    at = row, column
    return changed(
        base,
        site=scene.sites[column].name,
        share=share,
        cost_ms=finite_ms(scene.cost[at]),
        value_ms=finite_ms(scene.value[at]),
        low_ms=finite_ms(scene.low[at]),
        high_ms=finite_ms(scene.high[at]),
        samples=int(scene.counts[at]),
        filled=bool(scene.filled[at]),
        within=None if one.allowance_ms is None else _within(scene, at, one.allowance_ms),
    )


def _within(scene: Scene, at: tuple[int, int], allowance: float) -> str:
    """``yes``, ``no`` or ``undecided``: whether the pair keeps the allowance."""
    if scene.filled[at]:
        return "guess"
    if scene.high[at] <= allowance:
        return "yes"
    return "no" if scene.low[at] > allowance else "undecided"


def finite_ms(value: float) -> float | None:
    """None for what is unbounded or unknown."""
    return float(value) if math.isfinite(value) else None


def loads_of(
    scene: Scene, wishes: Wishes, shares: Matrix, columns: Columns
) -> tuple[SiteLoad, ...]:
    """What each chosen site carries."""
    most = capacities_of(scene, wishes)
    total = math.fsum(row.demand for row in scene.rows)
    found: list[SiteLoad] = []
    for column in columns:
        load = float(scene.weights @ shares[:, column])
        site = scene.sites[column]
        needed = None if wishes.power_kw is None else load * wishes.power_kw
        full = most is not None and load > float(most[column]) - 1e-6
        over = site.capacity is not None and load * total > site.capacity * (1 + 1e-9)
        found.append(
            SiteLoad(
                site=site.name,
                share=load,
                load=load * total,
                capacity=site.capacity,
                power_needed_kw=needed,
                power_kw=site.power_kw,
                full=full,
                over=over,
            )
        )
    return tuple(found)
