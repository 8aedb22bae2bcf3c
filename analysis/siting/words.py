"""Why a choice of sites was made, or none, in sentences with numbers."""

from collections.abc import Sequence

from pathbudget.analysis.siting.programs import Aim, Answer, Program
from pathbudget.analysis.siting.scene import Scene

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


def nobody_covered(scene: Scene) -> str:
    """Why no choice covers anybody."""
    limits = sorted({row.allowance_ms for row in scene.rows if row.allowance_ms is not None})
    within = f"{limits[0]:g} ms" if len(limits) == 1 else "its allowance"
    return f"no measured site has an upper interval end within {within} for any region."


def too_few_served(scene: Scene, columns: Sequence[int]) -> str:
    """Why so little is known that no choice is recommended, and what to do."""
    rows = scene.unlimited(columns)
    measured = sum(scene.measured(row) for row in rows)
    whole = f"{len(scene.rows)} region{'' if len(scene.rows) == 1 else 's'}"
    verb = "has" if measured == 1 else "have"
    parts = [f"{measured} of {whole} {verb} no upper limit: measure longer, or from a quieter host"]
    if measured < len(rows):
        missing = len(rows) - measured
        absent = f"{missing} of {whole} {'was' if missing == 1 else 'were'} not measured"
        parts = [absent] if not measured else [absent, *parts]
    return (
        f"{', and '.join(parts)}. {scene.limited_share(columns):.0%} of the traffic has an upper "
        f"limit; below {SERVED_AT_LEAST:.0%} no site is recommended."
    )


def not_candidates(unmeasured: Sequence[str]) -> tuple[str, ...]:
    """The sites that could not take part."""
    if not unmeasured:
        return ()
    verb = "was" if len(unmeasured) == 1 else "were"
    return (f"{listing(unmeasured)} {verb} not measured from any region, so no candidate.",)


def reasons(
    scene: Scene, program: Program, best: Answer, next_best: Answer | None, advantage: float
) -> tuple[str, ...]:
    """What the choice achieves, how far the next one is behind, what stands against it."""
    sentences = [
        f"{listing(scene.names(best.columns))}: {achieved(program, best)}.",
        behind(scene, program, best, next_best),
    ]
    if advantage > 0:
        sentences.append(may_be_better(program.aim, advantage))
    return (*sentences, *not_candidates(scene.left_out))


def may_be_better(aim: str, advantage: float) -> str:
    """How much another choice may be better."""
    amount = f"{advantage:.0%} of the weight" if aim == Aim.COVERING else f"{advantage:.2f} ms"
    return f"Within the intervals another choice may be better by {amount}."


def achieved(program: Program, choice: Answer) -> str:
    """The value of a choice by upper interval ends."""
    served = 1 - choice.unserved_weight
    if program.aim is Aim.COVERING:
        return f"{served:.1%} of the weight is surely within the allowance"
    if served <= 1e-9 or choice.value is None:
        return "no region has an upper limit from there"
    mean = f"{choice.value / served:.2f} ms"
    if choice.unserved_weight < 1e-9:
        return f"the weighted mean of the upper interval ends is {mean}"
    return (
        f"the mean of the {served:.1%} served is {mean} (upper interval ends); "
        f"{choice.unserved_weight:.1%} is not served"
    )


def behind(scene: Scene, program: Program, best: Answer, next_best: Answer | None) -> str:
    """The next best choice."""
    if next_best is None:
        return "No other choice of as many measured sites exists."
    equal = " It is equal; the lower price and then the name decided."
    names = listing(scene.names(next_best.columns))
    tie = equal if _are_equal(program, best, next_best) else ""
    return f"Next best is {names}: {achieved(program, next_best)}.{tie}"


def _are_equal(program: Program, best: Answer, other: Answer) -> bool:
    if abs(other.unserved_weight - best.unserved_weight) >= 1e-9:
        return False
    if program.aim is Aim.COVERING:
        return True
    return abs((other.value or 0.0) - (best.value or 0.0)) < 1e-6
