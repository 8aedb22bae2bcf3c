"""The connect probe, on loopback and on the fake network."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable

import pytest

from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.fake_network import FakeNetwork, FakePath
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Failure,
    FailureKind,
    Flag,
    Stage,
)
from pathbudget.probes.tcp import TCP

MS = 1_000_000
Until = Callable[[Callable[[], object]], Awaitable[None]]
HERE = "192.0.2.1"


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
async def test_connect_is_the_kernels_estimate(
    collector: Collector, serve: Callable[..., int], address: str, until: Until
) -> None:
    ends: list[bytes] = []

    def handle(connection: socket.socket) -> None:
        ends.append(connection.recv(10))

    port = serve(handle, address)
    probe = collector.open(TCP)
    probe.fire(shot_at(address, port=port, resolve=True, lateness_ns=9))
    await probe.drain()
    await until(lambda: ends)
    probe.close()
    resolve, connect = collector.of("resolve")[0], collector.only("connect")
    assert resolve.value_ns is not None
    assert connect.value_ns is not None
    assert connect.clock_source is ClockSource.TCP_INFO
    assert (connect.seq, connect.lateness_ns, connect.flags) == (0, 9, ())
    assert ends == [b""]  # closed in good order, not reset


async def test_a_server_that_talks_first_is_not_reset(
    collector: Collector, serve: Callable[..., int], until: Until
) -> None:
    ends: list[bytes | str] = []

    def handle(connection: socket.socket) -> None:
        connection.sendall(b"220 mail.example ESMTP\r\n")
        time.sleep(0.05)
        try:
            ends.append(connection.recv(10))
        except OSError as error:
            ends.append(repr(error))

    probe = collector.open(TCP)
    probe.fire(shot_at("127.0.0.1", port=serve(handle)))
    await probe.drain()
    await until(lambda: ends)
    probe.close()
    assert ends == [b""]


async def test_a_blocked_loop_does_not_move_the_connect_time(
    collector: Collector, serve: Callable[..., int]
) -> None:

    def handle(connection: socket.socket) -> None:
        connection.recv(10)

    port = serve(handle)
    probe = collector.open(TCP)
    for seq in range(5):
        probe.fire(shot_at("127.0.0.1", seq=seq, port=port))
        time.sleep(0.05)  # noqa: ASYNC251
        await probe.drain()
    probe.close()
    values = sorted(sample.value_ns or 0 for sample in collector.of("connect"))
    assert len(values) == 5
    assert values[2] < 25 * MS


async def test_refused(collector: Collector, closed_port: int) -> None:
    probe = collector.open(TCP)
    probe.fire(shot_at("127.0.0.1", port=closed_port))
    await probe.drain()
    probe.close()
    sample = collector.only("connect")
    assert sample.value_ns is not None
    assert sample.flags == (Flag.REFUSED,)
    assert sample.clock_source in (ClockSource.KERNEL_RECEIVE, ClockSource.USER)


async def test_a_full_backlog_retransmits_the_syn_and_says_so(collector: Collector) -> None:
    """A listener that accepts nobody drops the SYN; the kernel sends it again after 1 s."""
    with socket.create_server(("127.0.0.1", 0), backlog=0) as listener:
        address = listener.getsockname()
        with socket.create_connection(address):
            probe = collector.open(TCP)
            shot = shot_at("127.0.0.1", port=address[1], timeout_ns=5_000 * MS)
            probe.fire(shot)
            await asyncio.sleep(0.5)
            listener.accept()[0].close()
            await probe.drain()
            probe.close()
    sample = collector.only("connect")
    assert sample.value_ns is not None
    assert sample.value_ns > 900 * MS
    assert sample.flags == (Flag.SYN_RETRANSMITTED,)
    assert sample.clock_source is ClockSource.USER


def test_a_loss_is_a_timeout(fake: FakeNetwork, fake_collector: Collector) -> None:
    fake.paths[HERE] = FakePath(lost=lambda number: number == 0)
    probe = fake_collector.open(TCP)
    for seq in range(2):
        probe.fire(shot_at(HERE, seq=seq, port=80))
    fake.clock.advance(2_000 * MS)
    first, second = sorted(fake_collector.of("connect"), key=lambda sample: sample.seq)
    assert first.failure == Failure(FailureKind.TIMEOUT, Stage.CONNECT, "no answer within 1000 ms")
    assert second.value_ns == 10 * MS


def test_an_unresolvable_name_does_not_cost_the_connect_time(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    fake.paths[HERE] = FakePath()
    probe = fake_collector.open(TCP)
    probe.fire(shot_at(HERE, host="gone.example", port=80, resolve=True))
    fake.clock.advance(2_000 * MS)
    resolve = fake_collector.only("resolve")
    assert resolve.failure is not None
    assert resolve.failure.kind is FailureKind.NAME_NOT_FOUND
    assert fake_collector.only("connect").value_ns == 10 * MS


def test_a_resolver_that_hangs_leaves_both_samples(
    fake: FakeNetwork, fake_collector: Collector
) -> None:
    fake.paths[HERE] = FakePath()
    fake.resolve_ns = None
    probe = fake_collector.open(TCP)
    probe.fire(shot_at(HERE, host="slow.example", port=80, resolve=True))
    fake.clock.advance(2_000 * MS)
    expected = Failure(FailureKind.TIMEOUT, Stage.RESOLVE, "no answer within 1000 ms")
    assert fake_collector.only("resolve").failure == expected
    assert fake_collector.only("connect").failure == expected


def test_a_target_without_a_port(fake: FakeNetwork, fake_collector: Collector) -> None:
    probe = fake_collector.open(TCP)
    probe.fire(shot_at(HERE, seq=8))
    failure = fake_collector.only("connect").failure
    assert failure == Failure(FailureKind.LOCAL, Stage.CONNECT, "the target has no port")


@pytest.mark.parametrize("step_ms", [3_600_000, -3_600_000])
def test_a_clock_step_changes_nothing(
    fake: FakeNetwork, fake_collector: Collector, step_ms: int
) -> None:
    fake.paths[HERE] = FakePath(retransmits=1)
    fake.paths["192.0.2.2"] = FakePath()
    probe = fake_collector.open(TCP)
    probe.fire(shot_at(HERE, seq=1, port=80))
    probe.fire(shot_at("192.0.2.2", seq=2, port=80))
    fake.clock.advance(5 * MS)
    fake.clock.step(step_ms * MS)
    fake.clock.advance(2_000 * MS)
    flags = {sample.seq: sample.flags for sample in fake_collector.of("connect")}
    assert flags == {1: (Flag.SYN_RETRANSMITTED, Flag.CLOCK_STEP), 2: ()}
    assert [sample.value_ns for sample in fake_collector.of("connect")] == [10 * MS] * 2


def test_no_ipv6(fake: FakeNetwork, fake_collector: Collector) -> None:
    fake.families = frozenset({AddressFamily.IPV4})
    probe = fake_collector.open(TCP)
    probe.fire(shot_at("2001:db8::1", port=80))
    failure = fake_collector.only("connect").failure
    assert failure == Failure(FailureKind.NO_ROUTE, Stage.CONNECT, "this host has no IPv6")
