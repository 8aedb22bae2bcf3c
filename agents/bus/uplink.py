"""Results of an agent to the bus: acknowledged when the servers have them on their disks."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pathbudget.agents.bus.link import Link
from pathbudget.agents.bus.packing import DEFLATE, ENCODING, packed
from pathbudget.agents.bus.subjects import MOST_OCTETS, RESULTS, RESULTS_STREAM
from pathbudget.agents.daemon.delivery import HopelessError
from pathbudget.agents.spool.entry import Entry
from pathbudget.probes.errors import BusError

if TYPE_CHECKING:
    from nats.js import JetStreamContext

WAIT_S = 10.0
LONGEST_S = 30.0
"""For one message: a client whose connection was cut may wait for room that never comes."""
AT_ONCE = 100
"""Messages on their way at one time: one after the other would each wait for the disk."""
AT_ONCE_OCTETS = 8 << 20
SAMPLES = "Pathbudget-Samples"
"""How many a message holds, so that what becomes of it can be counted without reading it."""
ROOM_OF_HEADERS = 1_024
MESSAGE_ID = "Nats-Msg-Id"


class BusUplink:
    """An `Uplink`."""

    octets_at_once = 128 << 10

    def __init__(self, link: Link, agent: str) -> None:
        self._link = link
        self._subject = f"{RESULTS}.{agent}"

    async def send(self, entries: Sequence[Entry]) -> Sequence[int]:
        """Publish. Some of them may have come, when this raises BusError: they come again then, and
        the servers know their ids. Raises HopelessError for one that no message can hold.
        """
        client = self._link.client
        stream = client.jetstream(timeout=WAIT_S)
        acknowledged: list[int] = []
        for group in _groups(entries):
            answers = await asyncio.gather(
                *(self._publish(stream, entry, data) for entry, data in group),
                return_exceptions=True,
            )
            for (entry, _), answer in zip(group, answers, strict=True):
                if answer is None:
                    acknowledged.append(entry.number)
            failed = next((one for one in answers if one is not None), None)
            if failed is not None and acknowledged:
                return acknowledged  # the next delivery tells why the rest did not come
            if failed is not None:
                raise _as_bus_error(failed)
        return acknowledged

    async def _publish(self, stream: "JetStreamContext", entry: Entry, data: bytes) -> None:
        async with asyncio.timeout(LONGEST_S):
            await stream.publish(
                self._subject,
                data,
                stream=RESULTS_STREAM,
                headers={
                    MESSAGE_ID: entry.id,
                    ENCODING: DEFLATE,
                    SAMPLES: str(entry.samples),
                },
            )


def _groups(entries: Sequence[Entry]) -> list[list[tuple[Entry, bytes]]]:
    """Each of some messages and octets. Raises HopelessError."""
    groups: list[list[tuple[Entry, bytes]]] = [[]]
    octets = 0
    for entry in entries:
        data = packed(entry.payload)
        if len(data) > MOST_OCTETS - ROOM_OF_HEADERS:
            raise HopelessError(
                [entry.number], f"{entry.id} takes {len(data):,} octets; the bus: {MOST_OCTETS:,}"
            )
        octets += len(data)
        if groups[-1] and (len(groups[-1]) >= AT_ONCE or octets > AT_ONCE_OCTETS):
            groups.append([])
            octets = len(data)
        groups[-1].append((entry, data))
    return groups


def _as_bus_error(error: BaseException) -> BaseException:
    from nats.errors import Error
    from nats.js.errors import Error as StreamError

    if isinstance(error, Error | StreamError | TimeoutError | OSError):
        return BusError(f"the bus takes no results: {str(error) or type(error).__name__}")
    return error
