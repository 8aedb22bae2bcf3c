"""Taking what one agent left on the bus out of it: after its login was stolen, or it is gone."""

from collections.abc import Callable

from pathbudget.agents.bus.connection import close, connect
from pathbudget.agents.bus.login import Login
from pathbudget.agents.bus.subjects import (
    PLANS,
    RESULTS,
    RESULTS_STREAM,
    STATUS,
    is_agent_name,
    key_subject,
)
from pathbudget.probes.errors import BusError


async def forget(login: Login, agent: str, say: Callable[[str], None]) -> int:
    """Drop its results that no collector has taken, its plan and its heartbeat; how many results.

    Raises BusError, and ValueError for what is no name: a wildcard would stand for all agents.
    """
    from nats.js.errors import Error

    if not is_agent_name(agent):
        raise ValueError(f"{agent[:80]!r} is no name of an agent")
    results = f"{RESULTS}.{agent}"
    client = await connect(login, say)
    try:
        stream = client.jetstream()
        found = await stream.stream_info(RESULTS_STREAM, subjects_filter=results)
        await stream.purge_stream(RESULTS_STREAM, subject=results)
        for bucket in (PLANS, STATUS):
            await stream.purge_stream(f"KV_{bucket}", subject=key_subject(bucket, agent))
        return sum((found.state.subjects or {}).values())
    except (Error, TimeoutError) as error:
        why = str(error) or type(error).__name__
        raise BusError(f"what is left of {agent} cannot be dropped: {why}") from None
    finally:
        await close(client)
