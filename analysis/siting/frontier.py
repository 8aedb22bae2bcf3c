"""From cheap to quick: the best choice for every number of sites and every price.

The epsilon-constraint method (Haimes, Lasdon and Wismer 1971): the best choice is found, then the
best one that costs less, and so on until there is none.
"""

import math
from collections.abc import Iterable
from dataclasses import replace

from msgspec.structs import replace as changed

from pathbudget.analysis.siting.decision import FrontierPoint
from pathbudget.analysis.siting.losses import Solver, solved, value_of
from pathbudget.analysis.siting.programs import Answer, Program
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.served_rows import filled_share, shares_of
from pathbudget.analysis.siting.ties import first_of_equals, prices_of
from pathbudget.analysis.siting.wishes import Wishes, program_of

MOST_POINTS = 40
CENT = 1e-6
"""The next price cap is this much, relative to it, under the last price."""

SECONDS = 5.0


def frontier(
    scene: Scene, wishes: Wishes, sizes: Iterable[int], *, solver: Solver = solved
) -> tuple[FrontierPoint, ...]:
    """Points by number of sites, then by price from dear to cheap; efficient ones are marked.

    Without prices there is one point per number of sites. `wishes.budget` is a cap on all of them.
    """
    priced = all(site.price_per_month is not None for site in scene.sites)
    points: list[FrontierPoint] = []
    for k in sizes:
        if k > len(scene.sites):
            break
        points += _of_size(scene, replace(wishes, k=k), solver, priced=priced)
    return tuple(
        changed(point, efficient=not any(_dominates(other, point) for other in points))
        for point in points
    )


def _of_size(scene: Scene, wishes: Wishes, solver: Solver, *, priced: bool) -> list[FrontierPoint]:
    found: list[FrontierPoint] = []
    while len(found) < MOST_POINTS:
        program = program_of(scene, wishes)
        best = first_of_equals(program, solver(program, SECONDS), prices_of(scene))
        if not best.feasible:
            break
        guessed = filled_share(scene, shares_of(scene, wishes, best))
        point = changed(_point(scene, program, best), filled_share=guessed)
        found.append(point)
        if not priced or not point.price_per_month:
            break
        wishes = replace(wishes, budget=point.price_per_month * (1 - CENT))
    return found


def _point(scene: Scene, program: Program, best: Answer) -> FrontierPoint:
    chosen = [scene.sites[column] for column in best.columns]
    prices = [site.price_per_month for site in chosen]
    powers = [site.power_kw for site in chosen]
    value = value_of(program, best)
    return FrontierPoint(
        k=len(chosen),
        sites=tuple(site.name for site in chosen),
        value=value,
        served_share=max(0.0, 1 - best.unserved_weight),
        price_per_month=None if None in prices else math.fsum(p or 0.0 for p in prices),
        power_kw=None if None in powers else math.fsum(p or 0.0 for p in powers),
        proved=best.proved,
        gap=best.gap,
        efficient=True,
    )


def _dominates(one: FrontierPoint, other: FrontierPoint) -> bool:
    """Whether `one` is at least as good throughout and better in something."""
    a, b = _worse(one), _worse(other)
    return all(x <= y + 1e-9 for x, y in zip(a, b, strict=True)) and any(
        x < y - 1e-9 for x, y in zip(a, b, strict=True)
    )


def _worse(point: FrontierPoint) -> tuple[float, float, float]:
    """Price (number of sites where there is none), unserved share, value; small is good."""
    price = float(point.k) if point.price_per_month is None else point.price_per_month
    value = math.inf if point.value is None else point.value
    return price, 1 - point.served_share, value
