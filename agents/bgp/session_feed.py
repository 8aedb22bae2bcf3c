"""A BGP session of our own: exabgp as a child process that ends with us, its JSON on a pipe."""

import asyncio
import contextlib
import ctypes
import importlib.metadata
import os
import shutil
import signal
import sys
import tempfile
import time
from collections import deque
from collections.abc import AsyncGenerator
from pathlib import Path

from pathbudget.agents.bgp.exabgp_files import environment, write_files
from pathbudget.agents.bgp.hearing import BackOff, Listener
from pathbudget.agents.bgp.plans import SessionPlan
from pathbudget.agents.extras import require
from pathbudget.probes.bgp.exabgp_json import ExabgpReader
from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.record import FeedKind
from pathbudget.probes.errors import PathbudgetError

LONGEST_LINE = 1 << 22
STOP_S = 3.0
HEALTHY_S = 60.0
_PR_SET_PDEATHSIG = 1


class SessionFeed:
    """One passive session."""

    def __init__(self, name: str, plan: SessionPlan) -> None:
        self._name = name
        self._plan = plan
        self._reader = ExabgpReader(Channel(name, FeedKind.SESSION))

    async def run(self, listener: Listener) -> None:
        """Hear until cancelled; starts exabgp again when it ends."""
        check_version()
        back_off = BackOff()
        while True:
            began = time.monotonic()
            why = await self._once(listener)
            listener.lost(self._name, f"exabgp ended: {why}")
            if time.monotonic() - began > HEALTHY_S:
                back_off.succeeded()
            await asyncio.sleep(back_off.take())

    async def _once(self, listener: Listener) -> str:
        """One life of the child; returns its last words."""
        folder = Path(tempfile.mkdtemp(prefix="pathbudget-bgp-"))
        try:
            config = write_files(folder, self._plan)
            async with _lines_of(folder / "lines") as lines, self._child(config) as child:
                listener.connected(self._name, f"listening on {self._plan.listen}")
                words: deque[str] = deque(maxlen=4)
                async with asyncio.TaskGroup() as tasks:
                    reading = tasks.create_task(self._read(lines, listener))
                    tasks.create_task(_keep_words(child, words))
                    await child.wait()
                    reading.cancel()
                return "; ".join(words) or f"exit code {child.returncode}"
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    async def _read(self, lines: asyncio.StreamReader, listener: Listener) -> None:
        while True:
            try:
                line = await lines.readuntil(b"\n")
            except asyncio.LimitOverrunError as error:
                await lines.read(error.consumed or 1)
                self._reader.quarantine.add("a line that is too long", b"")
                continue
            except asyncio.IncompleteReadError:
                return
            listener.hear(self._reader.read(line, time.time_ns()))
            quarantine = self._reader.quarantine
            if quarantine.count:
                listener.set_aside(self._name, quarantine.count, quarantine.latest[-1].reason)

    @contextlib.asynccontextmanager
    async def _child(self, config: Path) -> AsyncGenerator[asyncio.subprocess.Process]:
        child = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "exabgp",
            "server",
            str(config),
            env=environment(self._plan),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        try:
            yield child
        finally:
            await _stop(child)


def check_version() -> None:
    """Raise PathbudgetError unless exabgp 5 is installed: others write other JSON."""
    require("routes", "exabgp")
    version = importlib.metadata.version("exabgp")
    if version.partition(".")[0] != "5":
        raise PathbudgetError(
            f"exabgp {version} is installed and 5 is needed; run: pip install 'exabgp>=5.0.8,<6'"
        )


def _end_with_parent() -> None:
    """In the child: SIGTERM when the parent is gone, whatever ended it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)


async def _stop(child: asyncio.subprocess.Process) -> None:
    """End it and its helper: in good order, then for sure."""
    if child.returncode is None:
        child.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_S):
                await asyncio.shield(child.wait())
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    await child.wait()


async def _keep_words(child: asyncio.subprocess.Process, words: deque[str]) -> None:
    """The last lines that it said, for a message."""
    assert child.stdout is not None
    while chunk := await child.stdout.read(1 << 16):
        lines = [" ".join(line.split()) for line in chunk.decode(errors="replace").splitlines()]
        words.extend(line[:200] for line in lines if line)


@contextlib.asynccontextmanager
async def _lines_of(fifo: Path) -> AsyncGenerator[asyncio.StreamReader]:
    """A reader of the pipe. It is open for writing too, so that it never ends."""
    descriptor = os.open(fifo, os.O_RDWR | os.O_NONBLOCK)
    reader = asyncio.StreamReader(limit=LONGEST_LINE)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", buffering=0)
    )
    try:
        yield reader
    finally:
        transport.close()
