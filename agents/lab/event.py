"""What can happen to a world. `events.py` says what it makes of the world."""

from dataclasses import dataclass
from enum import StrEnum

from pathbudget.agents.lab.link import Variation


class EventKind(StrEnum):
    """What can happen."""

    LINK_DOWN = "link_down"
    DEGRADE = "degrade"
    QUEUE = "queue"
    PREFER = "prefer"
    PREPEND = "prepend"
    WITHDRAW = "withdraw"
    SESSION_DOWN = "session_down"
    HIJACK = "hijack"
    ICMP_RATE = "icmp_rate"
    SILENT = "silent"
    MTU = "mtu"
    BLACK_HOLE = "black_hole"
    FEED_DEAD = "feed_dead"


ROUTING = (
    EventKind.PREFER, EventKind.PREPEND, EventKind.WITHDRAW, EventKind.SESSION_DOWN,
    EventKind.HIJACK, EventKind.FEED_DEAD,
)  # fmt: skip
"""Those that need BGP."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event. Which of the fields mean something depends on `kind` (docs/lab.md)."""

    kind: EventKind
    at_ns: int
    """After the beginning of play."""
    for_ns: int | None = None
    """How long it lasts; None: to the end."""
    links: tuple[int, ...] = ()
    """Indices in `World.links`."""
    source: str = ""
    """Packets that this node sends over the links; empty: both directions."""
    member: int | None = None
    """Of a bundle, from 0; None: all of it."""
    node: str = ""
    neighbour: str = ""
    """Empty: all neighbours."""
    extra_ns: int = 0
    loss: float = 0.0
    variation: Variation | None = None
    over_ns: int = 0
    """The delay gets there at an even pace within so much."""
    number: int = 0
    """LOCAL_PREF, prepends, or octets."""
    rate_ns: int | None = None
    listener: str = ""
    victim: str = ""
    silently: bool = False
    """Of a link: no end sees it. Of a feed: its session stays and says nothing."""

    @property
    def ends_ns(self) -> int | None:
        """When it is over."""
        return None if self.for_ns is None else self.at_ns + self.for_ns
