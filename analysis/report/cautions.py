"""What makes the numbers of a whole report weak, in sentences that stand above its answer."""

from collections import Counter
from collections.abc import Iterable

from pathbudget.analysis.report.words import NO_LIMIT_MEANS, UNBOUNDED, counted, share
from pathbudget.analysis.results import BudgetLine, Evaluation, Verdict
from pathbudget.analysis.verdict import TOO_FINE

BUSY = 0.05
"""A host that was late for a larger share of its packets is worth a word."""


def cautions(evaluation: Evaluation, shown: Iterable[BudgetLine] | None = None) -> tuple[str, ...]:
    """The cause first, then what it did to the lines; nothing where there is nothing to say.

    Of the headline lines, or of those that are shown.
    """
    noun = "headline line" if shown is None else "line"
    every = evaluation.lines if shown is None else shown
    lines = [one for one in every if one.n and (one.headline or shown is not None)]
    judged = [one for one in lines if one.allowance_ms is not None]
    found = (_busy(evaluation), _without_limit(judged, noun), _too_fine(judged, noun))
    return tuple(text for text in found if text)


def _busy(evaluation: Evaluation) -> str:
    """Packets of idle streams: a host that loads a path on purpose may well be late."""
    late: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    for stream in evaluation.streams:
        if not stream.loaded:
            late[stream.vantage] += stream.host_busy
            sent[stream.vantage] += stream.sent
    busy = [name for name in sent if late[name] > BUSY * sent[name]]
    if not busy:
        return ""
    ratio = share(sum(late[name] for name in busy) / sum(sent[name] for name in busy))
    if len(sent) == 1:
        return f"The measuring host was late for {ratio} of its packets; verdicts are weak."
    named = f"{len(busy)} of {counted(len(sent), 'vantage')}"
    return f"The measuring host was late for {ratio} of its packets at {named}; verdicts are weak."


def _without_limit(lines: list[BudgetLine], noun: str) -> str:
    """A line that fails is no weak one, limit or none."""
    weak = sum(line.high_ms is None and line.verdict is not Verdict.FAIL for line in lines)
    if not weak:
        return ""
    verb = "has" if weak == 1 else "have"
    return (
        f"{weak} of {counted(len(lines), noun)} {verb} no upper limit (“{UNBOUNDED}”): "
        f"{NO_LIMIT_MEANS}. Measure longer, or from a quieter host."
    )


def _too_fine(lines: list[BudgetLine], noun: str) -> str:
    fine = sum(line.verdict is Verdict.UNDECIDED and TOO_FINE in line.reason for line in lines)
    if not fine:
        return ""
    verb = "is" if fine == 1 else "are"
    return (
        f"{fine} of {counted(len(lines), noun)} {verb} undecided because the interval "
        f"ends nearer to the allowance than the noise of the measuring host allows to tell."
    )
