"""Sinks that never read, answer too early, close, lie or never end: a failure, in time, each."""

import asyncio
import json
import time
from asyncio import StreamReader as Reader
from asyncio import StreamWriter as Writer
from collections.abc import Awaitable, Callable

import pytest

from pathbudget.probes.record import FailureKind, Metric, Sample, Stage

Handler = Callable[[Reader, Writer], Awaitable[None]]
Sink = Callable[[Handler], Awaitable[int]]
Shooting = Callable[..., Awaitable[list[Sample]]]
SIZE = 100_000
TIMEOUT_MS = 300


async def read_request(reader: Reader) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    size = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
    await reader.readexactly(size)


def answer(body: bytes, status: str = "200 OK") -> bytes:
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


def receipt(**changes: object) -> bytes:
    now = time.time_ns()
    plain = {
        "bytes": SIZE,
        "first_unix_ns": now - 1_000,
        "last_unix_ns": now,
        "residence_ns": 10,
        "kernel": True,
    }
    return json.dumps({**plain, **changes}).encode()


def says(data: bytes) -> Handler:
    async def handle(reader: Reader, writer: Writer) -> None:
        await read_request(reader)
        writer.write(data)
        await writer.drain()
        await asyncio.sleep(1)

    return handle


async def never_reads(reader: Reader, writer: Writer) -> None:
    del reader, writer
    await asyncio.sleep(5)


async def answers_at_once(reader: Reader, writer: Writer) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(answer(b"no", "413 Content Too Large"))
    await writer.drain()
    await asyncio.sleep(5)


async def closes_midway(reader: Reader, writer: Writer) -> None:
    del writer
    await reader.readexactly(20_000)


async def closes_in_good_order(reader: Reader, writer: Writer) -> None:
    await read_request(reader)
    writer.write_eof()
    await asyncio.sleep(1)


async def drips_headers(reader: Reader, writer: Writer) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\n")
    for number in range(1_000):
        writer.write(f"x-{number}: a\r\n".encode())
        await writer.drain()
        await asyncio.sleep(0.01)


async def pours_a_receipt(reader: Reader, writer: Writer) -> None:
    await read_request(reader)
    writer.write(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
    for _ in range(10_000):
        writer.write(b"1000\r\n" + b"[" * 4_096 + b"\r\n")
        await writer.drain()


TIMEOUT, STATUS = FailureKind.TIMEOUT, FailureKind.STATUS
RESET, CLOSED = FailureKind.RESET, FailureKind.CLOSED
PROTOCOL, CORRUPT = FailureKind.PROTOCOL, FailureKind.CORRUPT
HOSTILE: dict[str, tuple[Handler, tuple[FailureKind, ...]]] = {
    "never reads": (never_reads, (TIMEOUT,)),
    "answers 413 early": (answers_at_once, (STATUS,)),
    "closes midway": (closes_midway, (RESET, CLOSED)),
    "closes unanswered": (closes_in_good_order, (CLOSED,)),
    "drips headers": (drips_headers, (TIMEOUT,)),
    "pours a receipt": (pours_a_receipt, (PROTOCOL,)),
    "garbage": (says(b"\x00\xff garbage \r\n\r\n" * 100), (PROTOCOL,)),
    "no receipt": (says(answer(b"thanks")), (PROTOCOL,)),
    "no content": (says(b"HTTP/1.1 204 No Content\r\n\r\n"), (PROTOCOL,)),
    "not found": (says(answer(b"", "404 Not Found")), (STATUS,)),
    "half of it": (says(answer(receipt(bytes=SIZE // 2))), (CORRUPT,)),
    "took longer than all": (says(answer(receipt(residence_ns=10**18))), (CORRUPT,)),
    "went back in time": (says(answer(receipt(residence_ns=-1))), (CORRUPT,)),
    "impossible times": (says(answer(receipt(last_unix_ns=2**63 - 1))), (CORRUPT,)),
    "words for numbers": (says(answer(receipt(residence_ns="soon"))), (PROTOCOL,)),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_clear_failure_in_time(shoot: Shooting, sink: Sink, name: str) -> None:
    handler, kinds = HOSTILE[name]
    port = await sink(handler)
    began = time.monotonic()
    told = await shoot("127.0.0.1", port, bytes=SIZE, scheme="http", timeout_ms=TIMEOUT_MS)
    took = time.monotonic() - began
    (upload,) = [sample for sample in told if sample.metric == Metric.UPLOAD]
    assert upload.failure is not None
    assert upload.failure.kind in kinds
    assert upload.failure.stage in (Stage.SEND, Stage.WAIT, Stage.PARSE)
    assert took < TIMEOUT_MS / 1000 + 1.5
    assert [sample.failure for sample in told if sample.metric == Metric.SETUP] == [None]


async def test_a_receipt_as_it_should_be(shoot: Shooting, sink: Sink) -> None:
    port = await sink(says(answer(receipt(residence_ns=1_000))))
    told = await shoot("127.0.0.1", port, bytes=SIZE, scheme="http")
    (upload,) = [sample for sample in told if sample.metric == Metric.UPLOAD]
    assert upload.failure is None
    assert upload.stamps is not None
    received = upload.stamps.kernel_received_ns
    assert received is not None
    assert upload.value_ns == received - 1_000


async def test_nobody_listens(shoot: Shooting, sink: Sink) -> None:
    port = await sink(never_reads)
    told = await shoot("127.0.0.1", port + 1 if port < 65_000 else port - 1, scheme="http")
    failed = {sample.metric: sample.failure for sample in told if sample.failure is not None}
    assert set(failed) >= {Metric.SETUP, Metric.UPLOAD}
    assert {failure.kind for failure in failed.values()} == {FailureKind.REFUSED}


async def test_a_kept_connection_that_breaks(shoot: Shooting, sink: Sink) -> None:
    """The second upload on a connection that the server ends: new ones, each marked as cold."""
    port = await sink(says_once_and_leaves)
    told = await shoot(
        "127.0.0.1", port, shots=3, gap_ms=30, mode="warm", bytes=SIZE, scheme="http"
    )
    uploads = [sample for sample in told if sample.metric == Metric.UPLOAD]
    assert [sample.mode for sample in uploads] == ["cold"] * 3
    assert [sample.failure for sample in uploads] == [None] * 3


async def says_once_and_leaves(reader: Reader, writer: Writer) -> None:
    await read_request(reader)
    writer.write(answer(receipt()))
    await writer.drain()
    writer.write_eof()
    await asyncio.sleep(0.5)
