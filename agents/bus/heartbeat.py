"""An agent says how it is, again and again, and once more at its end."""

import asyncio
from collections.abc import Callable

import msgspec

from pathbudget.agents.bus.link import Link
from pathbudget.agents.bus.subjects import STATUS, key_subject
from pathbudget.agents.daemon.status import AgentStatus
from pathbudget.probes.errors import BusError

EVERY_S = 10.0
LONGEST_S = 5.0
"""For one: a client whose connection was cut may wait for room that never comes."""


class Heartbeat:
    """`status` is asked each time."""

    def __init__(self, link: Link, agent: str) -> None:
        self._link = link
        self._agent = agent
        self._subject = key_subject(STATUS, agent)

    async def run(self, status: Callable[[], AgentStatus]) -> None:
        """For ever."""
        while True:
            await self.once(status())
            await asyncio.sleep(EVERY_S)

    async def once(self, status: AgentStatus) -> None:
        """Say it, if the bus is there: who hears nothing draws the conclusion."""
        try:
            client = self._link.client
        except BusError:
            return
        from nats.errors import Error

        try:
            named = msgspec.structs.replace(status, agent=self._agent)  # it may have no plan yet
            async with asyncio.timeout(LONGEST_S):
                await client.publish(self._subject, msgspec.json.encode(named))
                await client.flush(timeout=2)
        except (Error, TimeoutError, OSError):
            return  # the link says that it is broken
