"""Ingress of prompts: measured uploads where there are any, the model elsewhere, and its error."""

import pytest
from tests.request_lines.parts import (
    RTT_MS,
    N,
    echoes,
    evaluated,
    findings,
    line,
    measurement,
    sample,
    setups,
    tier,
    uploads,
)

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import Direction, Method, Mode, Verdict
from pathbudget.analysis.slow_start import extra_round_trips
from pathbudget.analysis.variants import asked_bytes
from pathbudget.probes.record import (
    ConnectionMode,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Stage,
    Transport,
)

TLS, QUIC = Transport.TLS, Transport.QUIC
COLD, WARM, IDLE = ConnectionMode.COLD, ConnectionMode.WARM, ConnectionMode.IDLE
SIZES = (32_000, 64_000)


def test_each_prompt_size_has_lines_and_one_is_the_headline() -> None:
    evaluation = evaluated([echoes()], tier(sizes=SIZES))
    for size in SIZES:
        found = line(evaluation, Mode.WARM, prompt_bytes=size)
        assert found.value_ms == (1 + extra_round_trips(size)) * RTT_MS
        assert (found.headline, found.upload) == (size == SIZES[0], "modelled")
    assert line(evaluation, Mode.WARM, direction=Direction.EGRESS).prompt_bytes == 0


def test_what_was_measured_takes_the_place_of_the_model() -> None:
    measured = uploads(TLS, WARM, [90.0] * N, size=32_000)
    evaluation = evaluated([echoes(), measured], tier(sizes=SIZES))
    network = line(evaluation, Mode.WARM, prompt_bytes=32_000)
    ingress = line(evaluation, Mode.WARM, direction=Direction.INGRESS, prompt_bytes=32_000)
    assert (network.value_ms, network.method) == (90.0, Method.MEASURED)
    assert (ingress.value_ms, ingress.method) == (90.0 - RTT_MS / 2, Method.SYMMETRIC_SPLIT)
    assert network.upload == ingress.upload == "measured"
    other = line(evaluation, Mode.WARM, prompt_bytes=64_000)
    assert (other.upload, other.method) == ("modelled", Method.DERIVED_FROM_RTT)


@pytest.mark.parametrize(("n", "upload"), [(2, "modelled"), (71, "modelled"), (72, "measured")])
def test_a_few_uploads_do_not_take_the_place_of_the_model(n: int, upload: str) -> None:
    """An idle probe makes a cold upload first: that never turns a decided line undecided."""
    path = [echoes(), setups(TLS, COLD, [80.0] * N)]
    few = uploads(TLS, COLD, [41.0 + i % 2 for i in range(n)], size=4_000, setup_ms=80.0)
    found = line(evaluated([*path, few], tier("cold", sizes=(4_000,))), Mode.COLD)
    assert (found.verdict, found.upload) == (Verdict.PASS, upload)
    assert found.n == (N if upload == "modelled" else n)
    words = f"Only {n} uploads of 4,000 bytes cold: the model of slow start stands."
    assert (words in found.reason) is (upload == "modelled")


def test_a_few_uploads_that_show_a_failure_count() -> None:
    """So slow that even their lower end is above the allowance, whatever the model says."""
    few = uploads(TLS, WARM, [900.0] * 60, size=4_000)
    found = line(evaluated([echoes(), few], tier(sizes=(4_000,))), Mode.WARM)
    assert (found.verdict, found.upload, found.n) == (Verdict.FAIL, "measured", 60)


def test_a_set_up_goes_with_the_upload_of_its_own_shot() -> None:
    """Slow set-ups have quick uploads: the joined p95 is below the sum of both."""
    slow = uploads(TLS, COLD, [50.0] * 40, size=32_000, setup_ms=100.0)
    quick = uploads(TLS, COLD, [100.0] * 360, size=32_000, setup_ms=50.0)
    evaluation = evaluated([echoes(), slow, quick], tier(sizes=SIZES))
    assert line(evaluation, Mode.COLD, prompt_bytes=32_000).value_ms == 150.0


@pytest.mark.parametrize(("error_ms", "flights"), [(0.0, 2), (13.0, 2.325), (-5.0, 1.875)])
def test_the_error_of_the_model_is_shown(error_ms: float, flights: float) -> None:
    """32,000 bytes are two flights by the model."""
    measured = uploads(TLS, IDLE, [2 * RTT_MS + error_ms] * N, size=32_000)
    (found,) = evaluated([echoes(), measured]).requests.uploads
    assert found.model_p50_ms == 2 * RTT_MS
    error = found.model_error_ms
    assert error is not None
    assert (error.value_ms, error.low_ms, error.high_ms) == (error_ms, error_ms, error_ms)
    assert found.flights_model == 2
    assert found.round_trips_measured == pytest.approx(flights)


@pytest.mark.parametrize(("rtt_ms", "took"), [(0.05, None), (40.0, 1.5125)])
def test_uploads_beside_a_tiny_round_trip_are_not_counted_in_it(
    rtt_ms: float, took: float | None
) -> None:
    """60 ms of computing are 1,200 round trips of a loopback."""
    measured = uploads(TLS, WARM, [60.5] * N, size=4_000)
    (found,) = evaluated([echoes(rtt_ms), measured]).requests.uploads
    assert found.round_trips_measured == took


def test_failed_uploads_and_failed_set_ups_are_requests_that_failed() -> None:
    half: list[float | None] = [90.0, None] * 200
    evaluation = evaluated([echoes(), uploads(TLS, WARM, half, size=32_000)], tier(sizes=SIZES))
    found = line(evaluation, Mode.WARM, prompt_bytes=32_000)
    assert (found.n, found.losses, found.verdict) == (400, 200, Verdict.FAIL)


def test_where_nothing_arrived_the_model_stands_and_a_finding_says_so() -> None:
    status = Failure(FailureKind.STATUS, Stage.WAIT, "404")
    none: list[float | None] = [None] * 50
    refused = uploads(TLS, WARM, none, size=32_000, failure=status)
    evaluation = evaluated([echoes(), refused], tier(sizes=SIZES))
    found = line(evaluation, Mode.WARM, prompt_bytes=32_000)
    assert (found.upload, found.value_ms) == ("modelled", 2 * RTT_MS)
    assert (
        "not one of 50 uploads of 32,000 bytes" in findings(evaluation)[FindingKind.UPLOAD_FAILED]
    )


def test_uploads_over_quic_are_of_quic_alone() -> None:
    both = [
        setups(QUIC, COLD, [40.0] * N),
        uploads(QUIC, COLD, [70.0] * N, size=32_000, setup_ms=40.0, flags=(Flag.FLOW_STALL,)),
    ]
    evaluation = evaluated([echoes(), *both], tier("cold", "quic", sizes=SIZES))
    assert line(evaluation, Mode.COLD, "quic", prompt_bytes=32_000).value_ms == 110.0
    assert line(evaluation, Mode.COLD, "tls", prompt_bytes=32_000).n == 0
    assert f"{N} of {N} uploads" in findings(evaluation)[FindingKind.FLOW_STALL]


def test_a_mixture_of_measured_and_modelled_says_both() -> None:
    a_tier = tier("mixture", sizes=SIZES, mixture={"warm": 0.5, "cold": 0.5})
    measured = uploads(TLS, WARM, [90.0] * N, size=32_000)
    evaluation = evaluated([echoes(), setups(TLS, COLD, [80.0] * N), measured], a_tier)
    found = line(evaluation, Mode.MIXTURE, prompt_bytes=32_000)
    assert (found.upload, found.method) == ("both", Method.DERIVED_FROM_RTT)
    assert found.value_ms == 160.0


def test_a_lost_echo_beside_an_upload_says_nothing_of_it() -> None:
    echo = (sample(i, Metric.RTT, RTT_MS if i % 2 else None) for i in range(N))
    measured = uploads(TLS, WARM, [90.0] * N, size=32_000)
    evaluation = evaluated([measurement(echo, "icmp"), measured], tier(sizes=SIZES))
    for direction, expected in ((Direction.INGRESS, 70.0), (Direction.NETWORK, 90.0)):
        found = line(evaluation, Mode.WARM, direction=direction, prompt_bytes=32_000)
        assert (found.losses, found.value_ms) == (0, expected)


def test_versions_of_http_are_not_mixed() -> None:
    """HTTP/2 waits for its window and HTTP/1.1 does not: each is a group, the larger has lines."""
    slow = uploads(TLS, WARM, [130.0] * 100, size=32_000, version="2")
    quick = uploads(TLS, WARM, [90.0] * N, size=32_000, version="1.1")
    evaluation = evaluated([echoes(), slow, quick], tier(sizes=SIZES))
    assert {(one.version, one.n) for one in evaluation.requests.uploads} == {("2", 100), ("1.1", N)}
    found = line(evaluation, Mode.WARM, prompt_bytes=32_000)
    assert (found.n, found.value_ms) == (N, 90.0)
    assert {one.variant for one in evaluation.summaries if one.metric == "upload"} == {
        "32000 bytes 2",
        "32000 bytes 1.1",
    }


@pytest.mark.parametrize(
    ("options", "size"),
    [
        ({"bytes": 32_000, "tokens": 1_000}, 32_000),
        ({"bytes": 0, "tokens": 8_000}, 32_000),
        ({"tokens": 1_000, "bytes_per_token": 3.5}, 3_500),
        ({}, None),
        ({"tokens": "many"}, None),
    ],
    ids=["bytes", "tokens", "bytes per token", "nothing", "a word"],
)
def test_the_size_that_was_asked_for(options: dict[str, object], size: int | None) -> None:
    assert asked_bytes(options) == size
