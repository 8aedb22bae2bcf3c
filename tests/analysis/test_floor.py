"""Pairs against the speed of light."""

from collections.abc import Callable

import pytest

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.floor import pair_of
from pathbudget.analysis.results import Finding, Pair
from pathbudget.analysis.series import SeriesCollector
from pathbudget.probes.record import ConnectionMode, Measurement, Metric, Sample
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.geodesy import distance_km, floor_rtt_ms

MakeSamples = Callable[..., tuple[Sample, ...]]
MakeMeasurement = Callable[..., Measurement]
DALLAS, FRANKFURT, DARMSTADT = (32.80, -96.82), (50.11, 8.68), (49.87, 8.65)


def pair(
    *measurements: Measurement,
    region_at: tuple[float, float] | None = DALLAS,
    vantages_at: dict[int, tuple[float, float]] | None = None,
) -> tuple[Pair, tuple[Finding, ...]]:
    collector = SeriesCollector()
    for measurement in measurements:
        collector.add(measurement)
    series = list(collector.finish()[0].values())
    return pair_of(
        "west",
        "alpha",
        series,
        region_at=region_at,
        site_at=FRANKFURT,
        vantages_at=vantages_at or {},
    )


def test_inflation_over_the_light_floor(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    result, findings = pair(make_measurement(make_samples([140.0, 120.0, None])))
    distance = distance_km(*DALLAS, *FRANKFURT)
    assert result.distance_km == distance
    assert result.minimum_rtt_ms == 120.0
    assert result.inflation == pytest.approx(120.0 / floor_rtt_ms(distance))
    assert not findings


def test_quicker_than_light_is_reported(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    _, (finding,) = pair(make_measurement(make_samples([140.0, 1.2])))
    assert finding.kind is FindingKind.IMPOSSIBLE_RTT
    assert "1.20 ms is below the light floor of 81.04 ms (8274 km)" in finding.text
    assert "anycast or CDN edge" in finding.text
    assert "coordinates" in finding.text


def test_noise_is_allowed_for(make_samples: MakeSamples, make_measurement: MakeMeasurement) -> None:
    floor = floor_rtt_ms(distance_km(*DALLAS, *FRANKFURT))
    samples = make_samples([floor - 0.5])
    assert pair(make_measurement(samples, floor_ns=100_000))[1]
    assert not pair(make_measurement(samples, floor_ns=600_000))[1]


def test_a_vantage_that_knows_its_place_stands_for_itself(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    result, findings = pair(make_measurement(make_samples([1.2])), vantages_at={0: DARMSTADT})
    assert result.distance_km == distance_km(*DARMSTADT, *FRANKFURT)
    assert not findings


def test_set_ups_and_retransmitted_connects_are_no_round_trips(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    result, _ = pair(
        make_measurement(make_samples([1.0], Metric.RESOLVE)),
        make_measurement(make_samples([130.0], Metric.CONNECT), probe="tcp"),
        make_measurement(make_samples([1010.0], Metric.CONNECT, flags=("syn_retransmitted",))),
    )
    assert result.minimum_rtt_ms == 130.0


def test_unknown_places_have_no_floor(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    result, findings = pair(make_measurement(make_samples([1.0])), region_at=None)
    assert (result.distance_km, result.floor_rtt_ms, result.inflation) == (None, None, None)
    assert result.minimum_rtt_ms == 1.0
    assert not findings


def test_an_unmeasured_pair_keeps_its_distance() -> None:
    result, findings = pair()
    assert result.distance_km is not None
    assert (result.minimum_rtt_ms, result.inflation, findings) == (None, None, ())


def test_behind_a_middlebox_the_flights_are_held_against_the_floor(
    make_samples: MakeSamples, make_measurement: MakeMeasurement, catalogue: Catalogue
) -> None:
    tls = [
        *make_samples([0.05] * 30, Metric.CONNECT),
        *make_samples([90.0] * 30, Metric.TLS_HANDSHAKE, ConnectionMode.COLD),
    ]
    evaluation = evaluate([make_measurement(tls, probe="tls")], catalogue, EvaluationOptions())
    kinds = {finding.kind for finding in evaluation.findings}
    assert FindingKind.MIDDLEBOX in kinds
    assert FindingKind.IMPOSSIBLE_RTT not in kinds
    measured = [pair.minimum_rtt_ms for pair in evaluation.pairs if pair.minimum_rtt_ms is not None]
    assert measured == [90.0]
