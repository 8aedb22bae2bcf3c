"""What one BGP peer holds, and what its feed is worth.

A route is held by the peer (`texts` of its AS paths without prepends), void since its session
ended, or unknown. Silence of a peer that never spoke of a prefix is no news.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from statistics import median

from pathbudget.analysis.routes.model import FeedState
from pathbudget.probes.bgp.record import FeedKind, without_prepends

PeerKey = tuple[str, str]
"""Collector (or feed, where it names none) and address."""

ABSENT = ""
"""State of a route that the peer does not have."""
_LAGS = 512


@dataclass(frozen=True, slots=True)
class FeedRules:
    """What is expected of a feed. `stale_after_ns` None: silence is never held against it.

    `heartbeats`: prefixes that change on a schedule, such as RIS beacons. Where there are some,
    only they count as signs of life. `denied`: addresses and ``AS64500`` of peers to leave out.
    """

    stale_after_ns: int | None = None
    heartbeats: frozenset[str] = frozenset()
    denied: frozenset[str] = frozenset()

    def denies(self, address: str, asn: int) -> bool:
        """Whether a peer is left out."""
        return address in self.denied or f"AS{asn}" in self.denied


@dataclass(slots=True)
class Held:
    """Routes of one peer to one prefix, by path identifier; none: it has no route."""

    time_unix_ns: int
    paths: dict[int | None, str] = field(default_factory=dict[int | None, str])
    void: bool = False
    """Since the session ended; the paths are what it had before."""
    first_unix_ns: int = 0
    """When it was first heard of."""
    before_void: str | None = None
    """What there was before the session ended, while several paths of its new table come in."""

    @property
    def state(self) -> str:
        """All paths without prepends, as one text; `ABSENT` for none."""
        if len(self.paths) == 1:
            (path,) = self.paths.values()
            return without_prepends(path) or OWN
        return " | ".join(sorted({without_prepends(path) or OWN for path in self.paths.values()}))


OWN = "i"
"""An empty AS path, as an iBGP session has it: the prefix is of the AS itself (RFC 4271, 5.1.2)."""


@dataclass(slots=True)
class Peer:
    """One peer of one feed."""

    key: PeerKey
    feed: str
    address: str
    asn: int
    first_unix_ns: int
    last_unix_ns: int
    up: bool = True
    since_unix_ns: int | None = None
    """When its session came up, while its first table is not complete."""
    down_unix_ns: int | None = None
    doubt_unix_ns: int | None = None
    """Since when changes may have been missed: the feed was away."""
    heartbeat_unix_ns: int | None = None
    stale: bool = False
    complete: set[str] = field(default_factory=set[str])
    """Families whose whole table we have heard."""
    routes: dict[str, Held] = field(default_factory=dict[str, Held])


@dataclass(slots=True)
class Feed:
    """One feed, and the counts that `FeedStatus` shows."""

    name: str
    kind: FeedKind
    first_unix_ns: int
    state: FeedState = FeedState.LIVE
    last_unix_ns: int | None = None
    heartbeat_unix_ns: int | None = None
    updates: int = 0
    from_the_future: int = 0
    late: int = 0
    detail: str = ""
    lags: deque[int] = field(default_factory=lambda: deque[int](maxlen=_LAGS))

    def sign_of_life(self, rules: FeedRules) -> int:
        """When it was last known to be well."""
        last = self.heartbeat_unix_ns if rules.heartbeats else self.last_unix_ns
        return self.first_unix_ns if last is None else last

    def lag_ns(self) -> int | None:
        """Arrival minus the source's own time, median of late."""
        return round(median(self.lags)) if self.lags else None


def is_table_of(peer: Peer, prefix: str) -> bool:
    """Whether a prefix that the peer does not hold is one that it does not have."""
    return family_of(prefix) in peer.complete


def family_of(prefix: str) -> str:
    """``ipv4 unicast`` or ``ipv6 unicast``."""
    return "ipv6 unicast" if ":" in prefix else "ipv4 unicast"


def origins_of(state: str) -> set[int | None]:
    """Origin of each path of a state; None where a path ends in a set."""
    found: set[int | None] = set()
    for path in state.split(" | ") if state else ():
        last = path.rsplit(None, 1)[-1]
        if last != OWN:
            found.add(int(last) if last.isdecimal() else None)
    return found


def most_common(states: Iterable[str]) -> str:
    """The state that most peers have; of equals the first in the alphabet."""
    counts: dict[str, int] = {}
    for state in states:
        counts[state] = counts.get(state, 0) + 1
    return min(counts, key=lambda state: (-counts[state], state), default=ABSENT)
