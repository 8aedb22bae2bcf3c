"""One door to every siting program: a quick answer, then a better one, then proof.

`answer` first has an interchange answer, if it finds one that keeps the constraints, and reports
it. It goes on with the exact way that fits the program until it is proved or the seconds are over.
What it could not prove it says by its bound.
"""

from collections.abc import Callable

from pathbudget.analysis.siting.route import best
from pathbudget.analysis.siting.run import Run
from pathbudget.analysis.siting.vocabulary import (
    Aim,
    Answer,
    Clash,
    Conflict,
    Matrix,
    Program,
    Survive,
)

__all__ = ["Aim", "Answer", "Clash", "Conflict", "Matrix", "Program", "Survive", "answer"]

OnBetter = Callable[[Answer], None]


def answer(
    program: Program,
    *,
    seconds: float | None = None,
    on_better: OnBetter | None = None,
    clock: Callable[[], float] | None = None,
) -> Answer:
    """The best choice of sites, with proof or with a bound.

    `seconds` limits the search by `clock`, which reads seconds (None: until proved); `on_better` is
    called with every answer that is better than those before. Without a clock nothing depends on
    how quick the machine is. Where no choice keeps the constraints, the answer has no columns, and
    `conflicts` names a smallest set that clashes. Raises ArithmeticError when the solver breaks
    down, ValueError for seconds without a clock.
    """
    if seconds is not None and clock is None:
        raise ValueError(f"{seconds:g} seconds, and no clock to count them by")
    run = Run(program, seconds, on_better, clock or _still)
    best(run)
    return run.answer()


def _still() -> float:
    """For a search that nothing ends but its proof."""
    return 0.0
