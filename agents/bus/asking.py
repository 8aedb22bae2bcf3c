"""Probes at once, by request and reply: the agent's end, and the operator's.

The answer is one message: a line of JSON that says whether the request was
carried out, then a line for each measurement, deflated.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from pathbudget.agents.bus.connection import close, connect
from pathbudget.agents.bus.login import Login
from pathbudget.agents.bus.packing import DEFLATE, ENCODING, PackingError, packed, unpacked
from pathbudget.agents.bus.subjects import ASK, MOST_OCTETS
from pathbudget.agents.plans.plan import LARGEST_PLAN
from pathbudget.agents.plans.refusal import PlanRefusedError
from pathbudget.probes.codec import decode_line, encode_line
from pathbudget.probes.errors import BusError, PathbudgetError, RecordError
from pathbudget.probes.record import Measurement

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

MOST_WAITING = 4
"""Requests that are read at one time; what comes beside them gets no answer."""
SLACK_S = 15.0
"""Beyond the duration of a request, for its names, its last replies and the way."""


class Verdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """The first line of an answer."""

    agent: str
    reason: str = ""
    """The word for why it was not carried out; empty: it was."""
    text: str = ""


class Measures(Protocol):
    """`daemon.asked.Asked`."""

    async def measured(self, envelope: bytes) -> Sequence[Measurement]:
        """Raises PathbudgetError."""
        ...


class Asking:
    """The agent's end. `greet` is to be called with each connection to the bus."""

    def __init__(self, agent: str, asked: Measures) -> None:
        self._agent = agent
        self._asked = asked
        self._listening: Client | None = None
        self._under_way: set[asyncio.Task[None]] = set()

    async def greet(self, client: "Client") -> None:
        """Listen."""
        if self._listening is not client:
            await client.subscribe(f"{ASK}.{self._agent}", cb=self._hear)
            self._listening = client

    async def _hear(self, message: "Msg") -> None:
        """In a task of its own: the connection hands on one message after the other."""
        if message.reply and len(self._under_way) < MOST_WAITING:
            task = asyncio.create_task(self._answer(message))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)

    async def _answer(self, message: "Msg") -> None:
        from nats.errors import Error

        measurements: Sequence[Measurement] = ()
        try:
            measurements = await self._asked.measured(message.data[: LARGEST_PLAN + 1])
            verdict = Verdict(self._agent)
        except PlanRefusedError as error:
            verdict = Verdict(self._agent, error.reason, str(error))
        except PathbudgetError as error:
            verdict = Verdict(self._agent, "failed", str(error))
        content = packed_answer(verdict, measurements)
        if len(content) > MOST_OCTETS:
            text = f"what was measured takes {len(content):,} octets, the bus {MOST_OCTETS:,}"
            content = packed_answer(Verdict(self._agent, "too_large", text), ())
        try:
            await message.respond(content)
        except (Error, OSError):
            return  # nobody waits for it any more


def packed_answer(verdict: Verdict, measurements: Sequence[Measurement]) -> bytes:
    """What an agent sends back."""
    lines = (msgspec.json.encode(verdict), *map(encode_line, measurements))
    return packed(b"\n".join(line.rstrip(b"\n") for line in lines))


def answer_of(content: bytes) -> tuple[Verdict, list[Measurement]]:
    """What came back. Raises BusError where it is no answer."""
    try:
        first, *lines = unpacked(content, {ENCODING: DEFLATE}).split(b"\n")
        verdict = msgspec.json.decode(first, type=Verdict)
        return verdict, [decode_line(line) for line in lines]
    except (PackingError, msgspec.DecodeError, RecordError, RecursionError) as error:
        raise BusError(f"what came back is no answer of this version: {error}") from None


async def ask(
    login: Login, agent: str, envelope: bytes, duration_ns: int, say: Callable[[str], None]
) -> list[Measurement]:
    """The operator's end. Raises BusError, also where the agent has refused."""
    from nats.errors import Error

    client, timeout = await connect(login, say), duration_ns / 1e9 + SLACK_S
    try:
        found = await client.request(f"{ASK}.{agent}", envelope, timeout=timeout)
    except TimeoutError:
        why = f"none within {timeout:g} s: it is away, or there is none of that name"
        raise BusError(f"no answer of agent {agent}: {why}") from None
    except Error as error:
        raise BusError(f"agent {agent} cannot be asked: {error}") from None
    finally:
        await close(client)
    verdict, measurements = answer_of(found.data)
    if verdict.reason:
        raise BusError(f"agent {agent}: {verdict.text[:500]}")
    return measurements
