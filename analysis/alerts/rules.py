"""Rules: what is watched, when it is bad, and how it is told. Durations in ns, shares 0 to 1."""

from dataclasses import dataclass, field

from pathbudget.analysis.alerts.model import (
    HOUR_NS,
    MINUTE_NS,
    SECOND_NS,
    AlertKind,
    Severity,
    Timing,
)
from pathbudget.analysis.routes.model import Cause

MILLISECOND_NS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What all rules have. `to`: names of receivers; empty: all of them."""

    name: str
    kind: AlertKind
    severity: Severity = Severity.TICKET
    timing: Timing = field(default_factory=Timing)
    together_ns: int = 2 * MINUTE_NS
    """Its notices are gathered so long before the next message."""
    to: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BurnWindow:
    """Bad when more than `burn_rate` times what the percentile leaves was over, in both windows."""

    long_ns: int
    short_ns: int
    burn_rate: float
    severity: Severity


USUAL_WINDOWS = (
    BurnWindow(long_ns=HOUR_NS, short_ns=5 * MINUTE_NS, burn_rate=10.0, severity=Severity.PAGE),
    BurnWindow(long_ns=6 * HOUR_NS, short_ns=30 * MINUTE_NS, burn_rate=5.0, severity=Severity.PAGE),
    BurnWindow(long_ns=24 * HOUR_NS, short_ns=2 * HOUR_NS, burn_rate=2.0, severity=Severity.TICKET),
)
"""At p95, 1 in 20 may be over: half of the requests of an hour, a quarter of six, a tenth of a day.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRule(Rule):
    """Headline lines of tiers; empty tuples are all."""

    tiers: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()
    windows: tuple[BurnWindow, ...] = USUAL_WINDOWS
    confidence: float = 0.95


SILENT_CAUSES = (Cause.FEED, Cause.ROUTING_ONLY)
"""Not told unless asked for: the first has a rule of its own, the second no packet noticed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IncidentRule(Rule):
    """Route incidents of these causes; `least_cost_ns`: whose cost is surely that large."""

    causes: tuple[Cause, ...] = tuple(one for one in Cause if one not in SILENT_CAUSES)
    least_cost_ns: int = 0
    """What has no cost, because nothing came back, is always told."""
    regions: tuple[str, ...] = ()
    sites: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentRule(Rule):
    """Agents of which nothing was heard for `after_ns`.

    `agents` are watched from the beginning, also by their samples in the store.
    """

    after_ns: int = 5 * MINUTE_NS
    agents: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRule(Rule):
    """BGP feeds that say nothing for longer than the file of feeds allows; empty: all."""

    feeds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockRule(Rule):
    """Clocks that are not synchronised, may be wrong by more than this, or were stepped by more."""

    most_offset_ns: int = 50 * MILLISECOND_NS
    most_step_ns: int = 50 * MILLISECOND_NS
    current_ns: int = 15 * MINUTE_NS
    """What an agent said longer ago says nothing of now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumptionRule(Rule):
    """Shares of handshakes resumed that fell by more than `fall` below what they had been."""

    recent_ns: int = HOUR_NS
    usual_ns: int = 24 * HOUR_NS
    """Before the recent ones."""
    fall: float = 0.1
    confidence: float = 0.95
    accept_ns: int = 7 * 24 * HOUR_NS
    """After so long the new share is the usual one."""


EveryRule = BudgetRule | IncidentRule | SilentRule | FeedRule | ClockRule | ResumptionRule

BLIND = Rule(
    name="blind",
    kind=AlertKind.BLIND,
    severity=Severity.PAGE,
    timing=Timing(for_ns=2 * MINUTE_NS),
)
"""There without being asked for: what cannot be seen cannot be told."""

SHORTEST_SLICE_NS = 5 * SECOND_NS


def slice_of(window_ns: int) -> int:
    """Slices of which a window has twelve or so, each of whole seconds."""
    return max(SHORTEST_SLICE_NS, window_ns // 12 // SECOND_NS * SECOND_NS)
