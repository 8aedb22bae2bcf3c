"""A seeded collector, a reflector in this loop, and sinks that do as they like."""

import asyncio
import contextlib
import itertools
import os
import random
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from pathbudget.agents.reflector.clocks import HostClock
from pathbudget.agents.reflector.serving.options import CertificateChoice, HttpsOptions
from pathbudget.agents.reflector.serving.service import Https
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import Option
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import Sample
from pathbudget.probes.upload.probe import UPLOAD

MS = 1_000_000
Handler = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Sink = Callable[[Handler], Awaitable[int]]
Shooting = Callable[..., Awaitable[list[Sample]]]
_counter = itertools.count(1)


@pytest.fixture
def collector(network: SystemNetwork) -> Collector:
    return Collector(network, SystemClock(), random.Random(5))


@pytest.fixture
async def sink() -> AsyncIterator[Sink]:
    """Serves TCP on loopback by a handler; returns the port."""
    servers: list[asyncio.Server] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(handler: Handler) -> int:
        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                    await handler(reader, writer)
            finally:
                writer.transport.abort()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        servers.append(server)
        port: int = server.sockets[0].getsockname()[1]
        return port

    yield serve
    for server in servers:
        server.close()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.sleep(0.01)  # until the transports are gone


@pytest.fixture
def shoot(collector: Collector) -> Shooting:
    """Fire shots one after the other with one probe; every sample that comes of them."""

    async def fire(
        address: str,
        port: int,
        *,
        shots: int = 1,
        gap_ms: int = 0,
        timeout_ms: int = 2_000,
        **options: Option,
    ) -> list[Sample]:
        probe = collector.open(UPLOAD, options)
        for seq in range(shots):
            shot = shot_at(
                address, seq=seq, port=port, server_name="localhost", timeout_ns=timeout_ms * MS
            )
            probe.fire(shot)
            await probe.drain()
            await asyncio.sleep(gap_ms / 1000)
        probe.close()
        return [sample for _, sample in collector.emitted]

    return fire


class Serving:
    """A reflector of this test's own."""

    def __init__(self, https: Https, address: str) -> None:
        self.https = https
        self.address = address

    @property
    def port(self) -> int:
        return self.https.port

    @property
    def authority(self) -> str:
        """File of who signed its certificate."""
        return str(self.https.shown.authority)


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the certificate that all tests here share."""
    return tmp_path_factory.mktemp("certificates")


@pytest.fixture
async def reflector(network: SystemNetwork, certificates: Path) -> AsyncIterator[Serving]:
    """HTTPS in this loop."""
    number = next(_counter)
    address = f"127.{64 + os.getpid() % 60}.{os.getpid() // 60 % 256}.{number % 250 + 1}"
    choice = CertificateChoice(folder=certificates, names=("localhost",))
    options = HttpsOptions(port=0, certificate=choice)
    https = Https(network, HostClock(SystemClock()), options, [address])
    https.open()
    yield Serving(https, address)
    https.close()
    await asyncio.sleep(0)
