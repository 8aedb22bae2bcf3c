"""What many checks come to together."""

from collections.abc import Iterable

from pathbudget.analysis.gate.checks import NOT_COMPARED, Check, Effect, Ending
from pathbudget.analysis.gate.policy import Severity
from pathbudget.analysis.results import Verdict

ORDER = (Effect.FAIL, Effect.MEASURE_MORE, Effect.PASS)


def ending_of(checks: Iterable[Check]) -> Ending:
    """Fail before anything else; then nothing at all; then what is open."""
    checks = list(checks)
    if any(one.fails for one in checks):
        return Ending.FAIL
    if not any(_is_measured(one) for one in checks):
        return Ending.NOTHING
    if any(one.wants_more for one in checks):
        return Ending.MEASURE_MORE
    return Ending.PASS


def _is_measured(one: Check) -> bool:
    return one.verdict is not Verdict.NOT_MEASURED


def counts_of(checks: Iterable[Check]) -> dict[str, int]:
    """How many checks there are of each effect; of lesser severities those that do not pass."""
    words = (*Effect, Severity.WARNING, Severity.NOTE, NOT_COMPARED)
    counts = dict.fromkeys(map(str, words), 0)
    for one in checks:
        counts[_counted_as(one)] += 1
    return counts


def _counted_as(one: Check) -> str:
    if one.is_notice:
        return NOT_COMPARED
    is_lesser = one.effect is not Effect.PASS and one.severity is not Severity.ERROR
    return str(one.severity if is_lesser else one.effect)


def ordered(checks: Iterable[Check]) -> list[Check]:
    """The worst first, then what was not compared; else in the order they were asked."""
    severities = list(Severity)
    return sorted(
        checks,
        key=lambda one: (
            ORDER.index(one.effect),
            not one.is_notice,
            severities.index(one.severity),
        ),
    )
