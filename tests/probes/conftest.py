"""A fake network and the real one, collectors of samples, TCP servers on loopback."""

import asyncio
import contextlib
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator

import pytest

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.fake_collector import Collector
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.network import SystemNetwork


@pytest.fixture
def fake() -> FakeNetwork:
    return FakeNetwork(FakeClock())


@pytest.fixture
def fake_collector(fake: FakeNetwork) -> Collector:
    return Collector(fake, fake.clock)


@pytest.fixture
async def network() -> AsyncIterator[SystemNetwork]:
    """The real network of this host."""
    network = SystemNetwork()
    await asyncio.sleep(0.02)  # until the kernel stamps
    yield network
    network.close()


@pytest.fixture
def collector(network: SystemNetwork) -> Collector:
    """On the real network of this host."""
    return Collector(network, SystemClock())


Holds = Callable[[], object]


@pytest.fixture
def until() -> Callable[[Holds], Awaitable[None]]:
    """Wait until a condition holds that another thread brings about."""

    async def wait(holds: Holds) -> None:
        async with asyncio.timeout(30):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.005)

    return wait


Handler = Callable[[socket.socket], None]
"""Plays the server on one accepted connection; the socket is closed behind it."""


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Start a server on loopback, one thread per connection; returns its port."""
    listeners: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def play(handler: Handler, connection: socket.socket) -> None:
        connection.settimeout(10)
        with connection, contextlib.suppress(OSError):
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            handler(connection)

    def accept(listener: socket.socket, handler: Handler) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                thread = threading.Thread(target=play, args=(handler, connection))
                threads.append(thread)
                thread.start()

    def start(handler: Handler, address: str = "127.0.0.1") -> int:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        listener = socket.create_server((address, 0), family=family, backlog=128)
        listeners.append(listener)
        thread = threading.Thread(target=accept, args=(listener, handler))
        threads.append(thread)
        thread.start()
        port: int = listener.getsockname()[1]
        return port

    yield start
    for listener in listeners:
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
    for thread in threads:
        thread.join()


@pytest.fixture
def closed_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port
