"""What makes an agent one of a fleet: its link to the bus, and what goes over it."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from pathbudget.agents.bus.asking import Asking
from pathbudget.agents.bus.heartbeat import Heartbeat
from pathbudget.agents.bus.link import Link
from pathbudget.agents.bus.login import Login
from pathbudget.agents.bus.plan_watch import BusPlans
from pathbudget.agents.bus.uplink import BusUplink
from pathbudget.agents.daemon.agent import Agent
from pathbudget.agents.daemon.asked import Asked
from pathbudget.agents.daemon.plan_source import Admission
from pathbudget.agents.daemon.status import AgentStatus
from pathbudget.agents.plans.keys import trusted_of


class Member:
    """One agent of a fleet. Raises ConfigError where the login has no keys of operators."""

    def __init__(self, login: Login, *, state: Path, say: Callable[[str], None]) -> None:
        keys = trusted_of(login.operators, "the login file")
        self._keys, self._name, self._state, self._say = keys, login.user, state, say
        self.link = Link(login, say)
        self.uplink = BusUplink(self.link, login.user)
        admission = Admission(state, agent=login.user, keys=lambda: keys)
        self.plans = BusPlans(login.user, admission, say)
        self.link.greet(self.plans.greet)
        self._heartbeat = Heartbeat(self.link, login.user)

    def attach(self, agent: Agent) -> None:
        """Requests of operators are for this one; before `run`."""
        asked = Asked(agent, self._name, self._state, self._keys, self._say)
        self.link.greet(Asking(self._name, asked).greet)

    async def run(self, status: Callable[[], AgentStatus]) -> None:
        """For ever, beside the agent."""
        await asyncio.gather(
            self.link.run(), self._heartbeat.run(status), self.plans.run(self.link)
        )

    async def end(self, status: AgentStatus) -> None:
        """The last word, and goodbye."""
        await self._heartbeat.once(status)
        await self.link.close()
