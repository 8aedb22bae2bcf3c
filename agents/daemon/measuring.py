"""One plan of an agent under way, within what the policy of the host allows."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from pathbudget.agents.campaign.plan import VantagePlan
from pathbudget.agents.campaign.sink import SampleSink
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.agents.daemon.pieces import Pieces
from pathbudget.agents.plans.plan import AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.probes.channels import Network
from pathbudget.probes.clock import Clock
from pathbudget.probes.table import probe_table


class ClosableNetwork(Network, Protocol):
    """A network of one plan."""

    def close(self) -> None:
        """Let go of its sockets."""
        ...


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every plan of one agent is carried out with."""

    folder: Path
    """Of the journals that are open."""
    clock: Clock
    network: Callable[[VantagePlan], ClosableNetwork]
    """Sockets of its own for each plan: two plans are under way while one replaces the other."""
    new_id: Callable[[int], str]
    closed: Callable[[Path], None]
    lost: Callable[[int], None]
    scheduling: str = ""
    watched: Callable[[SampleSink], SampleSink] = lambda sink: sink
    """What samples pass on their way, for whoever counts them (agents/watch)."""


class Measuring:
    """Call `prepare`, `start`, and at the end `wind_down` or `abandon`."""

    def __init__(self, plan: AgentPlan, policy: Policy, around: Surroundings) -> None:
        """`plan` has been admitted, and its files are paths of this host."""
        self._plan, self._policy = plan, policy
        vantage_plan = _carried_out(plan, policy)
        self._around = around
        self._network = around.network(vantage_plan)
        self.pieces = Pieces(
            around.folder,
            clock=around.clock,
            new_id=around.new_id,
            closed=around.closed,
            lost=around.lost,
        )
        self._run = VantageRun(
            vantage_plan,
            table=probe_table(),
            network=self._network,
            clock=around.clock,
            sink=around.watched(self.pieces),
            scheduling=around.scheduling,
            refuses=policy.refuses_address,
        )
        self._task: asyncio.Task[None] | None = None

    @property
    def run(self) -> VantageRun:
        """The run itself, for whoever wants to know how it fares."""
        return self._run

    def is_of(self, plan: AgentPlan, policy: Policy) -> bool:
        """Whether it is what that plan wants under that policy, but for the plan's serial and end.

        It goes on under the serial that it began with, which its results name.
        """
        mine = self._plan
        other = msgspec.structs.replace(
            policy.localized(plan),
            serial=mine.serial,
            issued_unix_ns=mine.issued_unix_ns,
            expires_unix_ns=mine.expires_unix_ns,
        )
        return self.failed is None and policy == self._policy and other == mine

    async def prepare(self) -> None:
        """Open probes and resolve names; sends nothing to a target. Raises PathbudgetError."""
        await self._run.prepare()

    def start(self) -> None:
        """Send from now on."""
        self._task = asyncio.create_task(self._run.run(self._around.clock.monotonic_ns()))

    @property
    def failed(self) -> BaseException | None:
        """What ended it, if it ended by itself."""
        task = self._task
        if task is None or not task.done() or task.cancelled():
            return None
        return task.exception() or RuntimeError("it ended by itself")

    def roll(self) -> None:
        """Close the measurements that are open and begin the next ones."""
        self.pieces.roll(*self._run.host_state())

    async def wind_down(self) -> None:
        """Send nothing more, wait for what is out, close everything."""
        self._run.wind_down()
        try:
            if self._task is not None:
                await asyncio.gather(self._task, return_exceptions=True)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close everything at once. Twice does no harm."""
        self._run.stop()
        self._run.finish()
        self.pieces.close()
        self._network.close()


def _carried_out(plan: AgentPlan, policy: Policy) -> VantagePlan:
    return VantagePlan(
        vantage=plan.vantage,
        series=plan.series,
        campaign=plan.campaign,
        run_id=f"{plan.agent}-{plan.serial}",
        seed=plan.seed,
        duration_ns=None,
        source=plan.source,
        packets_per_second=min(plan.packets_per_second, policy.packets_per_second),
        resolve_every_ns=plan.resolve_every_ns,
    )
