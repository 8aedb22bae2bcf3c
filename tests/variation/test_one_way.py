"""One-way delay with the clocks' own error; one-way times in the budget."""

import msgspec
import numpy as np
import pytest
from scipy import stats
from tests.variation.simulated_paths import MS, measurement_of, samples_of, simulate, stream_of

from pathbudget.analysis.directions import directions_of
from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.one_way import ClockState, bounded, one_way_delays
from pathbudget.analysis.results import BudgetLine, Direction, Evaluation, Method, Mode
from pathbudget.analysis.stream_ways import is_stepped
from pathbudget.probes.record import Flag, Measurement, Metric
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier

CATALOGUE = Catalogue(
    {"west": Region("west", 37.4, -122.1, 1.0)},
    {"alpha": Site("alpha", 39.0, -77.5)},
    {
        "voice-ai": Tier(
            "voice-ai", "Voice AI", 400.0, {"network": 25.0}, 95.0, "warm", 800, {"warm": 1.0}
        )
    },
)


def evaluated(*measurements: Measurement) -> Evaluation:
    options = EvaluationOptions(generated_unix_ns=1)
    return evaluate(measurements, CATALOGUE, options)


def line(found: Evaluation, direction: Direction, percentile: float = 95.0) -> BudgetLine:
    (one,) = (
        line
        for line in found.lines
        if (line.direction, line.mode, line.percentile) == (direction, Mode.WARM, percentile)
    )
    return one


def test_pitfall_11_a_negative_one_way_delay_is_kept_and_its_error_stands_beside_it() -> None:
    delays = bounded(-0.3 * MS, 10.3 * MS, 1.0 * MS, stepped=False)
    assert delays.forward.value_ns == -0.3 * MS
    assert delays.forward.error_ns == 1.0 * MS
    assert delays.forward.low_ns == 0.0
    assert delays.forward.high_ns == pytest.approx(0.7 * MS)
    assert delays.reverse.low_ns == pytest.approx(9.3 * MS)
    assert delays.reverse.high_ns == pytest.approx(10.0 * MS)


def test_clocks_that_nobody_vouches_for_leave_what_physics_allows() -> None:
    delays = bounded(5e12, -5e12 + 50 * MS, None, stepped=False)
    assert delays.forward.state is ClockState.UNSYNCHRONISED
    assert delays.forward.value_ns == 5e12
    assert (delays.forward.low_ns, delays.forward.high_ns) == (0.0, 50 * MS)


def test_an_error_that_does_not_reach_the_possible_contradicts_the_clock() -> None:
    delays = bounded(-9 * MS, 59 * MS, 1 * MS, stepped=False)
    assert delays.forward.state is ClockState.CONTRADICTED
    assert (delays.reverse.low_ns, delays.reverse.high_ns) == (0.0, 50 * MS)


@pytest.mark.parametrize(
    ("offset_ms", "error_ms", "step_ms", "state"),
    [
        (0.4, 1.0, 0.0, ClockState.SYNCHRONISED),
        (5_000.0, None, 0.0, ClockState.UNSYNCHRONISED),
        (0.4, 1.0, 25.0, ClockState.STEPPED),
        (-60.0, 1.0, 0.0, ClockState.CONTRADICTED),
    ],
)
def test_the_interval_of_a_one_way_delay_holds_the_truth_in_every_state(
    offset_ms: float, error_ms: float | None, step_ms: float, state: ClockState
) -> None:
    made = simulate(2, offset_ms=offset_ms, error_ms=error_ms, step_ms=step_ms, skew_ppm=0.0)
    found = directions_of(made.stream)
    delays = one_way_delays(made.stream, stepped=is_stepped(made.stream, found))
    assert delays is not None
    assert delays.forward.state is state
    truth = made.truth.forward_ns + made.truth.reverse_ns
    nearest = int(np.argmin(np.where(made.stream.lost, np.inf, truth)))
    assert delays.forward.low_ns <= made.truth.forward_ns[nearest] <= delays.forward.high_ns
    assert delays.reverse.low_ns <= made.truth.reverse_ns[nearest] <= delays.reverse.high_ns


def test_pitfall_10_a_step_that_the_host_admits_takes_the_one_way_delay_away() -> None:
    made = simulate(2, offset_ms=0.0, error_ms=1.0, skew_ppm=0.0, clock_steps=1)
    assert is_stepped(made.stream, directions_of(made.stream))


def test_pitfall_10_transit_times_across_a_step_of_the_clock_are_not_used() -> None:
    stepped = (Flag.CLOCK_STEP,)
    marked = [
        msgspec.structs.replace(sample, flags=stepped) if sample.seq == 7 else sample
        for sample in samples_of(simulate(3, n=20))
    ]
    stream = stream_of(measurement_of(tuple(marked)))
    assert np.isnan(stream.forward.values_ns[7])
    assert np.isnan(stream.round_trips_ns[7])
    assert not stream.lost[7]
    assert is_stepped(stream, directions_of(stream))


def test_lines_take_the_variation_of_their_own_direction_and_split_the_constant_part() -> None:
    """30 ms out and 20 ms back look like 25 and 25; the variation is each direction's own.

    A lost packet counts as infinitely slow: with 2 % of loss the p95 is the 0.95 / 0.98 quantile.
    """
    found = evaluated(measurement_of(samples_of(simulate(12))))
    ingress, egress = line(found, Direction.INGRESS), line(found, Direction.EGRESS)
    assert ingress.method is egress.method is Method.SYMMETRIC_SPLIT
    assert ingress.round_trips_from == "stamp"
    for one, shape, scale, loss in ((ingress, 2.0, 1.0, 0.02), (egress, 1.5, 2.0, 0.01)):
        p95 = stats.gamma.ppf(0.95 / (1 - loss), shape, scale=scale)
        assert one.low_ms is not None
        assert one.high_ms is not None
        assert one.low_ms - 0.1 <= 25 + p95 <= one.high_ms + 0.1
    assert ingress.losses > egress.losses > 0


def test_lines_of_synchronised_clocks_are_measured_with_the_clocks_error_in_the_interval() -> None:
    made = simulate(13, offset_ms=0.5, error_ms=1.0, skew_ppm=0.0)
    found = evaluated(measurement_of(samples_of(made)))
    ingress, egress = line(found, Direction.INGRESS), line(found, Direction.EGRESS)
    assert ingress.method is egress.method is Method.MEASURED
    for one, truth in ((ingress, made.truth.forward_ns), (egress, made.truth.reverse_ns)):
        lost = made.truth.lost_forward if one is ingress else made.truth.lost_reverse
        happened = np.quantile(np.where(lost, np.inf, truth), 0.95, method="higher") / MS
        assert one.low_ms is not None
        assert one.high_ms is not None
        assert one.low_ms <= happened <= one.high_ms
        assert one.high_ms - one.low_ms > 2.0


def test_the_network_line_is_the_round_trip_whatever_the_directions_say() -> None:
    with_directions = evaluated(measurement_of(samples_of(simulate(14))))
    bare = tuple(s for s in samples_of(simulate(14)) if s.metric == Metric.RTT)
    without = evaluated(measurement_of(bare))
    mine, other = (line(one, Direction.NETWORK) for one in (with_directions, without))
    assert mine == other
    assert line(without, Direction.INGRESS).method is Method.DERIVED_FROM_RTT


def test_a_path_change_moves_the_lines_of_its_direction_alone() -> None:
    made = simulate(15, path_ms=(20.0, 0.0))
    found = evaluated(measurement_of(samples_of(made)))
    ingress, egress = line(found, Direction.INGRESS), line(found, Direction.EGRESS)
    assert ingress.value_ms == pytest.approx(25 + 20 + 4.6, abs=1.0)
    assert egress.value_ms == pytest.approx(25 + 8.3, abs=1.2)
    assert FindingKind.PATH_CHANGED in {one.kind for one in found.findings}


def test_a_stepped_clock_is_a_finding_and_spoils_no_line() -> None:
    calm = evaluated(measurement_of(samples_of(simulate(16))))
    stepped = evaluated(measurement_of(samples_of(simulate(16, step_ms=100.0))))
    assert FindingKind.CLOCK_STEP in {one.kind for one in stepped.findings}
    for direction in (Direction.INGRESS, Direction.EGRESS):
        mine, other = line(stepped, direction), line(calm, direction)
        assert mine.value_ms == pytest.approx(other.value_ms, abs=0.3)
    (stream,) = stepped.streams
    assert stream.clock_pair is not None
    assert stream.clock_pair.steps[0].step_ms == pytest.approx(100, abs=0.5)


def test_a_reflector_at_the_same_site_lends_its_variation_to_another_target() -> None:
    made = simulate(17, n=1000)
    echo = tuple(s for s in samples_of(simulate(18, n=2000)) if s.metric == Metric.RTT)
    found = evaluated(
        measurement_of(samples_of(made), target="alpha-reflector"),
        measurement_of(echo, probe="icmp", name="m2"),
    )
    egress, network = line(found, Direction.EGRESS), line(found, Direction.NETWORK)
    assert (egress.target, egress.round_trips_from) == ("alpha-edge", "stamp")
    assert (network.target, network.round_trips_from) == ("alpha-edge", "icmp")
    assert egress.method is Method.SYMMETRIC_SPLIT
    assert egress.n < 1000 < network.n


def test_transit_times_are_in_no_distribution_of_delays() -> None:
    found = evaluated(measurement_of(samples_of(simulate(19, n=50))))
    assert {one.metric for one in found.summaries} == {Metric.RTT, Metric.RESIDENCE}
    assert found.exclusions == ()
