"""Which samples count, which are excluded, and that nothing else happens to them."""

import math
from collections.abc import Callable

import msgspec
import numpy as np
import pytest

from pathbudget.analysis.series import NO_NAME, Series, SeriesCollector, SeriesKey
from pathbudget.analysis.summary import summarise
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Flag,
    Measurement,
    Metric,
    Sample,
    Stage,
)

MakeSamples = Callable[..., tuple[Sample, ...]]
MakeMeasurement = Callable[..., Measurement]


def collect(*measurements: Measurement) -> tuple[dict[SeriesKey, Series], SeriesCollector]:
    collector = SeriesCollector()
    for measurement in measurements:
        collector.add(measurement)
    return collector.finish()[0], collector


def test_what_differs_is_a_series_of_its_own(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    samples = make_samples([1.0, 2.0])
    series, _ = collect(
        make_measurement(samples),
        make_measurement(samples),
        make_measurement(samples, family=AddressFamily.IPV6, address="2001:db8::1"),
        make_measurement(samples, address="192.0.2.2"),
        make_measurement(samples, site="beta"),
        make_measurement(samples, region="east"),
        make_measurement(samples, probe="other"),
        make_measurement(make_samples([1.0], Metric.SETUP, ConnectionMode.COLD)),
        make_measurement(make_samples([1.0], Metric.SETUP, ConnectionMode.RESUMED)),
    )
    assert sorted(one.track.n for one in series.values()) == [1, 1, 2, 2, 2, 2, 2, 4]


def test_losses_are_infinite_and_counted_by_kind(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    series, collector = collect(make_measurement(make_samples([3.0, None, 1.0, None])))
    (one,) = series.values()
    assert list(one.track.values_ns) == [3e6, math.inf, 1e6, math.inf]
    assert one.failures == {"timeout/wait": 2}
    assert not collector.excluded
    summary = summarise(one)
    assert (summary.n, summary.losses, summary.loss_ratio) == (4, 2, 0.5)
    assert (summary.minimum_ms, summary.maximum_ms) == (1.0, 3.0)
    assert summary.quantiles[0].value_ms is None  # the mean of 3 ms and a loss
    assert summary.loss_low < 0.1 < 0.9 < summary.loss_high


@pytest.mark.parametrize(
    ("flags", "metric", "source", "becomes", "excluded"),
    [
        ((Flag.CLOCK_STEP,), Metric.RTT, ClockSource.KERNEL, None, 1),
        ((Flag.CLOCK_STEP,), Metric.RTT, ClockSource.FOREIGN, None, 1),
        ((Flag.CLOCK_STEP,), Metric.RTT, ClockSource.USER, 5e6, 0),
        ((Flag.CLOCK_STEP,), Metric.CONNECT, ClockSource.TCP_INFO, 5e6, 0),
        ((Flag.UNVERIFIED,), Metric.TLS_HANDSHAKE, ClockSource.KERNEL, 5e6, 0),
        ((Flag.DUPLICATED,), Metric.RTT, ClockSource.KERNEL, 5e6, 0),
        ((Flag.LATE,), Metric.RTT, ClockSource.KERNEL, math.inf, 0),
        ((Flag.SYN_RETRANSMITTED,), Metric.CONNECT, ClockSource.USER, math.inf, 1),
        ((Flag.SYN_RETRANSMITTED,), Metric.SETUP, ClockSource.USER, 5e6, 0),
    ],
)
def test_marked_samples(
    make_samples: MakeSamples,
    make_measurement: MakeMeasurement,
    flags: tuple[str, ...],
    metric: str,
    source: ClockSource,
    becomes: float | None,
    excluded: int,
) -> None:
    samples = make_samples([5.0], metric, flags=flags, clock_source=source)
    series, collector = collect(make_measurement(samples))
    values = [value for one in series.values() for value in one.track.values_ns]
    assert values == ([] if becomes is None else [becomes])
    assert collector.excluded.total() == excluded


NO_LOSS = (
    FailureKind.PERMISSION,
    FailureKind.LOCAL,
    FailureKind.NO_ROUTE,
    FailureKind.NOT_RESUMED,
    FailureKind.EARLY_DATA_REJECTED,
    FailureKind.UNAVAILABLE,
)


@pytest.mark.parametrize("kind", NO_LOSS)
def test_failures_that_are_no_loss_are_excluded_by_name(
    make_measurement: MakeMeasurement, kind: FailureKind
) -> None:
    sample = Sample(0, Metric.SETUP, 1, failure=Failure(kind, Stage.SEND))
    series, collector = collect(make_measurement([sample]))
    assert not series
    assert collector.excluded.total() == 1


def test_every_other_failure_is_a_loss(make_measurement: MakeMeasurement) -> None:
    kinds = [kind for kind in FailureKind if kind not in {*NO_LOSS, *NO_NAME}]
    samples = [Sample(i, "rtt", i, failure=Failure(k, Stage.WAIT)) for i, k in enumerate(kinds)]
    series, collector = collect(make_measurement(samples))
    (one,) = series.values()
    assert one.track.losses == len(kinds)
    assert not collector.excluded


@pytest.mark.parametrize("kind", sorted(NO_NAME))
def test_what_had_no_address_was_not_sent_and_is_no_loss(
    make_measurement: MakeMeasurement, kind: FailureKind
) -> None:
    failure = Failure(kind, Stage.RESOLVE)
    samples = [Sample(i, m, i, failure=failure) for i, m in enumerate(("rtt", "setup", "resolve"))]
    series, collector = collect(make_measurement(samples))
    (look_ups,) = series.values()
    assert (look_ups.key.metric, look_ups.track.losses) == ("resolve", 1)
    assert collector.excluded.total() == collector.unresolved.total() == 2


def test_an_answer_of_somebody_else_is_no_round_trip(make_measurement: MakeMeasurement) -> None:
    foreign = Sample(0, "rtt", 1, value_ns=5, responder="192.0.2.77")
    own = Sample(1, "rtt", 2, value_ns=6, responder="192.0.2.1")
    series, collector = collect(make_measurement([foreign, own]))
    (one,) = series.values()
    assert list(one.track.values_ns) == [6.0]
    assert collector.excluded.total() == 1


def test_a_negative_time_is_never_clamped(make_measurement: MakeMeasurement) -> None:
    series, collector = collect(make_measurement([Sample(0, "rtt", 1, value_ns=-5)]))
    assert not series
    assert collector.excluded.total() == 1


def test_every_sample_is_in_a_series_or_excluded(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    samples: list[Sample] = []
    for i, flag in enumerate([*Flag, ""]):
        for source in ClockSource:
            made = make_samples([5.0], flags=(flag,) if flag else (), clock_source=source)
            samples += [msgspec.structs.replace(one, seq=i) for one in made]
    series, collector = collect(make_measurement(samples))
    assert sum(one.track.n for one in series.values()) + collector.excluded.total() == len(samples)


def test_a_curve_runs_from_the_minimum_to_the_maximum(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    series, _ = collect(make_measurement(make_samples([float(i) for i in range(1, 1001)])))
    (one,) = series.values()
    curve = summarise(one).quantile_curve
    assert len(curve) == 101
    assert curve[0] == (0.0, 1.0)
    assert curve[95] == (0.95, 950.0)
    assert curve[-1] == (1.0, 1000.0)


def test_a_rising_series_is_worth_little(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    series, _ = collect(make_measurement(make_samples([float(i) for i in range(500)])))
    (one,) = series.values()
    summary = summarise(one)
    assert summary.autocorrelation is not None
    assert summary.autocorrelation > 0.9
    assert summary.quantiles[0].n_effective < 10
    assert summary.quantiles[2].high_ms is None


def test_vantages_are_judged_apart(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    """Two vantages at constant but different distances: no correlation within either."""
    series, _ = collect(
        make_measurement(make_samples([10.0, 11.0] * 50), vantage="near"),
        make_measurement(make_samples([50.0, 51.0] * 50, gap_ms=100), vantage="far"),
    )
    (one,) = series.values()
    assert summarise(one).quantiles[0].n_effective == 200


def test_packets_that_share_a_time_stay_in_their_order(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    """Tools stamp a burst with one time; sorting it by value would hide its correlation."""
    bursts = [
        make_measurement(make_samples([level + 0.2, level, level + 0.1], gap_ms=0.0, start=i))
        for i, level in enumerate(np.repeat([10.0, 30.0, 20.0, 40.0], 20))
    ]
    series, _ = collect(*reversed(bursts))
    (one,) = series.values()
    assert list(one.track.values_ns[:3]) == [10.2e6, 10e6, 10.1e6]
    assert summarise(one).quantiles[0].n_effective < 0.5 * 240


def test_percentiles_of_a_day_are_no_averages_of_those_of_its_hours(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    """An evening peak: the mean of the hourly p95s hides it, the p95 of the day does not."""
    rng = np.random.default_rng(57)
    hour_ns = 3_600_000_000_000
    peak = {18: 6.0, 19: 10.0, 20: 12.0, 21: 10.0, 22: 6.0}
    hours = [20 + peak.get(hour, 1.0) * rng.exponential(size=200) for hour in range(24)]
    measurements = [
        make_measurement(make_samples(list(values), start=hour * hour_ns))
        for hour, values in enumerate(hours)
    ]
    hourly = [
        q.value_ms or 0.0
        for measurement in measurements
        for one in collect(measurement)[0].values()
        for q in summarise(one).quantiles
        if q.percentile == 95
    ]
    (day,) = collect(*measurements)[0].values()
    (p95,) = (q.value_ms for q in summarise(day).quantiles if q.percentile == 95)
    assert p95 == pytest.approx(np.sort(np.concatenate(hours))[round(0.95 * 4800) - 1], abs=1e-6)
    assert float(np.mean(hourly)) + 2 < (p95 or 0.0) < max(hourly)
