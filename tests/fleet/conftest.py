"""A fleet on loopback: `pathbudget fleet serve` with a real nats-server, and its members."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest
from typer.testing import CliRunner

from pathbudget.agents.bus.connection import close, connect
from pathbudget.agents.bus.login import Login, read_login
from pathbudget.agents.cli.main import application
from pathbudget.agents.fleet.enrolment import enrol
from pathbudget.agents.fleet.folder import Folder
from pathbudget.agents.fleet.invitation import Ticket, invite
from pathbudget.agents.plans.keys import generate

if TYPE_CHECKING:
    from nats.aio.client import Client

PATIENCE_S = 60.0
DAY_NS = 86_400_000_000_000


def until(
    holds: Callable[[], object], what: Callable[[], str] = str, pause_s: float = 0.05
) -> None:
    """Wait for something that must come; how long it takes is not what is tested."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < end, f"not within {PATIENCE_S:.0f} s: {what()}"
        time.sleep(pause_s)


async def until_async(holds: Callable[[], object]) -> None:
    """The same for others in this event loop."""
    async with asyncio.timeout(PATIENCE_S):
        while not holds():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


def free_ports(count: int) -> list[int]:
    """TCP ports of 127.0.0.1 that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [int(one.getsockname()[1]) for one in sockets]
    finally:
        for one in sockets:
            one.close()


def pathbudget(*words: object) -> tuple[int, str]:
    """Exit code and everything that a command says, run in this process."""
    result = CliRunner().invoke(application, [str(word) for word in words])
    return result.exit_code, result.output


def refused(*words: object) -> str:
    """What a command says that fails."""
    code, said = pathbudget(*words)
    assert code, f"{words} went well: {said}"
    return said


def done(*words: object) -> str:
    """What a command says that does what it should."""
    code, said = pathbudget(*words)
    assert code == 0, said
    return said


class Served:
    """`pathbudget fleet serve` as a process."""

    def __init__(self, path: Path, *words: object) -> None:
        self.folder = Folder(path)
        self._log = path.with_name(f"{path.name}.log")
        self._words = [str(path), *map(str, words)]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What it has said."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def server_log(self) -> str:
        """What its nats-server has said."""
        return (self.folder.nats / "nats-server.log").read_text(errors="replace")

    def start(self, **environment: str) -> None:
        """Until it serves."""
        said = self.log.count("serving ")
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "pathbudget.agents.cli.main",
                    "fleet",
                    "serve",
                    *self._words,
                ],
                stdout=log,
                stderr=log,
                env={**os.environ, **environment},
            )
        until(lambda: self.log.count("serving ") > said or self.has_ended, lambda: self.log)
        assert not self.has_ended, self.log

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def stop(self, number: int = signal.SIGTERM) -> int:
        """Exit code."""
        assert self.process is not None
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE_S)
        self.process = None
        return code

    def invite(self, agent: str, lifetime_ns: int = DAY_NS, *, again: bool = False) -> Ticket:
        """Once the server has heard of it."""
        before = self.reloads
        ticket = invite(self.folder, agent, lifetime_ns, again=again)
        until(lambda: self.reloads > before, lambda: self.server_log)
        return ticket

    @property
    def reloads(self) -> int:
        """How often the server has read its users anew."""
        return self.server_log.count("Reloaded server configuration")

    def member(self, agent: str) -> Login:
        """The login of an agent, enrolled if it is not yet."""
        path = self.folder.path / f"{agent}.login.toml"
        if not path.exists():
            with ThreadPoolExecutor(1) as elsewhere:  # a test may have an event loop of its own
                elsewhere.submit(enrol, self.invite(agent), path, lambda _text: None).result()
        return read_login(path)

    def login(self, user: str) -> Login:
        return self.folder.login(user)


class Guest:
    """A connection that keeps what the server says against it."""

    def __init__(self, said: list[str]) -> None:
        self.said = said
        self.client: Client

    async def refused(self, subject: str, content: bytes = b"", reply: str = "") -> None:
        """Publish something; the server must say that it is not allowed."""
        before = len(self.said)
        await self.client.publish(subject, content, reply=reply)
        await self.client.flush()
        await until_async(lambda: len(self.said) > before)
        assert f'permissions violation for publish to "{subject.lower()}"' in self.said[-1]

    async def deaf(self, subject: str) -> None:
        """Subscribe to something; the server must say that it is not allowed."""
        before = len(self.said)
        await self.client.subscribe(subject)
        await self.client.flush()
        await until_async(lambda: len(self.said) > before)
        assert f'permissions violation for subscription to "{subject.lower()}"' in self.said[-1]


@asynccontextmanager
async def entered(login: Login) -> AsyncGenerator[Guest]:
    """Inside the bus as somebody."""
    said: list[str] = []
    guest = Guest(said)
    guest.client = await connect(login, said.append)
    try:
        yield guest
    finally:
        await close(guest.client)


def with_seed(login: Login, seed: str) -> Login:
    return msgspec.structs.replace(login, seed=seed)


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """One for all tests of a file; each takes agents of its own."""
    yield from serving(tmp_path_factory.mktemp("served"))


def serving(place: Path, words: Sequence[object] = ()) -> Iterator[Served]:
    """A fleet that trusts an operator whose key is beside its folder."""
    served = Served(
        place / "fleet", "--no-collector", "--listen", f"127.0.0.1:{free_ports(1)[0]}", *words
    )
    served.start()
    generate(place / "operator", place / "operator.pub")
    served.folder.trust(place / "operator.pub")
    try:
        yield served
    finally:
        if served.process is not None:
            served.stop()
