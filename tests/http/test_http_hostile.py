"""Servers that never come to an end: every shot ends at its deadline, with one `first_byte`."""

import asyncio
import contextlib
import tracemalloc
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.http.probe import HTTP
from pathbudget.probes.record import FailureKind

MS = 1_000_000
TIMEOUT_MS = 250
HEAD = b"HTTP/1.1 200 OK\r\n"
SETTINGS = bytes(3) + b"\x04" + bytes(5)
PING = b"\x00\x00\x08\x06" + bytes(5) + bytes(8)
HEADERS = b"\x00\x00\x01\x01\x04\x00\x00\x00\x01\x88"  # :status 200, not the end
BYTE = b"\x00\x00\x01\x00\x00\x00\x00\x00\x01x"

Handler = Callable[[asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(handler: Handler) -> AsyncGenerator[int]:
    """A server on loopback that does what it likes as soon as somebody connects."""

    async def play(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.CancelledError):
            await reader.read(10)
            await handler(writer)
        writer.close()

    server = await asyncio.start_server(play, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        await asyncio.sleep(0)


def again(first: bytes, step: bytes, pause: float = 0.0) -> Handler:
    """Say `first`, then `step` for ever."""

    async def handle(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        while True:
            writer.write(step)
            await writer.drain()
            await asyncio.sleep(pause)

    return handle


CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
HOSTILE: dict[str, tuple[str, Handler, frozenset[FailureKind]]] = {
    "slow-loris": ("1.1", again(HEAD, b"a", 0.01), frozenset({FailureKind.TIMEOUT})),
    "endless-headers": ("1.1", again(HEAD, b"a: b\r\n" * 500), frozenset({FailureKind.PROTOCOL})),
    "one-endless-header": (
        "1.1", again(HEAD + b"a: ", b"b" * 5_000), frozenset({FailureKind.PROTOCOL}),
    ),
    "endless-hints": (
        "1.1", again(b"", b"HTTP/1.1 100 C\r\n\r\n", 0.001), frozenset({FailureKind.PROTOCOL}),
    ),
    "garbage": ("1.1", again(b"", b"\xff" * 9_000), frozenset({FailureKind.PROTOCOL})),
    "no-line": ("1.1", again(b"", b"H" * 9_000), frozenset({FailureKind.PROTOCOL})),
    "slow-2": ("2", again(SETTINGS, PING, 0.02), frozenset({FailureKind.TIMEOUT})),
    "silence-2": ("2", again(b"", b"", 0.1), frozenset({FailureKind.TIMEOUT})),
    "half-a-frame": (
        "2",
        again(SETTINGS + b"\x00\x3f" + bytes(6) + b"\x01", b"\x00", 0.01),
        frozenset({FailureKind.TIMEOUT}),
    ),
    "pings": (
        "2",
        again(SETTINGS, PING * 100),
        frozenset({FailureKind.PROTOCOL, FailureKind.TIMEOUT}),  # the bound may lie beyond
    ),
    "garbage-2": ("2", again(b"", b"\xff" * 9_000), frozenset({FailureKind.PROTOCOL})),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
async def test_no_first_byte_of_a_server_that_never_comes_to_it(
    collector: Collector, name: str
) -> None:
    version, handler, kinds = HOSTILE[name]
    probe = collector.open(HTTP, {"scheme": "http", "version": version})
    async with serving(handler) as port:
        probe.fire(shot_at("127.0.0.1", port=port, timeout_ns=TIMEOUT_MS * MS))
        await asyncio.wait_for(probe.drain(), 10)
    probe.close()
    failure = collector.only("first_byte").failure
    assert failure is not None
    assert failure.kind in kinds, failure


ENDLESS = {
    "chunks": ("1.1", again(CHUNKED, b"1\r\nx\r\n" * 100, 0.001)),
    "no-length": ("1.1", again(HEAD + b"\r\n", b"x" * 500, 0.001)),
    "dripping": ("1.1", again(HEAD + b"Content-Length: 900\r\n\r\n", b"x", 0.02)),
    "frames": ("2", again(SETTINGS + HEADERS, BYTE * 50, 0.001)),
}


@pytest.mark.parametrize("name", ENDLESS)
async def test_an_answer_that_never_ends_had_a_first_byte(collector: Collector, name: str) -> None:
    version, handler = ENDLESS[name]
    probe = collector.open(HTTP, {"scheme": "http", "version": version, "answer_bytes": 1 << 24})
    async with serving(handler) as port:
        probe.fire(shot_at("127.0.0.1", port=port, timeout_ns=TIMEOUT_MS * MS))
        await asyncio.wait_for(probe.drain(), 10)
    probe.close()
    assert collector.only("first_byte").failure is None
    failure = collector.only("receive").failure
    assert failure is not None
    assert failure.kind is FailureKind.TIMEOUT


FRAME = b"\x00\x02\x00\x00\x00\x00\x00\x00\x01" + bytes(512)


@pytest.mark.parametrize(
    ("version", "first", "step"),
    [("1.1", CHUNKED, b"200\r\n" + bytes(512) + b"\r\n"), ("2", SETTINGS + HEADERS, FRAME)],
    ids=["1.1", "2"],
)
async def test_nothing_is_kept_of_what_comes(
    collector: Collector, version: str, first: bytes, step: bytes
) -> None:
    """Megabytes come; less than one more is held at any time."""
    probe = collector.open(HTTP, {"scheme": "http", "version": version, "answer_bytes": 1 << 26})
    async with serving(again(first, step * 10)) as port:
        probe.fire(shot_at("127.0.0.1", port=port, timeout_ns=20 * MS))
        await probe.drain()
        tracemalloc.start()
        probe.fire(shot_at("127.0.0.1", port=port, seq=1, timeout_ns=TIMEOUT_MS * MS))
        await asyncio.wait_for(probe.drain(), 10)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    probe.close()
    assert peak < 4 << 20


@pytest.mark.parametrize(
    ("version", "first", "step"),
    [("1.1", CHUNKED, b"1\r\nx\r\n"), ("2", SETTINGS + HEADERS, BYTE)],
    ids=["1.1", "2"],
)
async def test_a_flood_of_tiny_pieces_does_not_hold_up_the_deadline(
    collector: Collector, version: str, first: bytes, step: bytes
) -> None:
    """It would take seconds to read what is there; the shot ends before that."""
    flood = step * (2_000_000 // len(step))

    async def handle(writer: asyncio.StreamWriter) -> None:
        writer.write(first + flood)
        await asyncio.sleep(60)

    probe = collector.open(HTTP, {"scheme": "http", "version": version, "answer_bytes": 1 << 26})
    async with serving(handle) as port:
        probe.fire(shot_at("127.0.0.1", port=port, timeout_ns=TIMEOUT_MS * MS))
        await asyncio.wait_for(probe.drain(), 10)
    (alive,) = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    alive.cancel()
    probe.close()
    stamps = collector.only("receive")
    assert stamps.failure is not None
    assert stamps.failure.kind is FailureKind.TIMEOUT
    assert collector.only("first_byte").failure is None
