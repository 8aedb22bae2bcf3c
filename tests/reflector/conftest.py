"""Reflectors in this process and as a process, on addresses that no other test uses."""

import contextlib
import itertools
import os
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import NamedTuple, cast

import pytest

from pathbudget.agents.reflector.clocks import StampClock
from pathbudget.agents.reflector.options import Options
from pathbudget.agents.reflector.runner import Reflector
from pathbudget.probes.channels import (
    PLAIN,
    Datagram,
    DatagramBatch,
    Network,
    Outgoing,
    PacketOptions,
)
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily

Reflecting = Callable[..., AbstractAsyncContextManager[Reflector]]
_counter = itertools.count(1)
LEFT_NS = 1_790_000_000_000_000_000


def fresh_address() -> str:
    number = next(_counter)
    return f"127.{128 + os.getpid() % 64}.{os.getpid() // 64 % 256}.{number % 250 + 1}"


@pytest.fixture
def own_address() -> str:
    """An address of 127/8 that no other test uses."""
    return fresh_address()


@pytest.fixture
def reflecting() -> Reflecting:
    """``async with reflecting(Options(...)) as reflector``: in this event loop."""

    @contextlib.asynccontextmanager
    async def start(
        options: Options, clock: StampClock | None = None, error_ns: int | None = None
    ) -> AsyncGenerator[Reflector]:
        network = SystemNetwork()
        reflector = Reflector(network, options, clock, lambda: error_ns)
        reflector.open()
        try:
            yield reflector
        finally:
            reflector.close()
            network.close()

    return start


class Peer(NamedTuple):
    """A socket of a test that talks to one reflector."""

    socket: socket.socket
    there: tuple[str, int]

    def ask(self, payload: bytes) -> bytes:
        """Send, and wait for what comes back. Raises TimeoutError."""
        self.socket.sendto(payload, self.there)
        return self.socket.recv(65_536)

    def silence(self, payload: bytes) -> bool:
        """Whether nothing comes back."""
        self.socket.sendto(payload, self.there)
        before = self.socket.gettimeout()
        self.socket.settimeout(0.15)
        try:
            self.socket.recv(65_536)
        except TimeoutError:
            return True
        finally:
            self.socket.settimeout(before)
        return False


@pytest.fixture
def peer() -> Generator[Callable[..., Peer]]:
    """``peer(address, port, source="127.0.0.1")``: closed after the test."""
    with contextlib.ExitStack() as opened:

        def connect(address: str, port: int, source: str = "") -> Peer:
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            sock = opened.enter_context(socket.socket(family, socket.SOCK_DGRAM))
            sock.settimeout(5)
            if source:
                sock.bind((source, 0))
            return Peer(sock, (address, port))

        yield connect


class Running(NamedTuple):
    """A reflector as a process."""

    process: subprocess.Popen[str]
    address: str
    port: int


@pytest.fixture
def command() -> Callable[..., AbstractContextManager[Running]]:
    """``with command("--stateless") as running``: `pathbudget reflector`, listening."""

    @contextlib.contextmanager
    def start(*words: str, address: str = "", port: int = 8620) -> Generator[Running]:
        address = address or fresh_address()
        reader, writer = os.pipe()
        fixed = ["--listen", address, "--port", str(port), "--ready-fd", str(writer)]
        if "--https-port" not in words:
            fixed += ["--https-port", "0"]
        program = [sys.executable, "-m", "pathbudget.agents.reflector", *fixed, *words]
        with subprocess.Popen(
            program, pass_fds=[writer], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            os.close(writer)
            try:
                assert os.read(reader, 16) == b"ready\n"
                yield Running(process, address, port)
            finally:
                os.close(reader)
                process.kill()

    return start


class Wire:
    """A network of one socket per address, by hand: what a reflector sends is in `sent`."""

    def __init__(self) -> None:
        self.sent: list[Outgoing] = []
        self.listeners: list[Callable[[DatagramBatch], None]] = []
        self.port = 8620
        self.stamped = 0

    def open_datagrams(
        self,
        family: AddressFamily,
        listener: Callable[[DatagramBatch], None],
        *,
        port: int = 0,
        packet: PacketOptions = PLAIN,
    ) -> "Wire":
        self.listeners.append(listener)
        return self

    def send(self, datagram: Outgoing) -> int:
        self.sent.append(datagram)
        return len(self.sent) - 1

    def sent_stamps(self) -> list[tuple[int, int]]:
        """Packet n left at n microseconds past `LEFT_NS`."""
        first, self.stamped = self.stamped, len(self.sent)
        return [(key, LEFT_NS + 1_000 * key) for key in range(first, len(self.sent))]

    def close(self) -> None:
        self.listeners.clear()

    def deliver(self, *datagrams: Datagram) -> list[Outgoing]:
        """Hand packets to the first socket; what was sent in return."""
        before = len(self.sent)
        self.listeners[0](DatagramBatch(arrivals=list(datagrams)))
        return self.sent[before:]


@pytest.fixture
def wired() -> Callable[..., AbstractAsyncContextManager[tuple[Reflector, Wire]]]:
    """``async with wired(Options(...)) as (reflector, wire)``: no socket anywhere."""

    @contextlib.asynccontextmanager
    async def start(
        options: Options, clock: StampClock | None = None
    ) -> AsyncGenerator[tuple[Reflector, Wire]]:
        wire = Wire()
        reflector = Reflector(cast("Network", wire), options, clock, lambda: None)
        reflector.open()
        try:
            yield reflector, wire
        finally:
            reflector.close()

    return start


@pytest.fixture
def free_port() -> int:
    """A UDP port that is free on every address, or was a moment ago."""
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as one:
        one.bind(("::", 0))
        return int(one.getsockname()[1])
