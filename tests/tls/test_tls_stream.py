"""Streams over TLS and over TCP alone: offsets, stamps, early bytes, ends, bounds."""

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from tests.tls.servers import Nginx

from pathbudget.probes.carriers import Moment, Opened, Phase
from pathbudget.probes.contract import ProbeEnvironment
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.fake_tcp import FakeTlsServer
from pathbudget.probes.record import (
    ConnectionMode,
    Failure,
    FailureKind,
    Metric,
    Stage,
    Transport,
)
from pathbudget.probes.tls.stream import TlsSettings, TlsStreamDialer

MS = 1_000_000
Serve = Callable[..., int]
Until = Callable[[Callable[[], object]], Awaitable[None]]


@dataclass
class Recorder:
    """A `StreamListener` that keeps what it is told."""

    opened_as: list[Opened] = field(default_factory=list[Opened])
    failures: list[tuple[str, Failure, tuple[Phase, ...]]] = field(
        default_factory=list[tuple[str, Failure, tuple[Phase, ...]]]
    )
    left: list[tuple[int, Moment]] = field(default_factory=list[tuple[int, Moment]])
    came: list[tuple[bytes, Moment]] = field(default_factory=list[tuple[bytes, Moment]])
    ends: int = 0

    def opened(self, opened: Opened) -> None:
        self.opened_as.append(opened)

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        self.failures.append((metric, failure, done))

    def sent(self, last_byte: int, moment: Moment) -> None:
        self.left.append((last_byte, moment))

    def acknowledged(self, last_byte: int, moment: Moment) -> None:
        pass

    def received(self, data: bytes, moment: Moment) -> None:
        self.came.append((data, moment))

    def ended(self) -> None:
        self.ends += 1

    @property
    def data(self) -> bytes:
        return b"".join(data for data, _ in self.came)


def environment(collector: Collector) -> ProbeEnvironment:
    return ProbeEnvironment(
        collector.network,
        collector.clock,
        collector.rng,
        lambda series, sample: collector.emitted.append((series, sample)),
        lambda series, word: collector.counts.update({(series, word): 1}),
    )


Dial = Callable[..., tuple[TlsStreamDialer, Any, Recorder]]


@pytest.fixture
async def dial(collector: Collector, ca_file: str) -> AsyncGenerator[Dial]:
    """Open a stream to a port of 127.0.0.1."""
    dialers: list[TlsStreamDialer] = []

    def begin(
        port: int, *, early: bytes = b"", timeout_ns: int = 3_000 * MS, **settings: Any
    ) -> tuple[TlsStreamDialer, Any, Recorder]:
        dialer = TlsStreamDialer(environment(collector), TlsSettings(ca_file=ca_file, **settings))
        dialers.append(dialer)
        heard = Recorder()
        shot = shot_at("127.0.0.1", port=port, host="localhost", timeout_ns=timeout_ns)
        return dialer, dialer.dial(shot, heard, early=early), heard

    yield begin
    for dialer in dialers:
        dialer.close()


def echoes(context: ssl.SSLContext | None, *, goodbye: bool = True) -> Callable[..., None]:
    def handle(connection: socket.socket) -> None:
        if context is not None:
            with contextlib.suppress(OSError):
                connection = context.wrap_socket(connection, server_side=True)
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(65_536):
                if data.endswith(b"bye"):
                    if goodbye and isinstance(connection, ssl.SSLSocket):
                        connection.sendall(b"bye")
                        connection.unwrap()
                    return
                connection.sendall(data)

    return handle


@pytest.mark.parametrize("tls", [True, False])
async def test_bytes_go_there_and_back_with_stamps(
    dial: Dial,
    serve: Serve,
    server_context: ssl.SSLContext,
    until: Until,
    tls: bool,
    library: str,
) -> None:
    port = serve(echoes(server_context if tls else None))
    _, stream, heard = dial(port, tls=tls, library=library)
    await until(lambda: heard.opened_as)
    (opened,) = heard.opened_as
    assert opened.transport is (Transport.TLS if tls else Transport.TCP)
    assert opened.mode is ConnectionMode.COLD
    metrics = [phase.metric for phase in opened.phases]
    assert metrics == [Metric.CONNECT, *([Metric.TLS_HANDSHAKE] if tls else [])]
    assert stream.write(b"a" * 100) == 99
    await until(lambda: len(heard.data) == 100)
    assert stream.write(b"b" * 100_000) == 100_099
    await until(lambda: len(heard.data) == 100_100)
    assert heard.data == b"a" * 100 + b"b" * 100_000
    await until(lambda: heard.left and heard.left[-1][0] == 100_099)
    assert heard.left[0][0] == 99
    offsets = [offset for offset, _ in heard.left]
    assert offsets == sorted(set(offsets))
    sent, came = heard.left[0][1], heard.came[0][1]
    assert sent.kernel_unix_ns is not None
    assert came.kernel_unix_ns is not None
    assert sent.reading.unix_ns <= sent.kernel_unix_ns < came.kernel_unix_ns
    assert came.kernel_unix_ns <= came.reading.unix_ns + 1 * MS
    assert stream.notes()["rtt_us"]
    stream.close()
    assert heard.failures == []


async def test_early_bytes_go_first_where_no_ticket_allows_them_earlier(
    dial: Dial, serve: Serve, server_context: ssl.SSLContext, until: Until
) -> None:
    _, stream, heard = dial(serve(echoes(server_context)), early=b"first,")
    await until(lambda: heard.opened_as)
    assert stream.write(b"second") == 11
    await until(lambda: len(heard.data) == 12)
    assert heard.data == b"first,second"
    stream.close()


@pytest.mark.parametrize("goodbye", [True, False])
async def test_the_other_side_ends(
    dial: Dial,
    serve: Serve,
    server_context: ssl.SSLContext,
    until: Until,
    goodbye: bool,
    library: str,
) -> None:
    _, stream, heard = dial(serve(echoes(server_context, goodbye=goodbye)), library=library)
    await until(lambda: heard.opened_as)
    stream.write(b"bye")
    await until(lambda: heard.ends)
    assert heard.data == (b"bye" if goodbye else b"")
    assert stream.notes().get("close_notify", False) == goodbye
    assert (heard.ends, heard.failures) == (1, [])


async def test_garbage_after_the_opening_is_a_failure_without_a_step(
    dial: Dial, serve: Serve, server_context: ssl.SSLContext, until: Until, library: str
) -> None:
    def handle(connection: socket.socket) -> None:
        with server_context.wrap_socket(connection, server_side=True) as tls:
            tls.recv(100)
            raw = socket.socket(fileno=socket.dup(tls.fileno()))
            with raw:
                raw.sendall(b"this is no record of TLS")
            tls.recv(100)

    _, stream, heard = dial(serve(handle), library=library)
    await until(lambda: heard.opened_as)
    stream.write(b"hello")
    await until(lambda: heard.failures)
    ((metric, failure, done),) = heard.failures
    assert (metric, done) == ("", ())
    assert (failure.kind, failure.stage) == (FailureKind.PROTOCOL, Stage.WAIT)


def a_moment_of(connection: socket.socket) -> Iterator[None]:
    """Go on for 0.4 s, and never hang in a call for much longer."""
    connection.settimeout(0.5)
    end = time.monotonic() + 0.4
    while time.monotonic() < end:
        yield


def trickles(connection: socket.socket) -> None:
    """A record of 16 kB, one byte at a time (slow loris)."""
    connection.recv(4_096)
    connection.sendall(b"\x16\x03\x03\x40\x00")
    for _ in a_moment_of(connection):
        connection.sendall(b"\x02")
        time.sleep(0.01)


def floods(connection: socket.socket) -> None:
    """A handshake that never ends: one message of 16 MB, as fast as it goes."""
    connection.recv(4_096)
    record = b"\x16\x03\x03\x40\x00" + b"\x02\xff\xff\xff" + bytes(16_380)
    for _ in a_moment_of(connection):
        connection.sendall(record)


def changes_ciphers(connection: socket.socket) -> None:
    """Records that are to be ignored, for ever."""
    connection.recv(4_096)
    for _ in a_moment_of(connection):
        connection.sendall(b"\x14\x03\x03\x00\x01\x01" * 1_000)


@pytest.mark.parametrize("handler", [trickles, floods, changes_ciphers])
async def test_the_deadline_holds_whatever_is_sent(
    dial: Dial, serve: Serve, until: Until, handler: Callable[..., None], library: str
) -> None:
    dialer, _, heard = dial(serve(handler), timeout_ns=200 * MS, library=library)
    began = time.monotonic()
    await until(lambda: heard.failures)
    assert time.monotonic() - began < 5
    ((_, failure, _),) = heard.failures
    assert failure.kind in (FailureKind.TIMEOUT, FailureKind.PROTOCOL)
    assert failure.stage is Stage.HANDSHAKE
    async with asyncio.timeout(5):
        await dialer.drain()


async def test_a_server_that_floods_who_waits_for_a_ticket_is_left(
    dial: Dial, serve: Serve, server_context: ssl.SSLContext, until: Until
) -> None:
    server_context.num_tickets = 0

    def handle(connection: socket.socket) -> None:
        with server_context.wrap_socket(connection, server_side=True) as tls:
            for _ in a_moment_of(tls):
                tls.sendall(bytes(16_000))

    dialer, stream, heard = dial(serve(handle), mode=ConnectionMode.RESUMED)
    await until(lambda: heard.opened_as)
    stream.close()
    async with asyncio.timeout(5):
        await dialer.drain()


def test_a_ticket_of_absurd_size_is_not_offered(
    fake: FakeNetwork, tls_path: FakePath, fake_collector: Collector, ca_file: str, library: str
) -> None:
    """OpenSSL takes up to 64 kB; a ClientHello that offers as much would be an upload."""
    from pathbudget.probes.tls import tickets, wishes

    settings = TlsSettings(ca_file=ca_file, mode=ConnectionMode.RESUMED, library=library)
    dialer = TlsStreamDialer(environment(fake_collector), settings)
    heard = Recorder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tickets, "LARGEST_TICKET_BYTES", 100)
        patch.setattr(wishes, "LARGEST_TICKET_BYTES", 100)
        patch.setattr(wishes, "USUAL_HELLO_BYTES", 300)
        modes: list[ConnectionMode] = []
        for seq in range(2):
            heard = Recorder()
            stream = dialer.dial(shot_at("192.0.2.1", seq=seq, host="site.example"), heard)
            fake.clock.advance(500 * MS)
            stream.close()
            fake.clock.advance(500 * MS)
            modes.append(heard.opened_as[0].mode)
    assert modes == [ConnectionMode.COLD, ConnectionMode.COLD]
    assert heard.opened_as[0].notes["ticket"] == "too large"


@pytest.mark.parametrize("how", ["close", "abandon"])
@pytest.mark.parametrize("mode", [ConnectionMode.COLD, ConnectionMode.RESUMED])
def test_a_listener_may_end_it_as_soon_as_it_stands(
    fake: FakeNetwork,
    tls_path: FakePath,
    fake_collector: Collector,
    ca_file: str,
    mode: ConnectionMode,
    how: str,
) -> None:
    dialer = TlsStreamDialer(environment(fake_collector), TlsSettings(ca_file=ca_file, mode=mode))
    streams: list[Any] = []

    class Hasty(Recorder):
        def opened(self, opened: Opened) -> None:
            super().opened(opened)
            getattr(streams[0], how)()

    heard = Hasty()
    streams.append(dialer.prepare(shot_at("192.0.2.1", host="site.example"), heard, early=b"x"))
    streams[0].begin()
    fake.clock.advance(3_000 * MS)
    assert (len(heard.opened_as), heard.failures, heard.ends) == (1, [], 0)
    assert not dialer._alive
    assert streams[0].write(b"too late") == 0


def test_a_stream_that_is_closed_or_abandoned_while_it_opens_says_nothing(
    fake: FakeNetwork, tls_path: FakePath, fake_collector: Collector, ca_file: str
) -> None:
    for after in range(0, 50, 10):
        for how in ("close", "abandon"):
            dialer = TlsStreamDialer(environment(fake_collector), TlsSettings(ca_file=ca_file))
            heard = Recorder()
            stream = dialer.dial(shot_at("192.0.2.1", host="site.example", resolve=True), heard)
            fake.clock.advance(after * MS)
            getattr(stream, how)()
            fake.clock.advance(3_000 * MS)
            assert heard.failures == []
            assert len(heard.opened_as) <= 1
            assert not dialer._alive


@pytest.mark.needs("nginx")
async def test_early_bytes_leave_with_the_hello_and_are_answered(
    dial: Dial, nginx: Nginx, until: Until
) -> None:
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    dialer, stream, heard = dial(nginx.early, early=request, mode=ConnectionMode.EARLY_DATA)
    await until(lambda: heard.data.endswith(b"hi"))
    assert heard.opened_as[0].mode is ConnectionMode.COLD
    stream.close()
    await dialer.drain()
    heard = Recorder()
    shot = shot_at("127.0.0.1", port=nginx.early, host="localhost")
    stream = dialer.dial(shot, heard, early=request)
    await until(lambda: heard.data.endswith(b"hi"))
    (opened,) = heard.opened_as
    assert opened.mode is ConnectionMode.EARLY_DATA
    assert [phase.metric for phase in opened.phases] == [Metric.CONNECT]
    handshake = opened.beside[0]
    assert (handshake.metric, opened.beside[1].metric) == (
        Metric.TLS_HANDSHAKE,
        Metric.CLIENT_COMPUTE,
    )
    ((last, left),) = heard.left
    assert last == len(request) - 1
    assert left.kernel_unix_ns == handshake.began.kernel_unix_ns
    assert heard.data.startswith(b"HTTP/1.1 200")
    assert stream.write(request) == 2 * len(request) - 1
    await until(lambda: heard.data.count(b"HTTP/1.1 200") == 2)
    stream.close()
    await dialer.drain()
    first, early, later = (line[1] for line in nginx.said(nginx.early, 3))
    assert (first, later) == ("-", "-")
    # A server that is late to write its log has the handshake behind it by then, and says "-":
    # test_tls_nginx.py holds its word over many requests.
    assert early in ("1", "-")


def test_a_bad_record_right_behind_the_flight_is_a_failure_of_what_is_written_then(
    fake: FakeNetwork,
    tls_path: FakePath,
    fake_collector: Collector,
    ca_file: str,
    library: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The library has read it, and refuses to write, as the request is about to leave."""
    receive = FakeTlsServer.receive

    def spoiled(self: FakeTlsServer, data: bytes) -> bytes:
        said = receive(self, data)
        return said + b"\x17\x03\x03\x00\x20" + bytes(32) if said.startswith(b"\x16") else said

    monkeypatch.setattr(FakeTlsServer, "receive", spoiled)
    settings = TlsSettings(ca_file=ca_file, library=library)
    dialer = TlsStreamDialer(environment(fake_collector), settings)
    heard = Recorder()
    dialer.dial(shot_at("192.0.2.1", host="site.example"), heard, early=b"GET /")
    fake.clock.advance(3_000 * MS)
    assert len(heard.opened_as) == 1
    ((metric, failure, done),) = heard.failures
    assert (metric, done) == ("", ())
    assert (failure.kind, failure.stage) == (FailureKind.PROTOCOL, Stage.WAIT)
    assert heard.left == []
