"""One look at a fleet: how each agent is, how long ago it said so, and what waits on the bus."""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from pathbudget.agents.collector import status as collector_status
from pathbudget.agents.collector.status import CollectorStatus
from pathbudget.agents.daemon.status import STATUS, AgentStatus, read_status
from pathbudget.probes.record import SyncState

HEARTBEAT_S = 10.0
"""How often an agent says how it is, at least."""
SILENT_AFTER = 3
"""Heartbeats that have to be missing until an agent is called silent."""
CLOCK_OFF_NS = 1_000_000_000
"""Clocks that differ by more are told; less may be the way of the heartbeat."""
NS = 1_000_000_000


class AgentLook(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one agent was when it last said so."""

    agent: str
    state: str
    """``measuring``, ``quiet``, ``expired``, ``no bytes left``, ``no plan``, ``in trouble``,
    ``silent``, ``unreadable`` or ``never seen``."""
    seen_unix_ns: int | None = None
    """When its last heartbeat came, by the clock of whoever reads this."""
    age_ns: int | None = None
    clock_ahead_ns: int | None = None
    """Its clock minus the reader's, wrong by the way of the heartbeat; None: not to be told."""
    clock: str = ""
    """``ok``, ``unsynchronised``, ``unknown``, or by how much it is off."""
    status: AgentStatus | None = None


class BusLook(msgspec.Struct, frozen=True, omit_defaults=True):
    """What waits on the servers for collectors."""

    waiting: int
    """Measurements that no collector has vouched for."""
    waiting_bytes: int
    with_collectors: int
    """Of these, given to a collector and not acknowledged yet."""
    delivered_again: int = 0


class FleetLook(msgspec.Struct, frozen=True, omit_defaults=True):
    """What `pathbudget status` prints."""

    at_unix_ns: int
    agents: tuple[AgentLook, ...]
    bus: BusLook | None = None
    collectors: tuple[CollectorStatus, ...] = ()
    """Those whose stores are on this machine."""


def looked_at(
    agent: str, status: AgentStatus | None, *, age_ns: int, now_unix_ns: int, ahead_ns: int | None
) -> AgentLook:
    """Words for what an agent said. `age_ns`: how long ago; `ahead_ns`: how far its clock is."""
    if status is None:
        return AgentLook(agent, "never seen")
    return AgentLook(
        agent=agent,
        state=_state(status, age_ns),
        seen_unix_ns=now_unix_ns - age_ns,
        age_ns=age_ns,
        clock_ahead_ns=ahead_ns,
        clock=_clock(status, ahead_ns),
        status=status,
    )


def look_at_folders(folders: Sequence[Path]) -> FleetLook:
    """Agents on this machine, by their state folders. Raises StoreError."""
    looks: list[AgentLook] = []
    for folder in folders:
        status = read_status(folder / STATUS)
        now = time.time_ns()
        age_ns = now - status.at_unix_ns
        # One clock for both: a file of the future is of a clock that was set back since.
        looks.append(
            looked_at(
                status.agent or folder.name, status, age_ns=max(0, age_ns), now_unix_ns=now,
                ahead_ns=min(0, age_ns) * -1,
            )
        )  # fmt: skip
    return FleetLook(time.time_ns(), tuple(sorted(looks, key=lambda one: one.agent)))


def look_at_stores(look: FleetLook, stores: Sequence[Path]) -> FleetLook:
    """The same with the collectors that write these stores. Raises StoreError."""
    found = [collector_status.read_status(one / collector_status.STATUS) for one in stores]
    return msgspec.structs.replace(look, collectors=tuple(found))


def _state(status: AgentStatus, age_ns: int) -> str:
    if age_ns > SILENT_AFTER * HEARTBEAT_S * NS:
        return "silent"
    reasons = {
        "in trouble": bool(status.trouble),
        "quiet": status.quiet,
        "expired": status.expired,
        "no bytes left": status.spent,
        "no plan": status.serial is None,
    }
    return next((word for word, holds in reasons.items() if holds), "measuring")


def _clock(status: AgentStatus, ahead_ns: int | None) -> str:
    if ahead_ns is not None and abs(ahead_ns) > CLOCK_OFF_NS:
        return f"{abs(ahead_ns) / NS:,.1f} s {'ahead' if ahead_ns > 0 else 'behind'}"
    if status.clock is None or status.clock.sync_state is SyncState.UNKNOWN:
        return "unknown"
    return "ok" if status.clock.sync_state is SyncState.SYNCHRONISED else "unsynchronised"
