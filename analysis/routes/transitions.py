"""Cuts of a series as turns from one level to the next: what lies briefly between is no level.

A path that moves there and, some packets later, on the way back passes a level in between that
nobody would call one, and so does one whose routers disagree for a moment. Two cuts with few
samples between them are one turn, where the levels around them differ.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.routes.shift_tests import place_of_cut

BRIEF = 16
"""Fewer samples between two levels are the way from one to the other."""


Moved = Callable[[Values, int, int, int], bool]
"""Values, first, cut, end: whether the two sides of a cut are different levels."""


class Turn(NamedTuple):
    """Values from `first` to `cut` are one level, those from `settled` to `end` another."""

    first: int
    cut: int
    settled: int
    end: int
    what: str


def with_transitions(values: Values, cuts: Sequence[tuple[int, str]], moved: Moved) -> list[Turn]:
    """A turn for each cut, or for several of the round trip that are one."""
    bounds = [0, *(cut for cut, _ in cuts), len(values)]
    found: list[Turn] = []
    for i, (cut, what) in enumerate(cuts):
        turn = Turn(bounds[i], cut, cut, bounds[i + 2], what)
        before = found[-1] if found else None
        if before is not None and _is_on_the_way(values, before, turn, moved):
            found[-1] = before._replace(settled=turn.cut, end=turn.end)
        else:
            found.append(turn)
    return found


def _is_on_the_way(values: Values, before: Turn, turn: Turn, moved: Moved) -> bool:
    """Whether the level between two turns is brief, and those around it are two without it."""
    brief = before.what == turn.what == "rtt" and turn.cut - before.settled < BRIEF
    around = (before.cut - before.first, turn.end - turn.cut)
    if not brief or min(around) < BRIEF:  # a swell: one stage after the other
        return False
    without = np.concatenate((values[: before.cut], values[turn.cut :]))
    return moved(without, before.first, before.cut, before.cut + around[1])


def place_of_turn(values: Values, turn: Turn) -> tuple[int, int]:
    """Smallest and largest index at which the next level, or the way to it, may begin."""
    earliest, latest = place_of_cut(values, turn.first, turn.cut, turn.end)
    if turn.settled > turn.cut:
        latest = max(latest, place_of_cut(values, turn.cut, turn.settled, turn.end)[1])
    return earliest, latest
