"""Packets in their order: collecting, flows, trains, load, timers, hop loss, findings."""

from dataclasses import replace

import msgspec
import numpy as np
import pytest
from tests.variation.simulated_paths import (
    MS,
    START,
    Way,
    measurement_of,
    samples_of,
    simulate,
    stream_of,
)

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.flows import flow_spread
from pathbudget.analysis.hop_loss import Hop, HopVerdict, judge_hops
from pathbudget.analysis.packets import PacketCollector
from pathbudget.analysis.results import Evaluation
from pathbudget.analysis.stream_summary import summarise_stream
from pathbudget.analysis.timer_artefacts import timer_artefacts
from pathbudget.analysis.trains import trains_of
from pathbudget.analysis.under_load import added_by_load
from pathbudget.probes.record import (
    Failure,
    FailureKind,
    Flag,
    Measurement,
    Metric,
    Sample,
    Stage,
)
from pathbudget.sites.catalogue import Catalogue

TIMEOUT = Failure(FailureKind.TIMEOUT, Stage.WAIT)


def echoes(
    values_ms: list[float | None], *, gap_ms: float = 10.0, flags: tuple[str, ...] = ()
) -> tuple[Sample, ...]:
    """ICMP round trips; None is a timeout."""
    return tuple(
        Sample(
            i,
            Metric.RTT,
            START + round(i * gap_ms * MS),
            None if value is None else round(value * MS),
            TIMEOUT if value is None else None,
            flags=() if value is None else flags,
        )
        for i, value in enumerate(values_ms)
    )


def evaluated(*measurements: Measurement) -> Evaluation:
    return evaluate(measurements, Catalogue({}, {}, {}), EvaluationOptions(tiers=()))


def kinds(found: Evaluation) -> set[FindingKind]:
    return {one.kind for one in found.findings}


def test_a_stream_is_put_together_from_the_samples_of_its_packets() -> None:
    made = simulate(1, n=200)
    stream = stream_of(measurement_of(samples_of(made)))
    assert stream.n == 200
    assert (stream.lost == made.stream.lost).all()
    whole = stream.forward.base_ns + stream.forward.values_ns
    assert whole == pytest.approx(made.stream.forward.values_ns, nan_ok=True)
    assert (stream.marks == made.stream.marks).all()
    assert stream.tmax_ns == 2_000_000_000


def test_law_cutting_a_measurement_in_two_changes_nothing() -> None:
    """Even where the samples of one packet fall on both sides of the cut."""
    samples = samples_of(simulate(2, n=300))
    whole = summarise_stream(stream_of(measurement_of(samples)))
    parts = summarise_stream(
        stream_of(
            measurement_of(samples[431:], name="m2"), measurement_of(samples[:431], name="m1")
        )
    )
    assert msgspec.json.encode(parts) == msgspec.json.encode(whole)


def test_packets_of_two_classes_are_two_streams() -> None:
    collector = PacketCollector()
    for dscp in (0, 46):
        one = measurement_of(echoes([10.0] * 5), name=f"m{dscp}")
        collector.add(msgspec.structs.replace(one, options={"dscp": dscp}))
    assert [stream.key.options for stream in collector.finish()] == ["dscp=0", "dscp=46"]


def test_pitfall_15_a_negative_round_trip_is_rejected_and_counted_and_not_zeroed() -> None:
    samples = (*echoes([10.0] * 5), Sample(5, Metric.RTT, START + 60 * MS, -3 * MS))
    found = evaluated(measurement_of(samples, probe="icmp"))
    (summary,) = found.summaries
    assert (summary.n, summary.minimum_ms) == (5, 10.0)
    assert [(one.what, one.n) for one in found.exclusions] == [("rtt samples below zero", 1)]
    (stream,) = found.streams
    assert (stream.sent, stream.lost, stream.ways[0].n) == (6, 0, 5)


def test_pitfall_19_a_late_send_is_counted_where_it_was_meant_to_be() -> None:
    samples = echoes([10.0] * 40, flags=(Flag.HOST_BUSY,))
    found = evaluated(measurement_of(samples, probe="icmp"))
    assert found.streams[0].host_busy == 40
    assert FindingKind.HOST_BUSY in kinds(found)


def test_pitfall_27_an_unreachable_answer_is_a_loss_and_no_round_trip() -> None:
    refused = Failure(FailureKind.UNREACHABLE, Stage.WAIT, icmp_type=3, icmp_code=1)
    samples = (*echoes([10.0] * 5), Sample(5, Metric.RTT, START + 60 * MS, failure=refused))
    found = evaluated(measurement_of(samples, probe="icmp"))
    assert found.summaries[0].failures == {"unreachable/wait": 1}
    assert found.streams[0].lost == 1


def test_pitfall_28_every_packet_of_a_train_has_its_own_outcome() -> None:
    """Trains of five: each packet queues 1 ms longer, the last one of every train is lost."""
    values = [None if i % 5 == 4 else 10.0 + i % 5 for i in range(200)]
    measurement = measurement_of(
        echoes(values, gap_ms=0.01), schedule="poisson 1s train 5 gap 0s seed 7"
    )
    stream = stream_of(measurement)
    trains = trains_of(stream, stream.round_trips_ns)
    assert trains is not None
    assert (trains.length, trains.trains) == (5, 40)
    assert [place.lost for place in trains.positions] == [0, 0, 0, 0, 40]
    growths = [place.growth.value / MS for place in trains.positions[1:4] if place.growth]
    assert growths == [1.0, 2.0, 3.0]
    assert trains.growth is not None
    assert trains.growth.value == np.inf


def test_trains_show_how_far_packets_were_pulled_apart() -> None:
    values: list[float | None] = [10.0 + 0.5 * (i % 4) for i in range(160)]
    stream = stream_of(
        measurement_of(echoes(values, gap_ms=0.01), schedule="poisson 1s train 4 gap 0s seed 7")
    )
    trains = trains_of(stream, stream.round_trips_ns)
    assert trains is not None
    assert trains.dispersion is not None
    assert trains.dispersion.value / MS == pytest.approx(0.5)
    assert trains_of(replace(stream, key=stream.key._replace(train=1)), stream.received_ns) is None


def test_flows_of_one_path_have_no_spread_as_often_as_stated() -> None:
    """400 paths without ECMP: at 95 % confidence 20 alarms are allowed, and far fewer come."""
    rng = np.random.default_rng(1)
    flows = np.tile(np.arange(8), 50)
    alarms = 0
    for _ in range(400):
        spread = flow_spread(flows, rng.gamma(2.0, MS, 400))
        assert spread is not None
        alarms += spread.is_seen
    assert alarms <= 20


def test_flows_of_two_paths_show_how_far_the_paths_are_apart() -> None:
    rng = np.random.default_rng(2)
    flows = np.tile(np.arange(8), 60)
    hits = 0
    for _ in range(40):
        delays = rng.gamma(2.0, 0.2 * MS, 480) + (flows % 2) * 3 * MS + 10 * MS
        spread = flow_spread(flows, delays)
        assert spread is not None
        assert spread.is_seen
        hits += spread.low_ns <= 3 * MS <= spread.high_ns
    assert hits >= 38


def test_too_few_samples_or_flows_leave_the_spread_undecided() -> None:
    assert flow_spread(np.zeros(50, dtype=np.int64), np.ones(50)) is None
    assert flow_spread(np.full(50, -1), np.ones(50)) is None
    few = flow_spread(np.array([1, 1, 2, 2]), np.array([1.0, 1.0, 9.0, 9.0]) * MS)
    assert few is not None
    assert not few.is_seen
    assert few.may_miss_paths


def test_a_spread_below_the_noise_floor_is_none() -> None:
    flows = np.tile(np.arange(2), 200)
    delays = 10 * MS + flows * 5_000.0 + np.random.default_rng(3).random(400) * 100
    fine, coarse = flow_spread(flows, delays), flow_spread(flows, delays, finest_ns=10_000)
    assert fine is not None
    assert coarse is not None
    assert fine.is_seen
    assert not coarse.is_seen


@pytest.mark.parametrize("timer", [40.0, 200.0, 500.0, 1000.0, 3000.0])
def test_pitfall_20_durations_that_cluster_at_a_timer_are_found(timer: float) -> None:
    rng = np.random.default_rng(4)
    durations = 2.0 + rng.gamma(2.0, 0.3, 400)
    durations[:20] += timer
    found = timer_artefacts(durations * MS)
    assert [one.timer_ms for one in found] == [timer]
    assert found[0].n >= 15


@pytest.mark.parametrize("seed", range(20))
def test_pitfall_20_no_timer_is_seen_in_smooth_noise(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for durations in (
        rng.gamma(1.5, 30.0, 2000) + 5,
        rng.lognormal(3.0, 1.2, 2000),
        rng.exponential(200.0, 2000),
        40 + rng.gamma(2.0, 1.0, 2000),
        rng.normal(41.0, 1.0, 2000),
    ):
        assert timer_artefacts(durations * MS) == ()


def test_pitfall_20_a_timer_is_a_finding_of_the_report() -> None:
    values: list[float | None] = [2.0 + 0.01 * (i % 7) for i in range(100)]
    values[::10] = [42.0 + 0.01 * i for i in range(10)]
    found = evaluated(measurement_of(echoes(values), probe="icmp"))
    assert FindingKind.TIMER_ARTEFACT in kinds(found)


def test_pitfall_08_loaded_samples_are_apart_and_their_cost_has_an_interval() -> None:
    rng = np.random.default_rng(5)
    idle: list[float | None] = list(20 + rng.gamma(1.0, 1.0, 300))
    loaded: list[float | None] = list(70 + rng.gamma(1.0, 5.0, 300))
    found = evaluated(
        measurement_of(echoes(idle), probe="icmp"),
        measurement_of(echoes(loaded, flags=(Flag.LOADED,)), probe="icmp", name="m2"),
    )
    idle_series, loaded_series = sorted(found.summaries, key=lambda one: one.loaded)
    assert idle_series.maximum_ms is not None
    assert idle_series.maximum_ms < 40
    assert (loaded_series.loaded, loaded_series.n) == (True, 300)
    middle = found.under_load[0]
    assert middle.added_ms.low_ms is not None
    assert middle.added_ms.high_ms is not None
    truth = 50 + 4 * float(np.log(2))
    assert middle.added_ms.low_ms < truth < middle.added_ms.high_ms
    assert FindingKind.ADDED_BY_LOAD in kinds(found)


def test_pitfall_08_a_loss_under_load_is_no_loss_of_the_idle_path() -> None:
    samples = list(echoes([20.0] * 50))
    busy = [msgspec.structs.replace(one, flags=(Flag.LOADED,)) for one in samples[25:]]
    busy[10] = msgspec.structs.replace(busy[10], value_ns=None, failure=TIMEOUT, flags=())
    found = evaluated(measurement_of((*samples[:25], *busy), probe="icmp"))
    assert {one.loaded: (one.n, one.losses) for one in found.summaries} == {
        False: (25, 0),
        True: (25, 1),
    }


def test_pitfall_07_one_number_never_stands_alone() -> None:
    """What is added by load is unbounded where either side sets no limit."""
    few = added_by_load(np.array([20.0, 21.0]) * MS, np.array([90.0, 95.0]) * MS, 0.95)
    assert few is not None
    assert few.high == np.inf
    assert added_by_load(np.array([]), np.array([1.0]), 0.5) is None


def test_pitfall_25_loss_at_a_hop_that_does_not_persist_is_a_rate_limit() -> None:
    hops = [Hop(1, 100, 100), Hop(2, 100, 31), Hop(3, 100, 0), Hop(4, 100, 100)]
    verdicts = [one.verdict for one in judge_hops(hops, reached=True)]
    assert verdicts == [
        HopVerdict.CLEAN,
        HopVerdict.RATE_LIMITED,
        HopVerdict.SILENT,
        HopVerdict.CLEAN,
    ]


def test_pitfall_25_loss_that_persists_to_the_destination_is_real() -> None:
    hops = [Hop(1, 200, 200), Hop(2, 200, 160), Hop(3, 200, 120), Hop(4, 200, 158)]
    judged = judge_hops(hops, reached=True)
    assert [one.verdict for one in judged][1:] == [
        HopVerdict.LOSS,
        HopVerdict.RATE_LIMITED,
        HopVerdict.LOSS,
    ]
    assert judged[1].lost_at_least < 0.2
    unreached = judge_hops(hops, reached=False)
    assert unreached[1].verdict is HopVerdict.UNDECIDED


def test_outages_are_in_the_report_with_both_ends_uncertain() -> None:
    values: list[float | None] = [10.0] * 300 + [None] * 60 + [10.0] * 300
    found = evaluated(measurement_of(echoes(values), probe="icmp"))
    (outage,) = found.streams[0].outages.outages
    assert (outage.shortest_ms, outage.longest_ms, outage.lost) == (590.0, 610.0, 60)
    assert FindingKind.OUTAGE in kinds(found)
    assert found.streams[0].outages.false_alarms_expected < 1e-3


def test_reordering_and_duplicates_are_findings() -> None:
    values: list[float | None] = [35.0 if i % 20 == 0 else 10.0 for i in range(200)]
    samples = list(echoes(values))
    samples[3] = msgspec.structs.replace(samples[3], flags=(Flag.DUPLICATED,))
    found = evaluated(measurement_of(tuple(samples), probe="icmp"))
    assert {FindingKind.REORDERED, FindingKind.DUPLICATED} <= kinds(found)
    (round_trip,) = found.streams[0].ways
    assert (round_trip.reordered, round_trip.reordered_largest_extent) == (10, 2)
    assert found.streams[0].duplicated == 1


def test_reordering_is_seen_in_the_direction_where_it_happened() -> None:
    """1 ms apart; the way there varies by milliseconds, the way back not at all."""
    made = simulate(
        3, n=600, gap_ms=1.0, out=Way(30.0, 1.0, 3.0), back=Way(20.0, 1.0, 0.001), step_ms=50.0
    )
    summary = summarise_stream(made.stream)
    there, back, both = summary.ways
    assert there.reordered is not None
    assert there.reordered > 50
    assert back.reordered is not None
    assert back.reordered < 5
    assert both.reordered is not None


def test_a_calm_path_has_no_finding_of_a_stream() -> None:
    rng = np.random.default_rng(6)
    values: list[float | None] = list(20 + rng.gamma(2.0, 0.5, 2000))
    found = evaluated(measurement_of(echoes(values, gap_ms=100.0), probe="icmp"))
    assert kinds(found) <= {FindingKind.USER_CLOCK, FindingKind.UNKNOWN_PLACE}


def test_variation_of_the_round_trip_is_measured_without_a_reflector() -> None:
    rng = np.random.default_rng(7)
    values: list[float | None] = list(20 + rng.exponential(1.0, 1000))
    (stream,) = evaluated(measurement_of(echoes(values), probe="icmp")).streams
    (round_trip,) = stream.ways
    p95 = round_trip.pdv_p95_ms
    assert p95 is not None
    assert p95.low_ms is not None
    assert p95.high_ms is not None
    assert p95.low_ms < np.log(20) < p95.high_ms
    assert set(round_trip.extras) == {
        "interarrival_jitter_ms",
        "mean_deviation_ms",
        "p95_minus_p50_ms",
        "smoothed_rtt_variation_ms",
    }
