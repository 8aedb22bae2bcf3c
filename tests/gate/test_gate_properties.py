"""Whatever the numbers are: worse never becomes better, and a run does not regress from itself."""

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.gate.conftest import Ends, make_line, make_of_lines

from pathbudget.analysis.gate.baseline import baseline_of
from pathbudget.analysis.gate.checks import Ending
from pathbudget.analysis.gate.outcome import check
from pathbudget.analysis.gate.policy import Policy, TierRules, Treatment
from pathbudget.analysis.report.selection import Sites
from pathbudget.analysis.results import Evaluation

RANK = {Ending.PASS: 0, Ending.NOTHING: 1, Ending.MEASURE_MORE: 2, Ending.FAIL: 3}
REGIONS = ("us-south", "us-east", "eu-west")
ends = st.lists(st.floats(0, 60), min_size=3, max_size=3).map(sorted)
worse_by = st.one_of(st.floats(0, 40), st.just(None))
treatments = st.sampled_from(list(Treatment))


def limited(low_value_high: list[float], limits: int) -> Ends:
    """Value, low, high, of which the upper ones have no limit."""
    low, value, high = low_value_high
    return (
        None if limits > 1 else value,
        None if limits > 2 else low,
        None if limits > 0 else high,
    )


def of(lines: list[Ends]) -> Evaluation:
    made = [make_line(*one, region=name) for one, name in zip(lines, REGIONS, strict=False)]
    return make_of_lines(made)


def worse(one: Ends, by: float | None) -> Ends:
    """All of it later by so much, or without any limit."""
    value, low, high = (None if by is None or end is None else end + by for end in one)
    return value, low, high


lines = st.lists(st.builds(limited, ends, st.integers(0, 3)), min_size=1, max_size=3)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(lines, lines, st.lists(worse_by, min_size=3, max_size=3), treatments, st.booleans())
def test_worse_lines_never_turn_fail_into_pass(
    before: list[Ends],
    now: list[Ends],
    by: list[float | None],
    undecided: Treatment,
    simultaneous: bool,
) -> None:
    policy = Policy(
        which=Sites.ALL,
        undecided=undecided,
        simultaneous=simultaneous,
        tier={"voice-ai": TierRules(allowance_ms=30.0)},
    )
    baseline = baseline_of(of(before))
    later = [worse(one, amount) for one, amount in zip(now, by, strict=False)]
    first = check(of(now), policy, baseline)
    second = check(of(later), policy, baseline)
    if undecided is not Treatment.MEASURE_MORE:
        assert RANK[second.ending] >= RANK[first.ending]
    assert first.ending is not Ending.FAIL or second.ending is Ending.FAIL


@settings(max_examples=20, deadline=None, derandomize=True)
@given(lines)
def test_no_run_regresses_from_itself(now: list[Ends]) -> None:
    evaluation = of(now)
    outcome = check(evaluation, Policy(which=Sites.ALL), baseline_of(evaluation))
    assert not [one for one in outcome.checks if one.rule == "regression" and one.fails]


@settings(max_examples=20, deadline=None, derandomize=True)
@given(lines, st.floats(1, 60), st.floats(0, 60))
def test_a_larger_allowance_never_turns_pass_into_fail(
    now: list[Ends], allowance: float, more: float
) -> None:
    def ending(allowed: float) -> Ending:
        rules = {"voice-ai": TierRules(allowance_ms=allowed)}
        return check(of(now), Policy(which=Sites.ALL, tier=rules)).ending

    if ending(allowance) is Ending.PASS:
        assert ending(allowance + more) is Ending.PASS


@settings(max_examples=20, deadline=None, derandomize=True)
@given(lines, treatments)
def test_a_policy_that_takes_less_never_finds_more(now: list[Ends], undecided: Treatment) -> None:
    policy = Policy(which=Sites.ALL, undecided=undecided)
    all_of_it = check(of(now), policy)
    some = check(of(now), msgspec.structs.replace(policy, regions=(REGIONS[0],)))
    assert len(some.checks) == 1
    assert set(some.checks) <= set(all_of_it.checks)
