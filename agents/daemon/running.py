"""Puts an agent together and runs it: signals, the service manager, reloads, the status file."""

import asyncio
import gc
import random
import signal
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from pathbudget.agents.campaign.plan import VantagePlan
from pathbudget.agents.campaign.sink import SampleSink
from pathbudget.agents.daemon.agent import Agent
from pathbudget.agents.daemon.day_bytes import FILE, DayBytes
from pathbudget.agents.daemon.delivery import Uplink
from pathbudget.agents.daemon.handover import Handover
from pathbudget.agents.daemon.measuring import Surroundings
from pathbudget.agents.daemon.plan_source import PlanFile, PlanSource
from pathbudget.agents.daemon.service import Service
from pathbudget.agents.daemon.status import STATUS, AgentStatus, status_of, write_status
from pathbudget.agents.plans.policy import Policy
from pathbudget.agents.plans.policy_file import read_policy
from pathbudget.agents.spool.bounds import Bounds
from pathbudget.agents.spool.spool import DISK_FULL, Spool
from pathbudget.agents.watch.endpoint import Listening
from pathbudget.agents.watch.watching import AgentWatch
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.errors import PathbudgetError, SpoolError
from pathbudget.probes.identifiers import new_id
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.scheduling import RealTime, schedule_this_process

SPOOL, OPEN = "spool", "open"
LOOK_EVERY_S = 2.0
"""How often the plan is looked at and the status written."""
ALIVE_SHARE = 3.0
"""So many signs of life within the time of the watchdog."""


@dataclass(frozen=True, slots=True)
class AgentWish:
    """What the command line asks for."""

    plan: Path | None
    """None: what the fleet says."""
    state: Path
    agent: str = ""
    trust: Path | None = None
    policy: Path | None = None
    bounds: Bounds = field(default_factory=Bounds)
    realtime: RealTime = RealTime.AUTO
    metrics: Listening | None = None
    """Where Prometheus may ask; None: nowhere."""


class Companion(Protocol):
    """What makes an agent one of a fleet (`bus.member.Member`)."""

    @property
    def uplink(self) -> Uplink:
        """Where results go."""
        ...

    @property
    def plans(self) -> PlanSource:
        """Where plans come from."""
        ...

    def attach(self, agent: Agent) -> None:
        """Requests of operators are for this one; before `run`."""
        ...

    async def run(self, status: Callable[[], AgentStatus]) -> None:
        """Beside the agent, for ever."""
        ...

    async def end(self, status: AgentStatus) -> None:
        """The last word."""
        ...


def run_agent(
    wish: AgentWish,
    uplink: Uplink | None,
    say: Callable[[str], None],
    fleet: Companion | None = None,
) -> None:
    """Results go to `uplink`, or else to the fleet; plans come from the file, or else from there.

    Run until SIGTERM or Ctrl-C. SIGHUP reads plan and policy again.

    Raises ConfigError, PlanRefusedError, PrivilegeError or SpoolError where nothing could be begun;
    nothing was sent then.
    """
    policy = _policy(wish)
    folder = wish.state / OPEN
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise SpoolError(f"{folder}: cannot be made: {error.strerror}") from None
    with ExitStack() as stack:
        spool = stack.enter_context(Spool.open(wish.state / SPOOL, wish.bounds))
        source = _source(wish, fleet)
        watch = None
        if wish.metrics is not None:
            watch = stack.enter_context(AgentWatch(wish.metrics, say))
        running = _Running(wish, policy, spool, source, _uplink(uplink, fleet), say, watch, fleet)
        asyncio.run(running.run())


def _source(wish: AgentWish, fleet: Companion | None) -> PlanSource:
    if wish.plan is not None:
        return PlanFile(wish.plan, state=wish.state, agent=wish.agent, trust=wish.trust)
    assert fleet is not None
    return fleet.plans


def _uplink(uplink: Uplink | None, fleet: Companion | None) -> Uplink:
    if uplink is not None:
        return uplink
    assert fleet is not None
    return fleet.uplink


def _policy(wish: AgentWish) -> Policy:
    return Policy() if wish.policy is None else read_policy(wish.policy)


class _Running:
    def __init__(
        self,
        wish: AgentWish,
        policy: Policy,
        spool: Spool,
        source: PlanSource,
        uplink: Uplink,
        say: Callable[[str], None],
        watch: AgentWatch | None,
        fleet: Companion | None,
    ) -> None:
        self._wish = wish
        self._fleet = fleet
        self._watch = watch
        self._spool = spool
        self._source = source
        self._say = say
        self._service = Service()
        self._handover = Handover(wish.state / OPEN, spool)
        rng = random.SystemRandom()
        scheduling = schedule_this_process(wish.realtime, alone=True)
        around = Surroundings(
            folder=wish.state / OPEN,
            clock=SystemClock(),
            network=_network,
            new_id=lambda unix_ns: new_id(unix_ns, rng),
            closed=self._handover.add,
            lost=lambda samples: spool.refuse(DISK_FULL, samples),
            scheduling=scheduling.text,
            watched=_unwatched if watch is None else watch.watched,
        )
        self._agent = Agent(
            policy=policy,
            around=around,
            spool=spool,
            handover=self._handover,
            uplink=uplink,
            today=DayBytes(wish.state / FILE, around.clock),
            say=say,
            rng=rng,
        )
        self._reload = asyncio.Event()
        if fleet is not None:
            fleet.attach(self._agent)

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._agent.stop)
        loop.add_signal_handler(signal.SIGHUP, self._reload.set)
        await self._first_plan()
        gc.collect()
        gc.freeze()  # what there is now stays for months: collections pass over it
        beside = [self._look(), self._live()]
        if self._fleet is not None:
            beside.append(self._fleet.run(self._status))
        helpers = [asyncio.create_task(one) for one in beside]
        for helper in helpers:
            helper.add_done_callback(self._told)
        self._service.ready(self._line())
        try:
            await self._agent.run()
        finally:
            self._service.stopping()
            for helper in helpers:
                helper.cancel()
            await asyncio.gather(*helpers, return_exceptions=True)
            if self._fleet is not None:
                await self._fleet.end(self._status())
            self._write_status()

    def _told(self, helper: "asyncio.Task[None]") -> None:
        """None of them ends but by a fault of ours: say which; what is measured goes on."""
        if not helper.cancelled() and (error := helper.exception()) is not None:
            self._say(f"a part of the agent has ended: {type(error).__name__}: {error}")

    async def _first_plan(self) -> None:
        plan = self._source.first(self._agent.policy)
        if isinstance(self._source, PlanFile) and self._source.instead:
            self._say(self._source.instead)
        if plan is not None:
            await self._agent.take(plan)

    async def _look(self) -> None:
        """Take another plan when there is one; say how things are."""
        while True:
            asked = await self._asked_to_reload()
            if asked:
                self._service.reloading()
                self._say("reload")
            if asked or self._source.changed():
                await self._read_again(policy_too=asked)
            if asked:
                self._service.ready(self._line())
            else:
                self._service.status(self._line())
            self._write_status()

    async def _asked_to_reload(self) -> bool:
        try:
            await asyncio.wait_for(self._reload.wait(), LOOK_EVERY_S)
        except TimeoutError:
            return False
        self._reload.clear()
        return True

    async def _read_again(self, *, policy_too: bool) -> None:
        """A plan or policy that cannot be used changes nothing."""
        try:
            policy = _policy(self._wish) if policy_too else self._agent.policy
            plan = self._source.read(policy)
            before, self._agent.policy = self._agent.policy, policy
            if plan is None:
                return
            try:
                await self._agent.take(plan)
            except BaseException:
                self._agent.policy = before
                raise
        except PathbudgetError as error:
            self._say(f"{error}; going on as before")

    async def _live(self) -> None:
        period = self._service.watchdog_s
        while period is not None:
            self._service.alive()
            await asyncio.sleep(period / ALIVE_SHARE)

    def _line(self) -> str:
        state, spool = self._agent.state, self._spool.state()
        reasons = {
            "quiet hours": state.quiet,
            "plan expired": state.expired,
            "bytes of today used up": state.spent,
        }
        word = next((reason for reason, holds in reasons.items() if holds), "measuring")
        return f"{word}, plan {state.serial}, {spool.waiting_samples} samples wait"

    def _status(self) -> AgentStatus:
        return status_of(self._agent, self._spool.state())

    def _write_status(self) -> None:
        status = self._status()
        write_status(self._wish.state / STATUS, status)
        if self._watch is not None:
            self._watch.tell(status)


def _unwatched(sink: SampleSink) -> SampleSink:
    return sink


def _network(plan: VantagePlan) -> SystemNetwork:
    return SystemNetwork(plan.source)
