"""scamper's trace and tracelb, against a second reading of the same lines."""

import importlib.util
import json
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.agents.importers.import_report import ImportReport
from pathbudget.agents.importers.scamper import read_scamper
from pathbudget.analysis.routes.observations import observe
from pathbudget.probes.record import Measurement, Sample

DESTINATION = "192.0.2.7"
START = {"sec": 1_600_000_000, "usec": 250}


def load() -> ModuleType:
    path = Path(__file__).with_name("fuzz_targets.py")
    spec = importlib.util.spec_from_file_location("importers_fuzz_targets", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


TARGETS = load()


def imported(path: Path, **options: Any) -> tuple[list[Measurement], ImportReport]:
    report = ImportReport(problems_kept=100)
    return list(read_scamper([path], report=report, **options)), report


@pytest.fixture
def read(tmp_path: Path) -> Any:
    """Import these objects as lines."""

    def of(*lines: object, **options: Any) -> tuple[list[Measurement], ImportReport]:
        path = tmp_path / "traces.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)))
        return imported(path, **options)

    return of


def trace(*hops: dict[str, Any], **changes: Any) -> dict[str, Any]:
    result = {
        "type": "trace", "version": "0.1", "method": "udp-paris", "src": "198.51.100.9",
        "dst": DESTINATION, "sport": 50952, "dport": 33435, "stop_reason": "COMPLETED",
        "stop_data": 0, "start": START, "attempts": 2, "firsthop": 1, "probe_size": 44,
        "probe_count": len(hops) + 3, "hops": list(hops),
    }  # fmt: skip
    return {key: value for key, value in {**result, **changes}.items() if value is not None}


def hop(limit: int, addr: str, rtt: float = 1.5, **more: Any) -> dict[str, Any]:
    return {
        "addr": addr, "probe_ttl": limit, "probe_id": 1, "rtt": rtt, "reply_ttl": 250,
        "tx": {"sec": 1_600_000_000, "usec": 1000 * limit}, "icmp_type": 11, "icmp_code": 0,
        "icmp_q_ttl": 1, **more,
    }  # fmt: skip


def arrived(limit: int) -> dict[str, Any]:
    return hop(limit, DESTINATION, 9.25, icmp_type=3, icmp_code=3)


def by_metric(measurement: Measurement, metric: str) -> list[Sample]:
    return [sample for sample in measurement.samples if sample.metric == metric]


def test_a_trace(read: Any) -> None:
    labels = [{"mpls_ttl": 1, "mpls_s": 1, "mpls_exp": 2, "mpls_label": 300}]
    extension = [{"ie_cn": 1, "ie_ct": 1, "ie_dl": 4, "mpls_labels": labels}]
    lines = [
        {"type": "cycle-start", "hostname": "probe1"},
        trace(hop(1, "10.0.0.1"), hop(3, "8.8.8.1", icmpext=extension, icmp_q_ttl=2), arrived(4)),
    ]
    ((measurement,), report) = read(*lines)
    (target,) = by_metric(measurement, "rtt")
    assert (target.value_ns, target.flow, target.failure) == (9_250_000, 50952, None)
    assert target.notes == {"protocol": "udp", "stopped": "arrived"}
    one, three, four = by_metric(measurement, "hop_rtt")
    assert (one.part, one.responder, one.value_ns, one.ttl) == (1, "10.0.0.1", 1_500_000, 250)
    assert one.sent_unix_ns == 1_600_000_000_001_000_000
    assert three.notes == {"icmp": "11/0", "quoted_ttl": 2, "mpls": "300/2/1/1"}
    assert (four.part, four.responder) == (4, None)
    assert measurement.vantage.name == "probe1"
    assert measurement.counters == {"unanswered": 3}
    assert measurement.options == {"method": "udp-paris", "protocol": "udp", "size": 44}
    assert measurement.duration_ns == 13_000_000
    assert report.left_out == {"line about a cycle of scamper": 1}
    (observation,) = observe([measurement])
    (path,) = observation.flows
    assert [",".join(one) for one in path.hops] == ["10.0.0.1", "", "8.8.8.1", DESTINATION]
    assert path.reached


@pytest.mark.parametrize(
    ("reason", "data", "kind", "stopped"),
    [
        ("GAPLIMIT", 0, "timeout", "gap"), ("LOOP", 1, "time_exceeded", "loop"),
        ("UNREACH", 13, "unreachable", "unreachable"), ("ERROR", 5, "local", "error"),
        ("HOPLIMIT", 0, "time_exceeded", "limit"), ("COMPLETED", 0, "timeout", "arrived"),
    ],
)  # fmt: skip
def test_why_the_destination_did_not_answer(
    read: Any, reason: str, data: int, kind: str, stopped: str
) -> None:
    ((measurement,), report) = read(trace(hop(1, "10.0.0.1"), stop_reason=reason, stop_data=data))
    (target,) = by_metric(measurement, "rtt")
    assert target.failure is not None
    assert target.failure.kind == kind
    assert target.notes is not None
    assert target.notes["stopped"] == stopped
    assert report.failures.total() == 1


def test_time_exceeded_is_no_arrival_whoever_sends_it(read: Any) -> None:
    """A translator in front of the destination speaks with its address."""
    ((measurement,), _) = read(trace(hop(1, DESTINATION), arrived(2)))
    first, second = by_metric(measurement, "hop_rtt")
    assert (first.responder, second.responder) == (DESTINATION, None)


@pytest.mark.parametrize(
    ("changes", "flow"),
    [
        ({"method": "icmp-echo-paris", "icmp_sum": 33009}, 33009), ({"method": "tcp"}, 50952),
        ({"method": "udp"}, None), ({"method": "icmp-echo"}, None),
    ],
)  # fmt: skip
def test_flows_are_those_of_paris_methods(read: Any, changes: Any, flow: int | None) -> None:
    ((measurement,), _) = read(trace(arrived(1), **changes))
    assert {sample.flow for sample in measurement.samples} == {flow}


def tracelb(*nodes: dict[str, Any], **changes: Any) -> dict[str, Any]:
    result = {
        "type": "tracelb", "method": "icmp-echo", "src": "198.51.100.9", "dst": DESTINATION,
        "start": START, "confidence": 95, "probec": 40, "probec_max": 3000, "nodes": list(nodes),
    }  # fmt: skip
    return {**result, **changes}


def node(addr: str, *rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {"addr": addr, "q_ttl": 1, "linkc": len(rows), "links": list(rows)}


def link(addr: str, ttl: int, *flows: int, icmp_type: int = 11, copies: int = 1) -> dict[str, Any]:
    reply = {"rtt": 2.5, "ttl": 60, "icmp_type": icmp_type, "icmp_code": 0, "icmp_q_ttl": 1}
    probes = [
        {"tx": START, "ttl": ttl, "flowid": flow, "replies": [reply] * copies} for flow in flows
    ]
    return {"addr": addr, "probes": probes}


def test_a_tracelb_has_a_path_for_each_flow(read: Any) -> None:
    nodes = [
        node("10.0.0.1", [link("8.8.8.1", 2, 1, 3), link("8.8.8.2", 2, 2)]),
        node("8.8.8.1", [{"addr": "*"}], [link(DESTINATION, 4, 1, icmp_type=0, copies=2)]),
    ]
    ((measurement,), report) = read(tracelb(*nodes))
    (observation,) = observe([measurement])
    assert observation.confidence == 0.95
    rows = {
        flow.flow: ([",".join(hop) for hop in flow.hops], flow.reached)
        for flow in observation.flows
    }
    assert rows == {
        1: (["10.0.0.1", "8.8.8.1", "", DESTINATION], True),
        2: (["10.0.0.1", "8.8.8.2"], False),
        3: (["10.0.0.1", "8.8.8.1"], False),
    }
    assert (report.duplicates, measurement.counters) == (1, {"duplicate": 1, "unanswered": 36})
    (target,) = by_metric(measurement, "rtt")
    assert (target.value_ns, target.flow) == (2_500_000, 1)


def test_a_tracelb_that_ran_out_of_packets_has_no_confidence(read: Any) -> None:
    nodes = [node("10.0.0.1", [link("8.8.8.1", 2, 1)])]
    ((measurement,), _) = read(tracelb(*nodes, probec=3000))
    (observation,) = observe([measurement])
    assert observation.confidence is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ({"type": "tracelb"}, "missing required field `src`"),
        ({"type": "trace-invalid"}, "unknown type of result 'trace-invalid'"),
        ({}, "unknown type of result ''"),
        (trace(dst="nowhere"), "'nowhere' is no address"),
        (trace(hop(256, "10.0.0.1")), "255"),
        (tracelb({"addr": "10.0.0.1", "linkc": 1}), "links are counted, and none listed"),
        ([1], "Expected `object`"),
    ],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_read(
    read: Any, line: Any, words: str
) -> None:
    measurements, report = read(trace(arrived(1)), line, trace(arrived(2)))
    assert (len(measurements), report.malformed) == (2, 1)
    (problem,) = report.problems
    assert "line 2" in str(problem)
    assert words in problem.reason


def test_other_measurements_of_scamper_are_counted(read: Any) -> None:
    measurements, report = read({"type": "ping", "src": "a"}, {"UUID": "x"}, {"type": "cycle-stop"})
    assert measurements == []
    assert report.skipped == {"ping": 1}
    assert report.left_out.total() == 2


def test_ids_are_those_of_the_trace_and_names_can_be_given(read: Any) -> None:
    ((one,), _) = read(trace(arrived(1)))
    ((again,), _) = read(trace(arrived(1)), vantage="fra1", region="europe")
    assert one.id == again.id
    assert (again.vantage.name, again.vantage.region) == ("fra1", "europe")
    ((other,), _) = read(trace(arrived(2)))
    assert other.id != one.id


@pytest.fixture(scope="session")
def scamper_files(shared_data: Path) -> list[Path]:
    return sorted((shared_data / "scamper_json").iterdir())


def second_reading(line: str) -> Counter[tuple[Any, ...]]:
    """Answers as (flow, hop limit, address, ms), straight out of the JSON."""
    result = json.loads(line)
    if result["type"] == "trace":
        flow = result.get("icmp_sum", result.get("sport"))
        hops = result.get("hops", [])
        return Counter((flow, one["probe_ttl"], one["addr"], one["rtt"]) for one in hops)
    return Counter(
        (probe["flowid"], probe["ttl"], link["addr"], reply["rtt"])
        for node in result.get("nodes", [])
        for row in node["links"]
        for link in row
        for probe in link.get("probes", [])
        for reply in probe["replies"]
    )


def numbers(measurement: Measurement) -> Counter[tuple[Any, ...]]:
    return Counter(
        (one.flow, one.part, one.responder or measurement.address, round(one.value_ns / 1e6, 3))
        for one in by_metric(measurement, "hop_rtt")
        if one.value_ns is not None
    )


@pytest.mark.needs("data")
def test_every_real_answer_is_read(scamper_files: list[Path]) -> None:
    checked: Counter[str] = Counter()
    for path in scamper_files:
        measurements, _ = imported(path)
        for measurement in measurements:
            (line,) = [
                text
                for text in path.read_text().splitlines()
                if text.startswith(('{"type":"trace', '{"type":"tracelb'))
                or '"tracelb"' in text[:20]
            ]
            expected = second_reading(line)
            named = Counter({key: count for key, count in expected.items() if key[2]})
            assert numbers(measurement) == named, path.name
            unnamed = expected.total() - named.total()
            hops = by_metric(measurement, "hop_rtt")
            corrupt = sum(bool(one.failure and one.failure.kind == "corrupt") for one in hops)
            assert corrupt == unnamed
            checked[json.loads(line)["type"]] += expected.total()
    assert checked["trace"] == 6
    assert checked["tracelb"] > 150


@pytest.mark.needs("data")
def test_files_that_are_invalid_on_purpose(scamper_files: list[Path]) -> None:
    """Each invalid line is named; what M-Lab alone asks for (a UUID, four lines) is none of it."""
    bad: dict[str, int] = {}
    for path in scamper_files:
        measurements, report = imported(path)
        left = report.malformed + report.left_out.total()
        assert report.results == len(measurements) + left
        assert len(report.problems) == report.malformed
        if report.malformed:
            bad[path.name] = report.malformed
    assert bad == {
        "scamper1__invalid-cycle-start": 1,
        "scamper1__invalid-cycle-stop-type": 2,
        "scamper1__invalid-tracelb": 1,
        "scamper1__invalid-tracelb-links": 1,
        "scamper1__invalid-tracelb-type": 1,
        "scamper2__invalid-cycle-start-type": 2,
        "scamper2__invalid-trace": 1,
    }


words = st.sampled_from(
    ["addr", "probe_ttl", "rtt", "hops", "nodes", "links", "probes", "dst", "x"]
)
anything = st.recursive(
    st.none() | st.integers(-2, 2**65) | st.floats(allow_nan=False) | st.sampled_from(["*", "::1"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=6,
)


def changed(base: dict[str, Any], changes: dict[str, Any]) -> bytes:
    return json.dumps({**base, **changes}).encode()


results = st.builds(
    changed,
    st.sampled_from([trace(hop(1, "10.0.0.1"), arrived(2)), tracelb(node("a", [link("b", 2, 1)]))]),
    st.dictionaries(st.sampled_from(["hops", "nodes", "dst", "start", "stop_data"]), anything),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(results | st.binary(max_size=40), min_size=1, max_size=3).map(b"\n".join))
def test_any_content_of_scamper(content: bytes) -> None:
    TARGETS.fuzz_one_scamper(content)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.fixed_dictionaries({"hop": anything, "result": anything}), max_size=3).map(
        lambda value: json.dumps(value).encode()
    )
    | st.binary(max_size=40)
)
def test_any_hops_of_atlas(content: bytes) -> None:
    TARGETS.fuzz_one_atlas_trace(content)
