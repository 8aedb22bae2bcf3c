"""Spans of requests: their times, their parents, and ids that do not change."""

import itertools

import pytest
from tests.watch.conftest import BEGAN, MS, request_of, sample, whole_request

from pathbudget.agents.watch.request_traces import MOST_CHUNKS, Span, trace_id, traces_of
from pathbudget.probes.record import Failure, FailureKind, Metric, Stage


def spans() -> dict[str, Span]:
    ((root, *steps),) = traces_of(whole_request())
    return {"root": root, **{f"{one.name}": one for one in steps}}


def at(span: Span) -> tuple[float, float]:
    """Begin and end in ms."""
    return (span.start_unix_ns - BEGAN) / MS, (span.end_unix_ns - BEGAN) / MS


def test_each_step_lies_where_it_was_measured() -> None:
    found = spans()
    assert {name: at(span) for name, span in found.items() if name != "delivery_gap"} == {
        "root": (0, 100),
        "resolve": (0, 3),
        "connect": (3, 23),
        "tls_handshake": (24, 45),
        "ttfb": (46, 78),
        "send": (46, 48),
        "wait": (48, 78),
        "receive": (78, 100),
    }


def test_the_tree_is_that_of_a_request() -> None:
    ((root, *steps),) = traces_of(whole_request())
    names = {one.span_id: one.name for one in (root, *steps)}
    parents = {one.name: names[one.parent_id] for one in steps}
    assert parents["send"] == parents["wait"] == "ttfb"
    assert parents["delivery_gap"] == "receive"
    assert {parents[name] for name in ("resolve", "connect", "ttfb", "receive")} == {root.name}
    assert [at(one) for one in steps if one.name == "delivery_gap"] == [(80, 90), (90, 100)]
    assert len({one.trace_id for one in (root, *steps)}) == 1
    assert len({one.span_id for one in (root, *steps)}) == len(steps) + 1


def test_children_lie_within_their_parents() -> None:
    ((root, *steps),) = traces_of(whole_request())
    by_id = {one.span_id: one for one in (root, *steps)}
    for one in steps:
        above = by_id[one.parent_id]
        assert above.start_unix_ns <= one.start_unix_ns <= one.end_unix_ns <= above.end_unix_ns


def test_sums_and_facts_are_attributes_by_convention() -> None:
    root = spans()["root"].attributes
    assert root["server.address"] == "shop.example"
    assert root["server.port"] == 443
    assert root["network.peer.address"] == "192.0.2.7"
    assert root["network.type"] == "ipv4"
    assert root["network.transport"] == "tcp"
    assert root["http.request.method"] == "GET"
    assert root["http.response.status_code"] == 200
    assert root["pathbudget.first_byte.duration_ns"] == 76 * MS
    assert root["pathbudget.connection_mode"] == "cold"
    assert "error.type" not in root
    assert spans()["tls_handshake"].attributes["tls.cipher"] == "TLS_AES_128"


def test_ids_come_from_measurement_and_number_alone() -> None:
    first, second = (list(traces_of(whole_request())) for _ in range(2))
    assert first == second
    assert first[0][0].trace_id == trace_id("0199-a", 0)
    ids = {trace_id(name, seq) for name, seq in itertools.product(("a", "b", "a1"), range(12))}
    assert len(ids) == 36, "a1 shot 1 is not a shot 11"


def test_each_shot_is_a_trace() -> None:
    shots = [sample(Metric.CONNECT, n, 1, seq=n) for n in (3, 1, 2)]
    found = list(traces_of(request_of(*shots, probe="tcp")))
    assert [spans[0].attributes["pathbudget.seq"] for spans in found] == [1, 2, 3]


def test_probes_of_packets_have_no_traces() -> None:
    packets = [
        sample(metric, 0, 1, part=1)
        for metric in (Metric.RTT, Metric.HOP_RTT, Metric.TRANSIT_FORWARD, Metric.RESIDENCE)
    ]
    assert list(traces_of(request_of(*packets, probe="stamp"))) == []


def test_what_was_waited_for_in_vain_lasts_to_the_deadline() -> None:
    ((root, _, wait),) = traces_of(
        request_of(sample(Metric.CONNECT, 0, 20), sample(Metric.WAIT, 25, None))
    )
    assert at(wait) == (25, 2_000)
    assert at(root) == (0, 2_000)
    assert wait.failure is not None
    assert root.failure == wait.failure
    assert root.attributes["error.type"] == "timeout"


def test_what_was_refused_has_no_length() -> None:
    refused = Failure(FailureKind.REFUSED, Stage.CONNECT)
    ((_, connect),) = traces_of(request_of(sample(Metric.CONNECT, 5, None, failure=refused)))
    assert at(connect) == (5, 5)


def test_two_questions_of_one_shot_are_told_apart() -> None:
    asked = [
        sample(metric, n, 1)
        for n, metric in enumerate(
            (Metric.CONNECT, Metric.DNS_HIT, Metric.CONNECT, Metric.DNS_MISS)
        )
    ]
    ((_, *steps),) = traces_of(request_of(*asked, probe="dns"))
    assert len({one.span_id for one in steps}) == 4


def test_redirects_keep_their_own_steps() -> None:
    hops = [sample(m, 10 * n, 5, part=n) for n in (0, 1) for m in (Metric.TTFB, Metric.WAIT)]
    ((_, *steps),) = traces_of(request_of(*hops))
    by_part = {(one.name, one.attributes["pathbudget.part"]): one for one in steps}
    for part in (0, 1):
        assert by_part["wait", part].parent_id == by_part["ttfb", part].span_id


@pytest.mark.parametrize("chunks", [MOST_CHUNKS, MOST_CHUNKS + 7])
def test_a_long_stream_is_bounded_and_says_so(chunks: int) -> None:
    gaps = [sample(Metric.DELIVERY_GAP, n, 1, part=n + 1) for n in range(chunks)]
    ((root, *steps),) = traces_of(
        request_of(sample(Metric.RECEIVE, 0, chunks + 1), *gaps, probe="token_stream")
    )
    assert len(steps) == MOST_CHUNKS + 1
    assert root.attributes.get("pathbudget.chunks_left_out", 0) == chunks - MOST_CHUNKS
