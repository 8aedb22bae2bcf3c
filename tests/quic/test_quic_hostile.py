"""Servers that mean no good: the deadline holds, and memory does too."""

import asyncio
import random
from pathlib import Path
from typing import Any

import pytest
from aioquic.quic.crypto import CryptoPair
from tests.quic.scripted_server import ScriptedServer

from pathbudget.probes.channels import Datagram, DatagramBatch, QueuedError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_datagrams import FakeDatagramChannel
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.quic import driver as drivers
from pathbudget.probes.quic.packets import VERSION_1
from pathbudget.probes.quic.probe import QUIC
from pathbudget.probes.record import Failure, FailureKind

ADDRESS, PORT = "192.0.2.1", 443
MS = 1_000_000
TIMEOUT_NS = 1_000 * MS


async def failure_of(fake: FakeNetwork, collector: Collector) -> Failure:
    """That of one shot; it must have come by its deadline."""
    probe = collector.open(QUIC, {"verify": False})
    began = fake.clock.monotonic_ns()
    probe.fire(shot_at(ADDRESS, host="site.example", port=PORT, timeout_ns=TIMEOUT_NS))
    async with asyncio.timeout(20):
        await probe.drain()
    assert fake.clock.monotonic_ns() <= began + TIMEOUT_NS
    probe.close()
    failure = collector.only("setup").failure
    assert failure is not None
    return failure


class Garbage:
    """Answers each datagram with many of random bytes."""

    def take(self, datagram: Datagram, clock: FakeClock, reply: Any) -> None:
        del datagram
        dice = random.Random(7)
        for number in range(100):
            clock.call_in(number * MS, lambda: reply(dice.randbytes(1200), 64, 0))


class Endless:
    """A ServerHello of 16 MB that is on its way, and on its way, and on its way."""

    def __init__(self) -> None:
        self.sent_bytes = 0
        self._begun = False

    def take(self, datagram: Datagram, clock: FakeClock, reply: Any) -> None:
        first = datagram.payload
        if self._begun:
            return
        self._begun = True
        pair = CryptoPair()
        pair.setup_initial(cid=first[6:14], is_client=False, version=VERSION_1)
        own = first[15 : 15 + first[14]]

        def send(number: int) -> None:
            data = bytes(1_000)
            if not number:
                data = b"\x02\xff\xff\xff" + data[4:]
            offset = 0x80000000 | number * 1_000
            crypto = b"\x06" + offset.to_bytes(4, "big") + b"\x43\xe8" + data
            length = (len(crypto) + 2 + 16) | 0x4000
            head = b"\xc1\0\0\0\x01\x08" + own + b"\x08" + bytes(8) + b"\0"
            head += length.to_bytes(2, "big") + number.to_bytes(2, "big")
            packet = pair.encrypt_packet(head, crypto, number)
            self.sent_bytes += len(packet)
            reply(packet, 64, 0)
            clock.call_in(MS // 4, lambda: send(number + 1))

        send(0)


async def test_garbage_is_waited_through(fake: FakeNetwork, fake_collector: Collector) -> None:
    fake.services[ADDRESS, PORT] = Garbage()
    failure = await failure_of(fake, fake_collector)
    assert failure.kind is FailureKind.TIMEOUT
    assert failure.detail.endswith("datagrams came")


async def test_a_hello_without_end_is_cut_short(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    server = Endless()
    fake.services[ADDRESS, PORT] = server
    failure = await failure_of(fake, fake_collector)
    assert failure.kind is FailureKind.PROTOCOL
    assert server.sent_bytes < 2 * drivers.LARGEST_FLIGHT_BYTES


async def test_a_flight_that_stops_half_way_is_waited_for(
    fake: FakeNetwork, fake_collector: Collector, folder: Path
) -> None:
    server = ScriptedServer(folder, certificate="long.pem", answers_lost=lambda number: number > 1)
    fake.services[ADDRESS, PORT] = server
    failure = await failure_of(fake, fake_collector)
    assert failure.kind is FailureKind.TIMEOUT
    assert failure.detail == "no answer within 1000 ms: 2 datagrams came"


async def test_a_flood_leaves_the_event_loop_to_others(
    fake: FakeNetwork,
    fake_collector: Collector,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """More datagrams at once than are kept: some are read, and the loop goes round in between."""
    seen: list[drivers.Driver] = []
    attach = drivers.Driver.attach

    def watch(self: drivers.Driver, channel: Any) -> None:
        seen.append(self)
        attach(self, channel)

    monkeypatch.setattr(drivers.Driver, "attach", watch)
    fake.services[ADDRESS, PORT] = Garbage()
    probe = fake_collector.open(QUIC, {"verify": False})
    probe.fire(shot_at(ADDRESS, host="site.example", port=PORT, timeout_ns=TIMEOUT_NS))
    (driver,) = seen
    one = Datagram(bytes(1_200), ADDRESS, PORT, "", 64, 0, None)
    driver.read(DatagramBatch(arrivals=[one] * 3 * drivers.WAITING_DATAGRAMS))
    assert driver.flight.received == drivers.AT_ONCE
    turns: list[int] = []
    fake.clock.call_in(0, lambda: turns.append(driver.flight.received))
    async with asyncio.timeout(20):
        await probe.drain()
    assert turns == [2 * drivers.AT_ONCE]
    assert driver.flight.received <= drivers.WAITING_DATAGRAMS + 200
    probe.close()


async def test_an_icmp_error_that_quotes_nobody_is_ignored(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    """Else anybody who knows a port could end its connection."""

    class Forger:
        def take(self, datagram: Datagram, clock: FakeClock, reply: Any) -> None:
            """Says nothing."""

    fake.services[ADDRESS, PORT] = Forger()
    channels: list[FakeDatagramChannel] = []
    open_datagrams = fake.open_datagrams

    def remember(*given: Any, **named: Any) -> Any:
        channel = open_datagrams(*given, **named)
        assert channel is not None
        channels.append(channel)
        return channel

    fake.open_datagrams = remember  # type: ignore[method-assign]
    probe = fake_collector.open(QUIC, {"verify": False})
    probe.fire(shot_at(ADDRESS, host="site.example", port=PORT, timeout_ns=TIMEOUT_NS))
    channels[0].inject_error(QueuedError(3, 3, ADDRESS, ADDRESS, bytes(100), None))
    async with asyncio.timeout(20):
        await probe.drain()
    failure = fake_collector.only("setup").failure
    assert failure is not None
    assert failure.kind is FailureKind.TIMEOUT
    probe.close()
