"""Everything in an evaluation that has an allowance: network lines, and whole budgets."""

from collections.abc import Iterator

from pathbudget.analysis.gate.judging import Judge, Judged
from pathbudget.analysis.gate.whole import every_whole
from pathbudget.analysis.results import Direction, Evaluation


def all_quantities(evaluation: Evaluation) -> Iterator[Judged]:
    """All of them, as the evaluation judged them."""
    judge = Judge(evaluation)
    for line in evaluation.lines:
        if line.direction is Direction.NETWORK and line.allowance_ms is not None:
            yield judge.judged(line)
    yield from every_whole(evaluation)
