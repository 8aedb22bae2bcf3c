"""One run of `pathbudget trace`: what is opened, started, watched and ended, in this process."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping

from pathbudget.agents.campaign.plan import due_shots
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.agents.live_run import LiveRun
from pathbudget.agents.ping.floors import measure_floors, with_host
from pathbudget.agents.trace.known import Knowing
from pathbudget.agents.trace.options import TraceOptions, vantage_plan
from pathbudget.agents.trace.screen import Picture
from pathbudget.agents.trace.sink import TraceSink
from pathbudget.agents.units import format_duration
from pathbudget.probes.channels import Network
from pathbudget.probes.clock import Clock
from pathbudget.probes.contract import ProbeSpec
from pathbudget.probes.record import ClockSource

Display = Callable[["Session"], Coroutine[None, None, None]]


class Session(LiveRun):
    """Call `run` once. `picture` may be asked for at any time from then on."""

    def __init__(
        self,
        options: TraceOptions,
        *,
        table: Mapping[str, ProbeSpec],
        network: Network,
        clock: Clock,
        write: Callable[[bytes], None] | None = None,
        knowing: Knowing | None = None,
    ) -> None:
        super().__init__()
        self._knowing = knowing or Knowing()
        self.sink = TraceSink(
            column_ns=options.between_ns,
            timeout_ns=options.timeout_ns,
            write=write,
            knowing=self._knowing,
        )
        self._options = options
        self._network = network
        self._clock = clock
        self._plan = vantage_plan(options, table)
        self._vantage = VantageRun(
            self._plan, table=table, network=network, clock=clock, sink=self.sink
        )
        self._floors: Mapping[str, int] = {}
        self._started_ns = clock.monotonic_ns()

    @property
    def answered(self) -> bool:
        """Whether anybody answered at any hop."""
        return any(hop.answered for state in self.sink.states() for hop in state.hops.values())

    def picture(self) -> Picture:
        """All that is to be drawn now."""
        states = tuple(self.sink.states())
        floors = with_host(self._floors, self._vantage.progress.noise)
        return Picture(
            states=states,
            verdicts=self.sink.verdicts,
            method=self._method(),
            elapsed_ns=self._clock.monotonic_ns() - self._started_ns,
            floor_ns=floors.get(ClockSource.KERNEL, 0),
            known=self._knowing.about(states),
            strips=not self._options.once,
            notices=self._notices(),
        )

    async def run(self, display: Display) -> None:
        """Trace until the plan ends or `stop`. Raises PrivilegeError or ConfigError; then nothing
        was sent.
        """
        self._floors = await measure_floors(self._network)
        shown = asyncio.create_task(self._or_stop(display(self)))
        try:
            if await self._prepare():
                self._started_ns = self._clock.monotonic_ns()
                await self._vantage.run(self._started_ns - self._first_offset_ns())
        finally:
            shown.cancel()
            (result,) = await asyncio.gather(shown, return_exceptions=True)
            self._vantage.finish()
        if isinstance(result, Exception):
            raise result

    def _first_offset_ns(self) -> int:
        """The schedule begins at a random phase; the first round of all begins at once."""
        return next(due_shots(self._vantage.plan), (0,))[0]

    def _method(self) -> str:
        if self._options.once:
            return ""
        text = f"a round every {format_duration(self._options.interval_ns)}."
        many = len(self._plan.series)
        return f"{many} hosts, {text}" if many > 1 else text.capitalize()

    def _notices(self) -> list[str]:
        looking = ["Looking up names."] if self._preparing is not None else []
        return looking + self.sink.moved[-1:]
