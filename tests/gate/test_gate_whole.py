"""Whole requests in the gate: judged, compared, and missed where they are asked for."""

from typing import Any

import msgspec
import pytest
from tests.gate.conftest import make_line, make_of_lines

from pathbudget.analysis.gate.baseline import baseline_of
from pathbudget.analysis.gate.checks import Check, Rule
from pathbudget.analysis.gate.outcome import check
from pathbudget.analysis.gate.policy import Policy, TierRules
from pathbudget.analysis.report.selection import Sites
from pathbudget.analysis.results import Evaluation, Verdict
from pathbudget.analysis.whole_budget.results import Combine, WholeBudget, WholeVerdict

WHOLE = Policy(which=Sites.ALL, whole=True)
KEEPS: dict[str, Any] = {
    "region": "us-south",
    "site": "dallas",
    "tier": "voice-ai",
    "percentile": 95.0,
    "target_ms": 400.0,
    "combine": Combine.INDEPENDENT,
    "value_ms": 318.0,
    "low_ms": 316.0,
    "high_ms": 320.0,
    "headroom_ms": 82.0,
    "n": 400,
    "n_effective": 400.0,
    "breach": 0.0,
    "breach_low": 0.0,
    "breach_high": 0.01,
    "failing": 0.0,
    "verdict": WholeVerdict.PASS,
    "reason": "it is so.",
    "terms": (),
    "combinations": (),
    "fix_first": "",
    "fix_reason": "",
    "deadline": None,
    "assumed": ("ttft", "guardrail"),
}


def of(**changes: Any) -> Evaluation:
    """One line that passes, and the whole request of its pair."""
    names = WholeBudget.__struct_fields__
    given = {key: value for key, value in (KEEPS | changes).items() if key in names}
    line = make_of_lines([make_line()])
    return msgspec.structs.replace(line, whole_budgets=(msgspec.convert(given, WholeBudget),))


def whole_check(evaluation: Evaluation, policy: Policy = WHOLE) -> Check:
    (one,) = (one for one in check(evaluation, policy).checks if one.rule is Rule.WHOLE)
    return one


def test_it_is_checked_only_where_the_policy_says_so() -> None:
    outcome = check(of(verdict=WholeVerdict.FAIL), Policy(which=Sites.ALL))
    assert [one.rule for one in outcome.checks] == [Rule.ALLOWANCE]


@pytest.mark.parametrize("verdict", list(WholeVerdict))
def test_its_verdict_is_that_of_the_evaluation(verdict: WholeVerdict) -> None:
    assert whole_check(of(verdict=verdict)).verdict == verdict.value


def test_the_sentence_says_what_nobody_measured() -> None:
    one = whole_check(of())
    assert "whole request p95: 318 ms (316 to 320), allowed 400." in one.text
    assert "2 terms stand at the tier's allowance." in one.text


@pytest.mark.parametrize(
    ("target", "verdict"),
    [(300.0, Verdict.FAIL), (318.0, Verdict.UNDECIDED), (330.0, Verdict.PASS)],
)
def test_a_target_of_the_policy_judges_anew(target: float, verdict: Verdict) -> None:
    rules = {"voice-ai": TierRules(target_ms=target)}
    policy = msgspec.structs.replace(WHOLE, tier=rules)
    assert whole_check(of(), policy).verdict is verdict


def test_a_doubt_that_is_no_matter_of_the_target_stays_one() -> None:
    rules = {"voice-ai": TierRules(target_ms=9999.0)}
    doubtful = of(verdict=WholeVerdict.UNDECIDED, reason="no service answers there.")
    one = whole_check(doubtful, msgspec.structs.replace(WHOLE, tier=rules))
    assert one.verdict is Verdict.UNDECIDED
    assert "no service answers there." in one.text


def test_allowances_alone_are_no_measurement() -> None:
    assert whole_check(of(n=0, n_effective=None)).verdict is Verdict.NOT_MEASURED


def test_a_pair_without_one_is_not_measured() -> None:
    one = whole_check(make_of_lines([make_line()]))
    assert one.verdict is Verdict.NOT_MEASURED
    assert "no whole budget" in one.text


def test_it_regresses_and_vanishes_as_lines_do() -> None:
    before = baseline_of(of(), [whole_check(of()).subject])
    slower = check(of(value_ms=340.0, low_ms=338.0, high_ms=342.0), WHOLE, before)
    (worst, *_) = slower.checks
    assert (worst.rule, worst.subject.whole) == (Rule.REGRESSION, True)
    gone = check(make_of_lines([make_line()]), WHOLE, before)
    assert Rule.VANISHED in [one.rule for one in gone.checks]
    aside = check(make_of_lines([make_line()]), Policy(which=Sites.ALL), before)
    assert Rule.VANISHED not in [one.rule for one in aside.checks]
