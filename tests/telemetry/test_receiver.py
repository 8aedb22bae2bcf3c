"""The receiver on loopback: the SDK's own exporter, every answer of the standard, bounds, stop."""

import asyncio
import contextlib
import gzip
import importlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pathbudget.agents.telemetry.gather import gather
from pathbudget.agents.telemetry.intake import Problems
from pathbudget.agents.telemetry.otlp_files import read_spans
from pathbudget.agents.telemetry.receive_answers import Encoding
from pathbudget.agents.telemetry.receive_files import FullError, TraceFiles
from pathbudget.agents.telemetry.receive_server import Receiver, ReceiverOptions
from pathbudget.probes.errors import ReflectorError, StoreError

Encode = Callable[[Sequence[ReadableSpan]], bytes]
SPAN = {
    "traceId": "5B8EFFF798038103D269B633813FC60C", "spanId": "EEE19B7EC3C1B174",
    "name": "guardrail",
    "startTimeUnixNano": "1544712660000000000", "endTimeUnixNano": "1544712661000000000",
}  # fmt: skip
BROKEN = {**SPAN, "spanId": "00"}
Status: Any = importlib.import_module("google.rpc.status_pb2").Status
JSON, PROTOBUF = "application/json", "application/x-protobuf"
OPTIONS = ReceiverOptions(port=0, body_bytes=20_000, held_bytes=30_000, stop_seconds=0.3)


def request_of(*spans: dict[str, Any]) -> bytes:
    return json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}).encode()


def post(body: bytes, kind: str = JSON, *more: str, path: str = "/v1/traces") -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: x", f"content-type: {kind}", *more]
    if not any(line.startswith(("transfer-encoding", "content-length")) for line in more):
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, data: bytes) -> tuple[int, dict[str, str], bytes]:
        """Status, headers and body of the answer."""
        self.writer.write(data)
        async with asyncio.timeout(20):
            head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
            body = await self.reader.readexactly(int(headers["content-length"]))
        return int(head[0].split()[1]), headers, body

    async def ended(self) -> bool:
        """Whether the other side ends the connection."""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(20):
                return await self.reader.read() == b""
        return True


@contextlib.asynccontextmanager
async def client(receiver: Receiver) -> AsyncGenerator[Client]:
    reader, writer = await asyncio.open_connection("127.0.0.1", receiver.port)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


@pytest.fixture
def files(tmp_path: Path) -> TraceFiles:
    return TraceFiles(tmp_path / "kept", 1_000_000, 100_000)


@pytest.fixture
async def receiver(files: TraceFiles) -> AsyncIterator[Receiver]:
    async with Receiver(OPTIONS, files) as one:
        yield one


def kept(folder: Path) -> list[str]:
    """Names of the spans on disk; nothing of them may be unreadable."""
    return [span.name for path in sorted((folder / "kept").iterdir()) for span in read_spans(path)]


@pytest.mark.parametrize("compression", [Compression.NoCompression, Compression.Gzip])
async def test_the_exporter_of_the_sdk_delivers_the_terms_of_its_script(
    tmp_path: Path,
    receiver: Receiver,
    make_service: Callable[[Any], Any],
    compression: Compression,
) -> None:
    def serve() -> list[Any]:
        endpoint = f"http://127.0.0.1:{receiver.port}/v1/traces"
        exporter = OTLPSpanExporter(endpoint=endpoint, compression=compression)
        truth: list[Any] = make_service(exporter).requests(2)
        exporter.shutdown()  # type: ignore[no-untyped-call]
        return truth

    truth = await asyncio.to_thread(serve)
    assert receiver.counts["spans"] == 16
    for term in gather([tmp_path / "kept"]).terms:
        expected = [one.by_term[term.name] * 1e6 for one in truth]
        assert list(term.values_ns) == pytest.approx(expected)


async def test_json_of_the_sdk_in_pieces_and_packed(
    tmp_path: Path,
    receiver: Receiver,
    service: Any,
    exported: InMemorySpanExporter,
    json_of: Encode,
) -> None:
    service.requests(1)
    body = gzip.compress(json_of(exported.get_finished_spans()))
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in (body[:99], body[99:])) + b"0\r\n\r\n"
    head = post(
        b"", JSON + "; charset=utf-8", "content-encoding: gzip", "transfer-encoding: chunked"
    )
    async with client(receiver) as one:
        for _ in range(2):  # the second on the same connection
            status, headers, answer = await one.say(head + chunks)
            assert (status, headers["content-type"], answer) == (200, JSON, b"{}")
    assert len(kept(tmp_path)) == 16


async def test_a_request_is_partly_taken(tmp_path: Path, receiver: Receiver) -> None:
    async with client(receiver) as one:
        status, _, answer = await one.say(post(request_of(SPAN, BROKEN, SPAN)))
    told = json.loads(answer)["partialSuccess"]
    assert (status, told["rejectedSpans"]) == (200, "1")
    assert "spans[1].spanId: 1 bytes; expected 8 bytes" in told["errorMessage"]
    assert receiver.counts["spans rejected"] == 1


async def test_a_part_of_protobuf_is_rejected_in_protobuf(
    receiver: Receiver, service: Any, exported: InMemorySpanExporter, protobuf_of: Encode
) -> None:
    service.requests(1)
    one_request = protobuf_of(exported.get_finished_spans())
    corrupt = bytearray(one_request)
    corrupt[6] ^= 0xFF
    async with client(receiver) as one:
        status, headers, answer = await one.say(post(one_request + corrupt, PROTOBUF))
        response = ExportTraceServiceResponse.FromString(answer)
        assert (status, headers["content-type"]) == (200, PROTOBUF)
        assert response.partial_success.rejected_spans == 1
        assert "resourceSpans[1]: corrupt protobuf" in response.partial_success.error_message
        status, _, answer = await one.say(post(one_request, PROTOBUF))
        assert (status, answer) == (200, b"")
        assert not ExportTraceServiceResponse.FromString(answer).HasField("partial_success")
        status, _, answer = await one.say(post(b"\xff\xff", PROTOBUF))
        assert (status, Status.FromString(answer).code) == (400, 3)
        assert "byte 0: no protobuf" in Status.FromString(answer).message


@pytest.mark.parametrize(
    ("sent", "status", "expected"),
    [
        (post(b"{"), 400, "no JSON: Input data was truncated"),
        (post(b"[]"), 400, "is no object"),
        (post(request_of(BROKEN)), 400, "spanId: 1 bytes"),
        (post(b"no gzip", JSON, "content-encoding: gzip"), 400, "the gzip data is damaged"),
        (post(gzip.compress(b"{}")[:-9], JSON, "content-encoding: gzip"), 400, "ends early"),
        (post(b"{}", path="/v1/metrics"), 404, "metrics are not taken here"),
        (post(b"{}", path="/x"), 404, "traces go to /v1/traces"),
        (b"GET /v1/traces HTTP/1.1\r\nhost: x\r\n\r\n", 405, "expected POST"),
        (post(b"{}", "text/plain"), 415, "'text/plain'; expected application/x-protobuf"),
        (post(b"{}", JSON, "content-encoding: br"), 415, "'br'; expected gzip or none"),
        (post(b" " * 20_001), 413, "over 20000 bytes"),
        (post(gzip.compress(b" " * 20_001), JSON, "content-encoding: gzip"), 413, "over 20000"),
        (post(b"4e21\r\n" + b" " * 20_001, JSON, "transfer-encoding: chunked"), 413, "over 20000"),
        (b"HELLO\r\n\r\n", 400, "illegal request line"),
        (post(b"{}", JSON, "x: " + "y" * 70_000), 431, "too long"),
    ],
)  # fmt: skip
async def test_what_is_refused_is_told_why(
    tmp_path: Path, receiver: Receiver, sent: bytes, status: int, expected: str
) -> None:
    async with client(receiver) as one:
        found, headers, answer = await one.say(sent)
        assert (found, headers["content-type"]) == (status, JSON)
        assert expected in json.loads(answer)["message"]
        if status != 400 or b"HELLO" in sent:
            assert headers["connection"] == "close"
            assert await one.ended()
    assert not list((tmp_path / "kept").iterdir())


async def test_an_empty_request_is_fine_and_leaves_nothing(
    tmp_path: Path, receiver: Receiver
) -> None:
    async with client(receiver) as one:
        for body, kind in ((b"{}", JSON), (b'{"resourceSpans": []}', JSON), (b"", PROTOBUF)):
            assert (await one.say(post(body, kind)))[0] == 200
    assert not list((tmp_path / "kept").iterdir())


async def test_whoever_asks_first_is_told_to_go_on(receiver: Receiver) -> None:
    body = request_of(SPAN)
    async with client(receiver) as one:
        one.writer.write(post(body, JSON, "expect: 100-continue")[: -len(body)])
        async with asyncio.timeout(20):
            assert (await one.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
        assert (await one.say(body))[0] == 200


async def test_more_at_once_than_is_held_is_told_to_come_again(receiver: Receiver) -> None:
    waiting = post(b"x" * 19_999, JSON)[:-1]
    async with client(receiver) as one, client(receiver) as two:
        one.writer.write(waiting)
        await one.writer.drain()
        async with asyncio.timeout(20):
            while receiver._held < 19_900:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        status, headers, _ = await two.say(post(b"y" * 19_999))
        assert (status, headers["retry-after"], headers["connection"]) == (429, "1", "close")
        status, _, _ = await one.say(b"x")
        assert status == 400
    assert receiver._held == 0


async def test_connections_are_bounded_and_silence_ends(files: TraceFiles) -> None:
    options = ReceiverOptions(port=0, connections=1, idle_seconds=0.2)
    async with Receiver(options, files) as receiver:
        async with client(receiver) as one:
            assert (await one.say(post(b"{}")))[0] == 200
            async with client(receiver) as two:
                assert await two.ended()
            assert await one.ended()
        assert receiver.counts["connections turned away"] == 1


async def test_a_body_that_never_ends_ends_the_connection(files: TraceFiles) -> None:
    options = ReceiverOptions(port=0, body_seconds=0.1, head_seconds=0.1)
    async with Receiver(options, files) as receiver:
        async with client(receiver) as one, client(receiver) as two:
            one.writer.write(post(b"{}", JSON, "content-length: 9"))
            two.writer.write(b"POST /v1/tr")
            assert await one.ended()
            assert await two.ended()
        assert receiver._held == 0


async def test_a_full_disk_is_told_and_nothing_is_kept_in_part(tmp_path: Path) -> None:
    body = request_of(SPAN)
    files = TraceFiles(tmp_path / "kept", len(body) + 50, 100_000)
    async with Receiver(OPTIONS, files) as receiver, client(receiver) as one:
        assert (await one.say(post(body)))[0] == 200
        status, headers, answer = await one.say(post(body))
        assert (status, headers["retry-after"]) == (503, "30")
        assert "no room" in json.loads(answer)["message"]
    assert kept(tmp_path) == ["guardrail"]


def test_a_write_that_fails_half_way_leaves_whole_requests(
    tmp_path: Path, files: TraceFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.append(Encoding.JSON, request_of(SPAN))

    def refuse(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", refuse)
        with pytest.raises(FullError, match="No space left on device"):
            files.append(Encoding.JSON, request_of(SPAN))
    files.append(Encoding.JSON, request_of(SPAN))
    files.close()
    assert kept(tmp_path) == ["guardrail"] * 2


def test_files_are_begun_anew_and_count_what_was_there(tmp_path: Path) -> None:
    body = request_of(SPAN)
    files = TraceFiles(tmp_path / "kept", 1_000_000, 10)
    files.append(Encoding.JSON, json.dumps(json.loads(body), indent=1).encode())
    files.append(Encoding.JSON, body)
    files.close()
    assert len(list((tmp_path / "kept").iterdir())) == 2
    assert TraceFiles(tmp_path / "kept", 1_000_000, 10).used == files.used
    assert kept(tmp_path) == ["guardrail"] * 2
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be written to"):
        TraceFiles(tmp_path / "file", 1, 1)


async def test_the_stop_finishes_what_is_under_way_and_cuts_off_what_stalls(
    tmp_path: Path, files: TraceFiles
) -> None:
    body = request_of(SPAN)
    async with contextlib.AsyncExitStack() as stack:
        receiver = Receiver(OPTIONS, files)
        await receiver.__aenter__()
        idle, slow, stalled = [await stack.enter_async_context(client(receiver)) for _ in range(3)]
        for one in (slow, stalled):
            one.writer.write(post(body)[:-1])
            await one.writer.drain()
        async with asyncio.timeout(20):
            while receiver.counts["requests"] < 2:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        stopping = asyncio.ensure_future(receiver.__aexit__(None, None, None))
        await asyncio.sleep(0)
        status, headers, _ = await slow.say(body[-1:])
        assert (status, headers["connection"]) == (200, "close")
        assert await idle.ended()
        assert await stalled.ended()
        await stopping
    assert receiver.counts["cut off by the stop"] == 1
    assert kept(tmp_path) == ["guardrail"]  # the one that was acknowledged


async def test_an_address_in_use_is_told(tmp_path: Path, receiver: Receiver) -> None:
    taken = ReceiverOptions(port=receiver.port)
    with pytest.raises(ReflectorError, match=f"cannot listen on 127.0.0.1 port {receiver.port}"):
        await Receiver(taken, TraceFiles(tmp_path / "other", 1, 1)).__aenter__()


def test_a_torn_end_of_a_crash_is_told_and_hides_nothing(tmp_path: Path, files: TraceFiles) -> None:
    files.append(Encoding.JSON, request_of(SPAN))
    files.close()
    (path,) = (tmp_path / "kept").iterdir()
    path.write_bytes(path.read_bytes() + request_of(SPAN)[:40])
    problems = Problems()
    assert len(list(read_spans(path, problems))) == 1
    assert "line 2: the JSON is cut off" in str(problems.faults[0])
