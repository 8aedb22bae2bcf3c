"""What only some packets may be compared for: those of one train, and those of one sweep."""

import itertools
import random
from collections.abc import Sequence

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

from pathbudget.agents.campaign.schedule import ScheduleKind, Train, numbered_trains, send_times
from pathbudget.analysis.directions import forward_loss, reverse_loss
from pathbudget.analysis.flows import stream_flow_spread
from pathbudget.analysis.packets import LOST_REVERSE
from pathbudget.analysis.stream_findings import stream_findings
from pathbudget.analysis.stream_results import StreamSummary, TrainInfo
from pathbudget.analysis.stream_summary import summarise_stream
from pathbudget.analysis.trains import train_numbers, trains_of
from pathbudget.probes.record import (
    Direction,
    Failure,
    FailureKind,
    Flag,
    Measurement,
    Metric,
    Sample,
    Stage,
    Stamps,
)

SECOND = 1_000 * MS
HOUR = 3_600 * SECOND
TIMEOUT = Failure(FailureKind.TIMEOUT, Stage.WAIT)


def echo(seq: int, at_ns: int, value_ms: float | None, flow: int | None = None) -> Sample:
    """One round trip; None is a timeout."""
    value = None if value_ms is None else round(value_ms * MS)
    failure = TIMEOUT if value is None else None
    return Sample(seq, Metric.RTT, START + at_ns, value, failure, flow=flow)


def trains_sent(samples: Sequence[Sample], length: int, gap: str = "0s") -> TrainInfo:
    schedule = f"poisson 1s train {length} gap {gap} seed 1"
    summary = summarise_stream(stream_of(measurement_of(tuple(samples), schedule=schedule)))
    (train,) = summary.trains
    return train


def growths(train: TrainInfo) -> list[float | None]:
    return [one.growth_p50_ms.value_ms for one in train.positions if one.growth_p50_ms]


def test_trains_that_overlap_in_time_are_not_mixed() -> None:
    """Ten packets 50 ms apart at random instants: the packet of place p takes p ms longer."""
    instants = send_times(ScheduleKind.POISSON, SECOND, 300 * SECOND, random.Random(1))
    packets = list(numbered_trains(instants, Train(10, 50 * MS)))
    assert [seq for _, seq in packets] != sorted(seq for _, seq in packets)
    train = trains_sent([echo(seq, at, 20.0 + seq % 10) for at, seq in packets], 10, "50ms")
    assert growths(train) == [float(place) for place in range(1, 10)]
    for place in train.positions[1:]:
        assert place.growth_p50_ms is not None
        assert (place.growth_p50_ms.low_ms, place.growth_p50_ms.high_ms) == (place.position,) * 2
    assert train.trains == len(packets) // 10


def test_runs_that_count_from_nought_again_begin_other_trains() -> None:
    runs, sequence = np.array([0, 0, 0, 1, 1, 1]), np.array([0, 1, 2, 0, 1, 2])
    assert train_numbers(runs, sequence, 2).tolist() == [0, 0, 1, 2, 2, 3]
    overlapping = np.array([0, 1, 3, 2, 4, 5])
    assert train_numbers(np.zeros(6, dtype=np.int64), overlapping, 3).tolist() == [0, 0, 1, 0, 1, 1]


def test_the_two_runs_of_a_train_stream_are_told_apart_in_the_samples() -> None:
    """The second run is 5 ms slower in all; within trains nothing grows."""
    first = tuple(echo(i, i // 4 * SECOND, 10.0) for i in range(40))
    again = tuple(echo(i, HOUR + i // 4 * SECOND, 15.0) for i in range(40))
    schedule = "poisson 1s train 4 gap 0s seed 1"
    made = [measurement_of(s, name=n, schedule=schedule) for n, s in (("b", again), ("a", first))]
    stream = stream_of(*made)
    found = trains_of(stream, stream.round_trips_ns)
    assert found is not None
    assert found.trains == 20
    assert [one.growth.value for one in found.positions if one.growth] == [0.0, 0.0, 0.0]


def test_a_lost_packet_is_slower_than_any_in_the_growth_of_its_place() -> None:
    """The last of ten is dropped from six trains of ten by the queue that the others fill."""
    samples = [
        echo(k * 10 + p, k * SECOND + p, None if p == 9 and k % 10 < 6 else 20 + p * 0.1)
        for k, p in itertools.product(range(400), range(10))
    ]
    train = trains_sent(samples, 10)
    assert train.growth_p95_ms is not None
    assert train.growth_p95_ms.value_ms is None  # unbounded
    assert train.dispersion_p50_ms is not None
    assert train.dispersion_p50_ms.value_ms is None
    assert growths(train)[:8] == pytest.approx([0.1 * p for p in range(1, 9)])
    assert growths(train)[8] is None
    assert train.positions[9].lost == 240


def test_few_losses_leave_the_median_and_take_the_tail() -> None:
    samples = [
        echo(k * 3 + p, k * SECOND, None if p == 2 and k % 10 == 0 else 20.0 + p)
        for k, p in itertools.product(range(200), range(3))
    ]
    train = trains_sent(samples, 3)
    assert growths(train) == [1.0, 2.0]
    assert train.growth_p95_ms is not None
    assert train.growth_p95_ms.value_ms is None


def test_a_train_without_its_first_packet_tells_of_its_losses_alone() -> None:
    fates = [(None, 11.0), (None, None), (10.0, 11.0)]
    samples = [
        echo(2 * k + p, k * SECOND, fates[k % 3][p])
        for k, p in itertools.product(range(30), range(2))
    ]
    stream = stream_of(measurement_of(tuple(samples), schedule="poisson 1s train 2 gap 0s seed 1"))
    found = trains_of(stream, stream.round_trips_ns)
    assert found is not None
    assert found.growth is not None
    assert found.growth.n == 20  # ten lost, ten that took 1 ms longer, ten without a number


def test_growth_of_one_way_does_not_pay_for_losses_of_the_other() -> None:
    """Trains of four; of every second one the last packet is lost on the way back."""
    made = simulate(3, n=2_000, out=Way(30.0, 2.0, 0.1), back=Way(20.0, 2.0, 0.1))
    lost = np.arange(2_000) % 8 == 3
    made.stream.round_trips_ns[lost] = np.inf
    made.stream.marks[lost] = LOST_REVERSE
    schedule = "poisson 50ms train 4 gap 1ms seed 1"
    there, back = summarise_stream(
        stream_of(measurement_of(samples_of(made), schedule=schedule))
    ).trains
    assert [str(one.way) for one in (there, back)] == ["forward", "reverse"]
    assert there.growth_p95_ms is not None
    assert there.growth_p95_ms.value_ms is not None
    assert back.growth_p95_ms is not None
    assert back.growth_p95_ms.value_ms is None


def test_a_train_over_two_flows_takes_no_difference_of_paths_for_a_queue() -> None:
    """Four packets on two flows in turn, 3 ms apart; each packet queues 0.1 ms longer."""
    samples = [
        echo(k * 4 + p, k * SECOND, 20.0 + 3 * (p % 2) + 0.1 * p, 7 + p % 2)
        for k, p in itertools.product(range(100), range(4))
    ]
    train = trains_sent(samples, 4)
    assert [one.growth_p50_ms is None for one in train.positions] == [True, True, False, True]
    assert growths(train) == pytest.approx([0.2])
    assert train.growth_p95_ms is None


def swept(
    name: str,
    at_ns: int,
    base_ms: float,
    ports: Sequence[int],
    extra_ms: Sequence[float],
    n: int = 400,
) -> Measurement:
    """A run that uses its ports in turn, each on a path of its own length."""
    rng = random.Random(name)
    samples = tuple(
        echo(
            i,
            at_ns + i * SECOND,
            base_ms + extra_ms[i % len(ports)] + rng.expovariate(5.0),
            ports[i % len(ports)],
        )
        for i in range(n)
    )
    return measurement_of(samples, name=name)


def words(summary: StreamSummary) -> set[str]:
    return {str(finding.kind) for finding in stream_findings([summary])}


def test_two_runs_on_one_port_each_are_neither_ecmp_nor_a_path_change() -> None:
    """STAMP tells its port even where it has one; the second run had another, two hours later."""
    runs = swept("a", 0, 20.0, [40_001], [0]), swept("b", 2 * HOUR, 23.0, [51_234], [0])
    summary = summarise_stream(stream_of(*runs))
    assert summary.flow_spreads == ()
    assert summary.path_changes == ()
    assert not words(summary) & {"ecmp_spread", "path_changed"}
    p95 = summary.ways[-1].pdv_p95_ms
    assert p95 is not None
    assert p95.value_ms is not None
    assert p95.value_ms < 1.0  # each run over its own minimum


def test_the_path_of_one_port_may_change_within_a_run_and_between_two() -> None:
    for second in (swept("b", 400 * SECOND, 23.0, [4], [0]), swept("b", HOUR, 23.0, [4], [0])):
        summary = summarise_stream(stream_of(swept("a", 0, 20.0, [4], [0]), second))
        assert [round(one.round_trip_ms) for one in summary.path_changes] == [3]
        assert "path_changed" in words(summary)
    samples = tuple(echo(i, i * SECOND, 20.0 + 3 * (i >= 200) + 0.01 * (i % 7)) for i in range(400))
    assert len(summarise_stream(stream_of(measurement_of(samples))).path_changes) == 1


def test_an_echo_that_tells_no_flow_has_another_identifier_in_each_run() -> None:
    first = tuple(echo(i, i * SECOND, 20.0 + 0.01 * (i % 7)) for i in range(200))
    again = tuple(echo(i, HOUR + i * SECOND, 23.0 + 0.01 * (i % 7)) for i in range(200))
    two = measurement_of(first, name="a"), measurement_of(again, name="b")
    assert summarise_stream(stream_of(*two)).path_changes == ()


def test_flows_are_compared_within_each_run_whatever_the_runs_differ_by() -> None:
    """Two sweeps, 20 ms apart in level, each over two paths that are 3 ms apart."""
    extra = [0.0, 3.0] * 4
    runs = [
        swept("a", 0, 20.0, range(100, 108), extra),
        swept("b", HOUR, 40.0, range(200, 208), extra),
    ]
    spread = summarise_stream(stream_of(*runs)).flow_spreads[0]
    assert spread.decided
    assert spread.ecmp_spread_ms.low_ms is not None
    assert spread.ecmp_spread_ms.high_ms is not None
    assert 2.0 < spread.ecmp_spread_ms.low_ms < 3.0 < spread.ecmp_spread_ms.high_ms < 4.0
    assert len(spread.flows) == 8


def test_many_sweeps_of_one_path_raise_no_more_alarms_than_one() -> None:
    """20 streams of five runs, each at a level and on ports of its own: one alarm is allowed."""
    rng, alarms = np.random.default_rng(4), 0
    runs = [swept(str(k), k * HOUR, 20, range(8 * k, 8 * k + 8), [0] * 8, 240) for k in range(5)]
    stream = stream_of(*runs)
    for _ in range(20):
        levels = np.repeat(rng.random(5) * 20 * MS, 240)
        spread = stream_flow_spread(stream, levels + rng.gamma(2.0, MS, 1_200))
        assert spread is not None
        alarms += spread.is_seen
    assert alarms <= 1


def test_a_port_that_was_replaced_half_way_is_another_time_and_no_other_path() -> None:
    """Of two ports one is replaced at the moment when the path of both grows by 5 ms."""
    samples = tuple(
        echo(i, i * SECOND, 20.0 + 5 * (i >= 300) + 0.01 * (i % 7), i % 2 or 2 + 2 * (i >= 300))
        for i in range(600)
    )
    assert summarise_stream(stream_of(measurement_of(samples))).flow_spreads == ()


def test_what_did_not_arrive_in_time_is_no_arrival_in_the_order_of_packets() -> None:
    """Every tenth packet meets a router that says after 300 ms that it could not deliver it."""
    unreachable = Failure(FailureKind.UNREACHABLE, Stage.WAIT, icmp_type=3, icmp_code=1)
    soon, later = Stamps(0, 0, 0, 20 * MS, 20 * MS + 1), Stamps(0, 0, 0, 300 * MS, 300 * MS + 1)
    refused = Sample(0, Metric.RTT, START, failure=unreachable, stamps=later)
    late = Sample(0, Metric.RTT, START, 300 * MS, flags=(Flag.LATE,), stamps=later)
    answered = Sample(0, Metric.RTT, START, 20 * MS, stamps=soon)
    for outcome in (refused, late):
        samples = tuple(
            msgspec.structs.replace(
                outcome if i % 10 == 5 else answered, seq=i, sent_unix_ns=START + i * 10 * MS
            )
            for i in range(100)
        )
        summary = summarise_stream(stream_of(measurement_of(samples)))
        (both,) = summary.ways
        assert (summary.lost, both.n, both.reordered, both.reordered_3) == (10, 90, 0, 0)
        assert (both.reordered_ratio, both.reordered_largest_extent) == (0.0, 0)


@pytest.mark.parametrize("offset_ns", [0, -1_796_000_000 * SECOND, 2**31 * SECOND])
def test_a_reflector_in_another_century_loses_no_nanosecond_of_variation(offset_ns: int) -> None:
    rng = random.Random(5)
    there = [30_000 + int(rng.expovariate(1 / 300)) for _ in range(2_000)]
    back = [20_000 + int(rng.expovariate(1 / 300)) for _ in range(2_000)]
    samples: list[Sample] = []
    for i, (out, home) in enumerate(zip(there, back, strict=True)):
        at = START + i * 10 * MS
        samples += [
            Sample(i, Metric.RTT, at, out + home),
            Sample(i, Metric.TRANSIT_FORWARD, at, out + offset_ns),
            Sample(i, Metric.TRANSIT_REVERSE, at, home - offset_ns),
        ]
    stream = stream_of(measurement_of(tuple(samples)))
    forward, reverse, both = summarise_stream(stream).ways
    for way, truth in ((forward, there), (reverse, back)):
        assert way.pdv_p50_ms is not None
        expected = (np.quantile(truth, 0.5) - min(truth)) / MS
        assert way.pdv_p50_ms.value_ms == pytest.approx(expected, abs=1.5e-6)
        assert way.reordered == 0
        assert way.owd is not None
        assert way.owd.high_ms == min(map(sum, zip(there, back, strict=True))) / MS
    assert both.reordered == 0
    assert stream.forward.whole_ns(7) == there[7] + offset_ns
    assert stream.reverse.whole_ns(7) == back[7] - offset_ns


def test_a_clock_that_leaves_1970_half_way_leaves_intervals_that_hold_the_truth() -> None:
    """A reflector gets the time from the network: 57 years in one step, told to 256 ns."""
    rng = random.Random(5)
    there = [30_000 + int(rng.expovariate(1 / 300)) for _ in range(2_000)]
    samples: list[Sample] = []
    for i, out in enumerate(there):
        at, offset = START + i * 10 * MS, -1_796_000_000 * SECOND if i < 1_000 else 0
        samples += [
            Sample(i, Metric.RTT, at, out + 20_000),
            Sample(i, Metric.TRANSIT_FORWARD, at, out + offset),
            Sample(i, Metric.TRANSIT_REVERSE, at, 20_000 - offset),
        ]
    summary = summarise_stream(stream_of(measurement_of(tuple(samples))))
    assert summary.clock_pair is not None
    assert [round(one.step_ms) for one in summary.clock_pair.steps] == [1_796_000_000_000]
    p50 = summary.ways[0].pdv_p50_ms
    assert p50 is not None
    assert p50.low_ms is not None
    assert p50.high_ms is not None
    truth = float(np.quantile(there, 0.5) - min(there)) / MS
    assert p50.low_ms <= truth <= p50.high_ms


def test_the_way_back_is_counted_on_what_was_not_lost_on_the_way_there() -> None:
    """1,000 sent, 100 lost there, 90 of the 900 others lost back: a tenth each way."""

    def lost(i: int) -> Direction | None:
        return Direction.FORWARD if i < 100 else Direction.REVERSE if i < 190 else None

    samples = tuple(
        echo(i, i * SECOND, 20.0)
        if lost(i) is None
        else Sample(
            i,
            Metric.RTT,
            START + i * SECOND,
            failure=Failure(FailureKind.TIMEOUT, Stage.WAIT, direction=lost(i)),
        )
        for i in range(1_000)
    )
    stream = stream_of(measurement_of(samples))
    there, back = forward_loss(stream), reverse_loss(stream)
    assert (there.lost, there.sent, there.ratio) == (100, 1_000, 0.1)
    assert (back.lost, back.sent, back.ratio) == (90, 900, 0.1)
    assert there.low < 0.1 < there.high
    assert back.low < 0.1 < back.high
