"""Against servers that others wrote: every mode is what their own log says it was."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.quic import others
from tests.quic.conftest import Answered, Heard, environment_of
from tests.quic.others import HERE, Other

from pathbudget.probes.carriers import Request
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.http.http3 import Http3Dialer
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.quic.probe import QUIC
from pathbudget.probes.quic.settings import QuicSettings
from pathbudget.probes.record import ClockSource, ConnectionMode, FailureKind, Flag

TIMEOUT_NS = 10_000_000_000
EARLY_PACKET = re.compile(r"pkt rx .*type=0RTT")
EARLY = ConnectionMode.EARLY_DATA


@pytest.fixture(scope="module")
def caddy(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Other]:
    with others.caddy(folder, tmp_path_factory.mktemp("caddy")) as other:
        yield other


@pytest.fixture(scope="module")
def ngtcp2(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Other]:
    with others.gtlsserver(folder, tmp_path_factory.mktemp("ngtcp2")) as other:
        yield other


@pytest.fixture(scope="module")
def ngtcp2_retry(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Other]:
    place = tmp_path_factory.mktemp("retry")
    with others.gtlsserver(folder, place, "-V", certificate="long.pem") as other:
        yield other


Ask = Callable[..., Awaitable[tuple[Heard, Answered]]]


@pytest.fixture
def ask(network: SystemNetwork, ca_file: str) -> Ask:
    """Opens `times` connections of a mode, one after the other, with one request on each; what the
    last one told.
    """

    async def run(port: int, mode: ConnectionMode, path: str, times: int = 1) -> Any:
        environment = environment_of(network, SystemClock())
        dialer = Http3Dialer(environment, QuicSettings(mode=mode, ca_file=ca_file))
        heard, answered = Heard(), Answered()
        for _ in range(times):
            heard, answered = await once(dialer, port, mode, path)
        dialer.close()
        return heard, answered

    return run


async def once(
    dialer: Http3Dialer, port: int, mode: ConnectionMode, path: str
) -> tuple[Heard, Answered]:
    heard, answered = Heard(), Answered()
    request = Request("GET", f"localhost:{port}", path)
    shot = shot_at(HERE, host="localhost", port=port, timeout_ns=TIMEOUT_NS)
    connection = dialer.dial(shot, heard, (request, answered) if mode is EARLY else None)
    if mode is not EARLY:
        heard.on_open = lambda: connection.request(request, answered)
    async with asyncio.timeout(20):
        await answered.done.wait()
        connection.close()
        await dialer.drain()
    return heard, answered


@pytest.mark.needs("caddy")
@pytest.mark.parametrize("mode", [ConnectionMode.COLD, ConnectionMode.RESUMED, EARLY])
async def test_caddy_answers_over_http_3_in_every_mode(
    caddy: Other, ask: Ask, mode: ConnectionMode
) -> None:
    path = f"/{mode}"
    heard, answered = await ask(caddy.port, mode, path, times=2)
    assert heard.opening is not None
    assert heard.opening.mode is mode
    assert heard.opening.beside[-1].span.value_ns > 0
    assert (answered.status, answered.content) == (200, b"caddy")
    assert answered.first is not None
    assert answered.head_moment is not None
    assert None not in (answered.first.kernel_unix_ns, answered.head_moment.kernel_unix_ns)
    assert answered.first.unix_ns < answered.head_moment.unix_ns
    if mode is EARLY:
        assert answered.first.unix_ns == heard.opening.began.unix_ns
    seen = [line["request"] for line in await logged(caddy, path, 2)]
    assert [request["proto"] for request in seen] == ["HTTP/3.0", "HTTP/3.0"]


async def logged(caddy: Other, path: str, count: int) -> list[dict[str, Any]]:
    async with asyncio.timeout(10):
        while True:
            found = [one for one in caddy.requests() if one["request"]["uri"] == path]
            if len(found) >= count:
                return found
            await asyncio.sleep(0.02)


@pytest.mark.needs("gtlsserver")
@pytest.mark.parametrize("mode", [ConnectionMode.COLD, ConnectionMode.RESUMED, EARLY])
async def test_only_early_data_is_early_by_the_log_of_ngtcp2(
    ngtcp2: Other, ask: Ask, mode: ConnectionMode
) -> None:
    before = len(EARLY_PACKET.findall(ngtcp2.said()))
    heard, answered = await ask(ngtcp2.port, mode, "/", times=2)
    assert heard.opening is not None
    assert heard.opening.mode is mode
    assert (answered.status, answered.content) == (200, b"hello\n")
    early = len(EARLY_PACKET.findall(ngtcp2.said())) - before
    assert (early > 0) == (mode is EARLY)
    resumed = mode is not ConnectionMode.COLD
    assert (heard.opening.notes["certificate_bytes"] == 0) == resumed


@pytest.mark.needs("gtlsserver")
async def test_a_large_answer_arrives_whole(ngtcp2: Other, ask: Ask) -> None:
    _, answered = await ask(ngtcp2.port, ConnectionMode.COLD, "/large")
    assert answered.failure is None
    assert len(answered.content) == 300_000


@pytest.mark.needs("gtlsserver")
async def test_ngtcp2_tells_of_its_retry(
    ngtcp2_retry: Other, collector: Collector, ca_file: str
) -> None:
    """And because of it, that a chain of over 5 kB does not have to stop half way."""
    before = ngtcp2_retry.said().count("Sending Retry packet")
    probe = collector.open(QUIC, {"ca_file": ca_file, "mode": "early_data"})
    for number in range(2):
        probe.fire(shot_at(HERE, seq=number, host="localhost", port=ngtcp2_retry.port,
                           timeout_ns=TIMEOUT_NS))  # fmt: skip
        async with asyncio.timeout(20):
            await probe.drain()
    probe.close()
    first, second = collector.of("quic_handshake")
    assert first.clock_source is ClockSource.KERNEL
    assert Flag.RETRY in first.flags
    assert Flag.AMPLIFICATION_STALL not in first.flags
    # The server gave us a token, and with it asks no more (RFC 9000, 8.1.3).
    assert second.failure is None
    assert second.mode == "early_data"
    assert Flag.RETRY not in second.flags
    assert ngtcp2_retry.said().count("Sending Retry packet") == before + 1
    assert collector.of("setup")[1].value_ns == 0


async def test_a_port_where_nobody_listens_refuses(collector: Collector) -> None:
    probe = collector.open(QUIC, {})
    port = others.free_port()
    probe.fire(shot_at(HERE, host="localhost", port=port, timeout_ns=TIMEOUT_NS))
    async with asyncio.timeout(10):
        await probe.drain()
    probe.close()
    failure = collector.only("setup").failure
    assert failure is not None
    assert failure.kind is FailureKind.REFUSED
    assert failure.detail == f"port unreachable: nothing listens on UDP port {port}"
    assert (failure.icmp_type, failure.icmp_code) == (3, 3)


async def said(other: Other, words: str) -> None:
    """Until a server has told that."""
    for _ in range(500):
        if words in other.said():
            return
        await asyncio.sleep(0.02)
    raise AssertionError(other.said())


@pytest.mark.needs("gtlsserver")
async def test_our_own_certificate_is_shown_to_who_asks(
    folder: Path, tmp_path: Path, collector: Collector, ca_file: str
) -> None:
    options = {
        "ca_file": ca_file,
        "client_certificate": str(folder / "long.pem"),
        "client_key": str(folder / "key.pem"),
    }
    with others.gtlsserver(folder, tmp_path, "--verify-client") as asking:
        probe = collector.open(QUIC, options)
        probe.fire(shot_at(HERE, host="localhost", port=asking.port, timeout_ns=TIMEOUT_NS))
        async with asyncio.timeout(20):
            await probe.drain()
        probe.close()
        await said(asking, "QUIC handshake has completed")
    assert collector.only("setup").failure is None
    pieces = re.findall(r"frm rx \d+ Handshake CRYPTO\(0x06\) offset=\d+ len=(\d+)", asking.said())
    assert sum(map(int, pieces)) > 5_000
