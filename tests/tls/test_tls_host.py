"""The TLS probe against real servers on loopback, well-behaved and not."""

import contextlib
import socket
import ssl
import struct
import time
from collections.abc import Awaitable, Callable

import pytest

from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    FailureKind,
    Sample,
    Stage,
)
from pathbudget.probes.tls.probe import TLS

MS = 1_000_000
Until = Callable[[Callable[[], object]], Awaitable[None]]
COLD, RESUMED = ConnectionMode.COLD, ConnectionMode.RESUMED

Serve = Callable[..., int]
Handler = Callable[[socket.socket], None]


def speaks_tls(context: ssl.SSLContext) -> Handler:
    def handle(connection: socket.socket) -> None:
        with (
            contextlib.suppress(ssl.SSLError),
            context.wrap_socket(connection, server_side=True) as tls,
        ):
            tls.recv(100)

    return handle


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


async def shoot(
    collector: Collector, port: int, address: str = "127.0.0.1", **options: str | bool
) -> dict[str, Sample]:
    probe = collector.open(TLS, options)
    probe.fire(shot_at(address, port=port, host="localhost", timeout_ns=2_000 * MS))
    await probe.drain()
    probe.close()
    return {sample.metric: sample for _, sample in collector.emitted}


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_full_and_resumed(
    collector: Collector,
    serve: Serve,
    server_context: ssl.SSLContext,
    ca_file: str,
    address: str,
) -> None:
    port = serve(speaks_tls(server_context), address)
    probe = collector.open(TLS, {"ca_file": ca_file, "mode": "resumed"})
    for seq in range(4):
        shot = shot_at(address, seq=seq, port=port, server_name="localhost", resolve=True)
        probe.fire(shot)
        await probe.drain()
    probe.close()
    handshakes = collector.of("tls_handshake")
    assert [sample.failure for sample in handshakes] == [None] * 4
    assert [sample.mode for sample in handshakes] == [COLD, RESUMED, RESUMED, RESUMED]
    assert {sample.clock_source for sample in handshakes[1:]} == {ClockSource.KERNEL}
    for seq in range(4):
        phases = {s.metric: s.value_ns or 0 for _, s in collector.emitted if s.seq == seq}
        total = phases["resolve"] + phases["connect"] + phases["tls_handshake"]
        assert phases["setup"] == total
        assert phases["client_compute"] > 0


async def test_neither_a_blocked_loop_nor_our_own_cryptography_enters_the_time(
    collector: Collector, serve: Serve, server_context: ssl.SSLContext, ca_file: str, until: Until
) -> None:
    """The loop is blocked 200 ms from the moment that each ClientHello has left."""
    port = serve(speaks_tls(server_context))
    probe = collector.open(TLS, {"ca_file": ca_file})
    for seq in range(5):
        probe.fire(shot_at("127.0.0.1", seq=seq, port=port, host="localhost"))
        await until(lambda: len(collector.of("connect")) > seq)  # noqa: B023
        time.sleep(0.2)  # noqa: ASYNC251
        await probe.drain()
    probe.close()
    values = sorted(s.value_ns for s in collector.of("tls_handshake") if s.value_ns is not None)
    assert len(values) == 5
    assert values[2] < 150 * MS


async def test_many_at_once_do_not_wait_for_each_other(
    collector: Collector, serve: Serve, server_context: ssl.SSLContext, ca_file: str
) -> None:
    """Each server answers 300 ms after the ClientHello has come, so the truth is known.

    40 of them are served in one loop; what their cryptography takes in turn would add up.
    """

    def handle(connection: socket.socket) -> None:
        connection.recv(1, socket.MSG_PEEK)
        time.sleep(0.3)
        speaks_tls(server_context)(connection)

    port = serve(handle)
    probe = collector.open(TLS, {"ca_file": ca_file})
    for seq in range(40):
        shot = shot_at("127.0.0.1", seq=seq, port=port, host="localhost", timeout_ns=9_000 * MS)
        probe.fire(shot)
    await probe.drain()
    probe.close()
    values = sorted(s.value_ns for s in collector.of("tls_handshake") if s.value_ns is not None)
    assert len(values) == 40
    assert values[0] >= 300 * MS
    assert sum(s.clock_source is ClockSource.KERNEL for s in collector.of("tls_handshake")) >= 38


async def test_a_certificate_that_is_not_trusted(
    collector: Collector, serve: Serve, server_context: ssl.SSLContext, until: Until
) -> None:
    said: list[str] = []

    def handle(connection: socket.socket) -> None:
        try:
            with server_context.wrap_socket(connection, server_side=True) as tls:
                tls.recv(100)
        except ssl.SSLError as error:
            said.append(error.reason)

    phases = await shoot(collector, serve(handle))
    failure = phases["tls_handshake"].failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (FailureKind.CERTIFICATE, Stage.HANDSHAKE)
    assert failure.detail == "self-signed certificate"
    assert phases["setup"].failure == failure
    await until(lambda: said)
    assert said == ["TLSV1_ALERT_UNKNOWN_CA"]


async def test_a_server_of_tls_1_2(
    collector: Collector, serve: Serve, server_context: ssl.SSLContext, ca_file: str
) -> None:
    server_context.maximum_version = ssl.TLSVersion.TLSv1_2
    phases = await shoot(collector, serve(speaks_tls(server_context)), ca_file=ca_file)
    failure = phases["setup"].failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (FailureKind.PROTOCOL, Stage.HANDSHAKE)


def says_garbage(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    connection.recv(4096)


def closes_at_once(connection: socket.socket) -> None:
    """Nothing was read yet or something was: close in good order either way."""
    connection.recv(4096)
    connection.shutdown(socket.SHUT_WR)
    connection.recv(4096)


def resets_on_hello(connection: socket.socket) -> None:
    connection.recv(4096)
    reset(connection)


def says_half_a_record(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(bytes.fromhex("160303007a02"))
    connection.shutdown(socket.SHUT_WR)
    connection.recv(4096)


def says_an_alert(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.sendall(bytes.fromhex("15030300020228"))
    connection.recv(4096)


def says_nothing(connection: socket.socket) -> None:
    connection.recv(4096)
    connection.recv(4096)


@pytest.mark.parametrize(
    ("handler", "kind"),
    [
        (says_garbage, FailureKind.PROTOCOL),
        (closes_at_once, FailureKind.CLOSED),
        (resets_on_hello, FailureKind.RESET),
        (says_half_a_record, FailureKind.CLOSED),
        (says_an_alert, FailureKind.PROTOCOL),
        (says_nothing, FailureKind.TIMEOUT),
    ],
)
async def test_servers_that_misbehave(
    collector: Collector, serve: Serve, handler: Handler, kind: FailureKind
) -> None:
    phases = await shoot(collector, serve(handler))
    assert list(phases) == ["connect", "tls_handshake", "setup"]
    assert phases["connect"].value_ns is not None
    failure = phases["tls_handshake"].failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (kind, Stage.HANDSHAKE)
    assert phases["setup"].failure == failure


async def test_a_server_that_dies_while_the_ticket_is_waited_for(
    collector: Collector, serve: Serve, server_context: ssl.SSLContext, ca_file: str
) -> None:
    """The numbers are out already; the ticket is just not there."""
    server_context.num_tickets = 0

    def handle(connection: socket.socket) -> None:
        with server_context.wrap_socket(connection, server_side=True) as tls:
            reset(tls)

    phases = await shoot(collector, serve(handle), ca_file=ca_file, mode="resumed")
    assert list(phases) == ["connect", "tls_handshake", "client_compute", "setup"]
    assert all(sample.failure is None for sample in phases.values())


async def test_a_server_that_gives_no_ticket(
    collector: Collector, serve: Serve, server_context: ssl.SSLContext, ca_file: str
) -> None:
    server_context.num_tickets = 0
    port = serve(speaks_tls(server_context))
    probe = collector.open(TLS, {"ca_file": ca_file, "mode": "resumed"})
    for seq in range(2):
        probe.fire(shot_at("127.0.0.1", seq=seq, port=port, host="localhost"))
        await probe.drain()
    probe.close()
    assert [sample.mode for sample in collector.of("setup")] == [COLD, COLD]
    assert len(collector.of("tls_handshake")) == 2


async def test_nobody_listens(collector: Collector, closed_port: int) -> None:
    phases = await shoot(collector, closed_port)
    failure = phases["setup"].failure
    assert failure is not None
    assert (failure.kind, failure.stage) == (FailureKind.REFUSED, Stage.CONNECT)
    assert list(phases) == ["connect", "setup"]


async def test_the_server_sees_an_orderly_end(
    collector: Collector, serve: Serve, server_context: ssl.SSLContext, ca_file: str, until: Until
) -> None:
    ends: list[bytes | str] = []

    def handle(connection: socket.socket) -> None:
        try:
            with server_context.wrap_socket(connection, server_side=True) as tls:
                ends.append(tls.recv(100))
        except OSError as error:
            ends.append(repr(error))

    await shoot(collector, serve(handle), ca_file=ca_file)
    await until(lambda: ends)
    assert ends == [b""]
