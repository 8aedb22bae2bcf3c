"""Why a choice of sites was made, and what would change it, in sentences with numbers."""

import math
from collections.abc import Sequence

import numpy as np

from pathbudget.analysis.results import Objective
from pathbudget.analysis.siting.ground import Ground
from pathbudget.analysis.siting.model import Choice, Matrix

LISTED = 5
"""How many of the deciding pairs are named."""

SERVED_AT_LEAST = 0.5
"""Share of the weight that must have an upper limit, or there is no recommendation."""


def listing(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)


def no_choice(candidates: int, k: int) -> str:
    """Why there is no choice of k at all."""
    if candidates == 0:
        return "no site was measured, so there is nothing to choose from."
    measured = "1 site was" if candidates == 1 else f"{candidates} sites were"
    return f"only {measured} measured: no choice of {k}."


def nobody_served(objective: Objective, ground: Ground) -> str:
    """Why no choice is better than none."""
    if objective is Objective.COVERING:
        return (
            f"no measured site has an upper interval end within {ground.allowance_ms:g} ms "
            "for any region."
        )
    return "no line has an upper limit (too many losses, or too few samples), so costs are unknown."


def too_few_served(ground: Ground, columns: Sequence[int]) -> str:
    """Why so little is known that no choice is recommended, and what to do."""
    rows = ground.unlimited(columns)
    measured = sum(ground.measured(row) for row in rows)
    whole = f"{len(ground.regions)} region{'' if len(ground.regions) == 1 else 's'}"
    verb = "has" if measured == 1 else "have"
    parts = [f"{measured} of {whole} {verb} no upper limit: measure longer, or from a quieter host"]
    if measured < len(rows):
        missing = len(rows) - measured
        absent = f"{missing} of {whole} {'was' if missing == 1 else 'were'} not measured"
        parts = [absent] if not measured else [absent, *parts]
    return (
        f"{', and '.join(parts)}. {ground.served_share(columns):.0%} of the traffic has an upper "
        f"limit; below {SERVED_AT_LEAST:.0%} no site is recommended."
    )


def not_candidates(unmeasured: Sequence[str]) -> tuple[str, ...]:
    """The sites that could not take part."""
    if not unmeasured:
        return ()
    verb = "was" if len(unmeasured) == 1 else "were"
    return (f"{listing(unmeasured)} {verb} not measured from any region, so no candidate.",)


def reasons(
    ground: Ground,
    objective: Objective,
    best: Choice,
    next_best: Choice | None,
    advantage: float,
) -> tuple[str, ...]:
    """What the choice achieves, how far the next one is behind, what stands against it."""
    sentences = [
        f"{listing(ground.names(best.columns))}: {achieved(objective, best)}.",
        behind(ground, objective, best, next_best),
    ]
    if advantage > 0:
        amount = f"{advantage:.0%} of the weight" if _covers(objective) else f"{advantage:.2f} ms"
        sentences.append(f"Within the intervals another choice may be better by {amount}.")
    return (*sentences, *not_candidates(ground.unmeasured_sites))


def achieved(objective: Objective, choice: Choice) -> str:
    """The value of a choice."""
    served = 1 - choice.unserved_weight
    if _covers(objective):
        return f"{served:.1%} of the weight is surely within the allowance"
    if served <= 1e-9:
        return "no region has an upper limit from there"
    mean = f"{choice.objective / served:.2f} ms"
    if choice.unserved_weight < 1e-9:
        return f"the weighted mean of the upper interval ends is {mean}"
    return (
        f"the mean of the {served:.1%} served is {mean} (upper interval ends); "
        f"{choice.unserved_weight:.1%} is not served"
    )


def behind(ground: Ground, objective: Objective, best: Choice, next_best: Choice | None) -> str:
    """The next best choice."""
    if next_best is None:
        return "No other choice of as many measured sites exists."
    tie = abs(next_best.unserved_weight - best.unserved_weight) < 1e-9 and (
        _covers(objective) or abs(next_best.objective - best.objective) < 1e-6
    )
    equal = " It is equal; the lower price and then the name decided." if tie else ""
    names = listing(ground.names(next_best.columns))
    return f"Next best is {names}: {achieved(objective, next_best)}.{equal}"


def deciding_pairs(
    ground: Ground,
    served_by: Sequence[int | None],
    rival_by: Sequence[int | None],
    gain: Matrix,
) -> tuple[str, ...]:
    """Regions that may be better off with the strongest rival, the weightiest first."""
    rows: list[tuple[float, str]] = []
    for row, (mine, other) in enumerate(zip(served_by, rival_by, strict=True)):
        if other is None or other == mine or (mine is not None and gain[row, other] >= 0):
            continue
        impact = -math.inf if mine is None else float(ground.weights[row] * gain[row, other])
        rows.append((impact, _comparison(ground, row, mine, other)))
    return tuple(text for _, text in sorted(rows)[:LISTED])


def straddling_pairs(ground: Ground, columns: Sequence[int]) -> tuple[str, ...]:
    """Pairs of a rival whose interval contains the allowance."""
    limit = ground.allowance_ms
    found = [
        f"{ground.regions[row].name} to {ground.sites[column].name}: "
        f"{_interval(ground, row, column)}, allowance {limit:g} ms"
        for row in range(len(ground.regions))
        for column in columns
        if ground.low[row, column] <= limit < ground.high[row, column]
    ]
    return tuple(found[:LISTED])


def why_undecided(
    ground: Ground,
    best: Choice,
    rival: Choice,
    open_rows: Sequence[int],
    rival_by: Sequence[int | None],
    gain: Matrix,
) -> str:
    """What keeps the data from telling two choices apart: regions that nothing limits, pairs that
    nobody measured, and only then intervals that overlap.
    """
    if open_rows:
        return _without_limit(ground, open_rows, len(best.columns))
    unknown = [
        row
        for row, column in enumerate(rival_by)
        if column is not None and gain[row, column] < 0 and not _is_measured(ground, row, column)
    ]
    if unknown:
        verb = "was" if len(unknown) == 1 else "were"
        sites = listing(ground.names([c for c in rival.columns if c not in best.columns]))
        return f"{_regions(ground, unknown)} {verb} not measured to {sites}"
    names = listing(ground.names(best.columns)), listing(ground.names(rival.columns))
    return f"the intervals of {names[0]} and of {names[1]} overlap"


def why_as_much(ground: Ground, rival: Choice) -> str:
    """Why another choice may cover as much."""
    low, high = (part[:, list(rival.columns)] for part in (ground.low, ground.high))
    limit = ground.allowance_ms
    maybe = (low <= limit).any(axis=1) & ~(high <= limit).any(axis=1)
    rows = [int(row) for row in np.flatnonzero(maybe)]
    names = listing(ground.names(rival.columns))
    if not rows:
        return f"{names} covers as much"
    unknown = [
        row for row in rows if not any(_is_measured(ground, row, one) for one in rival.columns)
    ]
    if unknown:
        verb = "was" if len(unknown) == 1 else "were"
        return f"{_regions(ground, unknown)} {verb} not measured to {names}"
    verb = "is" if len(rows) == 1 else "are"
    return f"{_regions(ground, rows)} {verb} perhaps within {limit:g} ms from {names}"


def _without_limit(ground: Ground, rows: Sequence[int], k: int) -> str:
    """Regions that no chosen site is known to serve."""
    absent = [row for row in rows if not ground.measured(row)]
    limitless = [row for row in rows if row not in absent]
    parts: list[str] = []
    if absent:
        verb = "was" if len(absent) == 1 else "were"
        parts.append(f"{_regions(ground, absent)} {verb} not measured")
    if limitless:
        verb = "has" if len(limitless) == 1 else "have"
        which = "either" if k == 1 else "either of the two choices"
        parts.append(f"{_regions(ground, limitless)} {verb} no upper limit to {which}")
    return ", and ".join(parts)


def _regions(ground: Ground, rows: Sequence[int]) -> str:
    """``london (33 % of traffic)``."""
    weight = math.fsum(float(ground.weights[row]) for row in rows)
    names = [ground.regions[row].name for row in rows[:LISTED]]
    if len(rows) > LISTED:
        names.append(f"{len(rows) - LISTED} more")
    return f"{listing(names)} ({100 * weight:.0f} % of traffic)"


def _is_measured(ground: Ground, row: int, column: int) -> bool:
    line = ground.lines.get((ground.regions[row].name, ground.sites[column].name))
    return line is not None and line.n > 0


def _comparison(ground: Ground, row: int, mine: int | None, other: int) -> str:
    region = ground.regions[row].name
    rival = f"{ground.sites[other].name} {_interval(ground, row, other)}"
    if mine is None:
        return f"{region}: {rival}, and no chosen site has an upper limit"
    return f"{region}: {rival} against {ground.sites[mine].name} {_interval(ground, row, mine)}"


def _interval(ground: Ground, row: int, column: int) -> str:
    low, high = ground.low[row, column], ground.high[row, column]
    if not _is_measured(ground, row, column):
        return f"(not measured, at least {low:.2f} ms by the light floor)"
    if low == 0 and math.isinf(high):
        return "(too few samples to tell)"
    end = "no limit" if math.isinf(high) else f"{high:.2f} ms"
    return f"{low:.2f} ms to {end}"


def _covers(objective: Objective) -> bool:
    return objective is Objective.COVERING
