"""What all shots of one probe share, and which are under way."""

import asyncio
from dataclasses import dataclass, field
from typing import Protocol

from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.stream.connections import Connections


class Running(Protocol):
    """A shot under way."""

    def begin(self) -> None:
        """Begin."""

    def abandon(self) -> None:
        """Drop it without a sample."""


@dataclass(slots=True)
class Shared:
    """What all shots of one probe share."""

    environment: ProbeEnvironment
    watcher: ClockWatcher
    connections: Connections
    default_port: int
    marks: tuple[str, ...] = ()
    """Flags of every sample: what follows from the options, however a connection came about."""
    early: bool = False
    """Requests leave as early data (0-RTT), where a ticket allows it."""
    running: set[Running] = field(default_factory=set[Running])
    _idle: asyncio.Event = field(default_factory=asyncio.Event)

    def begin(self, attempt: Running) -> None:
        """Begin a shot, and keep it until it ends."""
        self.running.add(attempt)
        self._idle.clear()
        attempt.begin()

    def leave(self, attempt: Running) -> None:
        """It has ended."""
        self.running.discard(attempt)
        if not self.running:
            self._idle.set()

    async def drain(self) -> None:
        """Return when every shot has ended and no connection waits for a ticket."""
        while self.running:
            await self._idle.wait()
        await self.connections.drain()

    def close(self) -> None:
        """Drop everything, without a sample."""
        for attempt in tuple(self.running):
            attempt.abandon()
        self.connections.close()

    def port_of(self, shot: Shot) -> int:
        """The port that a shot goes to."""
        return self.default_port if shot.target.port is None else shot.target.port
