"""The outcome as SARIF 2.1.0 (OASIS), as code scanning reads it.

Only what does not pass, or was not compared, is a result: readers that do not know `kind` show
every result as a finding.
"""

from typing import Any
from urllib.parse import quote

import msgspec

from pathbudget.analysis.gate.checks import Check, Effect, Outcome, Rule
from pathbudget.analysis.gate.policy import Severity
from pathbudget.analysis.gate.subject_words import fingerprint, subject_words

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RULES = {
    Rule.ALLOWANCE: ("PB001", "NetworkAllowance", "The network keeps the allowance of its tier."),
    Rule.WHOLE: ("PB002", "WholeBudget", "The whole request keeps the target of its tier."),
    Rule.REGRESSION: ("PB003", "Regression", "Nothing is surely slower than in the baseline."),
    Rule.VANISHED: ("PB004", "Vanished", "What the baseline measured is measured still."),
    Rule.NEW: ("PB005", "NotInBaseline", "What is measured is in the baseline."),
    Rule.SITES: ("PB006", "ChoiceOfSites", "The choice of sites that is built on still stands."),
}
ORDER = list(RULES)
LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def render_sarif(outcome: Outcome, version: str) -> bytes:
    """The log, indented. `version` is that of this program."""
    results = [_result(check) for check in outcome.checks if check.is_shown]
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver(version)},
                "automationDetails": {"id": "pathbudget/"},
                "invocations": [{"executionSuccessful": True, "exitCode": outcome.exit_code}],
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return msgspec.json.format(msgspec.json.encode(log), indent=1) + b"\n"


def _driver(version: str) -> dict[str, Any]:
    return {
        "name": "pathbudget",
        "version": version,
        "rules": [
            {
                "id": number,
                "name": name,
                "shortDescription": {"text": sentence},
                "fullDescription": {"text": sentence},
                "defaultConfiguration": {"level": "error"},
                "help": {"text": "docs/gate.md says what each rule asks and what to do."},
            }
            for number, name, sentence in RULES.values()
        ],
    }


def level_of(check: Check) -> str:
    """``error``, ``warning`` or ``note``; what is open is no more than a warning."""
    if check.is_notice:
        return "note"
    if check.effect is Effect.FAIL or check.severity is Severity.NOTE:
        return LEVELS[check.severity]
    return "warning"


def _result(check: Check) -> dict[str, Any]:
    return {
        "ruleId": RULES[check.rule][0],
        "ruleIndex": ORDER.index(check.rule),
        "level": level_of(check),
        "message": {"text": check.text},
        "locations": [_location(check)],
        "partialFingerprints": {"pathbudgetCheck/v1": fingerprint(check)},
        "properties": {"effect": str(check.effect), "verdict": str(check.verdict)},
    }


def _location(check: Check) -> dict[str, Any]:
    """Where the policy asks for it, and what it is about."""
    name = subject_words(check.subject)
    location: dict[str, Any] = {"logicalLocations": [{"fullyQualifiedName": name}]}
    if check.file:
        location["physicalLocation"] = {
            "artifactLocation": {"uri": uri_of(check.file)},
            "region": {"startLine": check.line or 1},
        }
    return location


def uri_of(file: str) -> str:
    """A path as a URI reference (RFC 3986): relative stays relative."""
    return f"file://{quote(file)}" if file.startswith("/") else quote(file)
