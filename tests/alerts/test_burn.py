"""Budget lines at risk: burn rates against calculations by hand, and honest about few requests."""

import math
from collections.abc import Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.alerts.conftest import AT, HOUR, MINUTE, SECOND, echoes

from pathbudget.analysis.alerts.burn import burn_signals
from pathbudget.analysis.alerts.model import AlertKind, Severity, Signal
from pathbudget.analysis.alerts.requests_over import RequestsOver
from pathbudget.analysis.alerts.rules import BudgetRule, BurnWindow
from pathbudget.analysis.alerts.shares import (
    Count,
    WindowCounts,
    fewest_above,
    mixed_share,
    share_of,
)
from pathbudget.analysis.proportion import clopper_pearson
from pathbudget.probes.record import ConnectionMode, Failure, FailureKind, Sample, Stage, Transport
from pathbudget.sites.catalogue import Tier

TIER = Tier(
    name="voice",
    title="Voice",
    target_ms=400,
    components={"network": 25.0},
    percentile=95.0,
    mode="warm",
    prompt_bytes=0,
    mixture={"warm": 1.0},
)
WINDOW = BurnWindow(long_ns=HOUR, short_ns=5 * MINUTE, burn_rate=10, severity=Severity.PAGE)


def rule(*windows: BurnWindow) -> BudgetRule:
    return BudgetRule(name="lines", kind=AlertKind.BUDGET_AT_RISK, windows=windows or (WINDOW,))


def asked(
    values: Sequence[float | None], now: int | None = None, *windows: BurnWindow
) -> list[Signal]:
    requests = RequestsOver([TIER], HOUR, 25 * SECOND)
    requests.see(echoes(values))
    at = AT + len(values) * SECOND if now is None else now
    requests.settle(at)
    return list(burn_signals(rule(*windows), requests, at))


def test_the_rate_is_the_share_over_divided_by_what_the_percentile_leaves() -> None:
    values: Sequence[float | None] = [20.0, 20.0, 20.0, 30.0] * 900
    (signal,) = asked(values)
    low, high = clopper_pearson(900, 3600)
    assert signal.numbers["long_burn_rate"] == pytest.approx(0.25 / 0.05)
    assert signal.numbers["long_burn_rate_low"] == pytest.approx(low / 0.05, abs=1e-4)
    assert signal.numbers["long_burn_rate_high"] == pytest.approx(high / 0.05, abs=1e-4)
    assert signal.numbers["long_requests"] == 3600
    assert signal.numbers["short_requests"] == 300
    assert signal.bad is False
    assert "25.0 % of 3,600 requests over 25 ms" in signal.summary


def test_it_is_bad_when_both_windows_are_surely_above() -> None:
    assert asked([30.0] * 3600)[0].bad is True
    assert asked([None] * 3600)[0].bad is True  # a request that failed is over
    assert asked([25.0] * 3600)[0].bad is False  # the allowance itself is within


def test_a_past_outage_is_over_as_soon_as_the_short_window_says_so() -> None:
    half: Sequence[float | None] = [30.0] * 2400 + [20.0] * 1200
    (signal,) = asked(half)
    assert signal.numbers["long_burn_rate"] == pytest.approx(2400 / 3600 / 0.05, rel=1e-3)
    assert signal.bad is False


def test_a_blip_is_bad_in_the_short_window_alone() -> None:
    blip: Sequence[float | None] = [20.0] * 3300 + [30.0] * 300
    (signal,) = asked(blip)
    assert signal.numbers["short_burn_rate"] == pytest.approx(20, abs=0.7)
    assert signal.bad is False


@pytest.mark.parametrize("n", range(1, 12))
def test_few_requests_decide_only_what_they_can(n: int) -> None:
    needed = fewest_above(0.5, 0.95)
    (signal,) = asked([30.0] * n)
    assert signal.bad is (True if n >= needed else None)
    if n < needed:
        assert f"{needed} could" in signal.summary


@given(st.floats(0.01, 0.99), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
def test_the_fewest_that_decide(share: float, confidence: float) -> None:
    n = fewest_above(share, confidence)
    assert share_of(Count(n, n), confidence).low > share - 1e-9
    assert n == 1 or share_of(Count(n - 1, n - 1), confidence).low <= share + 1e-9


def test_windows_end_at_the_newest_request_and_old_ones_say_nothing_of_now() -> None:
    values: Sequence[float | None] = [30.0] * 600
    assert asked(values, AT + 30 * MINUTE)[0].bad is True  # results came late
    assert asked(values, AT + 3 * HOUR)[0].bad is None


def test_each_severity_is_an_alert_of_its_own() -> None:
    ticket = BurnWindow(long_ns=HOUR, short_ns=5 * MINUTE, burn_rate=2, severity=Severity.TICKET)
    values: Sequence[float | None] = [20.0, 20.0, 20.0, 30.0] * 900
    found = {one.severity: one.bad for one in asked(values, None, WINDOW, ticket)}
    assert found == {Severity.PAGE: False, Severity.TICKET: True}


def test_a_sample_of_a_clock_that_is_ahead_counts_for_nothing() -> None:
    requests = RequestsOver([TIER], HOUR, 25 * SECOND)
    requests.see(echoes([30.0] * 100))
    requests.see(echoes([20.0] * 100, AT + 24 * HOUR, name="ahead"))
    requests.settle(AT + 2 * MINUTE)
    (signal,) = burn_signals(rule(), requests, AT + 2 * MINUTE)
    assert signal.numbers["long_requests"] == 100


def test_pieces_of_a_measurement_count_like_the_whole() -> None:
    values: Sequence[float | None] = [20.0, 30.0, None] * 200
    whole = asked(values)
    requests = RequestsOver([TIER], HOUR, 25 * SECOND)
    for begin in range(0, 600, 37):
        requests.see(echoes(values[begin : begin + 37], AT + begin * SECOND))
        requests.settle(AT + 600 * SECOND)
    assert list(burn_signals(rule(), requests, AT + 600 * SECOND)) == whole


def test_modes_of_a_mixture_hold_together_and_what_is_missing_may_be_anything() -> None:
    parts = [(0.9, Count(90, 900)), (0.1, Count())]
    share = mixed_share(parts, 0.95)
    low, high = clopper_pearson(90, 900)
    assert share.low == pytest.approx(0.9 * low)
    assert share.high == pytest.approx(0.9 * high + 0.1)
    assert share.value == pytest.approx(0.1)
    both = mixed_share([(0.9, Count(90, 900)), (0.1, Count(5, 10))], 0.95)
    wider, narrower = clopper_pearson(90, 900, 0.975), clopper_pearson(5, 10, 0.975)
    assert both.low == pytest.approx(0.9 * wider[0] + 0.1 * narrower[0])
    nothing = mixed_share([(1.0, Count())], 0.95)
    assert (nothing.low, nothing.high, nothing.n) == (0.0, 1.0, 0)
    assert math.isnan(nothing.value)


@given(st.lists(st.tuples(st.integers(0, 400), st.booleans()), min_size=1, max_size=80))
def test_windows_hold_what_lies_in_their_slices(events: list[tuple[int, bool]]) -> None:
    counts = WindowCounts(100, 10)
    for at, hit in events:
        counts.add(np.array([AT + at]), np.array([hit]))
    newest = max(at for at, _ in events)
    until = counts.newest_unix_ns
    assert until is not None
    assert until == AT + newest // 10 * 10 + 10
    inside = [hit for at, hit in events if newest // 10 - at // 10 < 10]
    assert counts.within(until, 100) == Count(sum(inside), len(inside))


def test_uploads_that_were_timed_stand_where_they_are_enough() -> None:
    tier = replace(TIER, prompt_bytes=4000)

    def rate(uploads: int, failure: Failure | None = None) -> float | None:
        requests = RequestsOver([tier], HOUR, 25 * SECOND)
        requests.see(echoes([20.0] * 600))
        samples = tuple(
            Sample(i, "upload", AT + i * SECOND, 30_000_000, mode=ConnectionMode.WARM)
            if failure is None
            else Sample(i, "upload", AT + i * SECOND, failure=failure, mode=ConnectionMode.WARM)
            for i in range(uploads)
        )
        requests.see(
            msgspec.structs.replace(
                echoes([]),
                id="up",
                probe="upload",
                samples=samples,
                options={"bytes": 4000, "mode": "warm"},
                transport=Transport.TLS,
            )
        )
        requests.settle(AT + 600 * SECOND)
        (signal,) = burn_signals(rule(), requests, AT + 600 * SECOND)
        return signal.numbers["long_burn_rate"]

    assert rate(71) == 0
    assert rate(72) == pytest.approx(20)
    assert rate(72, Failure(FailureKind.TIMEOUT, Stage.WAIT)) == pytest.approx(20)
    assert rate(72, Failure(FailureKind.STATUS, Stage.WAIT)) == 0  # no sink is there
