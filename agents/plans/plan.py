"""What one agent of a fleet is told to do, until it is told something else."""

import re

import msgspec

from pathbudget.agents.campaign.plan import SeriesPlan
from pathbudget.probes.record import AddressFamily, Vantage

AGENT_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
"""It goes into the names of files and of credentials: no dot, no slash, no wildcard."""
NAME_RULE = "1 to 63 of a-z, 0-9 and hyphens, no hyphen first or last"

LARGEST_PLAN = 4 << 20
"""Bytes of an envelope; a plan of ten thousand series has about three million."""


class AgentPlan(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """The plan of one agent. It has no end of its own: the next one replaces it, and after
    `expires_unix_ns` the agent stops.

    A field that this version does not know makes the plan unreadable. An agent that ignored a word
    of its operator's would measure something else than was signed.
    """

    agent: str
    serial: int
    """Rises from plan to plan; an agent takes no plan with a lower one than it has had."""
    issued_unix_ns: int
    expires_unix_ns: int
    vantage: Vantage
    series: tuple[SeriesPlan, ...]
    seed: int
    campaign: str = ""
    packets_per_second: int = 500
    resolve_every_ns: int = 60_000_000_000
    roll_ns: int = 60_000_000_000
    """How often a measurement is closed and the next one begun, so that results flow."""
    source: dict[AddressFamily, str] = {}
    """Addresses to send from; empty: the kernel chooses."""
