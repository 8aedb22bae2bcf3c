"""What keeps measurements from telling two choices of sites apart, in words."""

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.programs import Answer
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.words import LISTED, listing

Matrix = npt.NDArray[np.float64]


def deciding_pairs(
    scene: Scene,
    serving: Sequence[tuple[int, ...]],
    rival_by: Sequence[int | None],
    gain: Matrix,
    counted: npt.NDArray[np.bool_],
) -> tuple[str, ...]:
    """Regions that may be better off with the strongest rival, the weightiest first."""
    rows: list[tuple[float, str]] = []
    for row, (mine, other) in enumerate(zip(serving, rival_by, strict=True)):
        if other is None or other in mine or not counted[row] or gain[row, other] >= 0:
            continue
        impact = float(scene.weights[row] * gain[row, other]) if mine else -math.inf
        rows.append((impact, _comparison(scene, row, mine, other)))
    return tuple(text for _, text in sorted(rows)[:LISTED])


def straddling_pairs(scene: Scene, columns: Sequence[int]) -> tuple[str, ...]:
    """Pairs of a rival whose interval contains the allowance."""
    limits = scene.allowances
    found = [
        f"{scene.row_name(row)} to {scene.sites[column].name}: "
        f"{interval(scene, row, column)}, allowance {limits[row]:g} ms"
        for row in range(len(scene.rows))
        for column in columns
        if scene.optimistic[row, column] <= limits[row] < scene.ceiling[row, column]
    ]
    return tuple(found[:LISTED])


def why_undecided(
    scene: Scene, best: Answer, rival: Answer, opened: Sequence[int], gain: Matrix
) -> str:
    """What keeps the data from telling two choices apart: regions that nothing limits, pairs that
    nobody measured, and only then intervals that overlap.
    """
    if opened:
        return _without_limit(scene, opened, len(best.columns))
    unknown = [
        row
        for row, column in enumerate(rival.assignment)
        if column is not None and gain[row, column] < 0 and not scene.is_known(row, column)
    ]
    if unknown:
        new = [column for column in rival.columns if column not in best.columns]
        sites = listing(scene.names(new or rival.columns))
        return f"{_regions(scene, unknown)} {_were(unknown)} not measured to {sites}"
    names = listing(scene.names(best.columns)), listing(scene.names(rival.columns))
    return f"the intervals of {names[0]} and of {names[1]} overlap"


def why_as_much(
    scene: Scene, columns: Sequence[int], new: Sequence[int], maybe: Sequence[int]
) -> str:
    """Why another choice may cover as much."""
    names = listing(scene.names(columns))
    if not maybe:
        return f"{names} {'covers' if len(columns) == 1 else 'cover'} as much"
    unknown = [row for row in maybe if not any(scene.is_known(row, one) for one in new)]
    if unknown:
        sites = listing(scene.names(new))
        return f"{_regions(scene, unknown)} {_were(unknown)} not measured to {sites}"
    limits = sorted({float(scene.allowances[row]) for row in maybe})
    within = f"{limits[0]:g} ms" if len(limits) == 1 else "their allowances"
    verb = "is" if len(maybe) == 1 else "are"
    return f"{_regions(scene, maybe)} {verb} perhaps within {within} from {names}"


def _without_limit(scene: Scene, rows: Sequence[int], k: int) -> str:
    """Regions that no chosen site is known to serve."""
    absent = [row for row in rows if not scene.measured(row)]
    limitless = [row for row in rows if row not in absent]
    parts: list[str] = []
    if absent:
        parts.append(f"{_regions(scene, absent)} {_were(absent)} not measured")
    if limitless:
        verb = "has" if len(limitless) == 1 else "have"
        which = "either" if k == 1 else "either of the two choices"
        parts.append(f"{_regions(scene, limitless)} {verb} no upper limit to {which}")
    return ", and ".join(parts)


def _were(rows: Sequence[int]) -> str:
    return "was" if len(rows) == 1 else "were"


def _regions(scene: Scene, rows: Sequence[int]) -> str:
    """``london (33 % of traffic)``."""
    weight = math.fsum(float(scene.weights[row]) for row in rows)
    names = [scene.row_name(row) for row in rows[:LISTED]]
    if len(rows) > LISTED:
        names.append(f"{len(rows) - LISTED} more")
    return f"{listing(names)} ({100 * weight:.0f} % of traffic)"


def _comparison(scene: Scene, row: int, mine: Sequence[int], other: int) -> str:
    region = scene.row_name(row)
    rival = f"{scene.sites[other].name} {interval(scene, row, other)}"
    if not mine:
        return f"{region}: {rival}, and no chosen site has an upper limit"
    ours = [f"{scene.sites[one].name} {interval(scene, row, one)}" for one in mine]
    return f"{region}: {rival} against {listing(ours)}"


def interval(scene: Scene, row: int, column: int) -> str:
    """What is known of a pair."""
    low, high = scene.optimistic[row, column], scene.ceiling[row, column]
    if not scene.is_known(row, column):
        return f"(not measured, at least {low:.2f} ms by the light floor)"
    if low == 0 and math.isinf(high):
        return "(too few samples to tell)"
    end = "no limit" if math.isinf(high) else f"{high:.2f} ms"
    guess = "~" if scene.filled[row, column] else ""
    return f"{guess}{low:.2f} ms to {end}"
