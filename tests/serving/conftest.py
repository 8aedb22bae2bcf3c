"""HTTPS in this loop with bounds of a test's own, and one reflector as a process."""

import asyncio
import contextlib
import itertools
import os
import socket
import ssl
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path

import pytest

from pathbudget.agents.reflector.clocks import HostClock
from pathbudget.agents.reflector.launch import ReflectorProcess
from pathbudget.agents.reflector.serving.limits import Limits
from pathbudget.agents.reflector.serving.options import CertificateChoice, HttpsOptions
from pathbudget.agents.reflector.serving.service import Https
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.network import SystemNetwork

_counter = itertools.count(1)


def fresh_address() -> str:
    """An address of 127/8 that no other test uses."""
    number = next(_counter)
    return f"127.{192 + os.getpid() % 60}.{os.getpid() // 60 % 256}.{number % 250 + 1}"


@dataclass
class Client:
    """A TLS client in this loop."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ended(self) -> bytes:
        """Everything until the other side ends it, in whatever way."""
        found = b""
        with contextlib.suppress(OSError, ssl.SSLError):
            async with asyncio.timeout(10):
                while data := await self.reader.read(65_536):
                    found += data
        return found

    async def leave(self) -> None:
        self.writer.transport.abort()
        with contextlib.suppress(OSError, ssl.SSLError):
            await self.writer.wait_closed()


@dataclass
class Serving:
    """One HTTPS of a test."""

    https: Https
    address: str

    @property
    def port(self) -> int:
        return self.https.port

    def context(self, *protocols: str) -> ssl.SSLContext:
        context = ssl.create_default_context(cafile=str(self.https.shown.authority))
        context.set_alpn_protocols(protocols or ("http/1.1",))
        return context

    @contextlib.asynccontextmanager
    async def client(self, *protocols: str) -> AsyncGenerator[Client]:
        reader, writer = await asyncio.open_connection(
            self.address, self.port, ssl=self.context(*protocols), server_hostname=self.address
        )
        client = Client(reader, writer)
        try:
            yield client
        finally:
            await client.leave()

    @contextlib.asynccontextmanager
    async def plain(self) -> AsyncGenerator[Client]:
        """TCP alone."""
        reader, writer = await asyncio.open_connection(self.address, self.port)
        client = Client(reader, writer)
        try:
            yield client
        finally:
            await client.leave()

    @contextlib.contextmanager
    def datagrams(self) -> Generator[socket.socket]:
        """UDP to the same port."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.bind((self.address, 0))
            sock.connect((self.address, self.port))
            yield sock

    async def counted(self, word: str, least: int = 1) -> int:
        """What a counter says, as soon as it says so much."""
        for _ in range(400):
            if self.https.counts[word] >= least:
                break
            await asyncio.sleep(0.01)
        return self.https.counts[word]


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the certificate that all tests here share."""
    return tmp_path_factory.mktemp("certificates")


Start = Callable[..., AbstractAsyncContextManager[Serving]]


@pytest.fixture
def serving(certificates: Path, monkeypatch: pytest.MonkeyPatch) -> Start:
    """``async with serving(idle_seconds=0.1) as one``: in this event loop, with these limits."""

    monkeypatch.setattr("pathbudget.agents.reflector.serving.service.LOOK_SECONDS", 0.05)

    @contextlib.asynccontextmanager
    async def start(
        tokens: tuple[bytes, ...] = (),
        retry: bool = False,
        choice: CertificateChoice | None = None,
        **limits: object,
    ) -> AsyncGenerator[Serving]:
        address = fresh_address()
        network = SystemNetwork()
        options = HttpsOptions(
            port=0,
            certificate=choice or CertificateChoice(folder=certificates, names=(address,)),
            tokens=tokens,
            retry=retry,
            limits=Limits(**limits),  # type: ignore[arg-type]
        )
        https = Https(network, HostClock(SystemClock()), options, [address])
        https.open()
        try:
            yield Serving(https, address)
            faults = https.counts["faults"]
        finally:
            https.close()
            network.close()
            await asyncio.sleep(0)
        assert faults == 0
        assert https.status().open == 0

    return start


@dataclass
class Running:
    """A reflector as a process."""

    address: str
    authority: str
    process: ReflectorProcess

    port: int = 8621


@pytest.fixture(scope="session")
def running(tmp_path_factory: pytest.TempPathFactory) -> Generator[Running]:
    """One reflector for all tests of others' clients; how it ends is a test of its own."""
    address = fresh_address()
    folder = tmp_path_factory.mktemp("reflector")
    with ReflectorProcess(folder, [address], {"json": True}) as process:
        yield Running(address, str(process.authority), process)
