"""A listener for BMP: routers that may, connect; nothing is ever sent to them."""

import asyncio
import contextlib
import errno
import ipaddress
import time

from pathbudget.agents.bgp.hearing import Listener
from pathbudget.agents.bgp.plans import BmpPlan
from pathbudget.probes.bgp.bmp import BmpReader
from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.record import FeedKind
from pathbudget.probes.errors import PathbudgetError

MOST_ROUTERS = 64
CHUNK = 1 << 16


class BmpFeed:
    """One port. A connection that is lost voids what its peers said."""

    def __init__(self, name: str, plan: BmpPlan) -> None:
        self._name = name
        self._plan = plan
        self._routers = 0
        self._set_aside = 0
        self.refused = 0
        """Connections from where none is allowed, or one too many."""

    async def run(self, listener: Listener) -> None:
        """Hear until cancelled. Raises PathbudgetError when the port is taken."""
        listen = self._plan.listen
        try:
            server = await asyncio.start_server(
                lambda reader, writer: self._serve(reader, writer, listener),
                listen.address,
                listen.port,
                limit=CHUNK,
            )
        except OSError as error:
            taken = error.errno == errno.EADDRINUSE
            why = "somebody listens there already" if taken else error.strerror
            raise PathbudgetError(f"feed {self._name}: {listen}: {why}") from None
        async with server:
            await server.serve_forever()

    def allows(self, address: str) -> bool:
        """Whether a router at this address may speak."""
        host = ipaddress.ip_address(address)
        if isinstance(host, ipaddress.IPv6Address) and host.ipv4_mapped is not None:
            host = host.ipv4_mapped
        return any(host in network for network in self._plan.allow)

    async def _serve(
        self, stream: asyncio.StreamReader, writer: asyncio.StreamWriter, listener: Listener
    ) -> None:
        address = str(writer.get_extra_info("peername")[0]).partition("%")[0]
        try:
            if not self.allows(address) or self._routers >= MOST_ROUTERS:
                self.refused += 1
                return
            self._routers += 1
            try:
                await self._hear(stream, address, listener)
            finally:
                self._routers -= 1
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _hear(self, stream: asyncio.StreamReader, address: str, listener: Listener) -> None:
        reader = BmpReader(Channel(self._name, FeedKind.BMP), address, view=self._plan.view)
        listener.connected(self._name, f"{address} is connected")
        why, counted = "the router closed the connection", 0
        try:
            while not reader.broken and (data := await stream.read(CHUNK)):
                listener.hear(reader.feed(data, time.time_ns()))
                if reader.quarantine.count > counted:
                    self._set_aside += reader.quarantine.count - counted
                    counted = reader.quarantine.count
                    reason = reader.quarantine.latest[-1].reason
                    listener.set_aside(self._name, self._set_aside, reason)
            why = reader.broken or why
        except OSError as error:
            why = f"the connection was lost: {error.strerror or error}"
        finally:
            listener.hear(list(reader.end(time.time_ns(), why)))
            if self._routers <= 1:
                listener.lost(self._name, f"{reader.router}: {why}")
