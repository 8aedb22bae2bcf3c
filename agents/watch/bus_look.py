"""A look at a fleet through its bus: the last heartbeat of each agent, and the results that wait.

The clock of the servers stands between those of the agents and the reader's: a heartbeat has the
time at which it came to the servers, and making a consumer tells what time they have now.
"""

import time
from typing import TYPE_CHECKING

import msgspec

from pathbudget.agents.bus.connection import close, connect
from pathbudget.agents.bus.login import Login
from pathbudget.agents.bus.subjects import COLLECTORS, PLANS, RESULTS_STREAM, STATUS
from pathbudget.agents.daemon.status import AgentStatus
from pathbudget.agents.watch.fleet_look import AgentLook, BusLook, FleetLook, looked_at
from pathbudget.probes.errors import BusError

if TYPE_CHECKING:
    from nats.js import JetStreamContext

AT_ONCE = 200
WAIT_S = 3.0
KEPT_S = 10.0
"""After which the servers forget a consumer that nobody uses."""


class _Heard(msgspec.Struct):
    """A heartbeat: what was said, and when it came to the servers."""

    status: AgentStatus | None
    came_unix_ns: int


async def look_at_bus(login: Login) -> FleetLook:
    """One look, with a connection of its own. Raises BusError."""
    from nats.errors import Error
    from nats.js import errors

    said: list[str] = []
    client = await connect(login, said.append)
    try:
        stream = client.jetstream(timeout=WAIT_S)
        heard, ahead_ns = await _heartbeats(stream)
        planned = await _planned(stream)
        bus = await _waiting(stream)
    except (Error, errors.Error, TimeoutError) as error:
        # who may not ask gets no answer; why, is told beside it
        why = said[-1] if said else str(error) or type(error).__name__
        raise BusError(f"the bus does not tell: {why}") from None
    finally:
        await close(client)
    now = time.time_ns()
    agents = [_look(name, heard.get(name), now, ahead_ns) for name in sorted({*heard, *planned})]
    return FleetLook(now, tuple(agents), bus)


def _look(agent: str, heard: _Heard | None, now_unix_ns: int, ahead_ns: int) -> AgentLook:
    """`ahead_ns`: the clock of the servers minus the reader's."""
    if heard is None or heard.status is None:
        return AgentLook(agent, "never seen" if heard is None else "unreadable")
    came = heard.came_unix_ns - ahead_ns
    clock_ahead_ns = heard.status.at_unix_ns - heard.came_unix_ns + ahead_ns
    age_ns = max(0, now_unix_ns - came)
    return looked_at(
        agent, heard.status, age_ns=age_ns, now_unix_ns=now_unix_ns, ahead_ns=clock_ahead_ns
    )


async def _heartbeats(stream: "JetStreamContext") -> tuple[dict[str, _Heard], int]:
    """The last of each agent, and how far the clock of the servers is ahead of ours."""
    from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

    name = f"KV_{STATUS}"
    config = ConsumerConfig(
        deliver_policy=DeliverPolicy.LAST_PER_SUBJECT,
        filter_subject=f"$KV.{STATUS}.>",
        ack_policy=AckPolicy.NONE,
        inactive_threshold=KEPT_S,
        mem_storage=True,
    )
    asked = time.time_ns()
    info = await stream.add_consumer(name, config)
    told = time.time_ns()
    ahead_ns = round(info.created.timestamp() * 1e9) - (asked + told) // 2
    found: dict[str, _Heard] = {}
    left = info.num_pending or 0
    pulled = await stream.pull_subscribe_bind(consumer=info.name, stream=name)
    while left > 0:
        for message in await pulled.fetch(min(left, AT_ONCE), timeout=WAIT_S):
            came = round(message.metadata.timestamp.timestamp() * 1e9)
            agent = message.subject.rpartition(".")[2]
            if message.headers is None:  # else it says that the key was deleted
                found[agent] = _Heard(_read(message.data), came)
            left -= 1
    await stream.delete_consumer(name, info.name)
    return found, ahead_ns


def _read(data: bytes) -> AgentStatus | None:
    try:
        return msgspec.json.decode(data, type=AgentStatus)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None


async def _planned(stream: "JetStreamContext") -> set[str]:
    """Agents that have been given a plan."""
    info = await stream.stream_info(f"KV_{PLANS}", subjects_filter=">")
    return {subject.rpartition(".")[2] for subject in info.state.subjects or {}}


async def _waiting(stream: "JetStreamContext") -> BusLook:
    from nats.js.errors import NotFoundError

    info = await stream.stream_info(RESULTS_STREAM)
    try:
        consumer = await stream.consumer_info(RESULTS_STREAM, COLLECTORS)
    except NotFoundError:
        return BusLook(info.state.messages, info.state.bytes, 0)
    return BusLook(
        waiting=info.state.messages,
        waiting_bytes=info.state.bytes,
        with_collectors=consumer.num_ack_pending or 0,
        delivered_again=consumer.num_redelivered or 0,
    )
