"""Budget lines to the formula."""

import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from pathbudget.analysis.budget import PathBudget, unmeasured_headline
from pathbudget.analysis.path_choice import path_candidates
from pathbudget.analysis.request import nearest_in_time
from pathbudget.analysis.results import BudgetLine, Direction, Method, Mode, Verdict
from pathbudget.analysis.series import SeriesCollector
from pathbudget.analysis.slow_start import extra_round_trips, flights
from pathbudget.probes.record import ConnectionMode, Measurement, Metric, Sample
from pathbudget.sites.catalogue import Tier

MakeSamples = Callable[..., tuple[Sample, ...]]
MakeMeasurement = Callable[..., Measurement]
LineKey = tuple[Direction, Mode, float]

MIXTURE = {"warm": 0.9, "resumed": 0.08, "cold": 0.02}


def tier(prompt_bytes: int = 800, mode: str = "warm", percentile: float = 95.0) -> Tier:
    components = {"network": 25.0}
    return Tier("t", "T", 400.0, components, percentile, mode, prompt_bytes, MIXTURE)


def lines_of(measurements: Sequence[Measurement], a_tier: Tier) -> dict[LineKey, BudgetLine]:
    collector = SeriesCollector()
    for measurement in measurements:
        collector.add(measurement)
    path = path_candidates(collector.finish()[0].values())[0]
    lines = list(PathBudget(path).lines(a_tier, (50, 95, 99)))
    keyed = {(line.direction, line.mode, line.percentile): line for line in lines}
    assert len(keyed) == len(lines)
    return keyed


@pytest.mark.parametrize(
    ("tokens", "expected"), [(1_000, 1), (4_000, 2), (16_000, 3), (64_000, 5), (128_000, 6)]
)
def test_flights_of_the_published_table(tokens: int, expected: int) -> None:
    assert flights(4 * tokens) == expected


def test_a_request_within_the_first_window_costs_nothing_extra() -> None:
    assert extra_round_trips(0) == extra_round_trips(14_600) == 0
    assert extra_round_trips(14_601) == 1


def constant_path(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> list[Measurement]:
    """Round trip 10 ms, cold set-up 25 ms, resumed set-up 21 ms."""
    tls = [
        *make_samples([25.0] * 400, Metric.SETUP, ConnectionMode.COLD),
        *make_samples([21.0] * 400, Metric.SETUP, ConnectionMode.RESUMED),
    ]
    return [
        make_measurement(make_samples([10.0] * 400)),
        make_measurement(tls, probe="tls"),
    ]


@pytest.mark.parametrize(
    ("prompt_bytes", "mode", "ingress", "egress"),
    [
        (800, Mode.WARM, 5.0, 5.0),
        (800, Mode.RESUMED, 26.0, 5.0),
        (800, Mode.COLD, 30.0, 5.0),
        (32_000, Mode.WARM, 15.0, 5.0),
        (32_000, Mode.COLD, 40.0, 5.0),
        (64_000, Mode.COLD, 50.0, 5.0),
    ],
)
def test_terms_to_the_formula(
    make_samples: MakeSamples,
    make_measurement: MakeMeasurement,
    prompt_bytes: int,
    mode: Mode,
    ingress: float,
    egress: float,
) -> None:
    lines = lines_of(constant_path(make_samples, make_measurement), tier(prompt_bytes))
    for percentile in (50.0, 95.0, 99.0):
        assert lines[Direction.INGRESS, mode, percentile].value_ms == ingress
        assert lines[Direction.EGRESS, mode, percentile].value_ms == egress
        assert lines[Direction.NETWORK, mode, percentile].value_ms == ingress + egress


def test_methods_say_how(make_samples: MakeSamples, make_measurement: MakeMeasurement) -> None:
    path = constant_path(make_samples, make_measurement)
    small, large = lines_of(path, tier(800)), lines_of(path, tier(32_000))
    assert small[Direction.NETWORK, Mode.COLD, 95.0].method is Method.MEASURED
    assert large[Direction.NETWORK, Mode.COLD, 95.0].method is Method.DERIVED_FROM_RTT
    assert small[Direction.INGRESS, Mode.COLD, 95.0].method is Method.SYMMETRIC_SPLIT
    assert small[Direction.EGRESS, Mode.RESUMED, 95.0].method is Method.SYMMETRIC_SPLIT
    assert small[Direction.NETWORK, Mode.WARM, 95.0].method is Method.DERIVED_FROM_RTT
    assert small[Direction.NETWORK, Mode.MIXTURE, 95.0].method is Method.DERIVED_FROM_RTT


def test_one_headline_and_allowances_on_network_lines_alone(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    path = constant_path(make_samples, make_measurement)
    lines = lines_of(path, tier(mode="mixture", percentile=90.0)).values()
    (headline,) = [line for line in lines if line.headline]
    assert (headline.direction, headline.mode) == (Direction.NETWORK, Mode.MIXTURE)
    assert headline.percentile == 90.0
    for line in lines:
        assert (line.allowance_ms is None) == (line.direction is not Direction.NETWORK)


def test_percentiles_of_sums_are_not_sums_of_percentiles(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    """Slow set-ups fall on quick round trips: the joined p95 is far below the sum of the p95s."""
    calm, busy = [10.0] * 90 + [30.0] * 10, [60.0] * 10 + [20.0] * 90
    measurements = [
        make_measurement(make_samples(calm * 4)),
        make_measurement(make_samples(busy * 4, Metric.SETUP, ConnectionMode.COLD), probe="tls"),
    ]
    lines = lines_of(measurements, tier())
    network = lines[Direction.NETWORK, Mode.COLD, 95.0].value_ms
    assert network == 70.0


def test_a_failed_set_up_or_a_lost_round_trip_is_not_quick(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    setups: list[float | None] = [20.0] * 400
    setups[::10] = [None] * 40
    echoes: list[float | None] = [10.0] * 400
    echoes[5::10] = [None] * 40
    measurements = [
        make_measurement(make_samples(echoes)),
        make_measurement(make_samples(setups, Metric.SETUP, ConnectionMode.COLD), probe="tls"),
    ]
    lines = lines_of(measurements, tier())
    cold = lines[Direction.NETWORK, Mode.COLD, 95.0]
    assert (cold.losses, cold.value_ms, cold.verdict) == (80, None, Verdict.FAIL)
    assert lines[Direction.NETWORK, Mode.COLD, 50.0].value_ms == 30.0
    warm = lines[Direction.NETWORK, Mode.WARM, 95.0]
    assert (warm.losses, warm.value_ms) == (40, None)
    assert "40 of 400 requests failed" in warm.reason


def test_each_vantage_joins_its_own_round_trips(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    cold = make_samples([100.0] * 100, Metric.SETUP, ConnectionMode.COLD)
    measurements = [
        make_measurement(make_samples([10.0] * 100), vantage="near"),
        make_measurement(make_samples([50.0] * 100), vantage="far"),
        make_measurement(cold, vantage="far", probe="tls"),
    ]
    lines = lines_of(measurements, tier())
    assert lines[Direction.NETWORK, Mode.COLD, 50.0].value_ms == 150.0
    assert lines[Direction.NETWORK, Mode.WARM, 50.0].n == 200


def test_modes_that_were_not_measured_are_named(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    lines = lines_of([make_measurement(make_samples([10.0] * 400))], tier())
    cold = lines[Direction.NETWORK, Mode.COLD, 95.0]
    assert (cold.n, cold.value_ms, cold.verdict) == (0, None, Verdict.NOT_MEASURED)
    assert cold.reason == "no cold connection was measured for this pair."
    mixture = lines[Direction.NETWORK, Mode.MIXTURE, 95.0]
    assert mixture.verdict is Verdict.UNDECIDED
    assert "resumed and cold" in mixture.reason
    assert mixture.high_ms is None


def test_the_quantile_of_a_mixture_of_modes(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    lines = lines_of(constant_path(make_samples, make_measurement), tier())
    assert lines[Direction.NETWORK, Mode.MIXTURE, 50.0].value_ms == 10.0
    assert lines[Direction.NETWORK, Mode.MIXTURE, 95.0].value_ms == 31.0
    assert lines[Direction.NETWORK, Mode.MIXTURE, 99.0].value_ms == 35.0


def test_a_pair_nobody_measured_is_not_measured() -> None:
    line = unmeasured_headline("west", "alpha", tier())
    assert (line.n, line.verdict, line.headline) == (0, Verdict.NOT_MEASURED, True)
    assert line.reason == "this pair was not measured."


def test_nearest_in_time_takes_the_earlier_of_two() -> None:
    times = np.array([10, 20, 30], dtype=np.int64)
    wanted = np.array([0, 14, 15, 16, 25, 99], dtype=np.int64)
    assert list(nearest_in_time(times, wanted)) == [0, 0, 0, 1, 1, 2]
    assert list(nearest_in_time(times[:1], wanted)) == [0] * 6


def test_losses_do_not_become_not_a_number(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    measurements = [
        make_measurement(make_samples([None] * 80)),
        make_measurement(make_samples([None] * 80, Metric.SETUP, ConnectionMode.COLD), probe="tls"),
    ]
    for line in lines_of(measurements, tier(64_000)).values():
        assert line.value_ms is None
        assert line.low_ms is None or not math.isnan(line.low_ms)
