"""From the spool to whoever keeps results: what is acknowledged goes, what is not is sent again."""

import asyncio
import random
import time
from collections.abc import Sequence
from typing import Protocol

from pathbudget.agents.spool.entry import Entry
from pathbudget.agents.spool.spool import Spool
from pathbudget.probes.errors import PathbudgetError

MOST_AT_ONCE = 2000
"""Entries; the spool bounds their bytes."""
LOOK_EVERY_S = 1.0
MORE_COMES_S = 0.25
LONGEST_LOOKS = 20
"""While entries come, as they do when a piece is closed, they are awaited for so many looks: one
delivery with all of them is one file of a store, and twenty small ones are twenty."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0


class HopelessError(PathbudgetError):
    """What the other end will never take, however often it is sent: `numbers` of entries."""

    def __init__(self, numbers: Sequence[int], reason: str) -> None:
        self.numbers = tuple(numbers)
        super().__init__(reason)


class Uplink(Protocol):
    """Where results go."""

    octets_at_once: int
    """It is given entries of about so much at once (but always one): each costs memory twice."""

    async def send(self, entries: Sequence[Entry]) -> Sequence[int]:
        """Deliver, and return the numbers of those that are durable at the other end.

        Raises PathbudgetError where nothing could be delivered now, and HopelessError for entries
        that never can be: they are given up, and counted.
        """
        ...


class Delivery:
    """Sends what waits, oldest first, and holds back when the other end does not take it."""

    def __init__(self, spool: Spool, uplink: Uplink, rng: random.Random) -> None:
        self.trouble = ""
        """Why nothing could be delivered last time; empty when it could."""
        self._spool = spool
        self._uplink = uplink
        self._rng = rng
        self.delivered_unix_ns: int | None = None
        """When the other end last vouched for something."""
        self._failures = 0
        self._seen = spool.next_number

    async def run(self) -> None:
        """Deliver for ever."""
        while True:
            await self._let_come()
            if not await self.once():
                await asyncio.sleep(self.pause_s)

    async def _let_come(self) -> None:
        before = self._spool.next_number
        for _ in range(LONGEST_LOOKS):
            if self._seen == before:
                return
            self._seen = before
            await asyncio.sleep(MORE_COMES_S)
            before = self._spool.next_number

    @property
    def pause_s(self) -> float:
        """Until the next try: doubles with each failure, and no two agents try in step."""
        if not self._failures:
            return LOOK_EVERY_S
        longest: float = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (self._failures - 1))
        return longest * self._rng.uniform(0.5, 1.0)

    async def once(self) -> bool:
        """One delivery. Whether there may be more to deliver at once."""
        entries = self._spool.waiting(0, MOST_AT_ONCE, self._uplink.octets_at_once)
        if not entries:
            return False
        try:
            delivered = await self._uplink.send(entries)
        except HopelessError as error:
            self._spool.give_up(error.numbers)
            self._spool.problems.append(str(error))
            return True
        except PathbudgetError as error:
            self.trouble = str(error)
            self._failures = min(self._failures + 1, 16)
            return False
        self._spool.acknowledge(delivered)
        if delivered:
            self.delivered_unix_ns = time.time_ns()
        self.trouble = ""
        self._failures = 0
        return bool(delivered)
