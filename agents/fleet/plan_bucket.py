"""Signed plans in their bucket: put there by an operator, listed, never opened by a server."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from pathbudget.agents.bus.connection import close, connect
from pathbudget.agents.bus.login import Login
from pathbudget.agents.bus.subjects import PLANS, is_agent_name, key_subject
from pathbudget.agents.fleet.files import fault
from pathbudget.agents.plans.plan import LARGEST_PLAN, AgentPlan
from pathbudget.agents.plans.refusal import PlanRefusedError
from pathbudget.agents.plans.signing import Envelope, opened
from pathbudget.agents.plans.trusted import PublicKey
from pathbudget.probes.errors import BusError

if TYPE_CHECKING:
    from nats.js import JetStreamContext

STREAM = f"KV_{PLANS}"
_EXPECTED = "a file of `pathbudget plan sign`"


class SignedPlan(msgspec.Struct, frozen=True):
    """An envelope, and what it says it holds. Agents alone decide whether that is true."""

    envelope: bytes
    key: str
    """Id of the operator's key."""
    plan: AgentPlan


def read_signed(path: Path, keys: Mapping[str, PublicKey] | None) -> SignedPlan:
    """The plan in a file; with `keys`, only if one of them has signed it. Raises ConfigError."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_PLAN + 1)
    except OSError as error:
        raise fault(path, f"cannot be read: {error.strerror}", _EXPECTED) from None
    try:
        found = looked_into(content)
        if keys is not None:
            opened(content, keys)
    except (ValueError, PlanRefusedError) as error:
        raise fault(path, str(error), _EXPECTED) from None
    if not is_agent_name(found.plan.agent):
        raise fault(path, f"{found.plan.agent[:80]!r} is no name of an agent", _EXPECTED)
    return found


def looked_into(envelope: bytes) -> SignedPlan:
    """Without asking for the signature. Raises ValueError."""
    if len(envelope) > LARGEST_PLAN:
        raise ValueError(f"is larger than {LARGEST_PLAN} octets")
    try:
        parts = msgspec.json.decode(envelope, type=Envelope)
        plan = msgspec.json.decode(parts.plan, type=AgentPlan)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(f"is no envelope of a plan: {error}") from None
    return SignedPlan(envelope, parts.key, plan)


async def push(login: Login, plans: Sequence[SignedPlan], say: Callable[[str], None]) -> None:
    """Put each under the name of its agent, which gets it at once.

    One that is older than what lies there is not put: its agent would refuse it as a replay.
    Raises BusError.
    """
    from nats.js.errors import Error

    client = await connect(login, say)
    try:
        stream = client.jetstream()
        for one in plans:
            before = await _last(stream, one.plan.agent)
            if before is not None and before.plan.serial > one.plan.serial:
                serials = f"serial {one.plan.serial} after {before.plan.serial}"
                raise BusError(f"agent {one.plan.agent}: {serials}: a newer plan is there already")
            await stream.publish(key_subject(PLANS, one.plan.agent), one.envelope)
            say(f"{one.plan.agent}  serial {one.plan.serial}, {len(one.plan.series)} series")
    except (Error, TimeoutError) as error:
        raise BusError(f"plans cannot be put: {str(error) or type(error).__name__}") from None
    finally:
        await close(client)


async def list_plans(login: Login, say: Callable[[str], None]) -> dict[str, SignedPlan | None]:
    """By agent; None: what lies there is no plan. Raises BusError."""
    from nats.js.errors import Error

    client = await connect(login, say)
    try:
        stream = client.jetstream()
        information = await stream.stream_info(STREAM, subjects_filter=">")
        prefix = key_subject(PLANS, "")
        names = sorted(subject.removeprefix(prefix) for subject in information.state.subjects or {})
        return {name: await _last(stream, name) for name in names}
    except (Error, TimeoutError) as error:
        raise BusError(f"plans cannot be listed: {str(error) or type(error).__name__}") from None
    finally:
        await close(client)


async def _last(stream: "JetStreamContext", agent: str) -> SignedPlan | None:
    from nats.js.errors import NotFoundError

    try:
        found = await stream.get_last_msg(STREAM, key_subject(PLANS, agent))
        return looked_into(found.data or b"")
    except (NotFoundError, ValueError):
        return None
