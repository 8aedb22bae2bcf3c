"""The outcome as Markdown, for the summary page of a pipeline or a comment."""

import re

from pathbudget.analysis.gate.checks import Check, Effect, Ending, Outcome
from pathbudget.analysis.gate.policy import Severity
from pathbudget.analysis.gate.subject_words import place_words
from pathbudget.analysis.report.words import counted, given, interval, listed, ms, share, utc

MOST_ROWS = 200
"""Of each table: GitHub refuses a summary page over 1 MiB."""
HEADS = {
    Ending.PASS: "✓ pathbudget: pass",
    Ending.FAIL: "✕ pathbudget: fail",
    Ending.MEASURE_MORE: "? pathbudget: measure more",
    Ending.NOTHING: "pathbudget: nothing was measured",
}
SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~$&@])")


def render_markdown(outcome: Outcome) -> str:
    """A headline, what is wrong or open, and a folded table of what is well."""
    parts = [f"## {HEADS[outcome.ending]}", _summary(outcome)]
    not_well = [check for check in outcome.checks if check.is_shown]
    well = [check for check in outcome.checks if not check.is_shown]
    if not_well:
        rows = [_row(f"{_word(check)} | {_escaped(check.text)}") for check in not_well[:MOST_ROWS]]
        if (left := len(not_well) - MOST_ROWS) > 0:
            rows.append(_row(f"| {left:,} more; the JSON output has them all"))
        parts.append("\n".join(["| | what |", "|---|---|", *rows]))
    if well:
        parts.append(_folded(well))
    return "\n\n".join(parts) + "\n"


def _summary(outcome: Outcome) -> str:
    counts = [
        f"{count:,} {word.replace('-', ' ')}" for word, count in outcome.counts.items() if count
    ]
    campaigns = listed((_escaped(name) for name in outcome.campaigns), "no campaign")
    said = f"{counted(len(outcome.checks), 'check')}: {', '.join(counts) or 'none'}. "
    said += f"Campaign {campaigns}, to {utc(outcome.ended_unix_ns)}; "
    said += f"{share(outcome.confidence)} intervals"
    return said + (f"; baseline {_escaped(outcome.baseline)}." if outcome.baseline else ".")


def _word(check: Check) -> str:
    if check.is_notice:
        return "not compared"
    if check.severity is not Severity.ERROR:
        return str(check.severity)
    return "**fail**" if check.effect is Effect.FAIL else "measure more"


def _folded(checks: list[Check]) -> str:
    rows = [_passing(check) for check in checks[:MOST_ROWS]]
    if (left := len(checks) - MOST_ROWS) > 0:
        rows.append(_row(f"{left:,} more | | | |"))
    head = "| tier | what | rule | ms | allowed |\n|---|---|---|---|---|\n"
    summary = f"<details><summary>{counted(len(checks), 'check')} passed</summary>\n\n"
    return summary + head + "\n".join(rows) + "\n\n</details>"


def _passing(check: Check) -> str:
    numbers = check.now
    measured = ""
    if numbers is not None and numbers.n:
        measured = f"{ms(numbers.value_ms)} ({interval(numbers.low_ms, numbers.high_ms)})"
    allowed = "" if check.allowance_ms is None else given(check.allowance_ms)
    tier, place = _escaped(check.subject.tier), _escaped(place_words(check.subject))
    return _row(f"{tier} | {place} | {check.rule} | {measured} | {allowed}")


def _row(cells: str) -> str:
    return f"| {cells} |"


def _escaped(text: str) -> str:
    """Words of users as they are: no markup, no second line, no link, nobody mentioned."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    escaped = SPECIAL.sub(lambda found: f"&#{ord(found[0])};", plain)
    return escaped.replace("://", "&#58;//").replace("www.", "www&#46;")
