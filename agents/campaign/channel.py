"""How a controller and one worker speak with each other: over pipes, or over SSH (agents/ssh)."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from typing import Protocol

from pathbudget.agents.campaign.messages import (
    FromWorker,
    Message,
    Start,
    Stop,
    WorkOrder,
    encode,
    from_worker,
)

WORKER = (sys.executable, "-m", "pathbudget.agents.campaign.worker")
LONGEST_LINE = 1 << 20
LAST_LINES = 3


class Channel(Protocol):
    """One worker, from its work order to its end."""

    def messages(self) -> AsyncIterator[FromWorker]:
        """Start the worker and give what it says, to its end. Once.

        Raises msgspec.DecodeError where it says what is no message, PathbudgetError where it
        cannot be started.
        """
        ...

    def start(self, monotonic_ns: int) -> None:
        """Have it send from this CLOCK_MONOTONIC reading of this host on."""
        ...

    def stop(self) -> None:
        """Have it send nothing more, and end."""
        ...

    def kill(self) -> None:
        """Wait for it no longer. Its journal stays."""
        ...

    async def last_words(self) -> tuple[str, list[str]]:
        """After `messages`: why it ended, for one that was not done; what else it complained of."""
        ...


class Channels(Protocol):
    """Where workers come from."""

    @property
    def kill_after_s(self) -> float:
        """How long one that was told to stop may take."""
        ...

    def open(self, order: WorkOrder) -> Channel:
        """The way to a worker for this order. Nothing is started yet."""
        ...


class Processes:
    """Workers that are processes of this host."""

    kill_after_s = 5.0

    def open(self, order: WorkOrder) -> "ProcessChannel":
        """See `Channels.open`."""
        return ProcessChannel(order)


class ProcessChannel:
    """A worker that is a child of this process; both speak through its standard streams."""

    def __init__(self, order: WorkOrder) -> None:
        self._order = order
        self._process: asyncio.subprocess.Process | None = None
        self._errors: asyncio.Task[bytes] | None = None

    async def messages(self) -> AsyncIterator[FromWorker]:
        """See `Channel.messages`."""
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            *WORKER, stdin=pipe, stdout=pipe, stderr=pipe, limit=LONGEST_LINE
        )
        self._process = process
        assert process.stdout is not None
        assert process.stderr is not None
        self._errors = asyncio.create_task(process.stderr.read())
        self._send(self._order)
        async for line in process.stdout:
            yield from_worker(line)

    def start(self, monotonic_ns: int) -> None:
        """See `Channel.start`."""
        self._send(Start(monotonic_ns))

    def stop(self) -> None:
        """See `Channel.stop`."""
        self._send(Stop())

    def kill(self) -> None:
        """See `Channel.kill`."""
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()

    async def last_words(self) -> tuple[str, list[str]]:
        """See `Channel.last_words`."""
        assert self._process is not None
        assert self._errors is not None
        code = await self._process.wait()
        lines = (await self._errors).decode(errors="replace").strip().splitlines()
        return f"ended with code {code}: {(lines or ['without a word'])[-1]}", lines[-LAST_LINES:]

    def _send(self, message: Message) -> None:
        process = self._process
        if process is not None and process.stdin is not None and not process.stdin.is_closing():
            process.stdin.write(encode(message))
