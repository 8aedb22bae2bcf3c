"""An agent that is watched: what it measures is counted on its way, and served to Prometheus."""

from collections.abc import Callable
from types import TracebackType
from typing import Self

from pathbudget.agents.campaign.sink import SampleSink
from pathbudget.agents.daemon.status import AgentStatus
from pathbudget.agents.watch.book import MeterBook
from pathbudget.agents.watch.endpoint import Listening, MetricsEndpoint
from pathbudget.agents.watch.exposition import FewFamilies
from pathbudget.agents.watch.host import host_families
from pathbudget.agents.watch.tee import Tee
from pathbudget.agents.watch.text import pieces
from pathbudget.probes.clock import SystemClock


class AgentWatch:
    """Serves while the block runs. Raises WatchError where it cannot listen."""

    def __init__(self, where: Listening, say: Callable[[str], None]) -> None:
        self.book = MeterBook()
        self._say = say
        self._clock = SystemClock()
        self._statuses: tuple[AgentStatus, ...] = ()
        few = FewFamilies(lambda: host_families(self._statuses))
        self._endpoint = MetricsEndpoint(where, lambda: "".join((few.text(), *pieces(self.book))))

    def __enter__(self) -> Self:
        self._endpoint.__enter__()
        self._say(f"metrics are at http://{self._endpoint.where}/metrics")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._endpoint.__exit__(kind, error, trace)

    def watched(self, sink: SampleSink) -> SampleSink:
        """What counts samples on their way to `sink`."""
        return Tee(sink, self.book, self._clock)

    def tell(self, status: AgentStatus) -> None:
        """How the agent is now."""
        self._statuses = (status,)
