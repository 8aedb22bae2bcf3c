"""Against a baseline: slower, quicker, not told apart, gone, new; with limits and without."""

import math
from typing import Any

import msgspec
import pytest
from tests.gate.conftest import Ends, make_line, make_of_lines

from pathbudget.analysis.gate.baseline import Baseline, baseline_of
from pathbudget.analysis.gate.checks import Check, Effect, Ending, Numbers, Rule
from pathbudget.analysis.gate.difference import difference, shown, stretch_for
from pathbudget.analysis.gate.outcome import check
from pathbudget.analysis.gate.policy import Policy, Severity, TierRules, Treatment
from pathbudget.analysis.gate.regression import compare
from pathbudget.analysis.report.selection import Sites
from pathbudget.analysis.results import Evaluation, Verdict

ALL = Policy(which=Sites.ALL)
GOOD: Ends = (20.0, 19.0, 21.0)
NO_LIMIT: Ends = (None, None, None)
"""So many losses that the percentile certainly has none."""
OPEN_ABOVE: Ends = (20.0, 19.0, None)
LOST: Ends = (None, 80.0, None)


def numbers(ends: Ends, floor: float = 0.0) -> Numbers:
    value, low, high = ends
    return Numbers(
        value_ms=value, low_ms=low, high_ms=high, n=400, n_effective=400, noise_floor_ms=floor
    )


@pytest.mark.parametrize(
    ("before", "now", "verdict", "words"),
    [
        (GOOD, GOOD, Verdict.PASS, "not told apart"),
        (GOOD, (25.0, 24.0, 26.0), Verdict.FAIL, "slower by 3.59 to 6.41 ms"),
        (GOOD, (21.4, 20.4, 22.4), Verdict.PASS, "not told apart"),
        (GOOD, (21.5, 20.5, 22.5), Verdict.FAIL, "slower by 0.086 to 2.91 ms"),
        (GOOD, (15.0, 14.0, 16.0), Verdict.PASS, "quicker by 3.59 to 6.41 ms"),
        (GOOD, NO_LIMIT, Verdict.FAIL, "slower by more than any limit"),
        (GOOD, LOST, Verdict.FAIL, "slower by at least 59.0 ms"),
        (GOOD, (None, 15.0, None), Verdict.PASS, "not told apart"),
        (GOOD, OPEN_ABOVE, Verdict.PASS, "not told apart"),
        (GOOD, (90.0, 80.0, None), Verdict.FAIL, "slower by at least 60.0 ms"),
        (OPEN_ABOVE, (90.0, 80.0, 100.0), Verdict.UNDECIDED, "sets no upper limit"),
        (OPEN_ABOVE, NO_LIMIT, Verdict.UNDECIDED, "sets no upper limit"),
        (NO_LIMIT, NO_LIMIT, Verdict.UNDECIDED, "sets no upper limit"),
        (NO_LIMIT, GOOD, Verdict.PASS, "quicker by more than any limit"),
        (NO_LIMIT, LOST, Verdict.UNDECIDED, "sets no upper limit"),
        (LOST, GOOD, Verdict.PASS, "quicker by at least 59.0 ms"),
        (LOST, LOST, Verdict.UNDECIDED, "sets no upper limit"),
        (LOST, NO_LIMIT, Verdict.UNDECIDED, "sets no upper limit"),
    ],
)
def test_the_truth_table(before: Ends, now: Ends, verdict: Verdict, words: str) -> None:
    found = compare(numbers(before), numbers(now), 0.0)
    assert found.verdict is verdict
    assert words in found.words


@pytest.mark.parametrize(
    ("tolerance", "floor", "verdict"),
    [
        (0.0, 0.0, Verdict.FAIL),
        (3.0, 0.0, Verdict.FAIL),
        (4.0, 0.0, Verdict.PASS),
        (0.0, 4.0, Verdict.PASS),
        (3.5, 3.5, Verdict.FAIL),
    ],
)
def test_the_tolerance_and_the_noise_floor_must_be_exceeded_with_certainty(
    tolerance: float, floor: float, verdict: Verdict
) -> None:
    found = compare(numbers(GOOD, floor), numbers((25.0, 24.0, 26.0)), tolerance)
    assert found.verdict is verdict


def test_the_difference_of_two_symmetric_intervals_is_the_usual_one() -> None:
    low, high = difference(numbers((10.0, 7.0, 13.0)), numbers((20.0, 16.0, 24.0)))
    assert low == pytest.approx(10 - 5)
    assert high == pytest.approx(10 + 5)
    said = shown(numbers((10.0, 7.0, 13.0)), numbers(LOST))
    assert (said.value_ms, said.low_ms, said.high_ms) == (None, 67.0, None)


def test_it_is_the_same_seen_from_the_other_side() -> None:
    a, b = numbers((10.0, 9.0, 14.0)), numbers((12.0, 8.0, 13.0))
    low, high = difference(a, b)
    turned = difference(b, a)
    assert list(turned) == pytest.approx([-high, -low])


@pytest.mark.parametrize(("lines", "factor"), [(1, 1.0), (2, 1.144), (20, 1.542), (1000, 2.07)])
def test_the_more_comparisons_the_wider(lines: int, factor: float) -> None:
    assert stretch_for(lines, 0.95) == pytest.approx(factor, abs=2e-3)


def test_widened_intervals_tell_less_apart() -> None:
    before, now = numbers(GOOD), numbers((22.0, 21.0, 23.0))
    assert compare(before, now, 0.0).verdict is Verdict.FAIL
    assert compare(before, now, 0.0, stretch_for(50, 0.95)).verdict is Verdict.PASS


def of(ends: Ends, **place: Any) -> Evaluation:
    return make_of_lines([make_line(*ends, **place)])


def against(now: Evaluation, before: Evaluation, policy: Policy = ALL) -> list[Check]:
    outcome = check(now, policy, kept(before, policy))
    return [one for one in outcome.checks if one.rule is not Rule.ALLOWANCE]


def kept(evaluation: Evaluation, policy: Policy = ALL) -> Baseline:
    asked = [one.subject for one in check(evaluation, policy).checks]
    return baseline_of(evaluation, asked)


def test_a_regression_fails_a_line_that_keeps_its_allowance() -> None:
    outcome = check(of((15.0, 14.0, 16.0)), ALL, kept(of((10.0, 9.0, 11.0))))
    assert outcome.ending is Ending.FAIL
    assert [(one.rule, one.effect) for one in outcome.checks] == [
        (Rule.REGRESSION, Effect.FAIL),
        (Rule.ALLOWANCE, Effect.PASS),
    ]
    regression = outcome.checks[0]
    assert "was 10.0 ms (9.00 to 11.0), is 15.0 ms (14.0 to 16.0): slower by" in regression.text
    assert regression.difference is not None
    assert regression.difference.value_ms == 5.0
    assert regression.before is not None
    assert regression.before.value_ms == 10.0


def test_a_regression_of_a_tier_of_lesser_severity_fails_nothing() -> None:
    rules = {"voice-ai": TierRules(severity=Severity.NOTE)}
    policy = msgspec.structs.replace(ALL, tier=rules)
    outcome = check(of((15.0, 14.0, 16.0)), policy, kept(of((10.0, 9.0, 11.0))))
    assert outcome.ending is Ending.PASS
    assert outcome.counts["note"] == 1


@pytest.mark.parametrize("own", [None, 6.0])
def test_a_tier_may_have_a_tolerance_of_its_own(own: float | None) -> None:
    policy = msgspec.structs.replace(ALL, tier={"voice-ai": TierRules(tolerance_ms=own)})
    (one,) = against(of((15.0, 14.0, 16.0)), of((10.0, 9.0, 11.0)), policy)
    assert one.effect is (Effect.FAIL if own is None else Effect.PASS)
    assert own is None or "within the tolerance" in one.text


@pytest.mark.parametrize("treatment", list(Treatment))
@pytest.mark.parametrize("gone", ["n", "line", "region"])
def test_what_vanished_is_told(treatment: Treatment, gone: str) -> None:
    before = make_of_lines([make_line(), make_line(region="us-east")])
    now = before
    if gone == "n":
        now = make_of_lines([make_line(), make_line(n=0, region="us-east")])
    elif gone == "line":
        now = msgspec.structs.replace(before, lines=before.lines[:1])
    else:
        now = make_of_lines([make_line()])
    policy = msgspec.structs.replace(ALL, not_measured=treatment)
    vanished = [one for one in against(now, before, policy) if one.rule is Rule.VANISHED]
    assert [one.subject.region for one in vanished] == ["us-east"]
    assert vanished[0].effect == treatment.value
    assert "was 20.0 ms (19.0 to 21.0) in the baseline" in vanished[0].text


@pytest.mark.parametrize(
    "changes",
    [{"regions": ("us-south",)}, {"sites": ("dallas",)}, {"tiers": ("chat",)}],
)
def test_what_the_policy_leaves_aside_has_not_vanished(changes: Any) -> None:
    lines = [make_line(), make_line(tier="chat"), make_line(region="us-east", site="ashburn")]
    before = make_of_lines(lines)
    dead = [msgspec.structs.replace(one, n=0) if one.region == "us-east" else one for one in lines]
    policy = msgspec.structs.replace(ALL, **changes)
    found = against(make_of_lines(dead), before, ALL)
    assert [one.rule for one in found].count(Rule.VANISHED) == 1
    now = check(make_of_lines(dead), policy, kept(before))
    assert Rule.VANISHED not in [one.rule for one in now.checks]


def test_what_is_new_is_listed_and_fails_nothing() -> None:
    now = make_of_lines([make_line(), make_line(region="us-east")])
    found = against(now, of(GOOD))
    assert [(one.rule, one.effect) for one in found] == [
        (Rule.REGRESSION, Effect.PASS),
        (Rule.NEW, Effect.PASS),
    ]
    assert found[1].subject.region == "us-east"


def test_no_difference_is_not_a_number() -> None:
    ends: list[Ends] = [GOOD, NO_LIMIT, OPEN_ABOVE, LOST, (0.0, 0.0, 0.0)]
    for before in ends:
        for now in ends:
            assert not any(map(math.isnan, difference(numbers(before), numbers(now), 1.7)))


def test_the_choice_of_sites_of_the_baseline_is_what_is_built_on(evaluation: Evaluation) -> None:
    before = baseline_of(evaluation)
    standing = [one for one in check(evaluation, ALL, before).checks if one.rule is Rule.SITES]
    assert [one.verdict for one in standing] == [Verdict.PASS] * 3
    moved = msgspec.structs.replace(
        evaluation,
        recommendations=tuple(
            msgspec.structs.replace(one, sites=("tokyo", *one.sites[1:]), decided=True)
            for one in evaluation.recommendations
        ),
    )
    found = [one for one in check(moved, ALL, before).checks if one.rule is Rule.SITES]
    assert [one.verdict for one in found] == [Verdict.FAIL] * 3
