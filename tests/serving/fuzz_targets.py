"""Fuzz targets of what the reflector's HTTPS reads. See tests/fuzzing.py."""

from collections import Counter
from typing import Any

import h2.connection

from pathbudget.agents.reflector.serving.fakes import DeafWire, HandClock, at, pages
from pathbudget.agents.reflector.serving.framing import PREFACE
from pathbudget.agents.reflector.serving.http1 import Http1
from pathbudget.agents.reflector.serving.http2 import Http2
from pathbudget.agents.reflector.serving.pacing import StreamError, read_plan
from pathbudget.agents.reflector.serving.quic_socket import QuicSocket
from pathbudget.agents.reflector.serving.websocket import WebSocket
from pathbudget.probes.channels import Datagram

CLOCK = HandClock()
UPGRADE = (
    b"GET /stream HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: websocket\r\n"
    b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
STARTS = (
    b"",
    b"GET /ping HTTP/1.1\r\nhost: a\r\n",
    b"POST /upload HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n",
    UPGRADE,
)


def fuzz_one_http1(data: bytes) -> None:
    """Any bytes, at any place of a connection: nothing raises, what is said is bounded."""
    for start in STARTS:
        wire = DeafWire()
        site, line = pages(CLOCK)
        connection = Http1(site, wire)
        half = len(data) // 2
        for part in (start + data[:half], data[half:]):
            if part:
                connection.receive(part, at(CLOCK), at(CLOCK))
        for _, stream in line.waiting:
            stream.step(0)
        connection.closed()
        assert len(wire.written) < 4_096 + 64 * (len(data) + len(start))


def fuzz_one_http2(data: bytes) -> None:
    """Any frames behind the preface: nothing raises, and the connection ends or goes on."""
    greeting = h2.connection.H2Connection()
    greeting.initiate_connection()
    for start in (b"", PREFACE, greeting.data_to_send()):
        wire = DeafWire()
        site, _ = pages(CLOCK)
        connection = Http2(site, wire)
        connection.receive(start + data, at(CLOCK), at(CLOCK))
        connection.receive(data, at(CLOCK), at(CLOCK))
        connection.closed()


def fuzz_one_websocket(data: bytes) -> None:
    """Any bytes after the upgrade: nothing raises."""
    wire = DeafWire()
    site, _ = pages(CLOCK)
    socket = WebSocket(site, wire)
    socket.receive(data)
    socket.receive(data)
    assert len(wire.written) <= 2_048 + 4 * len(data)


def fuzz_one_query(data: bytes) -> None:
    """Any query: a plan within its bounds, or a StreamError."""
    try:
        plan = read_plan(data.decode("latin-1"), websocket=False)
    except StreamError:
        return
    assert 1 <= plan.chunks <= 100_000
    assert plan.interval_ns >= 100_000
    assert plan.octets <= 65_536


class _Server:
    """No connections, and always a Retry."""

    wants_retry = True

    def __init__(self) -> None:
        from aioquic.quic.configuration import QuicConfiguration
        from aioquic.quic.retry import QuicRetryTokenHandler

        self.configuration = QuicConfiguration(is_client=False)
        self.by_cid: dict[bytes, Any] = {}
        self.retries = QuicRetryTokenHandler()
        self.pages, _ = pages(CLOCK)
        self.pages.counts = Counter()

    def admits(self, address: str) -> bool:
        return True


class _Socket(QuicSocket):
    """Sends into a list."""

    def __init__(self, server: Any) -> None:
        self._server = server
        self._pages = server.pages
        self._counts = server.pages.counts
        self._wildcard = False
        self.sent: list[bytes] = []

    def send(self, payload: bytes, address: tuple[str, int], local: str) -> int | None:
        self.sent.append(payload)
        return None


SERVER = _Server()


def fuzz_one_datagram(data: bytes) -> None:
    """Any datagram of a stranger: one answer at most, and not longer than it was."""
    for payload in (data, data + bytes(max(0, 1_200 - len(data))), b"\xc0" + data + bytes(1_200)):
        socket = _Socket(SERVER)
        socket._take(Datagram(payload, "192.0.2.1", 4_433, "", 64, 0, None))
        assert sum(map(len, socket.sent)) <= len(payload)
        assert len(socket.sent) <= 1
