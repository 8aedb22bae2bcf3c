"""Pass, fail and undecided."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.analysis.quantiles import Estimate
from pathbudget.analysis.results import Verdict
from pathbudget.analysis.verdict import Question, judge

MS = 1e6
INF = math.inf


def ask(
    low: float,
    value: float,
    high: float,
    *,
    n: int = 300,
    worth: float | None = None,
    losses: int = 0,
    floor: float = 0.01,
    missing: tuple[str, ...] = (),
    allowance: float | None = 25.0,
    percentile: float = 95.0,
) -> tuple[Verdict, str]:
    estimate = Estimate(value * MS, low * MS, high * MS, n, float(n) if worth is None else worth)
    return judge(estimate, Question(percentile, allowance, 0.95, losses, floor, missing))


def test_the_whole_interval_within_passes() -> None:
    verdict, reason = ask(17, 18.2, 21)
    assert verdict is Verdict.PASS
    assert reason == (
        "p95 is 18.20 ms, at most 21.00 ms (95% interval), within the allowance of 25 ms."
    )


def test_the_whole_interval_above_fails() -> None:
    verdict, reason = ask(31, 33, 36)
    assert verdict is Verdict.FAIL
    assert "at least 31.00 ms" in reason
    assert "above the allowance of 25 ms" in reason


def test_an_interval_that_contains_the_allowance_is_undecided() -> None:
    verdict, reason = ask(20, 24, 28)
    assert verdict is Verdict.UNDECIDED
    assert "from 20.00 to 28.00 ms contains the allowance of 25 ms" in reason


def test_too_few_samples_are_undecided_however_quick() -> None:
    verdict, reason = ask(1, 2, INF, n=50)
    assert verdict is Verdict.UNDECIDED
    assert reason == "50 samples are too few: p95 has an upper limit from 72 on (95% interval)."
    _, reason = ask(1, 2, INF, n=300, worth=40.5)
    assert "300 samples are too few, worth 40 independent ones" in reason
    assert "from 368 on" in ask(1, 2, INF, n=300, percentile=99.0)[1]


def test_too_few_samples_can_still_prove_a_failure() -> None:
    assert ask(40, 50, INF, n=20)[0] is Verdict.FAIL


def test_losses_that_hide_the_quantile_fail() -> None:
    verdict, reason = ask(INF, INF, INF, losses=40)
    assert verdict is Verdict.FAIL
    assert reason == (
        "p95 has no limit: 40 of 300 requests failed (13.3%), more than p95 can bear."
    )


def test_losses_that_may_hide_the_quantile_are_undecided() -> None:
    verdict, reason = ask(10, 12, INF, losses=12)
    assert verdict is Verdict.UNDECIDED
    assert "12 of 300 requests failed" in reason


@pytest.mark.parametrize(("low", "high"), [(20.0, 24.8), (25.2, 30.0)])
def test_a_distance_finer_than_the_noise_floor_is_refused(low: float, high: float) -> None:
    assert ask(low, (low + high) / 2, high, floor=0.1)[0] is not Verdict.UNDECIDED
    verdict, reason = ask(low, (low + high) / 2, high, floor=0.5)
    assert verdict is Verdict.UNDECIDED
    assert "0.200 ms from the allowance" in reason
    assert "noise floor of the measuring host (0.500 ms)" in reason


def test_a_missing_mode_is_named_and_only_a_certain_failure_stands() -> None:
    verdict, reason = ask(5, 6, 7, missing=("resumed", "cold"))
    assert verdict is Verdict.UNDECIDED
    assert "no resumed and cold connections were measured" in reason
    assert ask(30, 31, INF, missing=("cold",))[0] is Verdict.FAIL


def test_a_line_without_allowance_is_not_judged() -> None:
    assert ask(1, 2, 3, allowance=None)[0] is Verdict.UNDECIDED


limits = st.one_of(st.floats(0, 100), st.just(INF))


@given(limits, limits, limits, st.integers(0, 300), st.floats(0, 1))
def test_the_interval_alone_decides(
    a: float, b: float, c: float, losses: int, floor: float
) -> None:
    low, value, high = sorted((a, b, c))
    verdict, reason = ask(low, value, high, losses=losses, floor=floor)
    assert reason.endswith(".")
    assert (verdict is Verdict.PASS) == (high <= 25 and 25 - high >= floor)
    assert (verdict is Verdict.FAIL) == (low > 25 and low - 25 >= floor)
