"""Lines of every mode over TLS and QUIC: never mixed by accident, each to the formula."""

import pytest
from tests.request_lines.parts import (
    RTT_MS,
    TIMEOUT,
    N,
    echoes,
    evaluated,
    findings,
    line,
    measurement,
    sample,
    setups,
    tier,
)

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.report.markdown import render_markdown
from pathbudget.analysis.results import Carrier, Direction, Method, Mode, Verdict
from pathbudget.probes.record import (
    ConnectionMode,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    Stage,
    Transport,
)

TLS, QUIC = Transport.TLS, Transport.QUIC
COLD, RESUMED = ConnectionMode.COLD, ConnectionMode.RESUMED
EARLY = ConnectionMode.EARLY_DATA

TRUTH = {
    # (transport, mode): round trips of set-up
    (TLS, COLD): 2,
    (TLS, RESUMED): 2,
    (TLS, EARLY): 1,
    (QUIC, COLD): 1,
    (QUIC, RESUMED): 1,
    (QUIC, EARLY): 0,
}


def everything() -> list[Measurement]:
    """Every mode over both, each set-up a whole number of round trips."""
    made = [
        setups(transport, mode, [count * RTT_MS] * N) for (transport, mode), count in TRUTH.items()
    ]
    return [echoes(), *made]


@pytest.mark.parametrize(
    ("key", "count"), TRUTH.items(), ids=lambda x: "-".join(x) if isinstance(x, tuple) else str(x)
)
def test_each_mode_over_each_transport_to_the_formula(
    key: tuple[Transport, ConnectionMode], count: int
) -> None:
    transport, mode = key
    evaluation = evaluated(everything())
    network = line(evaluation, Mode(mode), transport)
    ingress = line(evaluation, Mode(mode), transport, Direction.INGRESS)
    assert network.value_ms == (count + 1) * RTT_MS
    assert ingress.value_ms == (count + 0.5) * RTT_MS
    assert network.method is Method.MEASURED
    (setup,) = [
        one for one in evaluation.requests.setups if (one.transport, one.mode) == (transport, mode)
    ]
    assert setup.round_trips_p50 is not None
    assert setup.round_trips_p50.value == count


def test_warm_and_idle_connections_wait_for_nothing() -> None:
    evaluation = evaluated(everything(), tier("idle", "quic"))
    for mode, transport in ((Mode.WARM, "tls"), (Mode.WARM, "quic"), (Mode.IDLE, "quic")):
        found = line(evaluation, mode, transport)
        assert (found.value_ms, found.method) == (RTT_MS, Method.DERIVED_FROM_RTT)
    (headline,) = [one for one in evaluation.lines if one.headline and one.n]
    assert (headline.mode, headline.transport) == (Mode.IDLE, Carrier.QUIC)


def test_records_that_do_not_name_a_transport_are_of_tls() -> None:
    old = measurement((sample(i, Metric.SETUP, 80.0, COLD) for i in range(N)), "tls")
    new = setups(TLS, COLD, [80.0] * N)
    evaluation = evaluated([echoes(), old, new, setups(QUIC, COLD, [40.0] * N)])
    assert line(evaluation, Mode.COLD, "tls").n == 2 * N
    assert line(evaluation, Mode.COLD, "quic").n == N
    set_ups = [one for one in evaluation.summaries if one.metric == "setup"]
    assert [(one.transport, one.n) for one in set_ups] == [("quic", N), ("tls", 2 * N)]


def test_modes_nobody_measured_have_no_lines_but_the_usual_ones() -> None:
    evaluation = evaluated([echoes()])
    west = {(one.transport, one.mode) for one in evaluation.lines if one.region == "west"}
    assert west == {
        (Carrier.TLS, mode) for mode in (Mode.COLD, Mode.RESUMED, Mode.WARM, Mode.MIXTURE)
    }


def test_a_mixture_over_two_transports() -> None:
    mixture = {"warm": 0.5, "quic-early_data": 0.3, "tls-cold": 0.2}
    a_tier = tier("mixture", mixture=mixture)
    found = {
        p: line(evaluated(everything(), a_tier), Mode.MIXTURE, "mixed", percentile=p)
        for p in (50.0, 95.0)
    }
    assert found[50.0].value_ms == RTT_MS  # warm, and early data over QUIC
    assert found[95.0].value_ms == 3 * RTT_MS  # cold over TLS
    assert found[95.0].headline
    evaluation = evaluated(everything(), tier("mixture", "quic", mixture=mixture))
    (info,) = evaluation.tiers
    assert info.headline_transport is Carrier.MIXED
    text = render_markdown(evaluation)
    assert "traffic mixture over TLS and QUIC connections" in text
    assert "traffic mixture over QUIC" not in text


def test_a_mode_of_the_mixture_that_is_missing_is_named() -> None:
    mixture = {"warm": 0.5, "quic-early_data": 0.5}
    evaluation = evaluated([echoes()], tier("mixture", mixture=mixture))
    found = line(evaluation, Mode.MIXTURE, "mixed")
    assert found.verdict is Verdict.UNDECIDED
    assert "no QUIC early data connections were measured" in found.reason


@pytest.mark.parametrize(
    ("kind", "finding"),
    [
        (FailureKind.EARLY_DATA_REJECTED, FindingKind.EARLY_DATA_REJECTED),
        (FailureKind.UNAVAILABLE, FindingKind.MODE_UNAVAILABLE),
    ],
)
def test_early_data_that_was_not_taken_is_in_no_line(
    kind: FailureKind, finding: FindingKind
) -> None:
    refused = Failure(kind, Stage.HANDSHAKE, "because")
    values = [40.0] * 300 + [None] * 100
    evaluation = evaluated([echoes(), setups(TLS, EARLY, values, failure=refused)])
    found = line(evaluation, Mode.EARLY_DATA)
    assert (found.n, found.losses, found.value_ms) == (300, 0, 2 * RTT_MS)
    assert "because" in findings(evaluation)[finding]
    excluded = {one.what: one.n for one in evaluation.exclusions}
    assert list(excluded.values()) == [100]
    (setup,) = evaluation.requests.setups
    assert setup.asked == 400
    share = setup.accepted_share
    assert share is not None
    rejected = kind is FailureKind.EARLY_DATA_REJECTED
    assert share.value == (0.75 if rejected else 1.0)
    assert (setup.other_mode, setup.unavailable) == ((100, 0) if rejected else (0, 100))


def test_quic_that_is_filtered_is_a_result() -> None:
    lost: list[float | None] = [None] * 100
    both = [echoes(), setups(TLS, COLD, [80.0] * N), setups(QUIC, COLD, lost, failure=TIMEOUT)]
    evaluation = evaluated(both, tier("warm", "quic"))
    assert "none of 100 QUIC connections" in findings(evaluation)[FindingKind.QUIC_BLOCKED]
    for mode in (Mode.COLD, Mode.WARM):
        found = line(evaluation, mode, "quic")
        assert (found.verdict, found.losses) == (Verdict.FAIL, 100)
    assert line(evaluation, Mode.COLD, "tls").verdict is Verdict.PASS


def test_nothing_is_blocked_where_nothing_answers() -> None:
    lost: list[float | None] = [None] * 100
    evaluation = evaluated([setups(TLS, COLD, lost), setups(QUIC, COLD, lost)])
    assert FindingKind.QUIC_BLOCKED not in findings(evaluation)


def test_flights_of_quic_are_round_trips_where_there_is_nothing_else() -> None:
    shots = [
        one
        for i in range(N)
        for one in (
            sample(i, Metric.QUIC_HANDSHAKE, 42.0, COLD),
            sample(i, Metric.SETUP, 42.0, COLD),
        )
    ]
    found = line(evaluated([measurement(shots, "quic", QUIC)]), Mode.COLD, "quic")
    assert (found.value_ms, found.round_trips_from) == (84.0, "quic")


def test_connections_to_name_servers_are_no_set_ups_of_the_service() -> None:
    """Nor are they round trips to the site, which a name server may be far nearer than."""
    shots = [
        one
        for i in range(N)
        for one in (sample(i, Metric.SETUP, 0.02, COLD), sample(i, Metric.CONNECT, 0.01))
    ]
    evaluation = evaluated([echoes(), measurement(shots, "dns", TLS)])
    (pair,) = [one for one in evaluation.pairs if one.region == "west"]
    assert pair.minimum_rtt_ms == RTT_MS
    assert line(evaluation, Mode.COLD).verdict is Verdict.NOT_MEASURED
    assert not evaluation.requests.setups


def test_what_was_not_measured_has_no_method_and_names_its_prompt() -> None:
    """Else rows of two prompts read alike, and a method stands beside nothing."""
    evaluation = evaluated([echoes()], tier(sizes=(800, 64_000)))
    empty = [one for one in evaluation.lines if not one.n and one.region == "west"]
    assert empty
    assert {one.method for one in empty} == {None}
    rows = [
        row
        for row in render_markdown(evaluation).replace("\\", "").splitlines()
        if "network (both ways), resumed, p95" in row
    ]
    assert len(rows) == len({row.split(" | ")[3] for row in rows}) == 2
    assert all(any(f"p95, {size} B" in row for row in rows) for size in ("800", "64,000"))
    assert not any("| measured |" in row for row in rows)
