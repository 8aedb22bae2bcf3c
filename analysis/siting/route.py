"""Which way leads to the answer of which program."""

from pathbudget.analysis.siting.clash import conflicts
from pathbudget.analysis.siting.dense import dense
from pathbudget.analysis.siting.interchange import quick
from pathbudget.analysis.siting.radii import center
from pathbudget.analysis.siting.run import Run
from pathbudget.analysis.siting.vocabulary import Aim

FIRST_SECONDS = 0.6
"""An interchange answer is there after this, whether or not it could still be improved."""


def best(run: Run) -> None:
    """Fill the run: first by interchange, then exactly."""
    _start(run)
    if (
        run.program.aim is Aim.P_CENTER
        and run.program.capacities is None
        and run.program.preference is None
    ):
        center(run)
    else:
        dense(run)
    if not run.columns and not run.over():
        run.conflicts = conflicts(run.program)


def _start(run: Run) -> None:
    if run.program.capacities is not None:
        return
    chosen = quick(run.program, lambda: run.over() or run.spent() > FIRST_SECONDS)
    if chosen is not None:
        run.offer(chosen)
