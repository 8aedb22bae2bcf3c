"""The agent: takes plans, measures, and hands on what it has measured, until it is told to stop.

plan       -> measuring.py   one plan under way, within the policy of the host
samples    -> pieces.py      journals of a minute, safe against `kill -9`
journals   -> handover.py    into the spool: counted, bounded, safe against a power cut
spool      -> delivery.py    to the uplink, again and again until it is acknowledged
the agent  -> health.py      what it measures of itself, into the same spool once a piece
"""

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from pathbudget.agents.daemon.day_bytes import DayBytes
from pathbudget.agents.daemon.delivery import Delivery, Uplink
from pathbudget.agents.daemon.handover import Handover
from pathbudget.agents.daemon.health import Health
from pathbudget.agents.daemon.measuring import Measuring, Surroundings
from pathbudget.agents.plans.plan import AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.agents.spool.bounds import Bounds
from pathbudget.agents.spool.spool import Spool
from pathbudget.probes.clock import Clock
from pathbudget.probes.codec import encode_line
from pathbudget.probes.errors import PathbudgetError

LOOK_EVERY_S = 1.0
AHEAD_NS = 2_000_000_000
"""Quiet hours begin so much earlier: the look that notices them comes once a second."""
RETRY_S = 30.0
"""Until a plan that could not be begun, or that ended by itself, is tried again."""
PIECE_RETRY_NS = 5_000_000_000
"""Until the next piece is begun where the disk took no sample."""
LAST_DELIVERY_S = 20.0


@dataclass(slots=True)
class AgentState:
    """How an agent fares."""

    serial: int | None = None
    """Of the plan that is carried out."""
    quiet: bool = False
    expired: bool = False
    spent: bool = False
    """The bytes of today are used up."""
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
        today: DayBytes,
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
        self._today = today
        self._counted_octets = 0
        """Of the plan under way, those that `today` knows of."""
        self._health = Health(self._clock, around.new_id, spool.state())
        self._plan: AgentPlan | None = None
        self._now: Measuring | None = None
        self._rolled_ns = self._recorded_ns = self._clock.monotonic_ns()
        self._try_again_ns = 0
        self._had_trouble = False
        self._stopped = asyncio.Event()
        self._turn = asyncio.Lock()
        """One change of what is measured at a time."""

    async def take(self, plan: AgentPlan) -> None:
        """Carry out another plan from now on. The one before it sends until this one does; what is
        the same but for its serial and its end goes on as it is.

        Raises PathbudgetError where it cannot be begun: the one before it goes on then.
        """
        async with self._turn:
            if self._is_idle(plan):
                self._plan = plan
                await self._replace(None)
                return
            if self._now is not None and self._now.is_of(plan, self.policy):
                self._plan, self.state.serial = plan, plan.serial
                self._say(f"plan {plan.serial}: the same series, which go on")
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
    def around(self) -> Surroundings:
        """What plans are carried out with."""
        return self._around

    def add_octets(self, octets: int) -> None:
        """Count what was sent beside the plan to the bytes of today."""
        self._today.add(octets)

    @property
    def trouble(self) -> str:
        """Why results cannot be handed on or kept; empty when they can."""
        pieces = "" if self._now is None else self._now.pieces.trouble
        return pieces or self._spool.trouble or self._delivery.trouble

    @property
    def bounds(self) -> Bounds:
        """Of the spool, with what goes when it is full."""
        return self._spool.bounds

    @property
    def bytes_today(self) -> int:
        """What has been put on the wire since 00:00 UTC, both directions."""
        return self._today.spent()

    @property
    def delivered_unix_ns(self) -> int | None:
        """When results were last acknowledged; None: not since the start."""
        return self._delivery.delivered_unix_ns

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
        for problem in following.run.progress.problems:  # what this user may not do, for one
            self._say(problem)
        return following

    async def _replace(self, following: Measuring | None) -> None:
        before, self._now = self._now, following
        self._count_octets(before)
        self._counted_octets = 0
        self._rolled_ns = self._clock.monotonic_ns()
        if before is not None:
            await before.wind_down()

    def _count_octets(self, measuring: Measuring | None) -> None:
        """Note what has been sent since the last time, before it is forgotten."""
        if measuring is not None:
            octets = measuring.run.progress.octets
            self._today.add(octets - self._counted_octets)
            self._counted_octets = octets

    def _is_idle(self, plan: AgentPlan) -> bool:
        """Whether nothing may be sent now. Notes why, and says it once."""
        now = self._clock.unix_ns()
        quiet = self.policy.is_quiet(now) or self.policy.is_quiet(now + AHEAD_NS)
        expired = now >= plan.expires_unix_ns
        spent = self._today.spent() >= self.policy.bytes_per_day
        if quiet != self.state.quiet:
            self._say("quiet hours begin" if quiet else "quiet hours are over")
        if expired and not self.state.expired:
            self._say(f"plan {plan.serial} has expired: nothing is sent until there is another")
        if spent and not self.state.spent:
            self._say("the bytes of today are used up: nothing is sent until 00:00 UTC")
        self.state.quiet, self.state.expired, self.state.spent = quiet, expired, spent
        return quiet or expired or spent

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
        self._count_octets(self._now)
        self._look_at_host()
        if now_ns - self._recorded_ns >= plan.roll_ns:
            self._record(plan)
        if self._is_idle(plan):
            await self._replace(None)
        elif self._now is None and now_ns >= self._try_again_ns:
            await self._try(plan, now_ns)
        elif self._now is not None and (error := self._now.failed) is not None:
            self._note(f"measuring stopped: {error}")
            self._try_again_ns = now_ns + round(RETRY_S * 1e9)
            await self._replace(None)
        elif self._now is not None and now_ns - self._rolled_ns >= self._piece_ns(plan):
            self._rolled_ns = now_ns
            self._now.roll()
        for text in (*self._handover.problems, *self._spool.problems):
            self._note(text)
        self._handover.problems.clear()
        self._spool.problems.clear()
        trouble = self.trouble
        if trouble and not self._had_trouble:  # one line for each time, however long it lasts
            self._say(trouble)
        elif self._had_trouble and not trouble:
            self._say("results are kept and handed on again")
        self._had_trouble = bool(trouble)

    def _piece_ns(self, plan: AgentPlan) -> int:
        """How long a piece lasts; a disk that took no sample is tried again before that."""
        has_trouble = self._now is not None and self._now.pieces.trouble
        return min(plan.roll_ns, PIECE_RETRY_NS) if has_trouble else plan.roll_ns

    def _look_at_host(self) -> None:
        self._health.look(None if self._now is None else self._now.run.progress.noise)

    def _record(self, plan: AgentPlan) -> None:
        """Keep what the agent says of itself, and what it has sent today."""
        self._recorded_ns = self._clock.monotonic_ns()
        self._look_at_host()
        host = (None, None) if self._now is None else self._now.run.host_state()
        found = self._health.measured(plan, self._spool.state(), *host)
        self._spool.append(found.id, encode_line(found), len(found.samples))
        self._today.save()

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
        if self._plan is not None:
            self._record(self._plan)
        await self._replace(None)
        self._today.save()
        await self._handover.finish()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._deliver_rest(), LAST_DELIVERY_S)

    async def _deliver_rest(self) -> None:
        while await self._delivery.once():
            pass
