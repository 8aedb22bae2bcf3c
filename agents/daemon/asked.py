"""Probes that an operator asks for at once: beside the schedule, within the same policy.

What comes of it goes to whoever asked, and nowhere else: it is no part of what the plan measures.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path

from pathbudget.agents.campaign.plan import VantagePlan
from pathbudget.agents.campaign.sink import MemorySink
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.agents.daemon.agent import Agent
from pathbudget.agents.plans.memory import Taken, recall, remember
from pathbudget.agents.plans.refusal import PlanRefusedError, RefusalReason
from pathbudget.agents.plans.request import ProbeRequest, admit_request, excess
from pathbudget.agents.plans.signing import digest
from pathbudget.agents.plans.trusted import PublicKey
from pathbudget.probes.errors import PathbudgetError
from pathbudget.probes.record import Measurement
from pathbudget.probes.table import probe_table

MEMORY = "asked.json"
"""The request that was carried out last, or it could be played to the agent again."""


class Asked:
    """Carries out one request at a time for one agent."""

    def __init__(
        self,
        agent: Agent,
        name: str,
        state: Path,
        keys: Mapping[str, PublicKey],
        say: Callable[[str], None],
    ) -> None:
        self._agent = agent
        self._name = name
        self._memory = state / MEMORY
        self._keys = keys
        self._say = say
        self._busy = False

    async def measured(self, envelope: bytes) -> list[Measurement]:
        """What came of it. Raises PlanRefusedError with the reason, or another PathbudgetError;
        nothing was sent then.
        """
        if self._busy:
            raise PlanRefusedError(RefusalReason.BUSY, "another request is being carried out")
        self._busy = True
        try:
            request = self._admitted(envelope)
            self._say(f"asked for {len(request.plan.series)} series, {_seconds(request)} s")
            return await self._carry_out(request)
        except PathbudgetError as error:
            self._say(f"a request for a probe: {error}")
            raise
        finally:
            self._busy = False

    def _admitted(self, envelope: bytes) -> ProbeRequest:
        agent, before, now = self._agent, recall(self._memory), time.time_ns()
        request = admit_request(
            envelope,
            keys=self._keys,
            agent=self._name,
            now_unix_ns=now,
            last_serial=None if before is None else before.serial,
            policy=agent.policy,
        )
        why = excess(request, agent.plan, agent.policy, agent.bytes_today, probe_table())
        if not why and agent.policy.is_quiet(now + request.duration_ns):
            why = "quiet hours begin before its end"
        if not why and agent.policy.is_quiet(now):
            why = "these are quiet hours"
        if why:
            raise PlanRefusedError(RefusalReason.OUT_OF_POLICY, why)
        remember(self._memory, Taken(request.plan.serial, digest(envelope), b""))
        return request

    async def _carry_out(self, request: ProbeRequest) -> list[Measurement]:
        agent, sink = self._agent, MemorySink()
        around, plan = agent.around, agent.policy.localized(request.plan)
        vantage_plan = VantagePlan(
            vantage=plan.vantage,
            series=plan.series,
            campaign=plan.campaign,
            run_id=f"{plan.agent}-asked-{plan.serial}",
            seed=plan.seed,
            duration_ns=request.duration_ns,
            source=plan.source,
            packets_per_second=min(plan.packets_per_second, agent.policy.packets_per_second),
            resolve_every_ns=plan.resolve_every_ns,
        )
        network = around.network(vantage_plan)
        run = VantageRun(
            vantage_plan,
            table=probe_table(),
            network=network,
            clock=around.clock,
            sink=sink,
            scheduling=around.scheduling,
            refuses=agent.policy.refuses_address,
        )
        try:
            await run.prepare()
            await run.run(around.clock.monotonic_ns())
        finally:
            run.finish()
            network.close()
            agent.add_octets(run.progress.octets)
        return list(sink.measurements())


def _seconds(request: ProbeRequest) -> str:
    return f"{request.duration_ns / 1e9:g}"
