"""What is the matter with requests that have no time."""

from collections.abc import Iterable

from pathbudget.analysis.report.words import listed

QUANTILES = "quantiles "
"""How the origin of a term reads that is told by quantiles (`term_shapes`)."""


def lost_words(lost: Iterable[tuple[str, str]]) -> str:
    """What is the matter with requests without a time; terms that have some, with their origin.

    Of a term that is told by quantiles nothing is known beyond the largest of them.
    """
    lost = list(lost)
    untold = [name for name, origin in lost if QUANTILES in origin]
    if not untold:
        return "fail"
    beyond = f"lie beyond the largest quantile that {listed(untold)} states"
    return beyond if len(untold) == len(lost) else f"fail or {beyond}"
