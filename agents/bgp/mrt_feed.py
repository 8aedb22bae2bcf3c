"""MRT files: a dump of the table to start from, then updates as the file of them grows."""

import asyncio
import re
import time
from collections.abc import Iterator
from pathlib import Path

from pathbudget.agents.bgp.hearing import Listener
from pathbudget.agents.bgp.plans import MrtPlan
from pathbudget.agents.bgp.tailing import follow
from pathbudget.agents.importers.byte_stream import DamagedError, read_chunks
from pathbudget.agents.store.disk import explain_os_error
from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.mrt import MrtReader
from pathbudget.probes.bgp.record import FeedKind
from pathbudget.probes.errors import PathbudgetError

_COLLECTOR = re.compile(r"(?<![a-z0-9])(rrc\d\d|route-views[\w.-]*?)(?=[/_]|__|$)")


class MrtFeed:
    """One file that is followed."""

    def __init__(self, name: str, plan: MrtPlan) -> None:
        self._name = name
        self._plan = plan

    async def run(self, listener: Listener) -> None:
        """Hear until cancelled. Raises PathbudgetError when the table cannot be read."""
        collector = self._plan.collector or collector_of(self._plan.file)
        channel = Channel(self._name, FeedKind.MRT, collector)
        if self._plan.table is not None:
            await self._read_table(self._plan.table, channel, listener)
        set_aside = 0
        reader = MrtReader(channel, live=True)
        async for chunk, fresh in follow(self._plan.file, self._name, listener):
            if fresh:
                set_aside += reader.quarantine.count
                reader = MrtReader(channel, live=True)
            listener.hear(reader.feed(chunk, time.time_ns()))
            if reader.quarantine.count:
                reason = reader.quarantine.latest[-1].reason
                listener.set_aside(self._name, set_aside + reader.quarantine.count, reason)

    async def _read_table(self, path: Path, channel: Channel, listener: Listener) -> None:
        reader = MrtReader(channel)
        try:
            for chunk in read_chunks(path, lambda _size: None):
                listener.hear(reader.feed(chunk, time.time_ns()))
                await asyncio.sleep(0)
            listener.hear(reader.end(time.time_ns()))
        except OSError as error:
            raise PathbudgetError(f"{path}: {explain_os_error(error)}") from None
        except DamagedError as error:
            raise PathbudgetError(f"{path}: {error}") from None
        if reader.broken:
            raise PathbudgetError(f"{path}: {reader.broken}")


def collector_of(path: Path) -> str:
    """``rrc00`` where the path says so, as those of RIPE's archive do; empty elsewhere."""
    found: Iterator[re.Match[str]] = _COLLECTOR.finditer(str(path))
    names = [match[1] for match in found]
    return names[-1] if names else ""
