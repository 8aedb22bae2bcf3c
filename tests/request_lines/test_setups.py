"""What set-ups tell: acceptance, ages, extra round trips, and what a ticket saves."""

import pytest
from tests.request_lines.parts import (
    N,
    echoes,
    evaluated,
    findings,
    measurement,
    sample,
    setups,
)

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.report.connections import what_was_saved
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.markdown import render_markdown
from pathbudget.analysis.request_results import SetupSummary
from pathbudget.analysis.results import Evaluation
from pathbudget.probes.record import (
    ConnectionMode,
    Failure,
    FailureKind,
    Flag,
    Measurement,
    Metric,
    Note,
    Stage,
    Transport,
)

TLS, QUIC = Transport.TLS, Transport.QUIC
COLD, RESUMED = ConnectionMode.COLD, ConnectionMode.RESUMED
EARLY = ConnectionMode.EARLY_DATA


def of_mode(evaluation: Evaluation, mode: ConnectionMode) -> SetupSummary:
    (found,) = [one for one in evaluation.requests.setups if one.mode == mode]
    return found


def test_what_a_ticket_saves_is_said_with_the_numbers_of_the_report() -> None:
    cold: dict[str, Note] = {"flight_bytes": 1110, "certificate_bytes": 800, "group": "x25519"}
    resumed: dict[str, Note] = {"flight_bytes": 245, "certificate_bytes": 0, "group": "x25519"}
    evaluation = evaluated(
        [
            echoes(),
            setups(TLS, COLD, [82.0] * N, notes=cold, compute_ms=1.0),
            setups(TLS, RESUMED, [81.0] * N, notes=resumed, compute_ms=0.7),
            setups(TLS, EARLY, [40.0] * N, notes=resumed, compute_ms=0.8),
        ]
    )
    saved = what_was_saved(Lookup(evaluation))
    for told, name, compute, took, verdict in zip(
        saved,
        ("resumed", "early data"),
        ("300", "200"),
        ("2.02", "1.00"),
        ("no round trip is saved", "one round trip is saved"),
        strict=True,
    ):
        assert told.startswith(f"TLS over TCP, {name}: 865 bytes from the server and {compute} us")
        assert told.endswith(f"{took} round trips of set-up, 2.05 when cold: {verdict}.")
    (resumption, early) = evaluation.requests.resumptions
    assert (resumption.saved_ms.value_ms, early.saved_ms.value_ms) == (1.0, 42.0)
    assert of_mode(evaluation, COLD).accepted_share is None
    text = render_markdown(evaluation)
    assert "saves the certificates' bytes and processor time, and no round trip" in text


@pytest.mark.parametrize(
    ("rtt_ms", "cold_ms", "counted"),
    [
        (1.0, 3.2, False),  # the server's signature takes as long as a round trip
        (0.05, 18.1, False),  # loopback: 362 of these round trips are computing
        (0.5, 1.0, False),  # a round trip as long as a switch of tasks
        (20.0, 49.9, True),
        (20.0, 50.1, False),
    ],
)
def test_computing_is_never_told_as_a_round_trip(
    rtt_ms: float, cold_ms: float, counted: bool
) -> None:
    path = [
        echoes(rtt_ms),
        setups(TLS, COLD, [cold_ms] * N, notes={"flight_bytes": 1110}),
        setups(TLS, RESUMED, [2 * rtt_ms] * N, notes={"flight_bytes": 245}),
    ]
    evaluation = evaluated(path)
    assert (of_mode(evaluation, COLD).round_trips_p50 is not None) is counted
    (told,) = what_was_saved(Lookup(evaluation))
    assert told.endswith("no round trip is saved.")
    assert ("when cold" in told) is counted
    text = render_markdown(evaluation)
    assert ("| not counted" in text) is not counted
    assert "no limit to no limit" not in text


def test_a_ticket_does_save_the_round_trip_of_a_long_chain() -> None:
    path = [
        echoes(),
        setups(TLS, COLD, [121.0] * N, flags=(Flag.SECOND_FLIGHT,)),
        setups(TLS, RESUMED, [81.0] * N),
    ]
    (told,) = what_was_saved(Lookup(evaluated(path)))
    assert told.endswith("2.02 round trips of set-up, 3.02 when cold: one round trip is saved.")


def test_names_are_not_looked_up_at_the_cost_of_round_trips() -> None:
    shots = [
        one
        for i in range(N)
        for one in (
            sample(i, Metric.RESOLVE, 30.0),
            sample(i, Metric.SETUP, 110.0, COLD),
        )
    ]
    found = of_mode(evaluated([echoes(), measurement(shots, "tls", TLS)]), COLD)
    assert found.round_trips_p50 is not None
    assert found.round_trips_p50.value == 2.0


def test_acceptance_by_the_age_of_tickets() -> None:
    def at_age(seconds: int, n: int, taken: int) -> Measurement:
        refused = Failure(FailureKind.NOT_RESUMED, Stage.HANDSHAKE)
        made = [
            sample(
                i,
                Metric.SETUP,
                80.0 if i < taken else None,
                RESUMED,
                failure=refused,
                notes={"ticket_age_ms": seconds * 1000},
            )
            for i in range(n)
        ]
        return measurement(made, "tls", TLS)

    evaluation = evaluated([echoes(), at_age(0, 20, 20), at_age(60, 20, 15), at_age(7200, 20, 0)])
    found = of_mode(evaluation, RESUMED)
    ages = [(one.at_least_s, one.below_s, one.accepted, one.offered) for one in found.ticket_ages]
    assert ages == [(0, 1, 20, 20), (60, 600, 15, 20), (3600, 86400, 0, 20)]
    share = found.accepted_share
    assert share is not None
    assert share.value == 35 / 60
    assert share.low is not None
    assert share.high is not None
    assert share.low < 35 / 60 < share.high
    assert "full handshake 25 times" in findings(evaluation)[FindingKind.NOT_RESUMED]


@pytest.mark.parametrize(
    ("transport", "flag", "kind", "words"),
    [
        (TLS, Flag.HELLO_RETRY, FindingKind.HELLO_RETRY, "another ClientHello"),
        (TLS, Flag.SECOND_FLIGHT, FindingKind.CERTIFICATE_ROUND_TRIP, "20,752 bytes"),
        (QUIC, Flag.RETRY, FindingKind.RETRY, "prove its address"),
        (QUIC, Flag.VERSION_NEGOTIATION, FindingKind.VERSION_NEGOTIATION, "version of QUIC"),
    ],
)
def test_extra_round_trips_are_findings(
    transport: Transport, flag: Flag, kind: FindingKind, words: str
) -> None:
    notes: dict[str, Note] = {"flight_bytes": 20_752, "group": "secp384r1"}
    marked = setups(transport, COLD, [120.0] * 30, flags=(flag,), notes=notes)
    plain = setups(transport, COLD, [80.0] * 70, notes=notes)
    told = findings(evaluated([echoes(), marked, plain]))
    assert told[kind].startswith("30 of 100 set-ups to alpha-edge")
    assert words in told[kind]
    assert "one more round trip" in told[kind]


def test_what_early_data_does_not_wait_for_is_no_round_trip_of_it() -> None:
    """The handshake that early data travels in may have a second flight: the request has left."""
    shots = [
        one
        for i in range(10)
        for one in (
            sample(i, Metric.SETUP, 40.0, EARLY),
            sample(i, Metric.TLS_HANDSHAKE, 80.0, EARLY, flags=(Flag.SECOND_FLIGHT,)),
        )
    ]
    evaluation = evaluated([echoes(), measurement(shots, "tls", TLS)])
    assert of_mode(evaluation, EARLY).second_flights == 0
    assert FindingKind.CERTIFICATE_ROUND_TRIP not in findings(evaluation)
