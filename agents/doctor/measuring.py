"""Measure the measuring: stamps, alarms and connections of this host, with nothing to measure."""

import asyncio
import contextlib
import random
import socket
from collections.abc import AsyncGenerator, Iterator, Sequence

import msgspec

from pathbudget.probes.channels import LoopbackTest, Network, QueuedError, TcpChannel
from pathbudget.probes.clock import Clock
from pathbudget.probes.host_histogram import DelayHistogram
from pathbudget.probes.noise import quantile, span_floor_ns, stamped_enough
from pathbudget.probes.record import AddressFamily, Failure

PACKETS = 50
CONNECTIONS = 20
SENDS_PER_SECOND = 500
BUSY_NS = 3_000_000
"""The busy loop computes for this long, and then waits as long."""
CONNECT_SECONDS = 1.0


class Figures(msgspec.Struct, frozen=True):
    """What was measured in one phase; None where the kernel gives no such stamp.

    The first four are floors by clock source: a smaller difference of round trips is noise.
    """

    kernel_ns: int | None
    tcp_info_ns: int | None
    kernel_receive_ns: int | None
    user_ns: int | None
    send_lateness_p50_ns: int | None
    send_lateness_p99_ns: int | None
    receive_lag_p99_ns: int | None


async def measure(network: Network, clock: Clock, seconds: float, *, busy: bool) -> Figures:
    """One phase. Nothing leaves this host."""
    lateness = DelayHistogram()
    tests: list[LoopbackTest] = []
    round_trips: list[int] = []
    async with _busy_loop(clock, busy=busy):
        await _keep_schedule(network, clock, seconds / 2, lateness)
        ends_ns = clock.monotonic_ns() + int(seconds / 2 * 1e9)
        with contextlib.suppress(OSError):  # a network namespace without even a loopback device
            while not tests or clock.monotonic_ns() < ends_ns:
                tests.append(await network.loopback_test(PACKETS))
                round_trips += await _connect_again_and_again(network, CONNECTIONS)
    whole = LoopbackTest(*(tuple(one for test in tests for one in test[kind]) for kind in range(3)))
    return Figures(
        kernel_ns=_floor(whole.kernel_ns, whole),
        tcp_info_ns=quantile(tuple(round_trips), 0.99) if round_trips else None,
        kernel_receive_ns=_floor(whole.kernel_receive_ns, whole),
        user_ns=_floor(whole.user_ns, whole),
        send_lateness_p50_ns=lateness.quantile(0.5),
        send_lateness_p99_ns=lateness.quantile(0.99),
        receive_lag_p99_ns=_receive_lag(tests),
    )


def _floor(spans: tuple[int, ...], test: LoopbackTest) -> int | None:
    return span_floor_ns(spans) if stamped_enough(spans, test) else None


def _receive_lag(tests: Sequence[LoopbackTest]) -> int | None:
    """Both spans of a packet begin at one reading; they end at the kernel's stamp and at ours.

    Of those tests whose every packet was stamped: of the others it is not known which was not.
    """
    lags = [
        max(0, user - kernel)
        for test in tests
        if len(test.user_ns) == len(test.kernel_receive_ns)
        for user, kernel in zip(test.user_ns, test.kernel_receive_ns, strict=True)
    ]
    return quantile(tuple(lags), 0.99) if lags else None


async def _keep_schedule(
    network: Network, clock: Clock, seconds: float, lateness: DelayHistogram
) -> None:
    """Keep a schedule of sends, without sending, and count how late each one would have left."""
    over = asyncio.Event()

    def fire(items: Sequence[tuple[int, None]]) -> None:
        now_ns = clock.monotonic_ns()
        for due_ns, _ in items:
            lateness.note(now_ns - due_ns)

    start_ns = clock.monotonic_ns()
    pacing = network.pace(_poisson(start_ns, start_ns + int(seconds * 1e9)), fire, over.set)
    try:
        await over.wait()
    finally:
        pacing.cancel()


def _poisson(start_ns: int, ends_ns: int) -> Iterator[tuple[int, None]]:
    rng = random.Random()
    due_ns = start_ns
    while (due_ns := due_ns + int(rng.expovariate(SENDS_PER_SECOND) * 1e9)) < ends_ns:
        yield due_ns, None


@contextlib.asynccontextmanager
async def _busy_loop(clock: Clock, *, busy: bool) -> AsyncGenerator[None]:
    """Compute in the event loop for half of the time, as an agent that has other work."""
    task = asyncio.create_task(_compute(clock)) if busy else None
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _compute(clock: Clock) -> None:
    while True:
        until_ns = clock.monotonic_ns() + BUSY_NS
        while clock.monotonic_ns() < until_ns:
            pass
        await asyncio.sleep(BUSY_NS / 1e9)


class _Connected:
    """Waits for one connection to be there."""

    def __init__(self) -> None:
        self.over = asyncio.Event()

    def connected(self) -> None:
        """See `channels.TcpListener`."""
        self.over.set()

    def failed(self, error: OSError, icmp: QueuedError | None) -> None:
        """See `channels.TcpListener`."""
        del error, icmp
        self.over.set()

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        """See `channels.TcpListener`."""

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """See `channels.TcpListener`."""


async def _connect_again_and_again(network: Network, connections: int) -> list[int]:
    """The kernel's own round trip of each handshake with ourselves; fewer where some fail."""
    with socket.create_server(("127.0.0.1", 0), backlog=connections + 1) as server:
        port = server.getsockname()[1]
        found = [await _round_trip(network, port) for _ in range(connections)]
    return [one for one in found if one is not None]


async def _round_trip(network: Network, port: int) -> int | None:
    listener = _Connected()
    channel = network.connect("127.0.0.1", port, AddressFamily.IPV4, listener)
    if isinstance(channel, Failure):
        return None
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            await listener.over.wait()
        return _read(channel)
    except TimeoutError:
        return None
    finally:
        channel.close()


def _read(channel: TcpChannel) -> int | None:
    known = channel.round_trip()
    return known.rtt_ns if known is not None and not known.retransmits else None
