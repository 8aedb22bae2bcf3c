"""The echo port sends back what it gets, and no more than its bound."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import pytest

from pathbudget.agents.responder.limits import Limits
from pathbudget.agents.responder.server import Responder
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import ClockSource
from pathbudget.probes.tcp import TCP

Listen = Callable[..., AbstractAsyncContextManager[Responder]]


async def test_bytes_come_back_in_order(listen: Listen) -> None:
    async with listen() as responder:
        reader, writer = await asyncio.open_connection(*responder.echo_addresses[0])
        for part in (b"a", b"bc" * 5_000, b"\0"):
            writer.write(part)
            assert await reader.readexactly(len(part)) == part
        writer.close()
        await writer.wait_closed()
        assert responder.counters["bytes echoed"] == 10_002


async def test_more_than_the_bound_is_reset(listen: Listen) -> None:
    async with listen(limits=Limits(bytes_received=100)) as responder:
        reader, writer = await asyncio.open_connection(*responder.echo_addresses[0])
        writer.write(b"x" * 100)
        assert len(await reader.readexactly(100)) == 100
        writer.write(b"x")
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
        writer.close()
        assert responder.counters["too many bytes"] == 1


async def test_silence_is_ended(listen: Listen) -> None:
    async with listen(limits=Limits(idle_seconds=0.1)) as responder:
        reader, writer = await asyncio.open_connection(*responder.echo_addresses[0])
        with pytest.raises(ConnectionResetError):
            async with asyncio.timeout(5):
                await reader.read(1)
        writer.close()


@pytest.mark.parametrize("bind", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("size", [1, 1_000, 65_536])
async def test_the_probe_times_it_between_kernel_stamps(
    listen: Listen, bind: str, size: int
) -> None:
    network = SystemNetwork()
    await asyncio.sleep(0.02)  # until the kernel stamps
    collector = Collector(network, SystemClock())
    async with listen(binds=(bind,)) as responder:
        probe = collector.open(TCP, {"echo_bytes": size})
        probe.fire(shot_at(bind, port=responder.echo_addresses[0][1]))
        await probe.drain()
        probe.close()
        network.close()
        assert responder.counters["bytes echoed"] == size
    sample = collector.only("echo")
    assert sample.failure is None
    assert sample.clock_source is ClockSource.KERNEL
    assert sample.stamps is not None
    assert sample.stamps.kernel_sent_ns == 0
    assert sample.stamps.kernel_received_ns == sample.value_ns
    assert sample.flow == collector.only("connect").flow
