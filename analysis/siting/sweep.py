"""The same choice for several numbers of sites, and which of them to show first."""

import itertools
from collections.abc import Sequence
from dataclasses import replace

import msgspec

from pathbudget.analysis.siting.decide import decide
from pathbudget.analysis.siting.decision import Decision
from pathbudget.analysis.siting.losses import SECONDS, Solver, solved
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.wishes import Wishes

WORTHWHILE = 0.05
"""A further site is worth showing first when it lowers the value by at least this share of it."""


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """Decisions by number of sites; `shown` is the one to look at first."""

    shown: Decision
    choices: tuple[Decision, ...]


def sweep(
    scene: Scene,
    wishes: Wishes,
    sizes: Sequence[int | None],
    *,
    seconds: float = SECONDS,
    solver: Solver = solved,
) -> Sweep:
    """A decision per size. Robustness is worked out for the shown one alone: it takes the time."""
    plain = [
        decide(scene, replace(wishes, k=k), seconds=seconds, robust=False, solver=solver)
        for k in sizes
    ]
    best = plain[_first_to_show(plain)]
    if not best.sites:
        return Sweep(shown=best, choices=tuple(plain))
    shown = decide(scene, replace(wishes, k=best.k), seconds=seconds, solver=solver)
    return Sweep(shown=shown, choices=tuple(shown if one is best else one for one in plain))


def _first_to_show(choices: Sequence[Decision]) -> int:
    """The fewest sites beyond which the next step gains little, in value and in served traffic."""
    possible = [index for index, one in enumerate(choices) if one.sites]
    if not possible:
        return 0
    for here, after in itertools.pairwise(possible):
        if not _gains(choices[here], choices[after]):
            return here
    return possible[-1]


def _gains(now: Decision, more: Decision) -> bool:
    if more.served_share > now.served_share + 0.01:
        return True
    if now.value is None or more.value is None:
        return more.value is not None
    if now.unit == "share":
        return more.value > now.value + 0.01
    return more.value < now.value * (1 - WORTHWHILE)
