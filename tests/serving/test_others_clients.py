"""Clients that others wrote: http.client and ssl, openssl, h2, wsproto, aioquic, ngtcp2."""

import asyncio
import contextlib
import http.client
import json
import signal
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import h2.connection
import h2.events
import pytest
import wsproto
import wsproto.events
from aioquic.asyncio.client import connect
from aioquic.asyncio.protocol import QuicConnectionProtocol
from aioquic.h3.connection import H3_ALPN, H3Connection
from aioquic.h3.events import DataReceived, HeadersReceived
from aioquic.quic.configuration import QuicConfiguration
from aioquic.quic.events import QuicEvent
from aioquic.tls import SessionTicket
from tests.programs import program
from wsproto.connection import ConnectionState

Start = Callable[..., AbstractAsyncContextManager[Any]]
STREAM = "/stream?chunks=5&interval_us=10000&bytes=150"


def context(running: Any, *protocols: str) -> ssl.SSLContext:
    made = ssl.create_default_context(cafile=running.authority)
    if protocols:
        made.set_alpn_protocols(list(protocols))
    return made


def secured(running: Any, *protocols: str) -> ssl.SSLSocket:
    sock = socket.create_connection((running.address, running.port), timeout=10)
    return context(running, *protocols).wrap_socket(sock, server_hostname=running.address)


def check_chunks(chunks: list[dict[str, Any]]) -> None:
    """Five chunks and the last one, each stamped by the kernel after it was made."""
    assert [chunk["n"] for chunk in chunks] == list(range(6))
    assert [chunk["due_ns"] for chunk in chunks] == [n * 10_000_000 for n in range(6)]
    assert [chunk.get("last", False) for chunk in chunks] == [False] * 5 + [True]
    left = {n: stamp for chunk in chunks for n, stamp in chunk.get("left", [])}
    assert sorted(left) == list(range(5))
    for chunk in chunks[:-1]:
        assert 0 < left[chunk["n"]] - chunk["sent_unix_ns"] < 1_000_000_000
    early = [
        chunk["sent_unix_ns"] - chunks[0]["sent_unix_ns"] - chunk["due_ns"] for chunk in chunks
    ]
    assert min(early) > -5_000_000  # a late first one makes no other early


def test_http_1_1_keeps_its_connection(running: Any) -> None:
    client = http.client.HTTPSConnection(
        running.address, running.port, context=context(running), timeout=10
    )
    try:
        for _ in range(3):
            client.request("GET", "/ping")
            answer = client.getresponse()
            assert (answer.status, answer.read()) == (204, b"")
            assert 0 < int(answer.getheader("residence-ns", "0")) < 10**10
        client.request("POST", "/upload", body=bytes(200_000))
        answer = client.getresponse()
        receipt = json.loads(answer.read())
        assert (receipt["bytes"], receipt["kernel"]) == (200_000, True)
        assert receipt["first_unix_ns"] <= receipt["last_unix_ns"]
        assert receipt["residence_ns"] > 0
        client.request("POST", "/upload", body=iter([b"abc", b"defg"]), encode_chunked=True)
        assert json.loads(client.getresponse().read())["bytes"] == 7
        client.request("GET", STREAM)
        answer = client.getresponse()
        assert answer.getheader("content-type") == "text/event-stream"
        events = answer.read().decode().split("\n\n")
        check_chunks([json.loads(event.removeprefix("data: ")) for event in events if event])
        assert all(len(event) == len("data: ") + 150 for event in events[:5])
    finally:
        client.close()


def test_nothing_below_tls_1_3(running: Any) -> None:
    older = context(running)
    older.maximum_version = ssl.TLSVersion.TLSv1_2
    with (
        socket.create_connection((running.address, running.port), timeout=10) as sock,
        pytest.raises(ssl.SSLError, match=r"(?i)version"),
    ):
        older.wrap_socket(sock, server_hostname=running.address)


def test_who_wants_another_protocol_is_told_so(running: Any) -> None:
    with pytest.raises(ssl.SSLError, match=r"(?i)no.application.protocol"):
        secured(running, "spdy/3").close()


def test_who_waits_for_a_word_before_the_body_gets_it(running: Any) -> None:
    with secured(running) as sock:
        sock.sendall(
            b"POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nexpect: 100-continue\r\n\r\n"
        )
        assert sock.recv(4_096).startswith(b"HTTP/1.1 100 ")
        sock.sendall(b"abc")
        assert sock.recv(4_096).startswith(b"HTTP/1.1 200 ")


def test_requests_in_one_flight_are_answered_in_order(running: Any) -> None:
    with secured(running) as sock:
        request = b"GET /%s HTTP/1.1\r\nhost: a\r\n%s\r\n"
        sock.sendall(request % (b"ping", b"") + request % (b"x", b"connection: close\r\n"))
        said = b""
        while data := sock.recv(4_096):
            said += data
        assert [part[:3] for part in said.split(b"HTTP/1.1 ")[1:]] == [b"204", b"404"]


def test_http_2_carries_several_at_once(running: Any) -> None:
    client = h2.connection.H2Connection()
    client.initiate_connection()
    base = [(":scheme", "https"), (":authority", "a")]
    client.send_headers(1, [(":method", "GET"), (":path", STREAM + "&form=chunked"), *base], True)
    client.send_headers(3, [(":method", "GET"), (":path", "/ping"), *base], True)
    client.send_headers(5, [(":method", "POST"), (":path", "/upload"), *base])
    client.send_data(5, bytes(16_000))
    client.send_data(5, bytes(16_000), end_stream=True)
    bodies = {1: b"", 3: b"", 5: b""}
    status: dict[int, bytes] = {}
    ended: set[int] = set()
    with secured(running, "h2") as sock:
        assert sock.selected_alpn_protocol() == "h2"
        while len(ended) < 3:
            sock.sendall(client.data_to_send())
            for event in client.receive_data(sock.recv(65_536)):
                if isinstance(event, h2.events.ResponseReceived):
                    status[event.stream_id] = dict(event.headers)[b":status"]
                elif isinstance(event, h2.events.DataReceived):
                    bodies[event.stream_id] += event.data
                elif isinstance(event, h2.events.StreamEnded):
                    ended.add(event.stream_id)
    assert status == {1: b"200", 3: b"204", 5: b"200"}
    assert json.loads(bodies[5])["bytes"] == 32_000
    check_chunks([json.loads(line) for line in bodies[1].splitlines()])


def frames(sock: ssl.SSLSocket, client: wsproto.WSConnection) -> Iterator[wsproto.events.Event]:
    while client.state is not ConnectionState.CLOSED:
        client.receive_data(sock.recv(65_536) or None)
        yield from client.events()


def test_websocket(running: Any) -> None:
    client = wsproto.WSConnection(wsproto.ConnectionType.CLIENT)
    texts: list[str] = []
    with secured(running, "http/1.1") as sock:
        sock.sendall(client.send(wsproto.events.Request(host="a", target=STREAM)))
        for event in frames(sock, client):
            if isinstance(event, wsproto.events.AcceptConnection):
                names = {name for name, _ in event.extra_headers}
                assert b"residence-ns" in names
            elif isinstance(event, wsproto.events.TextMessage):
                texts.append(event.data)
            elif isinstance(event, wsproto.events.CloseConnection):
                assert event.code == 1_000
                sock.sendall(client.send(event.response()))
    check_chunks([json.loads(text) for text in texts])


def s_client(running: Any, words: list[str], said: bytes = b"") -> str:
    """What `openssl s_client` prints; what is said follows the handshake."""
    where = ["-connect", f"{running.address}:{running.port}", "-CAfile", running.authority]
    ran = subprocess.run(
        [program("openssl"), "s_client", *where, "-ign_eof", *words],
        input=said,
        capture_output=True,
        check=False,
        timeout=20,
    )
    return ran.stdout.decode(errors="replace") + ran.stderr.decode(errors="replace")


@pytest.mark.needs("openssl")
def test_openssl_resumes_and_sends_early_data_once_per_ticket(running: Any, tmp_path: Path) -> None:
    request = b"GET /ping HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"
    ticket, early = tmp_path / "ticket", tmp_path / "early"
    early.write_bytes(request)
    assert "204 No Content" in s_client(running, ["-sess_out", str(ticket)], request)
    first = s_client(running, ["-sess_in", str(ticket), "-early_data", str(early)])
    assert "Early data was accepted" in first
    assert "\nReused, TLSv1.3" in first
    assert "204 No Content" in first
    again = s_client(running, ["-sess_in", str(ticket), "-early_data", str(early)], request)
    assert "Early data was rejected" in again
    assert "\nNew, TLSv1.3" in again


class H3Client(QuicConnectionProtocol):
    """One request at a time."""

    def __init__(self, *args: Any, **named: Any) -> None:
        super().__init__(*args, **named)
        self.http = H3Connection(self._quic)
        self.status = b""
        self.said = b""
        self.done = asyncio.Event()

    async def ask(self, method: bytes, path: bytes, body: bytes = b"") -> tuple[bytes, bytes]:
        self.done.clear()
        self.said = b""
        number = self._quic.get_next_available_stream_id()
        fields = [(b":method", method), (b":path", path), (b":scheme", b"https")]
        self.http.send_headers(number, [*fields, (b":authority", b"a")], not body)
        if body:
            self.http.send_data(number, body, True)
        self.transmit()
        async with asyncio.timeout(20):
            await self.done.wait()
        return self.status, self.said

    def quic_event_received(self, event: QuicEvent) -> None:
        for one in self.http.handle_event(event):
            if isinstance(one, HeadersReceived):
                self.status = dict(one.headers)[b":status"]
            elif isinstance(one, DataReceived):
                self.said += one.data
            if isinstance(one, HeadersReceived | DataReceived) and one.stream_ended:
                self.done.set()


async def test_http_3_full_then_with_early_data(serving: Start) -> None:
    async with serving() as one:
        tickets: list[SessionTicket] = []
        configuration = QuicConfiguration(alpn_protocols=H3_ALPN, server_name=one.address)
        configuration.load_verify_locations(str(one.https.shown.authority))

        def opened(*, wait: bool) -> Any:
            return connect(
                one.address,
                one.port,
                configuration=configuration,
                create_protocol=H3Client,
                session_ticket_handler=tickets.append,
                wait_connected=wait,
                local_port=0,
            )

        async with opened(wait=True) as client:
            assert await client.ask(b"GET", b"/ping") == (b"204", b"")
            status, said = await client.ask(b"POST", b"/upload", bytes(100_000))
            receipt = json.loads(said)
            assert (status, receipt["bytes"], receipt["kernel"]) == (b"200", 100_000, True)
            status, said = await client.ask(b"GET", STREAM.encode() + b"&form=chunked")
            check_chunks([json.loads(line) for line in said.splitlines()])
            assert (await client.ask(b"POST", b"/nowhere", bytes(100_000)))[0] == b"404"
            assert await client.ask(b"GET", b"/ping") == (b"204", b"")
        assert one.https.counts["quic_full"] == 1
        configuration.session_ticket = tickets[0]
        for _ in range(2):  # a ticket is good once: the second time nothing early is taken
            async with opened(wait=False) as client:
                assert await client.ask(b"GET", b"/ping") == (b"204", b"")
        assert one.https.counts["quic_early_data"] == 1
        assert one.https.counts["early_requests"] == 1
        assert one.https.counts["quic_full"] == 2


@pytest.mark.needs("gtlsclient")
@pytest.mark.parametrize("words", [[], ["--quic-retry"]], ids=["plain", "retry"])
async def test_ngtcp2(serving: Start, words: list[str]) -> None:
    async with serving(retry=bool(words)) as one:
        url = f"https://{one.address}:{one.port}/ping"
        client = await asyncio.create_subprocess_exec(
            *(
                program("gtlsclient"),
                "-q",
                "--exit-on-all-streams-close",
                one.address,
                str(one.port),
                url,
            ),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
        try:
            assert await one.counted("requests") == 1
            assert one.https.counts["quic_full"] == 1
            assert one.https.counts["retries"] == len(words)
        finally:
            with contextlib.suppress(ProcessLookupError):
                client.kill()
            await client.wait()


async def test_a_token_is_asked_for_in_every_version(serving: Start) -> None:
    async with serving(tokens=(b"0123456789abcdef",)) as one:
        async with one.client() as client:
            head = b"POST /upload HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\nconnection: close\r\n"
            await client.say(head + b"\r\nabc")
            assert (await client.ended()).startswith(b"HTTP/1.1 401")
        async with one.client() as client:
            await client.say(head + b"authorization: Bearer 0123456789abcdef\r\n\r\nabc")
            assert (await client.ended()).startswith(b"HTTP/1.1 200")
        assert one.https.counts["unauthorised"] == 1


def test_ended_in_good_order_it_says_what_it_counted(running: Any, tmp_path: Path) -> None:
    """A second process: its word comes at its end."""
    from pathbudget.agents.reflector.launch import ReflectorProcess

    address = running.address.rsplit(".", 1)[0] + ".251"
    with ReflectorProcess(tmp_path, [address], {"json": True, "quic-retry": True}) as process:
        assert process.process is not None
        made = ssl.create_default_context(cafile=str(process.authority))
        client = http.client.HTTPSConnection(address, 8621, context=made, timeout=10)
        client.request("GET", "/ping")
        assert client.getresponse().status == 204
        client.close()
        process.process.send_signal(signal.SIGHUP)
        client.request("GET", "/ping")
        assert client.getresponse().status == 204
        client.close()
        process.stop()
        log = process.log
    status = json.loads(log.splitlines()[-1])
    assert status["final"]
    assert status["https"]["requests"] == 2
    assert status["https"]["counts"]["full"] == 2
    assert status["https"]["counts"].get("certificate_reloads") == 1, log
