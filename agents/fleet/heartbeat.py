"""What an agent says of itself every few seconds: alive, at which plan, how deep its spool is.

The same figures go into the store as samples of the agent's own (docs/agent.md), into
`pathbudget status`, and to Prometheus. A heartbeat is the last word only; it is not kept.
"""

import msgspec

from pathbudget.probes.record import ClockQuality, NoiseFloor

HEARTBEAT_EVERY_NS = 5_000_000_000
SILENT_AFTER_NS = 3 * HEARTBEAT_EVERY_NS
"""An agent that has not been heard for so long is silent."""


class SpoolState(msgspec.Struct, frozen=True, omit_defaults=True):
    """How much waits. `made` = `acknowledged` + `dropped` + `waiting`, in samples, always."""

    waiting_entries: int = 0
    waiting_bytes: int = 0
    waiting_samples: int = 0
    oldest_unix_ns: int | None = None
    """When the oldest that waits was appended."""
    made_samples: int = 0
    acknowledged_samples: int = 0
    dropped_samples: dict[str, int] = {}
    """By reason: ``bytes``, ``age``, ``disk_full``, ``torn``."""


class Heartbeat(msgspec.Struct, frozen=True, omit_defaults=True):
    """The last word of an agent. Counts are since its spool was made, so they survive restarts."""

    agent: str
    sent_unix_ns: int
    started_unix_ns: int
    software: str
    """``pathbudget 0.1.0``."""
    python: str = ""
    region: str = ""
    plan_serial: int | None = None
    """Of the plan in force; None: none yet."""
    plan_refused: str = ""
    """Why the latest plan was not taken; empty when it was."""
    series: int = 0
    sends: int = 0
    late_sends: int = 0
    """Sends that left more than 10 ms late."""
    failures: dict[str, int] = {}
    spool: SpoolState = SpoolState()
    uplink: str = ""
    """Why nothing gets out; empty while it does."""
    clock: ClockQuality | None = None
    noise: NoiseFloor | None = None
    resident_bytes: int = 0
    cpu_seconds: float = 0.0
    problems: tuple[str, ...] = ()
