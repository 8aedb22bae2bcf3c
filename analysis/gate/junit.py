"""The outcome as JUnit XML, as Jenkins and GitLab read it: a suite per tier, a case per check.

A failing check is a failure; one that keeps the build open is an error; what does not pass and does
not count (a tier of lesser severity), or had nothing to be compared with, is skipped, with its
sentence.
"""

import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import UTC, datetime

from pathbudget.analysis.gate.checks import Check, Effect, Outcome, Rule
from pathbudget.analysis.gate.policy import Severity
from pathbudget.analysis.gate.subject_words import place_words

FORBIDDEN = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Not even as character references may these stand in XML 1.0 (section 2.2)."""
SUFFIX = {
    Rule.ALLOWANCE: "",
    Rule.WHOLE: "",
    Rule.REGRESSION: ": against the baseline",
    Rule.VANISHED: ": still measured",
    Rule.NEW: ": new",
    Rule.SITES: "choice of sites",
}


def render_junit(outcome: Outcome) -> bytes:
    """The XML, UTF-8."""
    suites: dict[str, list[Check]] = {}
    for check in outcome.checks:
        suites.setdefault(check.subject.tier, []).append(check)
    root = ET.Element("testsuites", {"name": "pathbudget", **_totals(outcome.checks)})
    root.attrib.pop("skipped")  # the schema of Jenkins knows it of a suite alone
    for tier, checks in suites.items():
        root.append(_suite(tier, checks, outcome))
    ET.indent(root, " ")
    content: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return content + b"\n"


def _suite(tier: str, checks: Sequence[Check], outcome: Outcome) -> ET.Element:
    attributes = {"name": _clean(f"pathbudget {tier}"), **_totals(checks)}
    if outcome.ended_unix_ns > 0:
        moment = datetime.fromtimestamp(outcome.ended_unix_ns // 1_000_000_000, UTC)
        attributes["timestamp"] = moment.strftime("%Y-%m-%dT%H:%M:%S")
    suite = ET.Element("testsuite", attributes)
    for check in checks:
        suite.append(_case(check))
    return suite


def _case(check: Check) -> ET.Element:
    name = place_words(check.subject) + SUFFIX[check.rule]
    case = ET.Element(
        "testcase",
        {
            "classname": _clean(f"pathbudget.{check.subject.tier}"),
            "name": _clean(name),
            "time": "0",
        },
    )
    if word := _result(check):
        kind = {"type": str(check.rule), "message": _clean(check.text)}
        ET.SubElement(case, word, kind).text = _clean(check.text)
    else:
        ET.SubElement(case, "system-out").text = _clean(check.text)
    return case


def _result(check: Check) -> str:
    """Element of what is not simply well."""
    if check.is_notice:
        return "skipped"
    if check.effect is Effect.PASS:
        return ""
    if check.severity is not Severity.ERROR:
        return "skipped"
    return "failure" if check.effect is Effect.FAIL else "error"


def _totals(checks: Sequence[Check]) -> dict[str, str]:
    words = [_result(check) for check in checks]
    return {
        "tests": str(len(checks)),
        "failures": str(words.count("failure")),
        "errors": str(words.count("error")),
        "skipped": str(words.count("skipped")),
        "time": "0",
    }


def _clean(text: str) -> str:
    """`text` with what XML cannot hold written out, like ``\\x1b``."""
    return FORBIDDEN.sub(lambda found: ascii(found[0])[1:-1], text)
