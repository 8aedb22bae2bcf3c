"""The agent: takes plans, measures, and hands on what it has measured, until it is told to stop.

plan       -> measuring.py   one plan under way, within the policy of the host
samples    -> pieces.py      journals of a minute, safe against `kill -9`
journals   -> handover.py    into the spool: counted, bounded, safe against a power cut
spool      -> delivery.py    to the uplink, again and again until it is acknowledged
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pathbudget.agents.daemon.delivery import Delivery, Uplink
from pathbudget.agents.daemon.handover import Handover
from pathbudget.agents.daemon.measuring import Measuring, Surroundings
from pathbudget.agents.plans.plan import AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.agents.spool.spool import Spool
from pathbudget.probes.clock import Clock
from pathbudget.probes.errors import PathbudgetError

LOOK_EVERY_S = 1.0
AHEAD_NS = 2_000_000_000
"""Quiet hours begin so much earlier: the look that notices them comes once a second."""
RETRY_S = 30.0
"""Until a plan that could not be begun, or that ended by itself, is tried again."""
LAST_DELIVERY_S = 5.0


@dataclass(slots=True)
class AgentState:
    """How an agent fares."""

    serial: int | None = None
    """Of the plan that is carried out."""
    quiet: bool = False
    expired: bool = False
    problems: list[str] = field(default_factory=list[str])
    """The latest ones, each once."""


class Agent:
    """One agent in one event loop. `say` takes a sentence for the log."""

    def __init__(
        self,
        *,
        policy: Policy,
        around: Surroundings,
        spool: Spool,
        handover: Handover,
        uplink: Uplink,
        say: Callable[[str], None],
        rng: random.Random,
    ) -> None:
        self.state = AgentState()
        self.policy = policy
        self._around = around
        self._clock: Clock = around.clock
        self._spool = spool
        self._handover = handover
        self._delivery = Delivery(spool, uplink, rng)
        self._say = say
        self._plan: AgentPlan | None = None
        self._now: Measuring | None = None
        self._rolled_ns = self._clock.monotonic_ns()
        self._try_again_ns = 0
        self._stopped = asyncio.Event()
        self._turn = asyncio.Lock()
        """One change of what is measured at a time."""

    async def take(self, plan: AgentPlan) -> None:
        """Carry out another plan from now on. The one before it sends until this one does.

        Raises PathbudgetError where it cannot be begun: the one before it goes on then.
        """
        async with self._turn:
            if self._is_idle(plan):
                self._plan = plan
                await self._replace(None)
                return
            await self._replace(await self._begun(plan))
            self._plan = plan
        self.state.serial = plan.serial
        self._say(f"plan {plan.serial}: {len(plan.series)} series of {plan.campaign or 'no name'}")

    async def run(self) -> None:
        """Measure and deliver until `stop`; then hand over what is measured."""
        helpers = [
            asyncio.create_task(one)
            for one in (self._handover.run(), self._delivery.run(), self._watch())
        ]
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            done, _ = await asyncio.wait([stopped, *helpers], return_when=asyncio.FIRST_COMPLETED)
            for one in done - {stopped}:
                one.result()  # none of them ends but by a fault: say which
        finally:
            for helper in (stopped, *helpers):
                helper.cancel()
            await asyncio.gather(stopped, *helpers, return_exceptions=True)
            await self._end()

    def stop(self) -> None:
        """Have `run` come to its end."""
        self._stopped.set()

    @property
    def plan(self) -> AgentPlan | None:
        """What is carried out when nothing forbids it."""
        return self._plan

    @property
    def trouble(self) -> str:
        """Why results cannot be handed on or kept; empty when they can."""
        pieces = "" if self._now is None else self._now.pieces.trouble
        return pieces or self._spool.trouble or self._delivery.trouble

    @property
    def measuring(self) -> Measuring | None:
        """What is under way."""
        return self._now

    async def _begun(self, plan: AgentPlan) -> Measuring:
        following = Measuring(self.policy.localized(plan), self.policy, self._around)
        try:
            await following.prepare()
        except BaseException:
            following.abandon()
            raise
        following.start()
        return following

    async def _replace(self, following: Measuring | None) -> None:
        before, self._now = self._now, following
        self._rolled_ns = self._clock.monotonic_ns()
        if before is not None:
            await before.wind_down()

    def _is_idle(self, plan: AgentPlan) -> bool:
        """Whether nothing may be sent now. Notes why, and says it once."""
        now = self._clock.unix_ns()
        quiet = self.policy.is_quiet(now) or self.policy.is_quiet(now + AHEAD_NS)
        expired = now >= plan.expires_unix_ns
        if quiet != self.state.quiet:
            self._say("quiet hours begin" if quiet else "quiet hours are over")
        if expired and not self.state.expired:
            self._say(f"plan {plan.serial} has expired: nothing is sent until there is another")
        self.state.quiet, self.state.expired = quiet, expired
        return quiet or expired

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            async with self._turn:
                await self._look()

    async def _look(self) -> None:
        plan = self._plan
        if plan is None:
            return
        now_ns = self._clock.monotonic_ns()
        if self._is_idle(plan):
            await self._replace(None)
        elif self._now is None and now_ns >= self._try_again_ns:
            await self._try(plan, now_ns)
        elif self._now is not None and (error := self._now.failed) is not None:
            self._note(f"measuring stopped: {error}")
            self._try_again_ns = now_ns + round(RETRY_S * 1e9)
            await self._replace(None)
        elif self._now is not None and now_ns - self._rolled_ns >= plan.roll_ns:
            self._rolled_ns = now_ns
            self._now.roll()
        for text in (*self._handover.problems, *self._spool.problems):
            self._note(text)
        self._handover.problems.clear()
        self._spool.problems.clear()

    async def _try(self, plan: AgentPlan, now_ns: int) -> None:
        try:
            await self._replace(await self._begun(plan))
        except PathbudgetError as error:
            self._note(f"plan {plan.serial} cannot be begun: {error}")
            self._try_again_ns = now_ns + round(RETRY_S * 1e9)
        else:
            self.state.serial = plan.serial

    def _note(self, problem: str) -> None:
        if problem in self.state.problems:
            return
        self.state.problems = [*self.state.problems[-9:], problem]
        self._say(problem)

    async def _end(self) -> None:
        await self._replace(None)
        await self._handover.finish()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._deliver_rest(), LAST_DELIVERY_S)

    async def _deliver_rest(self) -> None:
        while await self._delivery.once():
            pass
