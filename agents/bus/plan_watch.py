"""The plan of an agent out of the fleet: the last one when the bus is there, and each new one.

What is asked for may be answered by a server that is behind the others, and what is published is
lost where the link breaks just then: so the bus is asked again from time to time.

The servers carry envelopes; what may be carried out is decided here, as of a file
(`plan_source.Admission`).
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from pathbudget.agents.bus.link import Link
from pathbudget.agents.bus.subjects import PLANS, key_subject, value_subject
from pathbudget.agents.daemon.plan_source import Admission
from pathbudget.agents.plans.plan import LARGEST_PLAN, AgentPlan
from pathbudget.agents.plans.policy import Policy
from pathbudget.probes.errors import BusError

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

WAIT_S = 5.0
ASK_AGAIN_S = 60.0
NO_MESSAGE = "404"
"""Status of an answer: there is no value under that key."""
SEQUENCE = "Nats-Sequence"
"""Which message of the bucket an answer is, counted from 1 (ADR-31 of NATS)."""


class BusPlans:
    """A `PlanSource`. `greet` is to be called with each connection to the bus."""

    def __init__(self, agent: str, admission: Admission, say: Callable[[str], None]) -> None:
        self._agent = agent
        self._admission = admission
        self._say = say
        self._seen = b""
        self._latest = b""
        self._heard = self._answered = 0
        self._listening: Client | None = None

    async def greet(self, client: "Client") -> None:
        """Listen, then ask for what was said before: nothing falls between the two."""
        if self._listening is not client:
            await client.subscribe(key_subject(PLANS, self._agent), cb=self._hear)
            self._listening = client
        if not await self._ask(client):
            self._say(f"the fleet has no plan for {self._agent} yet")

    async def run(self, link: Link) -> None:
        """Ask again, for ever."""
        from nats.errors import Error

        while True:
            await asyncio.sleep(ASK_AGAIN_S)
            try:
                await self._ask(link.client)
            except (BusError, Error, TimeoutError):
                continue  # the link says so and greets again

    async def _ask(self, client: "Client") -> bool:
        """Whether there is a plan. Of two answers that of the later message holds, and what is
        heard meanwhile is later than both.
        """
        heard = self._heard
        answer = await client.request(value_subject(PLANS, self._agent), b"", timeout=WAIT_S)
        headers = answer.headers or {}
        if headers.get("Status") == NO_MESSAGE:
            return bool(self._latest)
        sequence = _sequence(headers.get(SEQUENCE, ""))
        if sequence > self._answered and heard == self._heard:
            self._answered = sequence
            if "KV-Operation" not in headers:  # else the key was deleted
                self._take(answer.data)
        return True

    async def _hear(self, message: "Msg") -> None:
        self._heard += 1
        if "KV-Operation" not in (message.headers or {}):
            self._take(message.data)

    def _take(self, envelope: bytes) -> None:
        self._latest = envelope[: LARGEST_PLAN + 1]

    def first(self, policy: Policy) -> AgentPlan | None:
        """What was carried out before; None: nothing, until the fleet has something."""
        return self._admission.remembered(policy)

    def changed(self) -> bool:
        """Whether the fleet has said something new."""
        return self._latest != self._seen

    def read(self, policy: Policy) -> AgentPlan | None:
        """The latest, if it may be carried out; None: there is none. Raises PlanRefusedError."""
        self._seen = self._latest
        return self._admission.admitted(self._seen, policy) if self._seen else None


def _sequence(text: str) -> int:
    """0 for what is none, which no server sends."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
