"""Which series stand for a site."""

from collections.abc import Callable, Sequence

import pytest

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.path_choice import PathSeries, path_candidates
from pathbudget.analysis.results import Carrier, Mode
from pathbudget.analysis.series import SeriesCollector
from pathbudget.probes.record import (
    AddressFamily,
    ConnectionMode,
    Measurement,
    Metric,
    Sample,
)

MakeSamples = Callable[..., tuple[Sample, ...]]
MakeMeasurement = Callable[..., Measurement]
V6 = {"family": AddressFamily.IPV6, "address": "2001:db8::1"}


def paths(measurements: Sequence[Measurement]) -> tuple[PathSeries, ...]:
    collector = SeriesCollector()
    for measurement in measurements:
        collector.add(measurement)
    return path_candidates(collector.finish()[0].values())


def test_icmp_is_the_round_trip_and_connect_stands_in(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    echo = make_measurement(make_samples([5.0] * 9))
    connect = make_measurement(make_samples([6.0] * 9, Metric.CONNECT), probe="tcp")
    assert paths([echo, connect])[0].source == "icmp"
    assert paths([connect])[0].source == "connect"


@pytest.mark.parametrize(
    ("connect_ms", "flight_ms", "found"),
    [
        (5.9, 302.6, True),
        (20.0, 21.0, False),
        (20.0, 41.5, False),  # a HelloRetryRequest is one more round trip, not a middlebox
        (0.3, 5.0, False),  # the server's own signature
        (0.03, 7.0, True),
    ],
)
def test_pitfall_09_a_middlebox_answers_before_the_server(
    make_samples: MakeSamples,
    make_measurement: MakeMeasurement,
    connect_ms: float,
    flight_ms: float,
    found: bool,
) -> None:
    cold = ConnectionMode.COLD
    tls = [
        *make_samples([connect_ms] * 30, Metric.CONNECT),
        *make_samples([flight_ms] * 30, Metric.TLS_HANDSHAKE, cold),
        *make_samples([connect_ms + flight_ms] * 30, Metric.SETUP, cold),
    ]
    path = paths([make_measurement(tls, probe="tls")])[0]
    assert [finding.kind for finding in path.findings] == [FindingKind.MIDDLEBOX] * found
    assert path.source == ("tls" if found else "connect")
    assert path.round_trips is not None
    assert path.round_trips.values_ns[0] == (flight_ms if found else connect_ms) * 1e6


def test_a_server_that_is_mostly_busy_is_no_middlebox(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    tls = [
        *make_samples([4.0] * 30, Metric.CONNECT),
        *make_samples([6.0, *[60.0] * 29], Metric.TLS_HANDSHAKE, ConnectionMode.COLD),
    ]
    path = paths([make_measurement(tls, probe="tls")])[0]
    assert path.source == "connect"
    assert path.findings == ()


def test_icmp_that_is_rate_limited_is_not_taken_for_loss(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    echo = make_measurement(make_samples([5.0, None, None, None] * 25))
    connect = make_measurement(make_samples([6.0] * 100, Metric.CONNECT), probe="tcp")
    path = paths([echo, connect])[0]
    assert path.source == "connect"
    assert [finding.kind for finding in path.findings] == [FindingKind.ICMP_FILTERED]


def test_loss_that_connects_see_too_stays_loss(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    echo = make_measurement(make_samples([5.0, 5.0, 5.0, None] * 25))
    connect = make_measurement(
        make_samples([6.0, 6.0, 6.0, None] * 25, Metric.CONNECT), probe="tcp"
    )
    path = paths([echo, connect])[0]
    assert (path.source, path.findings) == ("icmp", ())


def test_families_are_never_mixed_and_ipv4_comes_first(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    four = make_measurement(make_samples([9.0] * 20))
    six = make_measurement(make_samples([3.0] * 50), **V6)
    found = paths([six, four])
    assert [(path.family, path.attempts) for path in found] == [("ipv4", 20), ("ipv6", 50)]


def test_a_family_that_never_answers_does_not_stand_for_the_site(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    four = make_measurement(make_samples([None] * 20))
    six = make_measurement(make_samples([3.0] * 5), **V6)
    assert [path.family for path in paths([four, six])] == ["ipv6", "ipv4"]


def test_a_target_is_chosen_for_completeness_not_for_speed(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    quick = make_measurement(make_samples([1.0] * 50), target="quick")
    slow = make_measurement(make_samples([9.0] * 50), target="slow")
    setup = make_measurement(
        make_samples([20.0] * 50, Metric.SETUP, ConnectionMode.COLD), target="slow", probe="tls"
    )
    assert [path.target for path in paths([quick, slow, setup])] == ["slow", "quick"]


def test_a_name_that_did_not_resolve_counts_against_every_family(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    four = make_measurement(make_samples([9.0] * 20))
    six = make_measurement(make_samples([3.0] * 20), **V6)
    unresolved = make_measurement(make_samples([None] * 5), family=None, address="")
    found = paths([four, six, unresolved])
    assert [(p.family, p.attempts, p.answered) for p in found] == [
        ("ipv4", 25, 20),
        ("ipv6", 25, 20),
    ]
    (alone,) = paths([unresolved])
    assert (alone.family, alone.attempts, alone.answered) == (None, 5, 0)


def test_set_ups_that_failed_before_their_mode_was_known_count(
    make_samples: MakeSamples, make_measurement: MakeMeasurement
) -> None:
    tls = [
        *make_samples([20.0] * 10, Metric.SETUP, ConnectionMode.COLD),
        *make_samples([None] * 2, Metric.SETUP),
    ]
    path = paths([make_measurement(tls, probe="tls")])[0]
    cold = path.setups[Carrier.TLS, Mode.COLD]
    assert (cold.n, cold.losses) == (12, 2)
    assert list(path.setups) == [(Carrier.TLS, Mode.COLD)]
