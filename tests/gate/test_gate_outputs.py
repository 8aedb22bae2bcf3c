"""Files that pipelines read: JUnit, SARIF, code quality, annotations, Markdown, JSON."""

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from tests.gate.conftest import make_line, make_of_lines

from pathbudget.analysis.gate.annotations import Style, render_annotations, render_code_quality
from pathbudget.analysis.gate.baseline import baseline_of
from pathbudget.analysis.gate.checks import Check, Effect, Numbers, Outcome, Rule, Subject
from pathbudget.analysis.gate.gate_json import json_schema, render_json
from pathbudget.analysis.gate.gate_markdown import render_markdown
from pathbudget.analysis.gate.gate_text import render_text
from pathbudget.analysis.gate.junit import render_junit
from pathbudget.analysis.gate.outcome import check
from pathbudget.analysis.gate.policy import Policy, Severity, TierRules, Treatment
from pathbudget.analysis.gate.sarif import render_sarif, uri_of
from pathbudget.analysis.report.selection import Sites
from pathbudget.analysis.results import Carrier, Evaluation, Mode, Verdict

PUBLISHED = Path(__file__).resolve().parents[2] / "docs" / "gate-schema.json"
ALL = Policy(which=Sites.ALL)
HOSTILE = "a\x00b\x1b[31m\x85\ufffe]]>&<b>'\"\n::error::,:%|`東京`\u202e"

SARIF = {
    "type": "object",
    "additionalProperties": False,
    "required": ["$schema", "version", "runs"],
    "properties": {
        "$schema": {"type": "string", "format": "uri"},
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "additionalProperties": False,
                "required": ["tool", "results"],
                "properties": {
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {"driver": {"$ref": "#/$defs/driver"}},
                    },
                    "automationDetails": {"type": "object"},
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "invocations": {
                        "type": "array",
                        "items": {"type": "object", "required": ["executionSuccessful"]},
                    },
                    "results": {"type": "array", "items": {"$ref": "#/$defs/result"}},
                },
            },
        },
    },
    "$defs": {
        "message": {
            "type": "object",
            "additionalProperties": False,
            "required": ["text"],
            "properties": {"text": {"type": "string", "minLength": 1}},
        },
        "driver": {
            "type": "object",
            "additionalProperties": False,
            "required": ["name", "version", "rules"],
            "properties": {
                "name": {"type": "string"},
                "version": {"type": "string"},
                "rules": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["id", "name", "shortDescription"],
                        "properties": {
                            "shortDescription": {"$ref": "#/$defs/message"},
                            "fullDescription": {"$ref": "#/$defs/message"},
                            "help": {"$ref": "#/$defs/message"},
                        },
                    },
                },
            },
        },
        "result": {
            "type": "object",
            "additionalProperties": False,
            "required": ["ruleId", "ruleIndex", "level", "message", "locations"],
            "properties": {
                "ruleId": {"type": "string"},
                "ruleIndex": {"type": "integer", "minimum": 0},
                "level": {"enum": ["none", "note", "warning", "error"]},
                "message": {"$ref": "#/$defs/message"},
                "locations": {
                    "type": "array",
                    "minItems": 1,
                    "items": {
                        "type": "object",
                        "additionalProperties": False,
                        "properties": {
                            "logicalLocations": {"type": "array", "minItems": 1},
                            "physicalLocation": {
                                "type": "object",
                                "required": ["artifactLocation"],
                                "properties": {
                                    "artifactLocation": {
                                        "type": "object",
                                        "additionalProperties": False,
                                        "required": ["uri"],
                                        "properties": {
                                            "uri": {"type": "string", "pattern": "^[!-~]+$"}
                                        },
                                    },
                                    "region": {
                                        "type": "object",
                                        "properties": {
                                            "startLine": {"type": "integer", "minimum": 1}
                                        },
                                    },
                                },
                            },
                        },
                    },
                },
                "partialFingerprints": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                },
                "properties": {"type": "object"},
            },
        },
    },
}
"""What we write of SARIF 2.1.0 (OASIS), strictly: nothing else may be in it."""


def one_check(
    effect: Effect = Effect.FAIL,
    severity: Severity = Severity.ERROR,
    rule: Rule = Rule.ALLOWANCE,
    **more: Any,
) -> Check:
    given: dict[str, Any] = {
        "subject": Subject(
            tier="voice-ai",
            region="us-south",
            site="dallas",
            mode=Mode.WARM,
            transport=Carrier.TLS,
            percentile=95.0,
        ),
        "verdict": Verdict.FAIL,
        "text": "it is so.",
        "now": Numbers(value_ms=30.0, low_ms=29.0, high_ms=None, n=9),
    }
    return Check(rule=rule, effect=effect, severity=severity, **(given | more))


def outcome_of(*checks: Check) -> Outcome:
    outcome = check(make_of_lines([make_line()]), ALL)
    return msgspec.structs.replace(outcome, checks=checks)


@pytest.fixture
def mixed() -> Outcome:
    """Of everything something."""
    return outcome_of(
        *(
            one_check(effect, severity, rule)
            for rule in Rule
            for effect in Effect
            for severity in Severity
        )
    )


@pytest.fixture
def strange() -> Outcome:
    """Every word of it was made by somebody who means no good."""
    subject = Subject(tier=HOSTILE, region=HOSTILE, site=HOSTILE, mode=Mode.WARM, percentile=95.0)
    checks = tuple(
        one_check(effect, subject=subject, text=HOSTILE, file="a b/東京%,:.toml", line=3)
        for effect in Effect
    )
    return msgspec.structs.replace(
        outcome_of(*checks), campaigns=(HOSTILE,), baseline=HOSTILE, title=HOSTILE
    )


def test_junit_counts_what_is_in_it(mixed: Outcome) -> None:
    root = ET.fromstring(render_junit(mixed))
    (suite,) = root
    assert root.tag == "testsuites"
    for word, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        found = len(suite.findall(f"testcase/{tag}"))
        assert suite.get(word) == str(found) == str(len(Rule) * (2 * 2 if tag == "skipped" else 1))
    assert root.get("tests") == suite.get("tests") == str(len(mixed.checks))
    assert root.get("failures") == suite.get("failures")


def test_junit_has_a_suite_per_tier_and_a_case_per_check(evaluation: Evaluation) -> None:
    outcome = check(evaluation, ALL)
    root = ET.fromstring(render_junit(outcome))
    assert {suite.get("name") for suite in root} == {
        "pathbudget voice-ai",
        "pathbudget chat",
        "pathbudget rag",
    }
    cases = [(case.get("classname"), case.get("name")) for case in root.iter("testcase")]
    assert len(cases) == len(set(cases)) == len(outcome.checks)


def test_junit_of_hostile_words_can_be_read(strange: Outcome) -> None:
    root = ET.fromstring(render_junit(strange))
    case = next(root.iter("testcase"))
    name = case.get("name")
    assert name is not None
    assert name.startswith(r"a\x00b\x1b[31m")
    assert "]]>&<b>'\"" in name
    assert "東京" in name
    failure = next(root.iter("failure"))
    assert r"\ufffe]]" in (failure.get("message") or "")


@pytest.mark.parametrize(
    ("effect", "severity", "level"),
    [
        (Effect.FAIL, Severity.ERROR, "error"),
        (Effect.FAIL, Severity.WARNING, "warning"),
        (Effect.FAIL, Severity.NOTE, "note"),
        (Effect.MEASURE_MORE, Severity.ERROR, "warning"),
        (Effect.MEASURE_MORE, Severity.WARNING, "warning"),
        (Effect.MEASURE_MORE, Severity.NOTE, "note"),
    ],
)
def test_sarif_levels(effect: Effect, severity: Severity, level: str) -> None:
    log = json.loads(render_sarif(outcome_of(one_check(effect, severity)), "1.0"))
    (result,) = log["runs"][0]["results"]
    assert result["level"] == level
    assert level in render_annotations(outcome_of(one_check(effect, severity)), Style.PLAIN)


@pytest.mark.parametrize("which", ["mixed", "strange"])
def test_sarif_is_as_the_standard_says(which: str, request: pytest.FixtureRequest) -> None:
    outcome: Outcome = request.getfixturevalue(which)
    log = json.loads(render_sarif(outcome, "1.0"))
    jsonschema.Draft202012Validator(SARIF).validate(log)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({rule["id"] for rule in rules}) == len(Rule)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
    assert len(run["results"]) == sum(one.effect is not Effect.PASS for one in outcome.checks)


def test_a_finding_keeps_its_fingerprint_from_run_to_run() -> None:
    def fingerprints(text: str, effect: Effect) -> tuple[str, str]:
        outcome = outcome_of(one_check(effect, text=text))
        sarif = json.loads(render_sarif(outcome, "1"))["runs"][0]["results"][0]
        (quality,) = json.loads(render_code_quality(outcome))
        return *sarif["partialFingerprints"].values(), quality["fingerprint"]

    first = fingerprints("30 ms", Effect.FAIL)
    assert first == fingerprints("31 ms", Effect.MEASURE_MORE)
    other = outcome_of(one_check(rule=Rule.REGRESSION))
    assert json.loads(render_code_quality(other))[0]["fingerprint"] != first[1]


def test_paths_become_uri_references() -> None:
    assert uri_of("a b/東京#1.toml") == "a%20b/%E6%9D%B1%E4%BA%AC%231.toml"
    assert uri_of("/x/y z") == "file:///x/y%20z"


def test_github_annotations_stay_on_one_line_each(strange: Outcome) -> None:
    lines = render_annotations(strange, Style.GITHUB).splitlines()
    assert len(lines) == 2
    for line in lines:
        assert re.match(r"::(error|warning) file=a b/東京%25%2C%3A.toml,line=3,title=", line)
        assert line.isprintable()


def test_github_shows_ten_of_a_level_and_says_how_many_more() -> None:
    many = outcome_of(*[one_check()] * 25, *[one_check(severity=Severity.NOTE)] * 10)
    lines = render_annotations(many, Style.GITHUB).splitlines()
    errors = [line for line in lines if line.startswith("::error ")]
    assert len(errors) == 10
    assert "16 more" in errors[-1]
    assert sum(line.startswith("::notice ") for line in lines) == 10


def test_plain_annotations_are_as_compilers_write_them() -> None:
    outcome = outcome_of(one_check(file="gate.toml", line=9), one_check(Effect.PASS))
    assert render_annotations(outcome, Style.PLAIN) == "gate.toml:9: error: it is so.\n"
    assert render_annotations(outcome_of(one_check()), Style.PLAIN) == "error: it is so.\n"


def test_code_quality_has_what_gitlab_needs(mixed: Outcome) -> None:
    findings = json.loads(render_code_quality(mixed))
    assert len(findings) == 2 * 3 * len(Rule)
    for one in findings:
        assert set(one) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert one["severity"] in ("major", "minor", "info")
        assert one["location"]["lines"]["begin"] >= 1


def test_markdown_takes_no_markup_from_names(strange: Outcome) -> None:
    page = render_markdown(strange)
    assert "<b>" not in page
    assert "`" not in page
    assert "\x1b" not in page
    table = [line for line in page.splitlines() if line.startswith("| **fail**")]
    assert len(table) == 1
    assert table[0].count("|") == 3


def test_markdown_folds_what_passes(evaluation: Evaluation) -> None:
    page = render_markdown(check(evaluation, Policy(undecided=Treatment.PASS)))
    assert page.startswith("## ✕ pathbudget: fail\n")
    assert "<details><summary>" in page
    assert page.index("**fail**") < page.index("<details>")


def test_markdown_fits_a_summary_page_and_says_what_is_left() -> None:
    page = render_markdown(outcome_of(*[one_check()] * 5000, *[one_check(Effect.PASS)] * 5000))
    assert len(page.encode()) < 1 << 20
    assert page.count("4,800 more") == 2


def test_the_text_fits_its_width(evaluation: Evaluation) -> None:
    text = render_text(check(evaluation, ALL), 80, everything=True)
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize("which", ["usual", "mixed"])
def test_the_json_fits_its_published_schema(
    which: str, mixed: Outcome, evaluation: Evaluation
) -> None:
    schema = json.loads(PUBLISHED.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    rules = TierRules(expected_sites=("dallas",))
    policy = msgspec.structs.replace(ALL, tier={"chat": rules})
    usual = check(evaluation, policy, baseline_of(evaluation))
    outcome = usual if which == "usual" else mixed
    jsonschema.Draft202012Validator(schema).validate(json.loads(render_json(outcome)))
    assert msgspec.json.decode(render_json(outcome), type=Outcome) == outcome


def test_the_published_schema_is_up_to_date() -> None:
    assert json.loads(PUBLISHED.read_bytes()) == json.loads(msgspec.json.encode(json_schema())), (
        "run: python -m pathbudget.analysis.gate.gate_json > docs/gate-schema.json"
    )


def test_what_had_nothing_to_be_compared_with_is_told_in_every_output() -> None:
    now = make_of_lines([make_line(20.0, 19.0, 21.0)])
    before = baseline_of(make_of_lines([make_line(20.0, 19.0, None)]))
    outcome = check(now, ALL, before)
    said = "not to be compared: the baseline sets no upper limit"
    assert outcome.exit_code == 0
    assert (outcome.counts["not-compared"], outcome.counts["pass"]) == (1, 1)
    text = render_text(outcome, None)
    assert "2 checks: 1 pass, 1 not compared." in text
    assert re.search(f"(?m)^not compared .*{said}", text)
    assert f"note: voice-ai, {'us-south to dallas'}" in render_annotations(outcome, Style.PLAIN)
    assert render_annotations(outcome, Style.GITHUB).startswith("::notice ")
    (finding,) = json.loads(render_code_quality(outcome))
    assert (finding["severity"], said in finding["description"]) == ("info", True)
    (result,) = json.loads(render_sarif(outcome, "1"))["runs"][0]["results"]
    assert (result["level"], result["ruleId"]) == ("note", "PB003")
    (skipped,) = ET.fromstring(render_junit(outcome)).iter("skipped")
    assert said in skipped.get("message", "")
    assert "| not compared | " in render_markdown(outcome)
