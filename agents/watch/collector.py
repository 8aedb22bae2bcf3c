"""A collector that is watched: what it stores is counted, and handed on to OpenTelemetry.

Agents only dial out, so this is where a Prometheus that cannot reach them sees what they measure,
and how they are: their heartbeats are metrics of the same names as on their own endpoints.
"""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

import msgspec

from pathbudget.agents.bus.subjects import STATUS, is_agent_name, key_subject
from pathbudget.agents.collector.status import CollectorStatus
from pathbudget.agents.daemon.status import AgentStatus
from pathbudget.agents.watch.book import MeterBook
from pathbudget.agents.watch.collector_metrics import collector_families, stream_families
from pathbudget.agents.watch.endpoint import Listening, MetricsEndpoint
from pathbudget.agents.watch.exposition import FewFamilies
from pathbudget.agents.watch.host import host_families
from pathbudget.agents.watch.otlp_client import OtlpClient
from pathbudget.agents.watch.otlp_export import OtlpStream, Signals
from pathbudget.agents.watch.text import pieces
from pathbudget.probes.record import Measurement

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from prometheus_client.core import Metric as MetricFamily

REMEMBERED = 50_000
"""Measurements whose second delivery is known for one."""
MOST_AGENTS = 5_000
AT_ONCE = 200


class CollectorWatch:
    """Serves and sends while the block runs. Raises WatchError where it cannot listen."""

    def __init__(
        self,
        say: Callable[[str], None],
        *,
        metrics: Listening | None = None,
        otlp: OtlpClient | None = None,
    ) -> None:
        self.book = MeterBook()
        self._say = say
        self._status: CollectorStatus | None = None
        self._agents: dict[str, AgentStatus] = {}
        self._seen: OrderedDict[str, None] = OrderedDict()
        self._stream = None if otlp is None else OtlpStream(otlp, Signals(), say)
        self._endpoint: MetricsEndpoint | None = None
        if metrics is not None:
            few = FewFamilies(self._families)
            self._endpoint = MetricsEndpoint(
                metrics, lambda: "".join((few.text(), *pieces(self.book)))
            )
        self._heard_through: Client | None = None
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        if self._stream is not None:
            self._stack.enter_context(self._stream)
        if self._endpoint is not None:
            self._stack.enter_context(self._endpoint)
            self._say(f"metrics are at http://{self._endpoint.where}/metrics")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stack.close()

    async def stored(self, measurements: Sequence[Measurement]) -> None:
        """These are in the store, some perhaps for the second time."""
        for number, one in enumerate(measurements):
            if self._is_new(one.id):
                if self._endpoint is not None:
                    self.book.add(one, time.monotonic_ns())
                if self._stream is not None:
                    self._stream.offer(one)
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        self.book.forget(time.monotonic_ns())

    def tell(self, status: CollectorStatus) -> None:
        """How the collector is now."""
        self._status = status

    async def greet(self, client: "Client") -> None:
        """Hear the heartbeats of all agents through this connection."""
        if self._endpoint is not None and client is not self._heard_through:
            # one that was mended subscribes again by itself
            await client.subscribe(key_subject(STATUS, "*"), cb=self._heard)
            self._heard_through = client

    async def _heard(self, message: "Msg") -> None:
        agent = message.subject.rpartition(".")[2]
        try:
            status = msgspec.json.decode(message.data, type=AgentStatus)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return  # `pathbudget status` says so; here it falls silent
        if is_agent_name(agent) and (agent in self._agents or len(self._agents) < MOST_AGENTS):
            # nobody speaks for another one: the server lets each publish under its own name
            self._agents[agent] = msgspec.structs.replace(status, agent=agent)

    def _is_new(self, name: str) -> bool:
        if name in self._seen:
            return False
        self._seen[name] = None
        if len(self._seen) > REMEMBERED:
            self._seen.popitem(last=False)
        return True

    def _families(self) -> "Iterator[MetricFamily]":
        if self._status is not None:
            yield from collector_families(self._status)
        if self._stream is not None:
            yield from stream_families(self._stream)
        yield from host_families(list(self._agents.values()))
