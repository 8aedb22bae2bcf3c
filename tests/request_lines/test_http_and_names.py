"""Phases of HTTP, the gateway's share, hits and misses, and the edges that regions are sent to."""

import pytest
from tests.request_lines.parts import N, echoes, evaluated, findings, measurement, sample, setups

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.http_phases import server_timing
from pathbudget.analysis.report.http import credential_verdict
from pathbudget.analysis.report.markdown import render_markdown
from pathbudget.probes.record import (
    ConnectionMode,
    Flag,
    Measurement,
    Metric,
    Note,
    Sample,
    Transport,
)

WARM = ConnectionMode.WARM


def http(with_ms: list[float], without_ms: list[float | None], version: str = "2") -> Measurement:
    """Requests with credentials, and without where there is a number."""
    shots: list[Sample] = []
    for i, (one, other) in enumerate(zip(with_ms, without_ms, strict=True)):
        notes: dict[str, Note] = {
            "status": 200,
            "server_timing": "cache;dur=0.5, app;dur=3.25;desc=x",
        }
        shots.append(sample(i, Metric.TTFB, one, WARM, notes=notes))
        shots.append(sample(i, Metric.SEND, 0.1, WARM))
        shots.append(sample(i, Metric.WAIT, one - 0.1, WARM))
        if other is not None:
            shots.append(sample(i, Metric.TTFB_ANONYMOUS, other))
    return measurement(shots, "http", Transport.TLS, options={"version": version})


@pytest.mark.parametrize(
    ("cost_ms", "verdict"), [(2.0, "cost time"), (0.0, "undecided"), (-2.0, "save time")]
)
def test_credentials_are_timed_in_pairs(cost_ms: float, verdict: str) -> None:
    """The path swings by 30 ms, far more than what credentials cost: pairs see through it."""
    path = [40.0 + 30.0 * (i % 7) / 7 for i in range(N)]
    with_them = [one + cost_ms for one in path]
    (found,) = evaluated([echoes(), http(with_them, list(path))]).requests.gateways
    assert found.difference_p50_ms.value_ms == pytest.approx(cost_ms, abs=1e-5)
    assert (found.pairs, found.unpaired) == (N, 0)
    assert credential_verdict(found).startswith(verdict)


def test_a_request_without_its_twin_makes_no_pair() -> None:
    found = evaluated([http([40.0] * 20, [39.0, None] * 10)]).requests.gateways
    assert [(one.pairs, one.unpaired) for one in found] == [(10, 0)]


def test_versions_and_modes_are_series_of_their_own() -> None:
    evaluation = evaluated([http([40.0] * 20, [None] * 20), http([50.0] * 20, [None] * 20, "1.1")])
    found = {
        one.version: {p.phase: p.p50_ms for p in one.phases} for one in evaluation.requests.http
    }
    assert found == {
        "2": {"send": 0.1, "wait": 39.9, "ttfb": 40.0},
        "1.1": {"send": 0.1, "wait": 49.9, "ttfb": 50.0},
    }
    variants = {one.variant for one in evaluation.summaries if one.metric == "ttfb"}
    assert variants == {"2", "1.1"}
    (first, _) = evaluation.requests.http
    assert first.server_timing == {"app": 3.25, "cache": 0.5}
    assert first.statuses == {"200": 20}
    assert not evaluation.requests.gateways
    assert "HTTP/1.1" in render_markdown(evaluation)


@pytest.mark.parametrize(
    ("header", "steps"),
    [
        ("db;dur=53.2, app;dur=47", [("db", 53.2), ("app", 47.0)]),
        ('a; DUR = "1" ;desc="x"', [("a", 1.0)]),
        ("miss, a;dur=x, b;dur=-1, c;dur=inf, ;dur=3, d;dur=nan", []),
        ("a;dur=1;dur=2", [("a", 1.0)]),
        ("n" * 500 + ";dur=1", [("n" * 40, 1.0)]),
        (";,=" * 1000, []),
    ],
    ids=["two", "quoted", "none usable", "first counts", "long name", "punctuation"],
)
def test_server_timing(header: str, steps: list[tuple[str, float]]) -> None:
    assert server_timing(header) == steps


def dns(region: str, addresses: str, transport: str = "udp") -> Measurement:
    """Hits and misses from one region; the misses are slower."""
    shots = [
        one
        for i in range(100)
        for one in (
            sample(i, Metric.DNS_HIT, 5.0, notes={"addresses": addresses, "nsid": "ns1"}),
            sample(i, Metric.DNS_MISS, 55.0, flags=(Flag.TRUNCATED,) if i < 3 else ()),
        )
    ]
    options = {"transport": transport, "name": "api.example", "type": "A"}
    return measurement(shots, "dns", region=region, options=options)


def test_hits_and_misses_of_each_transport() -> None:
    evaluation = evaluated([dns("west", "192.0.2.1"), dns("west", "192.0.2.1", "dot")])
    found = {
        (one.over, one.metric): (one.p50_ms.value_ms, one.n, one.truncated)
        for one in evaluation.requests.look_ups
    }
    assert found == {
        (over, metric): numbers
        for over in ("udp", "dot")
        for metric, numbers in (("dns_hit", (5.0, 100, 0)), ("dns_miss", (55.0, 100, 3)))
    }


@pytest.mark.parametrize(
    ("east", "differ"), [("192.0.2.9", True), ("192.0.2.1 192.0.2.9", False), ("192.0.2.1", False)]
)
def test_regions_that_are_sent_to_different_edges(east: str, differ: bool) -> None:
    evaluation = evaluated([dns("west", "192.0.2.1"), dns("east", east)])
    told = findings(evaluation)
    assert (FindingKind.EDGES_DIFFER in told) == differ
    if differ:
        assert "east to 192.0.2.9; west to 192.0.2.1" in told[FindingKind.EDGES_DIFFER]
    assert {one.region: one.addresses for one in evaluation.requests.edges} == {
        "west": {"192.0.2.1": 100},
        "east": {east: 100},
    }


def test_set_ups_towards_name_servers_stand_under_names() -> None:
    """They are connections as well, and none to the service."""
    over_tls = [
        one
        for i in range(N)
        for one in (
            sample(i, Metric.SETUP, 33.0, ConnectionMode.COLD),
            sample(i, Metric.DNS_HIT, 12.0, ConnectionMode.COLD),
        )
    ]
    asked = measurement(over_tls, "dns", Transport.TLS, options={"transport": "dot"})
    to_service = setups(Transport.TLS, ConnectionMode.COLD, [80.0] * N)
    text = render_markdown(evaluated([echoes(), asked, to_service])).replace("\\", "")
    assert "stand under look-ups of names" in text
    table = text.partition("Set-up of connections to name servers")[2].partition("\n\n\n")[0]
    (row,) = [line for line in table.splitlines() if "TLS (DoT), cold" in line]
    assert "33" in row
    assert "stand under look-ups" not in render_markdown(evaluated([echoes(), to_service]))
