"""Checks and endings: what each verdict comes to under each policy."""

from typing import Any

import msgspec
import pytest
from tests.gate.conftest import make_line, make_of_lines

from pathbudget.agents.cli.exits import ExitCode
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.gate.baseline import baseline_of
from pathbudget.analysis.gate.checks import EXIT_CODES, Check, Effect, Ending, Rule
from pathbudget.analysis.gate.outcome import check
from pathbudget.analysis.gate.policy import Policy, Severity, TierRules, Treatment
from pathbudget.analysis.report.selection import Sites
from pathbudget.analysis.results import Evaluation, Finding, Mode, Verdict
from pathbudget.probes.errors import ConfigError

ALL = Policy(which=Sites.ALL)
PASSING, FAILING, OPEN = (20.0, 19.0, 21.0), (30.0, 29.0, 31.0), (25.0, 24.0, 26.0)


def policy(**changes: Any) -> Policy:
    return msgspec.structs.replace(ALL, **changes)


def only(evaluation: Evaluation, the_policy: Policy = ALL) -> Check:
    (one,) = check(evaluation, the_policy).checks
    return one


def test_exit_codes_are_those_of_the_command() -> None:
    assert EXIT_CODES == {
        Ending.PASS: ExitCode.OK,
        Ending.FAIL: ExitCode.OBJECTIVE_NOT_MET,
        Ending.NOTHING: ExitCode.NOTHING_MEASURED,
        Ending.MEASURE_MORE: ExitCode.MEASURE_MORE,
    }


@pytest.mark.parametrize(
    ("ends", "n", "key", "treatment", "ending"),
    [
        (PASSING, 400, "undecided", Treatment.FAIL, Ending.PASS),
        (FAILING, 400, "undecided", Treatment.PASS, Ending.FAIL),
        (OPEN, 400, "undecided", Treatment.PASS, Ending.PASS),
        (OPEN, 400, "undecided", Treatment.FAIL, Ending.FAIL),
        (OPEN, 400, "undecided", Treatment.MEASURE_MORE, Ending.MEASURE_MORE),
        (PASSING, 0, "not_measured", Treatment.FAIL, Ending.FAIL),
        (PASSING, 0, "not_measured", Treatment.PASS, Ending.NOTHING),
        (PASSING, 0, "not_measured", Treatment.MEASURE_MORE, Ending.NOTHING),
    ],
)
def test_what_one_line_comes_to(
    ends: tuple[float, float, float], n: int, key: str, treatment: Treatment, ending: Ending
) -> None:
    outcome = check(make_of_lines([make_line(*ends, n=n)]), policy(**{key: treatment}))
    assert outcome.ending is ending
    assert outcome.exit_code == EXIT_CODES[ending]


@pytest.mark.parametrize("treatment", list(Treatment))
def test_a_line_that_is_missing_beside_one_that_passes(treatment: Treatment) -> None:
    lines = [make_line(), make_line(n=0, region="us-east")]
    outcome = check(make_of_lines(lines), policy(not_measured=treatment))
    assert (
        outcome.ending
        == {"pass": "pass", "fail": "fail", "measure-more": "measure-more"}[treatment]
    )


def test_fail_comes_before_measure_more_and_the_worst_first() -> None:
    lines = [
        make_line(region="eu-west"),
        make_line(*OPEN, region="us-south"),
        make_line(*FAILING, region="us-east"),
    ]
    outcome = check(make_of_lines(lines), ALL)
    assert outcome.ending is Ending.FAIL
    assert [one.effect for one in outcome.checks] == ["fail", "measure-more", "pass"]
    assert {word: count for word, count in outcome.counts.items() if count} == {
        "pass": 1,
        "fail": 1,
        "measure-more": 1,
    }


@pytest.mark.parametrize("severity", [Severity.WARNING, Severity.NOTE])
def test_a_lesser_severity_shows_and_never_fails(severity: Severity) -> None:
    rules = {"voice-ai": TierRules(severity=severity, undecided=Treatment.FAIL)}
    lines = [make_line(*FAILING), make_line(*OPEN, region="us-east"), make_line(region="eu-west")]
    outcome = check(make_of_lines(lines), policy(tier=rules))
    assert outcome.ending is Ending.PASS
    assert outcome.counts[severity] == 2
    assert [one.effect for one in outcome.checks] == ["fail", "fail", "pass"]


def test_the_command_line_overrules_every_table() -> None:
    rules = {"voice-ai": TierRules(undecided=Treatment.FAIL)}
    evaluation = make_of_lines([make_line(*OPEN)])
    assert check(evaluation, policy(tier=rules)).ending is Ending.FAIL
    overruled = policy(tier=rules).overruled(undecided=Treatment.PASS)
    assert check(evaluation, overruled).ending is Ending.PASS


@pytest.mark.parametrize(
    ("allowance", "verdict"),
    [(18.0, Verdict.FAIL), (20.0, Verdict.UNDECIDED), (22.0, Verdict.PASS)],
)
def test_an_allowance_of_the_policy_judges_anew(allowance: float, verdict: Verdict) -> None:
    one = only(
        make_of_lines([make_line()]),
        policy(tier={"voice-ai": TierRules(allowance_ms=allowance)}),
    )
    assert one.verdict is verdict
    assert one.allowance_ms == allowance


def test_allowances_by_percentile_come_before_the_one_for_all() -> None:
    lines = [make_line(), make_line(percentile=99.0)]
    rules = TierRules(percentiles=(95.0, 99.0), allowance_ms=18.0, allowances_ms={"p99": 30.0})
    outcome = check(make_of_lines(lines), policy(tier={"voice-ai": rules}))
    assert {one.subject.percentile: one.verdict for one in outcome.checks} == {
        95.0: Verdict.FAIL,
        99.0: Verdict.PASS,
    }


def test_a_mixture_with_an_unmeasured_mode_never_passes_however_much_is_allowed() -> None:
    evaluation = make_of_lines([make_line(), make_line(mode=Mode.MIXTURE)])
    rules = TierRules(modes=(Mode.MIXTURE,), allowance_ms=1000.0)
    one = only(evaluation, policy(tier={"voice-ai": rules}))
    assert one.verdict is Verdict.UNDECIDED
    assert "no resumed and cold connections were measured" in one.text
    assert one.further_samples is None


def test_a_service_that_refuses_everybody_never_passes() -> None:
    line = make_line(verdict=Verdict.UNDECIDED)
    refused = Finding(
        kind=FindingKind.REFUSED, region="us-south", site="dallas", text="it refused all."
    )
    evaluation = msgspec.structs.replace(make_of_lines([line]), findings=(refused,))
    one = only(evaluation, policy(tier={"voice-ai": TierRules(allowance_ms=1000.0)}))
    assert one.verdict is Verdict.UNDECIDED


def test_a_mode_that_has_no_line_is_not_measured_and_not_forgotten() -> None:
    the_policy = policy(modes=(Mode.WARM, Mode.COLD), not_measured=Treatment.FAIL)
    outcome = check(make_of_lines([make_line()]), the_policy)
    assert [(one.subject.mode, one.verdict) for one in outcome.checks] == [
        (Mode.COLD, Verdict.NOT_MEASURED),
        (Mode.WARM, Verdict.PASS),
    ]


def test_by_default_the_recommended_site_of_each_region(evaluation: Evaluation) -> None:
    outcome = check(evaluation, Policy())
    assert len(outcome.checks) == 6 * 3
    assert all(one.subject.site for one in outcome.checks)


def test_the_best_site_is_the_one_with_the_smallest_upper_end() -> None:
    lines = [make_line(20, 10, 30), make_line(22, 21, 23, site="ashburn")]
    assert only(make_of_lines(lines), policy(which=Sites.BEST)).subject.site == "ashburn"


def test_a_region_without_a_choice_of_site_is_not_measured() -> None:
    one = only(make_of_lines([make_line()]), Policy())
    assert one.verdict is Verdict.NOT_MEASURED
    assert "no site is chosen" in one.text


def test_a_region_that_is_wholly_down_fails_and_is_not_taken_for_unmeasured() -> None:
    """Every candidate of it was measured, and none has an upper end: no site is recommended."""
    down = [
        make_line(None, None, None, site=site, losses=400, verdict=Verdict.FAIL)
        for site in ("ashburn", "dallas")
    ]
    lax = Policy(undecided=Treatment.PASS, not_measured=Treatment.PASS)
    outcome = check(make_of_lines(down), lax)
    assert outcome.ending is Ending.FAIL
    assert outcome.exit_code == 1
    thin = check(make_of_lines([make_line(14.9, 14.0, None, n=20)]), Policy())
    assert thin.ending is Ending.MEASURE_MORE
    assert thin.exit_code == 6


def test_a_region_that_is_down_is_held_against_its_site_of_the_baseline() -> None:
    sound = make_of_lines([make_line(site="dallas"), make_line(30, 29, 31, site="ashburn")])
    asked = policy(which=Sites.BEST)
    before = baseline_of(sound, [one.subject for one in check(sound, asked).checks])
    down = make_of_lines(
        [
            make_line(None, None, None, site=site, losses=400, verdict=Verdict.FAIL)
            for site in ("ashburn", "dallas")
        ]
    )
    found = [one for one in check(down, Policy(), before).checks if one.rule is Rule.REGRESSION]
    assert [(one.subject.site, one.verdict) for one in found] == [("dallas", Verdict.FAIL)]


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"tiers": ("voice",)}, 'no tier "voice" in this run; expected "voice-ai" (did you mean'),
        ({"tier": {"chatt": TierRules()}}, 'no tier "chatt" in this run'),
        ({"regions": ("us-sout",)}, 'expected "us-south" (did you mean that?)'),
        ({"sites": ("dalas",)}, 'expected "dallas" (did you mean that?)'),
        ({"percentiles": (90.0,)}, "no line of 90; expected one of 95"),
        ({"prompts": (12,)}, "no line of 12; expected one of 4000"),
        ({"tier": {"voice-ai": TierRules(expected_sites=("x",))}}, 'no site "x" in this run'),
    ],
)
def test_a_name_that_the_run_does_not_know_is_an_error(changes: Any, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        check(make_of_lines([make_line()]), policy(**changes))
    assert told in str(error.value)


def test_the_line_of_the_policy_is_named() -> None:
    named = policy(
        file="gate.toml",
        lines={"tier.voice-ai": 7, "tier.voice-ai.allowance_ms": 9},
        tier={"voice-ai": TierRules(allowance_ms=10.0)},
    )
    one = only(make_of_lines([make_line()]), named)
    assert (one.file, one.line) == ("gate.toml", 9)


def test_sentences_hold_the_numbers_and_no_invisible_letter() -> None:
    line = msgspec.structs.replace(make_line(24.0, 23.0, None), reason="it is \x1b[31m open.")
    one = only(make_of_lines([line]))
    assert "24.0 ms (23.0 to no limit), allowed 25" in one.text
    assert r"\x1b[31m" in one.text
    assert one.text.isprintable()


def choosing(evaluation: Evaluation, sites: tuple[str, ...], *, decided: bool) -> Evaluation:
    """Every choice of one site becomes this one."""
    choices = tuple(
        msgspec.structs.replace(one, sites=sites, decided=decided, why_undecided="they are close.")
        if one.k == len(sites)
        else one
        for one in evaluation.recommendations
    )
    return msgspec.structs.replace(evaluation, recommendations=choices)


@pytest.mark.parametrize(
    ("now", "decided", "verdict", "effect"),
    [
        ("dallas", True, Verdict.PASS, Effect.PASS),
        ("dallas", False, Verdict.PASS, Effect.PASS),
        ("ashburn", True, Verdict.FAIL, Effect.FAIL),
        ("ashburn", False, Verdict.UNDECIDED, Effect.MEASURE_MORE),
    ],
)
def test_the_choice_of_sites_fails_only_when_another_is_surely_better(
    evaluation: Evaluation, now: str, decided: bool, verdict: Verdict, effect: Effect
) -> None:
    the_policy = policy(
        tiers=("voice-ai",), tier={"voice-ai": TierRules(expected_sites=("dallas",))}
    )
    outcome = check(choosing(evaluation, (now,), decided=decided), the_policy)
    (one,) = (one for one in outcome.checks if one.rule is Rule.SITES)
    assert (one.verdict, one.effect) == (verdict, effect)
    assert now in one.text


def test_siting_that_is_demanded_needs_something_to_compare_with(evaluation: Evaluation) -> None:
    outcome = check(evaluation, policy(siting=True))
    demanded = [one for one in outcome.checks if one.rule is Rule.SITES]
    assert [one.verdict for one in demanded] == [Verdict.NOT_MEASURED] * 3
    outcome = check(
        evaluation, policy(siting=False, tier={"chat": TierRules(expected_sites=("tokyo",))})
    )
    assert not [one for one in outcome.checks if one.rule is Rule.SITES]


def test_a_choice_of_more_sites_than_were_computed_is_not_known(evaluation: Evaluation) -> None:
    four = ("dallas", "ashburn", "frankfurt", "tokyo")
    outcome = check(evaluation, policy(tier={"chat": TierRules(expected_sites=four)}))
    (one,) = (one for one in outcome.checks if one.rule is Rule.SITES)
    assert one.verdict is Verdict.NOT_MEASURED
    assert "no choice of 4 was computed" in one.text


@pytest.mark.parametrize(
    ("policy", "told"),
    [
        (
            Policy(which=Sites.ALL, tier={"voice-ai": TierRules(allowances_ms={"p42": 7.0})}),
            r"tier.voice-ai.allowances_ms: no check is of p42; expected p95, or 42 in percentiles",
        ),
        (
            Policy(which=Sites.ALL, tier={"voice-ai": TierRules(target_ms=7.0)}),
            "tier.voice-ai.target_ms: no whole request is checked; expected whole = true",
        ),
    ],
)
def test_a_limit_for_what_nobody_asks_for_is_refused(policy: Policy, told: str) -> None:
    """It would be kept whatever was measured."""
    with pytest.raises(ConfigError, match=told):
        check(make_of_lines([make_line()]), policy)
