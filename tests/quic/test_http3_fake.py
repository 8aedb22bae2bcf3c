"""HTTP/3 in virtual time: every moment is that of the datagram it should be of."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aioquic.h3.connection import FrameType, encode_frame
from tests.quic.conftest import Answered, Heard, environment_of
from tests.quic.scripted_server import ScriptedServer

from pathbudget.probes.carriers import Request
from pathbudget.probes.fake_collector import shot_at
from pathbudget.probes.fake_network import FakeNetwork
from pathbudget.probes.http.http3 import Http3Dialer
from pathbudget.probes.http.settings import Limits
from pathbudget.probes.quic.settings import QuicSettings
from pathbudget.probes.record import ConnectionMode, FailureKind, Stage

ADDRESS, PORT = "192.0.2.1", 443
MS = 1_000_000
TRIP = 40 * MS
GET = Request("GET", "site.example", "/page", (("accept", "text/plain"),))

Dial = Callable[..., Http3Dialer]


@pytest.fixture
def dialer(fake: FakeNetwork, ca_file: str) -> Dial:
    def make(mode: ConnectionMode = ConnectionMode.COLD, limits: Limits | None = None) -> Any:
        environment = environment_of(fake, fake.clock)
        return Http3Dialer(environment, QuicSettings(mode=mode, ca_file=ca_file), limits)

    return make


def serve(fake: FakeNetwork, folder: Path, **script: Any) -> ScriptedServer:
    server = ScriptedServer(folder, round_trip_ns=TRIP, **script)
    fake.services[ADDRESS, PORT] = server
    return server


def shot() -> Any:
    return shot_at(ADDRESS, host="site.example", port=PORT, timeout_ns=5_000 * MS)


async def ask(dialer: Http3Dialer, request: Request, *, early: bool = False) -> Any:
    """Open, ask once, close; what was told."""
    heard, answered = Heard(), Answered()
    offered = (request, answered) if early else None
    connection = dialer.dial(shot(), heard, offered)
    if not early:
        heard.on_open = lambda: connection.request(request, answered)
    async with asyncio.timeout(10):
        done = [asyncio.create_task(one.done.wait()) for one in (heard, answered)]
        await asyncio.wait(done, return_when=asyncio.FIRST_COMPLETED)
        for one in done:
            one.cancel()
        connection.close()
        await dialer.drain()
    return heard, answered


async def test_an_exchange_takes_one_round_trip(
    fake: FakeNetwork, folder: Path, dialer: Dial
) -> None:
    server = serve(fake, folder)
    heard, answered = await ask(dialer(), GET)
    assert answered.words == ["left", "head", "body", "complete"]
    assert (answered.status, answered.content) == (200, b"hello")
    assert answered.headers["server"] == "scripted"
    assert answered.head_moment.unix_ns - answered.last.unix_ns == TRIP
    assert answered.first.kernel_unix_ns == heard.opening.began.unix_ns + TRIP
    assert answered.notes["protocol"] == "HTTP/3"
    assert server.requests == [
        {
            ":method": "GET",
            ":scheme": "https",
            ":authority": "site.example",
            ":path": "/page",
            "accept": "text/plain",
        }
    ]


async def test_an_early_request_is_answered_after_one_round_trip(
    fake: FakeNetwork, folder: Path, dialer: Dial
) -> None:
    serve(fake, folder)
    one = dialer(ConnectionMode.EARLY_DATA)
    heard, answered = await ask(one, GET, early=True)
    assert heard.opening.mode == "cold"
    assert answered.head_moment.unix_ns - heard.opening.began.unix_ns == 2 * TRIP
    heard, answered = await ask(one, GET, early=True)
    assert heard.opening.mode == "early_data"
    assert answered.first.unix_ns == heard.opening.began.unix_ns
    assert answered.head_moment.unix_ns - heard.opening.began.unix_ns == TRIP


async def test_one_connection_carries_many_requests(
    fake: FakeNetwork, folder: Path, dialer: Dial
) -> None:
    server = serve(fake, folder)
    standing = asyncio.Event()
    connection = dialer().dial(shot(), Heard(on_open=standing.set))
    for _ in range(3):
        answered = Answered()
        async with asyncio.timeout(10):
            await standing.wait()
        assert connection.usable
        connection.request(GET, answered)
        async with asyncio.timeout(10):
            await answered.done.wait()
        assert answered.failure is None
        assert answered.content == b"hello"
    assert len(server.connections) == 1
    connection.close()
    assert not connection.usable


async def test_a_window_that_is_full_is_told_as_a_stall(
    fake: FakeNetwork, folder: Path, dialer: Dial
) -> None:
    """A window of 4 kB lets a body of 40 kB stand still for round trip after round trip."""
    server = serve(fake, folder, max_data=4_096)
    body = Request("POST", "site.example", "/upload", (), bytes(40_000))
    _, answered = await ask(dialer(), body)
    assert answered.status == 200
    assert list(server.bodies.values()) == [40_000]
    stalled = answered.notes["flow_stall_ns"]
    assert stalled > 2 * TRIP
    assert stalled < answered.end.unix_ns - answered.first.unix_ns
    assert answered.last.unix_ns - answered.first.unix_ns >= stalled


async def test_a_window_that_is_wide_is_no_stall(
    fake: FakeNetwork, folder: Path, dialer: Dial
) -> None:
    """The congestion window alone makes the same body wait."""
    serve(fake, folder)
    body = Request("POST", "site.example", "/upload", (), bytes(40_000))
    _, answered = await ask(dialer(), body)
    assert "flow_stall_ns" not in answered.notes
    assert answered.last.unix_ns - answered.first.unix_ns >= TRIP


async def test_an_answer_without_a_body_is_complete(
    fake: FakeNetwork, folder: Path, dialer: Dial
) -> None:
    serve(fake, folder, answer=b"")
    _, answered = await ask(dialer(), GET)
    assert answered.words == ["left", "head", "complete"]


async def test_the_headers_of_an_answer_are_limited(
    fake: FakeNetwork, folder: Path, dialer: Dial
) -> None:
    serve(fake, folder, more_headers=20)
    _, answered = await ask(dialer(limits=Limits(headers=10)), GET)
    assert answered.failure.kind is FailureKind.PROTOCOL
    assert "headers" in answered.failure.detail


async def test_the_body_of_an_answer_is_limited(
    fake: FakeNetwork, folder: Path, dialer: Dial
) -> None:
    serve(fake, folder, answer=bytes(50_000))
    _, answered = await ask(dialer(limits=Limits(body_bytes=20_000)), GET)
    assert answered.failure.kind is FailureKind.PROTOCOL


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (encode_frame(FrameType.DATA, b"body first"), FailureKind.PROTOCOL),
        (encode_frame(FrameType.HEADERS, b"\x00\x00\xff\xff\xff"), FailureKind.PROTOCOL),
        (b"", FailureKind.PROTOCOL),
        (b"\x01\xbf\xff\xff\xff" + bytes(300_000), FailureKind.PROTOCOL),
    ],
    ids=["body before headers", "garbage", "nothing", "endless headers"],
)
async def test_an_answer_that_is_none_is_a_failure(
    fake: FakeNetwork, folder: Path, dialer: Dial, raw: bytes, kind: FailureKind
) -> None:
    serve(fake, folder, raw_answer=raw)
    _, answered = await ask(dialer(), GET)
    assert answered.failure.kind is kind
    assert answered.failure.stage is Stage.PARSE


async def test_a_connection_that_breaks_fails_who_waits(
    fake: FakeNetwork, folder: Path, dialer: Dial
) -> None:
    serve(fake, folder, closes_with=(0x102, "out of order"))
    heard, answered = await ask(dialer(), GET)
    assert answered.failure.kind is FailureKind.CLOSED
    assert answered.failure.detail == "closed by the other side with code 0x102: out of order"
    assert heard.failure is None
