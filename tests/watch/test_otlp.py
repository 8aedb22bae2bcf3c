"""OTLP on its way: what two receivers make of it, and receivers that are away, full or wrong."""

import asyncio
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from opentelemetry.proto.collector.metrics.v1 import metrics_service_pb2
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.trace.v1 import trace_pb2
from tests.watch.conftest import BEGAN, MS, OtlpReceiver, request_of, sample, whole_request
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application
from pathbudget.agents.store.parquet import Store
from pathbudget.agents.telemetry.intake import Problems
from pathbudget.agents.telemetry.otlp_files import read_all
from pathbudget.agents.telemetry.receive_files import TraceFiles
from pathbudget.agents.telemetry.receive_server import Receiver, ReceiverOptions
from pathbudget.agents.watch import otlp_export
from pathbudget.agents.watch.otlp_client import (
    METRICS,
    TRACES,
    OtlpClient,
    RefusedError,
    headers_of,
    parse_endpoint,
)
from pathbudget.agents.watch.otlp_export import OtlpStream, Signals, export
from pathbudget.agents.watch.otlp_messages import SCALE, bucket_of, metrics_request, trace_request
from pathbudget.probes.errors import WatchError
from pathbudget.probes.record import Measurement, Metric, Target

REFUSED = trace_service_pb2.ExportTraceServiceResponse(
    partial_success=trace_service_pb2.ExportTracePartialSuccess(rejected_spans=4)
)


def client_of(otlp: OtlpReceiver, **more: object) -> OtlpClient:
    return OtlpClient(parse_endpoint(otlp.url), **more)  # type: ignore[arg-type]


def spans_of(otlp: OtlpReceiver) -> list[trace_pb2.Span]:
    requests = map(trace_service_pb2.ExportTraceServiceRequest.FromString, otlp.bodies(TRACES))
    return [
        span
        for request in requests
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def metrics_of(*measurements: Measurement) -> dict[str, metrics_pb2.Metric]:
    sent = metrics_request(measurements).SerializeToString()
    request = metrics_service_pb2.ExportMetricsServiceRequest.FromString(sent)
    return {
        metric.name: metric
        for resource in request.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
    }


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(30):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.01)


async def test_our_own_receiver_reads_every_span_as_it_was_meant(tmp_path: Path) -> None:
    files = TraceFiles(tmp_path / "traces", 1 << 24, 1 << 20)
    async with Receiver(ReceiverOptions(port=0), files) as receiver:
        client = OtlpClient(parse_endpoint(f"http://127.0.0.1:{receiver.port}"))
        counts = await asyncio.to_thread(export, [whole_request()], client, Signals(metrics=False))
    assert counts["spans"] == receiver.counts["spans"] == 10
    problems = Problems()
    spans = list(read_all((tmp_path / "traces").iterdir(), problems))
    assert problems.count == 0
    root = next(one for one in spans if not one.parent_id)
    assert root.name == "http loop"
    assert root.resource["service.name"] == "pathbudget"
    assert root.resource["service.instance.id"] == "office"
    assert (root.start_unix_ns, root.end_unix_ns) == (BEGAN, BEGAN + 100 * MS)


def test_spans_are_on_the_wire_what_they_are_here(otlp: OtlpReceiver) -> None:
    export([whole_request()], client_of(otlp), Signals(service="edge"))
    spans = {span.name: span for span in spans_of(otlp)}
    assert spans["connect"].start_time_unix_nano == BEGAN + 3 * MS
    assert spans["connect"].end_time_unix_nano == BEGAN + 23 * MS
    assert spans["http loop"].kind == trace_pb2.Span.SPAN_KIND_CLIENT
    assert len(spans["connect"].trace_id) == 16
    assert len(spans["connect"].span_id) == 8
    assert spans["http loop"].parent_span_id == b""
    request = trace_service_pb2.ExportTraceServiceRequest.FromString(otlp.bodies(TRACES)[0])
    attributes = {
        one.key: one.value.string_value for one in request.resource_spans[0].resource.attributes
    }
    assert attributes["service.name"] == "edge"
    assert attributes["service.version"] == "1.2.3"
    assert attributes["host.name"] == "probe-1"
    (headers,) = {headers["content-type"] for _, _, headers in otlp.requests}
    assert headers == "application/x-protobuf"


def test_a_failure_is_the_status_of_its_span_and_of_the_root() -> None:
    request = trace_request([request_of(sample(Metric.WAIT, 0, None))])
    spans = request.resource_spans[0].scope_spans[0].spans
    assert [span.status.code for span in spans] == [trace_pb2.Status.STATUS_CODE_ERROR] * 2
    assert spans[0].status.message == "timeout (wait): none"


def test_a_distribution_is_an_exponential_histogram_of_one_measurement() -> None:
    values = [0.0, 1.0, 1.5, 20.0, 20.1, 4_000.0]
    shots = [sample(Metric.RTT, n, value, seq=n) for n, value in enumerate(values)]
    found = metrics_of(request_of(*shots, sample(Metric.RTT, 9, None, seq=9), probe="icmp"))
    histogram = found["pathbudget.rtt"].exponential_histogram
    assert histogram.aggregation_temporality == metrics_pb2.AGGREGATION_TEMPORALITY_DELTA
    (point,) = histogram.data_points
    assert found["pathbudget.rtt"].unit == "s"
    assert (point.count, point.zero_count, point.scale) == (6, 1, SCALE)
    assert point.sum == pytest.approx(sum(values) / 1e3)
    assert (point.min, point.max) == (0, 4)
    assert point.time_unix_nano - point.start_time_unix_nano == 60_000 * MS
    assert sum(point.positive.bucket_counts) == 5
    for value in values[1:]:
        place = bucket_of(value / 1e3)
        assert 2 ** (place / 8) < value / 1e3 <= 2 ** ((place + 1) / 8)
        assert point.positive.bucket_counts[place - point.positive.offset] >= 1
    points = found["pathbudget.probes"].sum.data_points
    told = {
        tuple((pair.key, pair.value.string_value) for pair in one.attributes): one.as_int
        for one in points
    }
    assert sorted(told.values()) == [1, 6]
    (lost,) = (dict(words) for words, count in told.items() if count == 1)
    assert lost["outcome"] == "lost"
    assert lost["error.type"] == "timeout"


def test_values_on_the_end_of_a_bucket_are_part_of_it() -> None:
    assert bucket_of(1.0) == -1
    assert bucket_of(2.0) == 7
    assert bucket_of(2.0000001) == 8


def test_the_same_words_of_strangers_do_no_harm() -> None:
    odd = "\ud800 \x00 \N{SNOWMAN}" * 50
    one = request_of(
        sample(Metric.TTFB, 0, 5, notes={odd: odd, "big": 1 << 70}), target=Target(odd, odd, odd)
    )
    sent = trace_request([one]).SerializeToString()
    assert trace_service_pb2.ExportTraceServiceRequest.FromString(sent).resource_spans


def test_what_is_busy_is_asked_again_and_gets_all(otlp: OtlpReceiver) -> None:
    otlp.answers = [(503, {"retry-after": "1"}, b""), (429, {}, b"")]
    began = time.monotonic()
    counts = export([whole_request()], client_of(otlp), Signals(metrics=False))
    assert counts["spans"] == len(spans_of(otlp)) == 10
    assert time.monotonic() - began >= 1, "it says when to come again"


@pytest.mark.parametrize("status", [400, 401, 404, 413, 302])
def test_what_is_refused_is_not_sent_again(otlp: OtlpReceiver, status: int) -> None:
    otlp.answers = [(status, {}, b"")]
    with pytest.raises(RefusedError, match=f"answered {status}"):
        client_of(otlp).post(TRACES, b"")
    otlp.answers = [(status, {}, b"")]
    with pytest.raises(WatchError, match="0 measurements were sent before"):
        export([whole_request()], client_of(otlp), Signals())


def test_parts_that_are_rejected_are_counted(otlp: OtlpReceiver) -> None:
    otlp.answers = [(200, {}, REFUSED.SerializeToString()), (200, {}, b"\xff\xff")]
    counts = export([whole_request()], client_of(otlp), Signals())
    assert counts["spans_rejected"] == 4
    assert counts["points_rejected"] == 0


def test_nobody_there_is_told_after_the_last_try(closed_port: int) -> None:
    client = OtlpClient(parse_endpoint(f"http://127.0.0.1:{closed_port}"), attempts=1)
    with pytest.raises(WatchError, match="refused"):
        export([whole_request()], client, Signals())


def test_large_exports_go_in_parts_and_nothing_is_lost(
    otlp: OtlpReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otlp_export, "BATCH_OCTETS", 50_000)
    many = [request_of(*whole_request().samples, id=f"m{n}") for n in range(70)]
    counts = export(many, client_of(otlp), Signals())
    assert len(otlp.bodies(TRACES)) > 1
    assert counts["spans"] == len(spans_of(otlp)) == 700
    assert len({span.span_id for span in spans_of(otlp)}) == 700
    assert counts["measurements"] == 70


async def test_a_stream_sends_what_it_is_offered(otlp: OtlpReceiver) -> None:
    said: list[str] = []
    with OtlpStream(client_of(otlp), Signals(), said.append) as stream:
        for number in range(5):
            stream.offer(request_of(*whole_request().samples, id=f"m{number}"))
        await until(lambda: stream.counts["measurements"] == 5)
    assert len(spans_of(otlp)) == 50
    assert otlp.bodies(METRICS)
    assert said == []


async def test_a_stream_without_a_receiver_drops_by_count_and_never_waits(
    closed_port: int,
) -> None:
    said: list[str] = []
    client = OtlpClient(parse_endpoint(f"http://127.0.0.1:{closed_port}"), attempts=1)
    with OtlpStream(client, Signals(), said.append, waiting=3) as stream:
        for number in range(200):
            stream.offer(request_of(*whole_request().samples, id=f"m{number}"))
        await until(lambda: stream.waiting == 0 and stream.counts["dropped_given_up"])
    dropped = sum(n for word, n in stream.counts.items() if word.startswith("dropped_"))
    assert dropped == 200
    assert stream.counts["dropped_queue"] > 100
    assert len(said) == 1, "a trouble is told once"


async def test_a_stream_says_when_a_receiver_is_back(otlp: OtlpReceiver) -> None:
    said: list[str] = []
    otlp.answers = [(400, {}, b"")]
    with OtlpStream(client_of(otlp), Signals(metrics=False), said.append, linger_s=0.01) as stream:
        stream.offer(whole_request())
        await until(lambda: stream.counts["dropped_refused"])
        stream.offer(whole_request())
        await until(lambda: stream.counts["measurements"])
    assert said[0].endswith("answered 400 Bad Request")
    assert said[1] == "traces and metrics: are taken again"


def test_a_stop_does_not_wait_for_a_receiver_that_is_away(closed_port: int) -> None:
    client = OtlpClient(parse_endpoint(f"http://127.0.0.1:{closed_port}"))
    with OtlpStream(client, Signals(), lambda _: None) as stream:
        stream.offer(whole_request())
        began = time.monotonic()
        while not client.trouble:
            assert time.monotonic() - began < 30
    assert stream.counts["dropped_given_up"] == 1


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://x", "no http or https"),
        ("http://", "names no host"),
        ("http://me:secret@x", "OTEL_EXPORTER_OTLP_HEADERS"),
        ("http://x/a?b=c", "more than host"),
        ("http://x:99999", "out of range"),
        ("x:4318", "no http or https"),
    ],
)
def test_what_is_no_address_is_told(url: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        parse_endpoint(url)
    result = CliRunner().invoke(application, ["telemetry", "export", "nowhere", "--to", url])
    assert result.exit_code == 2
    assert "secret@" not in result.output


def test_addresses_and_headers_are_read() -> None:
    assert str(parse_endpoint("http://[::1]")) == "http://[::1]:4318"
    assert str(parse_endpoint("https://otel.example/api/")) == "https://otel.example:443/api"
    told = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20abc, x=1"}
    assert headers_of(told) == {"authorization": "Bearer abc", "x": "1"}
    assert headers_of({}) == {}
    for wrong in ("a", "=b", "a=b%0d%0ac: d"):
        with pytest.raises(ValueError, match="name=value"):
            headers_of({"OTEL_EXPORTER_OTLP_HEADERS": wrong})


def test_the_command_exports_a_store(tmp_path: Path, otlp: OtlpReceiver) -> None:
    Store(tmp_path / "store").write([whole_request()])
    words = ["telemetry", "export", str(tmp_path / "store"), "--to", otlp.url]
    environment = {"OTEL_EXPORTER_OTLP_HEADERS": "x-scope=net"}
    for _ in range(2):
        result = CliRunner().invoke(application, words, env=environment)
        assert result.exit_code == 0, result.output
        assert "1 measurements, 10 spans sent" in result.output
    first, second = otlp.bodies(TRACES)
    assert first == second, "exported again it is the same"
    assert {headers["x-scope"] for _, _, headers in otlp.requests} == {"net"}
    for extra, code in ((["--campaign", "no"], 4), (["--since", "2999-01-01T00:00:00Z"], 4)):
        assert CliRunner().invoke(application, [*words, *extra]).exit_code == code
    for wrong in ("tomorrow", "2026-12-01T00:00:00"):
        assert CliRunner().invoke(application, [*words, "--since", wrong]).exit_code == 2
    only = CliRunner().invoke(application, [*words, "--only", "metrics", "--since", "9999999h ago"])
    assert only.exit_code in (0, 2), only.output
