"""Many streams together, and the network's part of a time to first token, against known truth."""

import math
import random

import numpy as np
import pytest
from tests.token_stream.links import MS, Path, gathering, plain, sends

from pathbudget.analysis.stream_delivery import (
    Delivery,
    evaluate_delivery,
    server_quantile,
    server_times,
    streams_of,
)
from pathbudget.probes.record import ClockSource, Failure, FailureKind, Sample, Stage, Stamps
from pathbudget.probes.stream.buffering import Verdict
from pathbudget.probes.stream.chunk_times import gaps_of

INTERVAL = 33 * MS
NOON = 1_790_000_000 * 10**9


def samples(path: Path, streams: int, chunks: int = 100, *, cut: int = 0) -> list[Sample]:
    """As the probe tells them."""
    rng = random.Random(8)
    told: list[Sample] = []
    for seq in range(streams):
        sent = sends(rng, chunks, INTERVAL)
        came = path(rng, sent)[: chunks - cut]
        notes = {"chunks_expected": chunks}
        told.append(Sample(seq, "ttft", NOON, came[0], notes=notes))  # type: ignore[arg-type]
        gaps = zip(gaps_of(came), gaps_of(sent[: chunks - cut]), strict=True)
        for part, (gap, left) in enumerate(gaps, 1):
            stamps = Stamps(kernel_received_ns=gap, user_received_ns=gap + 50_000)
            kernel = ClockSource.KERNEL
            told.append(
                Sample(
                    seq, "delivery_gap", NOON, gap, clock_source=kernel, stamps=stamps, part=part
                )
            )
            told.append(
                Sample(
                    seq,
                    "delivery_variation",
                    NOON,
                    gap - left,
                    clock_source=kernel,
                    part=part,
                    notes={"send_clock": "kernel"},
                )
            )
    return told


def evaluated(path: Path, streams: int = 10, **more: int) -> Delivery:
    found = evaluate_delivery(
        streams_of(samples(path, streams, **more)), interval_ns=INTERVAL, buffer_ns=100 * MS
    )
    assert found is not None
    return found


def test_a_plain_path_has_the_pdv_that_it_has() -> None:
    found = evaluated(plain(2 * MS), streams=20)
    p95 = found.pdv_ns[0.95]
    # Exponential of mean 2 ms: the quantile is 6 ms, and the interval holds it.
    assert p95.low <= 6 * MS <= p95.high
    assert p95.high < 8 * MS
    assert found.verdict is Verdict.NO
    assert found.stalls == 0
    assert found.stall_share[2] < 0.02
    assert found.chunks_expected == found.chunks_received == 2_000
    assert found.playout_buffer_ns.value >= found.pdv_ns[0.95].value


def test_loss_makes_stalls_and_no_proxy() -> None:
    found = evaluated(plain(MS, loss=0.005), streams=20)
    assert 3 <= found.stalls <= 25
    assert found.stall_share[1] <= found.stalls / 1_980 <= found.stall_share[2]
    assert found.verdict is Verdict.NO


@pytest.mark.parametrize("held", [8, 100], ids=["eight", "all"])
def test_a_proxy_is_found_and_its_bursts_are_counted(held: int) -> None:
    found = evaluated(gathering(held), streams=3)
    assert found.verdict is Verdict.BURSTS
    assert found.burst_index[0] == pytest.approx(1 - 1 / held, abs=0.02)
    assert found.releases.false_alarm < 1e-3


def test_streams_cut_short_count_as_far_as_they_came() -> None:
    found = evaluated(plain(), streams=4, cut=40)
    assert (found.chunks_expected, found.chunks_received) == (400, 240)


def test_no_stream_has_no_figures() -> None:
    lost = Sample(0, "ttft", NOON, failure=Failure(FailureKind.TIMEOUT, Stage.WAIT))
    assert streams_of([lost]) == []
    assert evaluate_delivery([], interval_ns=1, buffer_ns=1) is None


def requests(rng: random.Random, count: int) -> tuple[list[Sample], list[Sample], list[int]]:
    """TTFTs, round trips measured beside them, and what the server really took."""
    ttfts: list[Sample] = []
    trips: list[Sample] = []
    truth: list[int] = []
    for n in range(count):
        at = NOON + n * 1_000 * MS
        busy = n % 100 >= 50  # the path has a bad hour
        base = 30 * MS + (60 * MS if busy else 0)
        for k in range(6):
            trip = base + round(rng.expovariate(1 / MS))
            trips.append(Sample(n * 6 + k, "rtt", at + (k - 3) * 20 * MS, trip))
        server = round(rng.lognormvariate(math.log(100), 0.5) * MS)
        truth.append(server)
        ttfts.append(Sample(n, "ttft", at, server + base + round(rng.expovariate(1 / MS))))
    return ttfts, trips, truth


def test_each_request_is_paired_with_the_round_trips_of_its_time() -> None:
    ttfts, trips, truth = requests(random.Random(1), 400)
    found = server_times(ttfts, trips, window_ns=200 * MS)
    assert len(found) == 400
    inside = sum(
        one.low_ns - MS <= server <= one.high_ns + MS
        for one, server in zip(found, truth, strict=True)
    )
    assert inside > 0.9 * 400
    # A mean taken off every request is wrong by half the swing of the path each time.
    mean = sum(trip.value_ns or 0 for trip in trips) / len(trips)
    errors = [
        abs((one.value_ns or 0) - mean - server) for one, server in zip(ttfts, truth, strict=True)
    ]
    assert np.median(errors) > 25 * MS


def test_what_has_no_round_trip_near_it_is_left_out() -> None:
    ttfts, trips, _ = requests(random.Random(1), 10)
    assert len(server_times(ttfts, trips[:6], window_ns=200 * MS)) == 1
    lost = [Sample(0, "ttft", NOON, failure=Failure(FailureKind.TIMEOUT, Stage.WAIT))]
    assert server_times(lost, trips) == []


@pytest.mark.parametrize("p", [0.5, 0.9, 0.95])
def test_quantiles_of_the_server_lie_in_their_bounds_whatever_the_dependence(p: float) -> None:
    rng = np.random.default_rng(3)
    server = np.sort(rng.lognormal(np.log(100), 0.6, 3_000))
    trip = 30 + rng.exponential(5, 3_000)
    trip.sort()
    for pairing in (trip, trip[::-1], rng.permutation(trip)):
        low, high = server_quantile(server + pairing, trip, p)
        true = float(np.quantile(server, p, method="inverted_cdf"))
        assert low <= true <= high
        assert high - low < 60


def test_a_constant_network_leaves_no_doubt() -> None:
    server = np.arange(1.0, 101.0)
    low, high = server_quantile(server + 30, np.full(10, 30.0), 0.95)
    assert low == high == 95.0


def test_deadlines_that_were_missed_are_above_every_bound() -> None:
    waits = np.array([100.0] * 90 + [math.inf] * 10)
    low, high = server_quantile(waits, np.array([20.0, 25.0]), 0.95)
    assert low == high == math.inf
    with pytest.raises(ValueError, match="no samples"):
        server_quantile(np.array([]), np.array([1.0]), 0.5)
