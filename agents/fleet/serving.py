"""A fleet's server side, from start to stop: nats-server, streams, registrar, collector.

Where the folder is of a cluster, the servers run elsewhere, and the rest of it here.
"""

import asyncio
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pathbudget.agents.bus.connection import close, connect
from pathbudget.agents.bus.streams import ensure_streams
from pathbudget.agents.bus.subjects import COLLECTOR, OPERATOR, REGISTRAR
from pathbudget.agents.daemon.service import Service
from pathbudget.agents.fleet.children import Child
from pathbudget.agents.fleet.choosing import why_not_free
from pathbudget.agents.fleet.folder import Folder
from pathbudget.agents.fleet.registrar import Registrar
from pathbudget.agents.fleet.reload import running_pid
from pathbudget.agents.fleet.server_process import server_child
from pathbudget.agents.store.locks import exclusive
from pathbudget.probes.errors import BusError

if TYPE_CHECKING:
    from nats.aio.client import Client

STARTED_WITHIN_S = 30.0
STREAMS_WITHIN_S = 30.0
LOOK_AGAIN_S = 0.2
HOOK_S = 120.0
ANYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104
"""Where a server listens that listens everywhere."""


@dataclass(frozen=True, slots=True)
class Wish:
    """What the command line asks for."""

    collector: bool = True
    after_change: Path | None = None
    """A program that is run when the users have changed: it carries users.conf to the nodes."""
    more: Callable[[], Sequence[Child]] | None = None
    """Asked, once everything is there, for programs to run beside it. May take its time."""


def serve(folder: Folder, wish: Wish, say: Callable[[str], None]) -> None:
    """Until SIGTERM or Ctrl-C. Raises BusError, ConfigError or StoreError where it cannot begin."""
    busy = f"{folder.path}: another `pathbudget fleet serve` runs here"
    with exclusive(folder.path / ".serving", wait_s=0, busy=busy):
        asyncio.run(_Serving(folder, wish, say).run())


class _Serving:
    def __init__(self, folder: Folder, wish: Wish, say: Callable[[str], None]) -> None:
        self._folder = folder
        self._settings = folder.settings()
        self._wish = wish
        self._say = say
        self._service = Service()
        self._stop = asyncio.Event()
        self._carried = b"" if wish.after_change else None
        self._hook: asyncio.Task[None] | None = None

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop.set)
        async with AsyncExitStack() as stack:
            if not self._settings.nodes:
                await self._start_server(stack)
            registrar = await self._connected(REGISTRAR)
            stack.push_async_callback(registrar.close)
            await self._ensure_streams()
            watch = Registrar(self._folder, self._say, self._changed).run(registrar)
            self._keep(stack, asyncio.create_task(watch))
            self._say(f"serving {', '.join(self._settings.servers)} from {self._folder.path}")
            if not self._folder.registry().members and self._wish.more is None:
                self._say(
                    f"no agents yet: pathbudget fleet invite NAME --folder {self._folder.path}"
                )
            if self._wish.collector:
                await self._start(stack, self._collector())
            if self._wish.more is not None:
                for child in await asyncio.to_thread(self._wish.more):
                    await self._start(stack, child)
                    self._say(f"{child.name} is started; its log: {child.log}")
            self._service.ready("serving")
            await self._stop.wait()
            self._service.stopping()
            self._say("stopping")

    async def _start_server(self, stack: AsyncExitStack) -> None:
        """Wait until it listens. One that does not is not started again and again: say why."""
        child = server_child(self._folder)
        if running_pid(self._folder.nats) is not None:
            raise BusError(f"{self._folder.path}: its nats-server runs already")
        _check_free(self._settings.host, self._settings.port)
        await child.start()
        stack.push_async_callback(child.stop)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + STARTED_WITHIN_S
        while not await self._listens():
            if child.has_ended or loop.time() >= deadline:
                raise BusError(f"nats-server does not start: {child.last_words()}")
            await asyncio.sleep(LOOK_AGAIN_S)
        self._keep(stack, asyncio.create_task(child.keep(self._say)))

    async def _listens(self) -> bool:
        host = ANYWHERE.get(self._settings.host, self._settings.host)
        try:
            _, writer = await asyncio.open_connection(host, self._settings.port)
        except OSError:
            return False
        writer.close()
        return True

    async def _start(self, stack: AsyncExitStack, child: Child) -> None:
        await child.start()
        self._keep(stack, asyncio.create_task(child.keep(self._say)))

    def _keep(self, stack: AsyncExitStack, task: "asyncio.Task[None]") -> None:
        """Have it go on until the end; should it fail, that is the end."""
        task.add_done_callback(lambda _done: self._stop.set())

        async def end() -> None:
            task.cancel()
            for result in await asyncio.gather(task, return_exceptions=True):
                if isinstance(result, Exception):
                    raise result

        stack.push_async_callback(end)

    async def _connected(self, user: str) -> "Client":
        """As soon as the server is there."""
        login, loop = self._folder.login(user), asyncio.get_running_loop()
        deadline, quiet = loop.time() + STARTED_WITHIN_S, self._say
        while True:
            try:
                return await connect(login, quiet)
            except BusError:
                if loop.time() >= deadline or self._stop.is_set():
                    raise
                await asyncio.sleep(LOOK_AGAIN_S)

    async def _ensure_streams(self) -> None:
        """A cluster needs a moment to find a leader."""
        client, loop = await self._connected(OPERATOR), asyncio.get_running_loop()
        deadline = loop.time() + STREAMS_WITHIN_S
        try:
            while True:
                try:
                    await ensure_streams(
                        client.jetstream(),
                        replicas=self._settings.replicas,
                        most_octets=self._settings.results_octets,
                    )
                except BusError:
                    if loop.time() >= deadline or self._stop.is_set():
                        raise
                    await asyncio.sleep(LOOK_AGAIN_S)
                else:
                    return
        finally:
            await close(client)

    def _collector(self) -> Child:
        login, store = self._folder.login_file(COLLECTOR), self._folder.store
        words = ("collector", "--login", str(login), "--store", str(store))
        return own_command("collector", words, self._folder.path / "collector.log")

    def _changed(self) -> None:
        """Run the program for it, if the users are others than it was last run for."""
        if self._carried is None or (self._hook is not None and not self._hook.done()):
            return
        content = self._folder.users.read_bytes()
        if content != self._carried:
            self._hook = asyncio.create_task(self._carry(content))

    async def _carry(self, content: bytes) -> None:
        program = str(self._wish.after_change)
        try:
            done = await asyncio.to_thread(
                subprocess.run, [program, str(self._folder.users)], timeout=HOOK_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            self._say(f"{program}: {error}; tried again")
            return
        if done.returncode:
            self._say(f"{program}: exit code {done.returncode}; tried again")
        else:
            self._carried = content


def _check_free(host: str, port: int) -> None:
    """Or we would take the server of somebody else for the one that we start. Raises BusError."""
    if why := why_not_free(host, port):
        hint = "Debian's own service is stopped by: systemctl disable --now nats-server"
        raise BusError(f"{host}:{port} cannot be listened on: {why}; --listen another. {hint}")


def own_command(name: str, words: Sequence[str], log: Path) -> Child:
    """A command of ours, by the Python that runs now."""
    return Child(name, (sys.executable, "-m", "pathbudget.agents.cli.main", *words), log)
