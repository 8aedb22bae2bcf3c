"""What a TCP connection is asked to do beyond carrying bytes, real and fake."""

import asyncio
import socket
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from pathbudget.probes.channels import Network, QueuedError, TcpOptions
from pathbudget.probes.fake_network import FakeClock, FakeNetwork, FakePath
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Failure, FailureKind
from pathbudget.probes.tcp_info import TcpInfo

Sink = Callable[[Callable[[StreamReader, StreamWriter], Awaitable[None]]], Awaitable[int]]
SIZE = 300_000
HERE = "127.0.0.1"


class Hearing:
    """A listener that keeps what it hears, acknowledgements too."""

    def __init__(self) -> None:
        self.stands = asyncio.Event()
        self.answered = asyncio.Event()
        self.left: list[int] = []
        self.arrived: list[int] = []
        self.heard = 0

    def connected(self) -> None:
        self.stands.set()

    def failed(self, error: OSError, icmp: QueuedError | None) -> None:
        raise AssertionError((error, icmp))

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        assert kernel_unix_ns > 0
        self.left.append(last_byte)

    def acknowledged(self, last_byte: int, kernel_unix_ns: int) -> None:
        assert kernel_unix_ns > 0
        self.arrived.append(last_byte)

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        del kernel_unix_ns
        self.heard += len(data)
        if self.heard >= 2:
            self.answered.set()


async def takes_all(reader: StreamReader, writer: StreamWriter) -> None:
    await reader.readexactly(SIZE)
    writer.write(b"ok")
    await writer.drain()
    await asyncio.sleep(1)


async def sent_with(network: Network, port: int, options: TcpOptions) -> tuple[Hearing, TcpInfo]:
    heard = Hearing()
    channel = network.connect(HERE, port, AddressFamily.IPV4, heard, options=options)
    assert not isinstance(channel, Failure)
    async with asyncio.timeout(5):
        await heard.stands.wait()
        channel.send(bytes(SIZE))
        await heard.answered.wait()
        for _ in range(100):  # the last stamps may come a moment after the answer
            if SIZE - 1 in heard.left and (
                SIZE - 1 in heard.arrived or not options.acknowledgements
            ):
                break
            await asyncio.sleep(0.01)
    info = channel.info()
    assert info is not None
    channel.close()
    return heard, info


async def test_each_segment_has_its_stamps(network: SystemNetwork, sink: Sink) -> None:
    port = await sink(takes_all)
    options = TcpOptions(segments=True, acknowledgements=True)
    heard, info = await sent_with(network, port, options)
    assert info.mss is not None
    # One for each segment, in order, and nothing of the stream is left out.
    first_time = sorted(set(heard.left))
    assert len(first_time) == -(-SIZE // (first_time[0] + 1))
    assert first_time[-1] == SIZE - 1
    assert set(heard.arrived) == set(first_time)
    assert info.bytes_sent is not None
    assert info.bytes_sent >= SIZE
    assert info.congestion


async def test_plain_connections_have_one_stamp_for_a_send_and_hear_no_acknowledgement(
    network: SystemNetwork, sink: Sink
) -> None:
    heard, _ = await sent_with(network, await sink(takes_all), TcpOptions())
    assert SIZE - 1 in heard.left
    assert heard.arrived == []


async def test_the_last_byte_of_a_send_is_acknowledged(network: SystemNetwork, sink: Sink) -> None:
    options = TcpOptions(acknowledgements=True, quick_ack=True)
    heard, _ = await sent_with(network, await sink(takes_all), options)
    assert heard.arrived[-1] == SIZE - 1


async def test_congestion_control_is_chosen(network: SystemNetwork, sink: Sink) -> None:
    _, info = await sent_with(network, await sink(takes_all), TcpOptions(congestion="reno"))
    assert info.congestion == "reno"


@pytest.mark.parametrize(
    "name", ["no-such-control", "x" * 100, "a\0b"], ids=["none", "long", "nul"]
)
async def test_a_congestion_control_that_this_kernel_lacks(
    network: SystemNetwork, name: str
) -> None:
    options = TcpOptions(congestion=name)
    found = network.connect(HERE, 9, AddressFamily.IPV4, Hearing(), options=options)
    assert isinstance(found, Failure)
    assert found.kind is FailureKind.LOCAL
    assert "congestion control" in found.detail


async def test_quick_acknowledgements_are_asked_for_again_after_each_read(
    network: SystemNetwork, sink: Sink, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    class Recording(socket.socket):
        def setsockopt(self, *what: Any) -> None:
            asked.append(what)
            super().setsockopt(*what)

    port = await sink(takes_all)
    wanted = (socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
    monkeypatch.setattr(socket, "socket", Recording)
    await sent_with(network, port, TcpOptions())
    assert wanted not in asked
    await sent_with(network, port, TcpOptions(quick_ack=True))
    assert asked.count(wanted) >= 2


async def test_the_fake_tells_the_same() -> None:
    network = FakeNetwork(FakeClock(jumps=True))
    network.paths[HERE] = FakePath(says=b"ok")
    heard = Hearing()
    options = TcpOptions(segments=True, acknowledgements=True)
    channel = network.connect(HERE, 443, AddressFamily.IPV4, heard, options=options)
    assert not isinstance(channel, Failure)
    await network.wait_until(network.clock.monotonic_ns() + 20_000_000)
    channel.send(bytes(4_000))
    await network.wait_until(network.clock.monotonic_ns() + 20_000_000)
    assert heard.left == [1_447, 2_895, 3_999]
    assert heard.arrived == heard.left
    assert channel.info().notes()["mss_bytes"] == 1_448
