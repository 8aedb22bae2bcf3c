"""The outcome as annotations in the log of a pipeline, and as a code quality file."""

from collections.abc import Iterator
from enum import StrEnum

import msgspec

from pathbudget.analysis.gate.checks import Check, Outcome
from pathbudget.analysis.gate.policy import Severity
from pathbudget.analysis.gate.sarif import RULES, level_of
from pathbudget.analysis.gate.subject_words import fingerprint, visible

MOST_PER_LEVEL = 10
"""GitHub shows ten errors, ten warnings and ten notices of a step, and drops the rest."""
GITHUB = {"error": "error", "warning": "warning", "note": "notice"}
QUALITY = {"error": "major", "warning": "minor", "note": "info"}


class Style(StrEnum):
    """Whose annotations."""

    GITHUB = "github"
    """Workflow commands: ``::error file=...``."""
    PLAIN = "plain"
    """``file:line: error: ...``, as compilers write it."""


def render_annotations(outcome: Outcome, style: Style) -> str:
    """One line for each check that does not simply pass; empty when all do."""
    open_checks = [check for check in outcome.checks if check.is_shown]
    lines = _github(open_checks) if style is Style.GITHUB else map(_plain, open_checks)
    return "".join(f"{line}\n" for line in lines)


def render_code_quality(outcome: Outcome) -> bytes:
    """A code quality report as GitLab reads it: a list of findings, each at a file and a line."""
    findings = [
        {
            "description": check.text,
            "check_name": RULES[check.rule][1],
            "fingerprint": fingerprint(check),
            "severity": QUALITY[level_of(check)],
            "location": {"path": check.file or "pathbudget", "lines": {"begin": check.line or 1}},
        }
        for check in outcome.checks
        if check.is_shown
    ]
    return msgspec.json.format(msgspec.json.encode(findings), indent=1) + b"\n"


def _github(checks: list[Check]) -> Iterator[str]:
    """Workflow commands; the last that is shown of a level says how many are not."""
    for severity in Severity:
        level = str(severity)
        own = [check for check in checks if level_of(check) == level]
        shown = own if len(own) <= MOST_PER_LEVEL else own[: MOST_PER_LEVEL - 1]
        for check in shown:
            place = f"file={_property(check.file)},line={check.line or 1}," if check.file else ""
            title = f"title={_property(f'pathbudget {check.rule}')}"
            yield f"::{GITHUB[level]} {place}{title}::{_message(check.text)}"
        if left := len(own) - len(shown):
            yield f"::{GITHUB[level]} title=pathbudget::{left} more; the gate's output has them all"


def _plain(check: Check) -> str:
    place = f"{check.file}:{check.line or 1}: " if check.file else ""
    return visible(f"{place}{level_of(check)}: {check.text}")


def _message(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _message(text).replace(":", "%3A").replace(",", "%2C")
