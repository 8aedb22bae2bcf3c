"""The words of alerts. Read this first.

Signal      what a rule says of one subject now: bad, good, or undecided
AlertState  what has become of that over time
Notice      news of an alert for people: it fires, it still does, it is over
Timing      how long bad must last, good must last, and how often is told
"""

from collections.abc import Mapping
from enum import StrEnum

import msgspec

SECOND_NS = 1_000_000_000
MINUTE_NS, HOUR_NS, DAY_NS = 60 * SECOND_NS, 3600 * SECOND_NS, 86_400 * SECOND_NS


class AlertKind(StrEnum):
    """What is watched."""

    BUDGET_AT_RISK = "budget_at_risk"
    """Requests exceed a line's allowance so often that its percentile will not hold."""
    ROUTE_INCIDENT = "route_incident"
    AGENT_SILENT = "agent_silent"
    FEED_STALE = "feed_stale"
    CLOCK_BAD = "clock_bad"
    RESUMPTION_FALLEN = "resumption_fallen"
    """Handshakes that offer a ticket are resumed less often than before."""
    BLIND = "blind"
    """A source of evidence cannot be read: what it would say is unknown."""


class Severity(StrEnum):
    """Who has to look, and when."""

    PAGE = "page"
    """Somebody, at once."""
    TICKET = "ticket"
    """Somebody, some time."""


class Signal(msgspec.Struct, frozen=True):
    """What a rule says of one subject now. The same subject has the same `key` for ever."""

    key: str
    rule: str
    kind: AlertKind
    severity: Severity
    bad: bool | None
    """None: what was measured cannot decide. An alert stays as it is then."""
    summary: str
    """One sentence."""
    labels: dict[str, str] = {}
    """Words that tell the subject: region, site, agent ..."""
    numbers: dict[str, float | None] = {}
    """What was measured, units in the names."""
    began_unix_ns: int | None = None
    """When it began, where that is known better than by when it was noticed."""
    ended_unix_ns: int | None = None
    kept: dict[str, float] = {}
    """What is to be kept of the time before the alert while it lasts."""


class Timing(msgspec.Struct, frozen=True):
    """When an alert is told. All in ns."""

    for_ns: int = 0
    """How long it must be bad before it fires."""
    fade_ns: int = 5 * MINUTE_NS
    """How long it must be good before it is over; bad again meanwhile is the same alert."""
    repeat_ns: int = 15 * MINUTE_NS
    """After which it is told again, then after twice that, and so on."""
    repeat_most_ns: int = DAY_NS
    forget_ns: int = 7 * DAY_NS
    """An alert that nothing was seen of for so long is over."""


class Phase(StrEnum):
    """How far it is."""

    PENDING = "pending"
    FIRING = "firing"
    OVER = "over"
    """Kept a while, so that it is not told again too soon."""


class AlertState(msgspec.Struct, frozen=True, omit_defaults=True):
    """One alert. `signal` is the last that was bad, or, once over, the one that ended it."""

    signal: Signal
    phase: Phase
    since_unix_ns: int
    """Since when it has been bad."""
    seen_unix_ns: int
    """When evidence last decided."""
    fired_unix_ns: int | None = None
    good_since_unix_ns: int | None = None
    over_unix_ns: int | None = None
    told_unix_ns: int | None = None
    """When it was last told that it fires, this time or the time before."""
    told_times: int = 0
    """How often, since it fired; 0: nobody knows of it."""
    returns: int = 0
    """How often it came back while it faded."""

    @property
    def key(self) -> str:
        """Of the subject."""
        return self.signal.key


class News(StrEnum):
    """What a notice tells."""

    FIRING = "firing"
    STILL = "still_firing"
    RESOLVED = "resolved"


class Notice(msgspec.Struct, frozen=True):
    """News of one alert."""

    news: News
    at_unix_ns: int
    state: AlertState


Kept = Mapping[str, Mapping[str, float]]
"""What firing and pending alerts keep, by key."""
