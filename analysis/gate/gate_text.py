"""The outcome for a person at a terminal or in the log of a pipeline."""

import textwrap
from collections.abc import Iterator

from pathbudget.analysis.gate.checks import Check, Effect, Ending, Outcome, Rule
from pathbudget.analysis.gate.policy import Severity
from pathbudget.analysis.report.words import counted, listed, share, utc

MOST_NEW = 10
"""Lines that are not in the baseline: named up to here."""
COLUMN = 13
"""Width of the word before each check."""
SAID = {Ending.NOTHING: "nothing was measured"}


def render_text(outcome: Outcome, width: int | None, *, everything: bool = False) -> str:
    """What does not pass, what is new, and how many pass; `everything` lists these too.

    Lines are wrapped at `width`; without one each check keeps its one line.
    """
    said = SAID.get(outcome.ending, str(outcome.ending))
    lines = [f"pathbudget gate: {said} (exit code {outcome.exit_code})"]
    lines += _wrapped(_summary(outcome), width, "")
    for check in outcome.checks:
        if everything or check.is_shown:
            lines += _wrapped(check.text, width, f"{word_of(check):<{COLUMN}}")
    if not everything:
        lines += _new(outcome, width)
    return "\n".join(lines) + "\n"


def word_of(check: Check) -> str:
    """What a check is, in one or two words."""
    if check.rule is Rule.NEW:
        return "new"
    if check.is_notice:
        return "not compared"
    if check.effect is Effect.PASS:
        return "pass"
    if check.severity is not Severity.ERROR:
        return str(check.severity)
    if check.effect is Effect.MEASURE_MORE:
        return "measure more"
    return "slower" if check.rule is Rule.REGRESSION else "fail"


def _summary(outcome: Outcome) -> str:
    counts = [
        f"{count:,} {word.replace('-', ' ')}" for word, count in outcome.counts.items() if count
    ]
    campaigns = listed(outcome.campaigns, "no campaign")
    said = f"{counted(len(outcome.checks), 'check')}: {', '.join(counts) or 'none'}. "
    said += f"Campaign {campaigns}, to {utc(outcome.ended_unix_ns)}; "
    said += f"{share(outcome.confidence)} intervals"
    return said + (f"; baseline {outcome.baseline}." if outcome.baseline else ".")


def _new(outcome: Outcome, width: int | None) -> Iterator[str]:
    new = [check for check in outcome.checks if check.rule is Rule.NEW]
    for check in new[:MOST_NEW]:
        yield from _wrapped(check.text, width, f"{'new':<{COLUMN}}")
    if len(new) > MOST_NEW:
        yield f"{'new':<{COLUMN}}{len(new) - MOST_NEW:,} more"


def _wrapped(text: str, width: int | None, head: str) -> list[str]:
    if width is None:
        return [head + text]
    return textwrap.wrap(
        text,
        max(width, 2 * COLUMN),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )
