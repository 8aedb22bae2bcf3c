"""Clients that mean no good: each is counted and held to its bounds, and the service goes on."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection

Start = Callable[..., AbstractAsyncContextManager[Any]]
PING = b"GET /ping HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
UPGRADE = (
    b"GET /stream?interval_us=100000 HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\n"
    b"upgrade: websocket\r\nsec-websocket-version: 13\r\n"
    b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


async def still_answers(one: Any) -> None:
    async with one.client() as client:
        await client.say(PING)
        assert (await client.ended()).startswith(b"HTTP/1.1 204")


@pytest.mark.parametrize(
    ("limit", "begin", "counter"),
    [
        ("request_seconds", b"GET /ping HTTP/1.1\r\nx: ", "over_request_time"),
        (
            "body_seconds",
            b"POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 999\r\n\r\n",
            "over_body_time",
        ),
        ("idle_seconds", b"", "idle"),
    ],
    ids=["headers", "body", "nothing"],
)
async def test_slow_loris(serving: Start, limit: str, begin: bytes, counter: str) -> None:
    async with serving(**{limit: 0.2}) as one:
        async with one.client() as client:
            await client.say(begin)

            async def drip() -> None:
                while begin:
                    await client.say(b"y")
                    await asyncio.sleep(0.05)

            dripping = asyncio.create_task(drip())
            assert await one.counted(counter) == 1
            dripping.cancel()
            await asyncio.gather(dripping, return_exceptions=True)
        await still_answers(one)


async def test_a_handshake_that_never_ends(serving: Start) -> None:
    async with serving(handshake_seconds=0.2) as one:
        async with one.plain() as client:
            await client.say(b"\x16\x03\x01\x02\x00\x01")
            await client.ended()
        assert one.https.counts["over_handshake_time_in_handshake"] == 1
        await still_answers(one)


@pytest.mark.parametrize("junk", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\xff\xff" + b"x" * 99])
async def test_who_speaks_no_tls(serving: Start, junk: bytes) -> None:
    async with serving() as one:
        async with one.plain() as client:
            await client.say(junk)
            await client.ended()
        assert one.https.counts["no_tls_in_handshake"] == 1
        await still_answers(one)


async def test_a_record_of_rubbish_gets_an_alert(serving: Start) -> None:
    async with serving() as one:
        async with one.plain() as client:
            await client.say(b"\x16\x03\x01\x00\x20" + b"x" * 32)
            said = await client.ended()
        assert said[:1] == b"\x15"
        assert one.https.counts["bad_tls"] == 1


async def test_endless_headers(serving: Start) -> None:
    async with serving(header_bytes=4_096) as one:
        async with one.client() as client:
            await client.say(b"GET /ping HTTP/1.1\r\n" + b"x: y\r\n" * 2_000)
            assert (await client.ended()).startswith(b"HTTP/1.1 431")
        assert one.https.counts["bad_requests"] == 1
        await still_answers(one)


async def test_a_body_that_is_too_long_is_cut(serving: Start) -> None:
    async with serving(upload_bytes=100_000) as one:
        async with one.client() as client:
            head = b"POST /upload HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n"
            await client.say(head)
            await client.say(b"8000\r\n" + bytes(0x8000) + b"\r\n")
            for _ in range(3):
                await client.say(b"8000\r\n" + bytes(0x8000) + b"\r\n")
            assert (await client.ended()).startswith(b"HTTP/1.1 413")
        assert one.https.counts["upload_bytes"] <= 140_000


async def test_bytes_of_one_connection_are_bounded(serving: Start) -> None:
    async with serving(connection_bytes=50_000) as one:
        async with one.client() as client:
            await client.say(b"POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 99999\r\n\r\n")
            client.writer.write(bytes(60_000))
            await client.ended()
        assert one.https.counts["over_bytes"] == 1


async def test_a_flood_of_connections(serving: Start) -> None:
    async with serving(connections_per_network=5) as one:
        opened = [socket.socket() for _ in range(40)]
        for sock in opened:
            sock.setblocking(False)
            sock.connect_ex((one.address, one.port))
        assert await one.counted("over_connections", 35) == 35
        assert one.https.status().open == 5
        for sock in opened:
            sock.close()
        for _ in range(400):
            if not one.https.status().open:
                break
            await asyncio.sleep(0.01)
        await still_answers(one)


async def test_a_reader_that_never_reads_holds_a_bounded_backlog(serving: Start) -> None:
    async with serving(stalled_seconds=0.3, backlog_bytes=20_000) as one:
        async with one.client() as client:
            client.writer.transport.pause_reading()
            await client.say(
                b"GET /stream?chunks=10000&interval_us=5000&bytes=60000 HTTP/1.1\r\nhost: a\r\n\r\n"
            )
            assert await one.counted("stalled") == 1
        assert one.https.counts["chunks"] < 500
        await still_answers(one)


async def test_websocket_pings_without_end(serving: Start) -> None:
    async with serving() as one:
        async with one.client() as client:
            await client.say(UPGRADE)
            await client.say(b"\x89\x80\x00\x00\x00\x00" * 1_000)
            assert (await client.ended()).startswith(b"HTTP/1.1 101")
        assert one.https.counts["over_patience"] == 1


async def test_a_bad_upgrade(serving: Start) -> None:
    async with serving() as one:
        async with one.client() as client:
            await client.say(UPGRADE.replace(b"sec-websocket-version: 13", b"x: 12"))
            assert (await client.ended()).startswith(b"HTTP/1.1 400")
        assert one.https.counts["bad_upgrades"] == 1


def rapid_reset(http: H2Connection) -> None:
    headers = [(":method", "GET"), (":path", "/ping"), (":scheme", "https"), (":authority", "a")]
    for number in range(1, 801, 2):
        http.send_headers(number, headers, end_stream=False)
        http.reset_stream(number)


def ping_flood(http: H2Connection) -> None:
    for _ in range(500):
        http.ping(b"12345678")


def settings_flood(http: H2Connection) -> None:
    for _ in range(500):
        http.update_settings({4: 65_535})


def empty_frames(http: H2Connection) -> None:
    headers = [(":method", "POST"), (":path", "/upload"), (":scheme", "https"), (":authority", "a")]
    http.send_headers(1, headers)
    for _ in range(500):
        http.send_data(1, b"")


@pytest.mark.parametrize("flood", [rapid_reset, ping_flood, settings_flood, empty_frames])
async def test_floods_of_frames(serving: Start, flood: Callable[[H2Connection], None]) -> None:
    http = H2Connection(H2Configuration(client_side=True))
    http.initiate_connection()
    async with serving() as one:
        async with one.client("h2") as client:
            await client.say(http.data_to_send())
            flood(http)
            client.writer.write(http.data_to_send())
            await client.ended()
        assert one.https.counts["over_patience"] == 1
        await still_answers(one)


async def test_headers_that_never_end(serving: Start) -> None:
    """CONTINUATION without END_HEADERS."""
    async with serving() as one:
        async with one.client("h2") as client:
            http = H2Connection(H2Configuration(client_side=True))
            http.initiate_connection()
            await client.say(http.data_to_send() + b"\x00\x00\x01\x01\x00\x00\x00\x00\x01\x82")
            frame = b"\x00\x40\x00\x09\x00\x00\x00\x00\x01" + b"\x0f" * 16_384
            client.writer.write(frame * 100)
            await client.ended()
        assert one.https.counts["bad_requests"] == 1
        await still_answers(one)


async def test_a_window_that_never_opens_holds_the_stream_back(serving: Start) -> None:
    async with serving() as one, one.client("h2") as client:
        http = H2Connection(H2Configuration(client_side=True))
        http.local_settings.initial_window_size = 0
        http.initiate_connection()
        http.update_settings({4: 0})
        http.send_headers(
            1,
            [
                (":method", "GET"),
                (":path", "/stream?chunks=1000&interval_us=1000"),
                (":scheme", "https"),
                (":authority", "a"),
            ],
            end_stream=True,
        )
        await client.say(http.data_to_send())
        await one.counted("chunks")
        await asyncio.sleep(0.1)
        assert one.https.counts["chunks"] <= 2


async def test_garbage_to_the_quic_port_is_counted_and_gets_nothing(serving: Start) -> None:
    async with serving() as one:
        with one.datagrams() as sock:
            for payload in (b"", b"\x00", os.urandom(1_200), b"\xc0" + bytes(40), bytes(1_200)):
                sock.send(payload)
            sock.send(b"\x40" + bytes(1_199))
            await asyncio.sleep(0.2)
            with pytest.raises(BlockingIOError):
                sock.recv(2_000)
        told = one.https.counts
        assert told["no_quic"] + told["no_connection"] + told["faults"] >= 5
        await still_answers(one)


async def test_a_stranger_gets_at_most_three_times_what_he_sent(serving: Start) -> None:
    """A whole ClientHello from an address that never answers (RFC 9000 section 8.1)."""
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.connection import QuicConnection

    quic = QuicConnection(configuration=QuicConfiguration(alpn_protocols=["h3"], is_client=True))
    async with serving(handshake_seconds=0.6) as one:
        quic.connect((one.address, one.port), 0.0)
        sent = [payload for payload, _ in quic.datagrams_to_send(0.0)]
        with one.datagrams() as sock:
            for payload in sent:
                sock.send(payload)
            await one.counted("quic_over_handshake_time_in_handshake")
            received = len(sock.recv(2_000))
            with contextlib.suppress(BlockingIOError):
                while True:
                    received += len(sock.recv(2_000))
        assert 0 < received <= 3 * sum(map(len, sent))


async def test_another_version_is_answered_once_and_shorter(serving: Start) -> None:
    async with serving() as one:
        with one.datagrams() as sock:
            sock.send(b"\xc0\x0a\x0a\x0a\x0a\x08" + b"d" * 8 + b"\x08" + b"s" * 8 + bytes(1_178))
            assert await one.counted("version_negotiations") == 1
            await asyncio.sleep(0.05)
            assert len(sock.recv(2_000)) < 100


async def test_retry_keeps_nothing_and_a_made_up_token_is_refused(serving: Start) -> None:
    from aioquic.quic.configuration import QuicConfiguration
    from aioquic.quic.connection import QuicConnection

    async with serving(retry=True) as one:
        for token in (b"", b"made up token" * 3):
            configuration = QuicConfiguration(alpn_protocols=["h3"], is_client=True, token=token)
            quic = QuicConnection(configuration=configuration)
            quic.connect((one.address, one.port), 0.0)
            with one.datagrams() as sock:
                for payload, _ in quic.datagrams_to_send(0.0):
                    sock.send(payload)
                await one.counted("bad_tokens" if token else "retries")
        assert one.https.counts["retries"] == 1
        assert one.https.counts["bad_tokens"] >= 1
        assert one.https.counts["quic_connections"] == 0
