"""An agent inside of the test: its clock can be set, its uplink can be away."""

import asyncio
import ipaddress
import itertools
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pathbudget.agents.campaign.plan import SeriesPlan
from pathbudget.agents.campaign.schedule import ScheduleKind
from pathbudget.agents.daemon.agent import Agent
from pathbudget.agents.daemon.day_bytes import FILE, DayBytes
from pathbudget.agents.daemon.handover import Handover
from pathbudget.agents.daemon.measuring import Surroundings
from pathbudget.agents.plans.plan import AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.agents.spool.entry import Entry
from pathbudget.agents.spool.spool import DISK_FULL, Spool
from pathbudget.probes.agent_health import AGENT
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.codec import decode_line
from pathbudget.probes.errors import StoreError
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import Measurement, Target, Vantage

DAY_NS = 86_400_000_000_000
SECOND_NS = 1_000_000_000
POLICY = Policy(allowed_networks=(ipaddress.ip_network("127.0.0.0/8"),))


class SteppedClock(SystemClock):
    """The clocks of this host, the wall clock set by as much as a test says."""

    def __init__(self) -> None:
        self.offset_ns = 0

    def unix_ns(self) -> int:
        return super().unix_ns() + self.offset_ns


@dataclass
class Kept:
    """An uplink that keeps what it gets, in memory, unless it is `away`."""

    away: bool = False
    measurements: list[Measurement] = field(default_factory=list[Measurement])
    octets_at_once: int = 1 << 20

    async def send(self, entries: Sequence[Entry]) -> Sequence[int]:
        if self.away:
            raise StoreError("away")
        self.measurements += [decode_line(entry.payload) for entry in entries]
        return [entry.number for entry in entries]


def plan_of(interval_ns: int, *, roll_ns: int = SECOND_NS, serial: int = 1) -> AgentPlan:
    """Echo requests to loopback, for a day."""
    now = time.time_ns()
    series = SeriesPlan(
        Target("lo", "127.0.0.1", "loop"),
        probe="icmp",
        kind="icmp",
        interval_ns=interval_ns,
        timeout_ns=SECOND_NS,
        schedule=ScheduleKind.PERIODIC,
    )
    return AgentPlan(
        agent="office",
        serial=serial,
        issued_unix_ns=now,
        expires_unix_ns=now + DAY_NS,
        vantage=Vantage("office", "here"),
        series=(series,),
        seed=7,
        roll_ns=roll_ns,
    )


class OneAgent:
    """`folder` is its state. Use `spool` before and after `run`."""

    def __init__(self, folder: Path, clock: SystemClock | None = None) -> None:
        self.folder = folder
        self.clock = clock or SystemClock()
        self.uplink = Kept()
        self.said: list[str] = []
        self.spool = Spool.open(folder / "spool", clock=self.clock)
        (folder / "open").mkdir(exist_ok=True)
        handover = Handover(folder / "open", self.spool)
        numbers = itertools.count()
        self.agent = Agent(
            policy=POLICY,
            around=Surroundings(
                folder=folder / "open",
                clock=self.clock,
                network=lambda plan: SystemNetwork(plan.source),
                new_id=lambda unix_ns: f"{unix_ns:020}-{next(numbers):06}",
                closed=handover.add,
                lost=lambda samples: self.spool.refuse(DISK_FULL, samples),
            ),
            spool=self.spool,
            handover=handover,
            uplink=self.uplink,
            today=DayBytes(folder / FILE, self.clock),
            say=self.said.append,
            rng=random.Random(1),
        )

    def run(self, plan: AgentPlan, work: Callable[[], None]) -> None:
        """Measure while `work` runs in a thread of its own, then stop and hand over."""
        asyncio.run(self._run(plan, work))
        self.spool.close()

    async def _run(self, plan: AgentPlan, work: Callable[[], None]) -> None:
        await self.agent.take(plan)
        running = asyncio.create_task(self.agent.run())
        try:
            await asyncio.to_thread(work)
        finally:
            self.agent.stop()
            await running

    @property
    def made(self) -> int:
        """Samples of the plan that is under way."""
        measuring = self.agent.measuring
        return 0 if measuring is None else measuring.run.progress.samples


def numbers_of(measurements: Sequence[Measurement]) -> list[int]:
    """Those of the samples of paths, in order."""
    return sorted(
        sample.seq for one in measurements if one.probe != AGENT for sample in one.samples
    )
