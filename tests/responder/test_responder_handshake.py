"""Real handshakes on loopback: TLS 1.3 alone, tickets that resume, no artificial wait."""

import asyncio
import socket
import ssl
import statistics
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from pathbudget.agents.responder.connections import Held, Shared
from pathbudget.agents.responder.limits import DEFAULT_LIMITS, Admission
from pathbudget.agents.responder.server import Responder

Listen = Callable[..., AbstractAsyncContextManager[Responder]]
Shake = Callable[..., ssl.SSLSocket]


def ticket_of(connection: ssl.SSLSocket) -> ssl.SSLSession | None:
    """Read what the server sends after the handshake (tickets alone), then the session."""
    connection.settimeout(0.2)
    with pytest.raises(TimeoutError):
        connection.recv(1)
    connection.settimeout(5)
    return connection.session


async def test_the_second_connection_resumes_the_first(
    listen: Listen, client_context: ssl.SSLContext, shake: Shake
) -> None:
    def twice(address: tuple[str, int]) -> tuple[bool | None, bool | None, str | None]:
        with shake(client_context, address) as first:
            session = ticket_of(first)
            version, reused = first.version(), first.session_reused
        assert session is not None
        assert session.has_ticket
        with shake(client_context, address, session) as second:
            return reused, second.session_reused, version

    async with listen() as responder:
        answer = await asyncio.to_thread(twice, responder.tls_addresses[0])
        assert answer == (False, True, "TLSv1.3")
        assert (responder.counters["full"], responder.counters["resumed"]) == (1, 1)


async def test_ipv6_has_its_own_listener_and_certificate(
    listen: Listen, client_context: ssl.SSLContext, shake: Shake
) -> None:
    async with listen(binds=("::1", "127.0.0.1")) as responder:
        for address in responder.tls_addresses:
            connection = await asyncio.to_thread(shake, client_context, address)
            assert connection.version() == "TLSv1.3"
            connection.close()


async def test_tls_1_2_is_refused_with_an_alert(
    listen: Listen, client_context: ssl.SSLContext, shake: Shake
) -> None:
    client_context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with listen() as responder:
        with pytest.raises(ssl.SSLError, match="PROTOCOL_VERSION"):
            await asyncio.to_thread(shake, client_context, responder.tls_addresses[0])
        assert responder.counters["no handshake"] == 1


async def test_twenty_handshakes_wait_for_no_delayed_acknowledgement(
    listen: Listen, client_context: ssl.SSLContext, shake: Shake
) -> None:
    """Nagle at the server costs 40 ms or more; the handshake itself takes 1 to 3."""

    def durations(address: tuple[str, int]) -> list[float]:
        taken: list[float] = []
        for _ in range(20):
            begun = time.perf_counter()
            with shake(client_context, address) as connection:
                connection.unwrap()  # the goodbye of the server follows two tickets
            taken.append(time.perf_counter() - begun)
        return taken

    async with listen() as responder:
        taken = await asyncio.to_thread(durations, responder.tls_addresses[0])
    assert statistics.median(taken) < 0.030


async def test_accepted_sockets_do_not_wait_to_fill_a_packet() -> None:
    """The option itself, on a socket whose Nagle we turned on again before."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        client = socket.create_connection(server.getsockname())
        accepted, _ = server.accept()
    loop = asyncio.get_running_loop()

    class Spied(Held):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            inner = transport.get_extra_info("socket")
            inner.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
            super().connection_made(transport)

    shared = Shared(DEFAULT_LIMITS, Admission(DEFAULT_LIMITS))
    transport, _ = await loop.connect_accepted_socket(lambda: Spied(shared), accepted)
    inner = transport.get_extra_info("socket")
    assert inner.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
    transport.abort()
    client.close()
    await asyncio.sleep(0)


async def test_the_goodbye_of_the_client_is_answered_and_the_connection_ends(
    listen: Listen, client_context: ssl.SSLContext, shake: Shake
) -> None:
    def goodbye(address: tuple[str, int]) -> bytes:
        connection = shake(client_context, address)
        plain = connection.unwrap()  # returns only after the server's close_notify
        with plain:
            return plain.recv(1)

    async with listen() as responder:
        assert await asyncio.to_thread(goodbye, responder.tls_addresses[0]) == b""


async def test_application_data_gets_no_answer(
    listen: Listen, client_context: ssl.SSLContext, shake: Shake
) -> None:
    def ask(address: tuple[str, int]) -> None:
        with shake(client_context, address) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
            ticket_of(connection)

    async with listen() as responder:
        await asyncio.to_thread(ask, responder.tls_addresses[0])


@pytest.mark.parametrize("sent", [b"GET / HTTP/1.0\r\n\r\n", b"\x16\x03\x01\xff\xff", b"\0" * 500])
async def test_garbage_on_the_tls_port_hurts_nobody(
    listen: Listen, client_context: ssl.SSLContext, shake: Shake, sent: bytes
) -> None:
    def throw(address: tuple[str, int]) -> bytes:
        with socket.create_connection(address, timeout=5) as plain:
            plain.sendall(sent)
            plain.shutdown(socket.SHUT_WR)
            return plain.recv(1000)

    async with listen() as responder:
        answer = await asyncio.to_thread(throw, responder.tls_addresses[0])
        assert len(answer) <= 7  # nothing, or one alert record
        (await asyncio.to_thread(shake, client_context, responder.tls_addresses[0])).close()
