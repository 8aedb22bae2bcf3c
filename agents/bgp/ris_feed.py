"""RIS Live: a WebSocket of RIPE's, asked about our prefixes and no others."""

import asyncio
import time
from collections.abc import Sequence

from pathbudget.agents.bgp.hearing import BackOff, Listener
from pathbudget.agents.bgp.plans import RisLivePlan
from pathbudget.agents.bgp.tailing import follow
from pathbudget.agents.extras import require
from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.record import FeedKind
from pathbudget.probes.bgp.ris_live import RisLiveReader, subscription

LARGEST_MESSAGE = 1 << 22
OPEN_S = 20.0
PING_S = 20.0
SILENT_S = 20.0


class RisLiveFeed:
    """One connection, subscribed to `prefixes`; or a file that grows."""

    def __init__(self, name: str, plan: RisLivePlan, prefixes: Sequence[str]) -> None:
        self._name = name
        self._plan = plan
        self._prefixes = prefixes
        self._reader = RisLiveReader(Channel(name, FeedKind.RIS_LIVE))

    async def run(self, listener: Listener) -> None:
        """Hear until cancelled; connects again when the connection is lost."""
        if self._plan.file is not None:
            await self._run_file(listener)
            return
        require("routes", "websockets")
        from websockets.exceptions import InvalidURI, WebSocketException

        back_off = BackOff()
        while True:
            try:
                await self._once(listener, back_off)
                why = "the service closed the connection"
            except InvalidURI as error:
                why = str(error)
            except (OSError, TimeoutError, WebSocketException) as error:
                why = str(error) or type(error).__name__
            listener.lost(self._name, why)
            await asyncio.sleep(back_off.take())

    async def _once(self, listener: Listener, back_off: BackOff) -> None:
        from websockets.asyncio.client import connect

        async with connect(
            self._plan.url,
            open_timeout=OPEN_S,
            ping_interval=PING_S,
            ping_timeout=SILENT_S,
            max_size=LARGEST_MESSAGE,
            user_agent_header="pathbudget",
        ) as socket:
            for question in self.questions():
                await socket.send(question.decode())
            listener.connected(self._name, f"subscribed to {len(self._prefixes)} prefixes")
            back_off.succeeded()
            async for message in socket:
                self._hear(message, listener, time.time_ns())

    def questions(self) -> list[bytes]:
        """Every subscription. Of a bare address also what covers it."""
        return [
            subscription(
                prefix if "/" in prefix else f"{prefix}/{128 if ':' in prefix else 32}",
                host=host,
                less_specific="/" not in prefix,
            )
            for prefix in self._prefixes
            for host in self._plan.collectors or ("",)
        ]

    async def _run_file(self, listener: Listener) -> None:
        assert self._plan.file is not None
        rest = b""
        async for chunk, fresh in follow(self._plan.file, self._name, listener):
            if fresh:
                rest = b""
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                if line.strip():
                    self._hear(line, listener, None)
            rest = rest if len(rest) <= LARGEST_MESSAGE else b""

    def _hear(self, message: bytes | str, listener: Listener, now_unix_ns: int | None) -> None:
        listener.hear(self._reader.read(message, now_unix_ns))
        quarantine = self._reader.quarantine
        if quarantine.count or self._reader.last_error:
            latest = quarantine.latest[-1].reason if quarantine.latest else ""
            listener.set_aside(self._name, quarantine.count, self._reader.last_error or latest)
