"""How much waits on the bus, asked again and again: also while a batch is filled or written."""

import asyncio
import time
from typing import TYPE_CHECKING

from pathbudget.agents.bus.link import Link
from pathbudget.agents.bus.subjects import COLLECTORS, RESULTS_STREAM
from pathbudget.probes.errors import BusError

if TYPE_CHECKING:
    from nats.js.api import ConsumerInfo

ASK_EVERY_S = 2.0
WAIT_S = 5.0


class Backlog:
    """Call `run` once, in a task."""

    def __init__(self, link: Link) -> None:
        self.waiting: int | None = None
        """Measurements that no collector has vouched for; None: the bus does not say."""
        self.asked_unix_ns: int | None = None
        """When it was asked for that; what came on the bus later is not in it."""
        self.trouble = ""
        """Why the bus does not say: there is nothing to fetch then, either."""
        self._link = link

    async def run(self) -> None:
        """For ever."""
        while True:
            asked_unix_ns = time.time_ns()
            try:
                info = await self._info()
            except BusError as error:
                self.waiting, self.trouble = None, str(error)
            else:
                self.waiting = (info.num_pending or 0) + (info.num_ack_pending or 0)
                self.trouble = ""
            self.asked_unix_ns = asked_unix_ns
            await asyncio.sleep(ASK_EVERY_S)

    async def _info(self) -> "ConsumerInfo":
        """Raises BusError."""
        from nats.errors import Error
        from nats.js.errors import Error as StreamError

        stream = self._link.client.jetstream(timeout=WAIT_S)
        try:
            async with asyncio.timeout(2 * WAIT_S):  # it may wait for room that never comes
                info: ConsumerInfo = await stream.consumer_info(RESULTS_STREAM, COLLECTORS)
        except (Error, StreamError, TimeoutError, OSError) as error:
            raise BusError(f"no results: {str(error) or type(error).__name__}") from None
        return info
