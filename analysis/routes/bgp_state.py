"""The state of site prefixes at every BGP peer, and what changed: updates in, events out.

    update  ->  RouteTable.see      ->  BgpEvent, FeedEvent
    now     ->  RouteTable.advance  ->  the same: a convergence is over, a feed fell silent
    now     ->  RouteTable.status   ->  what each feed is worth

Pure: no clock, no file. A table of a store's updates is fed in the order of time; at its end,
`finish` closes what is open. docs/bgp.md says in words what counts as a change.
"""

from collections.abc import Mapping, Sequence

from pathbudget.analysis.routes.bgp_freshness import Freshness
from pathbudget.analysis.routes.bgp_peers import (
    ABSENT,
    Feed,
    FeedRules,
    Held,
    Peer,
    PeerKey,
    family_of,
    is_table_of,
)
from pathbudget.analysis.routes.bgp_prefixes import PrefixStatus, prefix_status
from pathbudget.analysis.routes.bgp_turns import Turn, event_of, outcomes
from pathbudget.analysis.routes.bgp_watch import Watch
from pathbudget.analysis.routes.model import BgpEvent, FeedEvent, FeedState, FeedStatus
from pathbudget.probes.bgp.record import RouteUpdate, UpdateKind
from pathbudget.sites.rpki import VrpTable

SECOND_NS = 1_000_000_000
SETTLE_NS = 60 * SECOND_NS
"""Quiet for so long: converged. Twice the usual interval between advertisements (RFC 4271, 10)."""
LONGEST_NS = 600 * SECOND_NS
"""A prefix that never settles is told of at least so often."""
AHEAD_NS = 60 * SECOND_NS
"""A clock that is further ahead than this is wrong; its updates count at their arrival."""
MOST_ROUTES = 1_000_000
LOOKS = 64
"""So many times per settle time it is looked what is over."""

Event = BgpEvent | FeedEvent


class RouteTable:
    """What all peers of all feeds hold of the prefixes that `watch` names.

    `vrps`: for RPKI states on events. Memory is bounded by `most_routes`, pairs of peer and prefix;
    what does not fit is counted in the feed's status.
    """

    def __init__(
        self,
        watch: Watch | None = None,
        *,
        feeds: Mapping[str, FeedRules] | None = None,
        rules: FeedRules | None = None,
        settle_ns: int = SETTLE_NS,
        longest_ns: int = LONGEST_NS,
        vrps: VrpTable | None = None,
        most_routes: int = MOST_ROUTES,
    ) -> None:
        self.watch = watch or Watch()
        self._settle_ns, self._longest_ns = settle_ns, longest_ns
        self._vrps = vrps
        self._most_routes = most_routes
        self._routes = 0
        self._turns: dict[str, Turn] = {}
        self._holders: dict[str, set[PeerKey]] = {}
        self._changes: dict[str, int] = {}
        self._booting: set[PeerKey] = set()
        """Peers whose first table may still be coming."""
        self._first_unix_ns: int | None = None
        self._now_unix_ns = self._looked_unix_ns = 0
        self.peers: dict[PeerKey, Peer] = {}
        self.freshness = Freshness(feeds or {}, rules or FeedRules(), self.peers)

    def see(self, update: RouteUpdate) -> list[Event]:
        """Take one update. Returns what is certain now, mostly about earlier ones."""
        time = min(update.time_unix_ns, update.arrived_unix_ns)
        events = self.advance(time)
        rules = self.freshness.rules_of(update.feed)
        feed = self.freshness.feed_of(update, time)
        if rules.denies(update.peer_address, update.peer_asn):
            return events
        if update.time_unix_ns > update.arrived_unix_ns + AHEAD_NS:
            feed.from_the_future += 1
        if not update.peer_address:
            if update.kind is UpdateKind.PEER_DOWN:
                for peer in self.peers.values():
                    if peer.feed == feed.name and self.freshness.counts(peer):
                        self._leave(peer)
            events += self.freshness.told(feed, update, time)
            return events
        peer = self._peer_of(update, time)
        heard = peer.last_unix_ns
        events += self.freshness.heard(feed, peer, update, time)
        if update.kind in {UpdateKind.PEER_UP, UpdateKind.PEER_DOWN}:
            events += self._session(peer, update, time, heard)
        elif update.kind is UpdateKind.END_OF_RIB:
            events += self._complete(peer, update.detail, time)
        elif self.watch.site_of(update.prefix) is not None:
            events += self._apply(feed, peer, update, time)
        return events

    def advance(self, now_unix_ns: int) -> list[Event]:
        """Time passes: whatever is over by now. A time that goes back counts for nothing."""
        self._first_unix_ns = self._first_unix_ns or now_unix_ns
        self._now_unix_ns = max(now_unix_ns, self._now_unix_ns)
        events: list[Event] = []
        if self._now_unix_ns - self._looked_unix_ns >= self._settle_ns // LOOKS:
            self._looked_unix_ns = self._now_unix_ns
            events += self._settle_tables()
            for turn in list(self._turns.values()):
                if turn.over(self._now_unix_ns, self._settle_ns, self._longest_ns):
                    events += self._close(turn)
            events += self.freshness.advance(self._now_unix_ns)
        return events

    def finish(self) -> list[Event]:
        """Nothing more comes: close every turn that is open."""
        events: list[Event] = []
        for turn in list(self._turns.values()):
            events += self._close(turn)
        return events

    def status(self, now_unix_ns: int) -> list[FeedStatus]:
        """What each feed is worth, by name."""
        prefixes: dict[str, set[str]] = {}
        for peer in self.peers.values():
            prefixes.setdefault(peer.feed, set()).update(peer.routes)
        full = self._routes >= self._most_routes
        return self.freshness.status(now_unix_ns, prefixes, full=full)

    def prefixes(self) -> list[PrefixStatus]:
        """State of every prefix, by site and prefix."""
        began = self._first_unix_ns or self._now_unix_ns
        found = [
            prefix_status(
                prefix,
                self.watch.site_of(prefix) or "",
                [(peer, peer.routes[prefix]) for peer in self._knowing(prefix)],
                self._changes.get(prefix, 0),
                self._now_unix_ns - began,
                self._vrps,
            )
            for prefix in self._holders
        ]
        return sorted(found, key=lambda one: (one.site, one.prefix))

    def _peer_of(self, update: RouteUpdate, time: int) -> Peer:
        key = (update.collector or update.feed, update.peer_address)
        peer = self.peers.get(key)
        if peer is None:
            peer = Peer(key, update.feed, update.peer_address, update.peer_asn, time, time)
            self.peers[key] = peer
        return peer

    def _session(
        self, peer: Peer, update: RouteUpdate, time: int, heard_unix_ns: int
    ) -> Sequence[Event]:
        if update.kind is UpdateKind.PEER_DOWN:
            if not peer.up:
                return ()
            events = self.freshness.peer_down(peer, time, update.detail, heard_unix_ns)
            self._leave(peer)
            self._void(peer, time)
            peer.up = False
            return events
        if peer.up and peer.key in self._booting:
            return ()
        events = self.freshness.peer_up(peer, time)
        if peer.up:  # that its session ended was not heard
            self._void(peer, heard_unix_ns)
        self._begin(peer, time)
        return events

    def _begin(self, peer: Peer, time: int) -> None:
        peer.up, peer.since_unix_ns = True, time
        self._booting.add(peer.key)

    def _leave(self, peer: Peer) -> None:
        """What it said until now counts for what is under way."""
        for prefix, turn in self._turns.items():
            held = peer.routes.get(prefix)
            if held is not None and not held.void:
                turn.leave(peer.key, held.state)

    def _void(self, peer: Peer, time: int) -> None:
        """The session is over: nobody knows what the peer has (RFC 4271, 8.2)."""
        peer.down_unix_ns, peer.since_unix_ns = time, None
        peer.complete.clear()
        self._booting.discard(peer.key)
        for held in peer.routes.values():
            held.void = True

    def _apply(self, feed: Feed, peer: Peer, update: RouteUpdate, time: int) -> Sequence[Event]:
        if not peer.up:  # that it came up was not heard
            self._begin(peer, time)
        prefix, held = update.prefix, peer.routes.get(update.prefix)
        if held is not None and time < held.time_unix_ns:
            feed.late += 1
            return ()
        events = self._overdue(prefix, time)
        before, since = self._before(peer, held, update, time)
        if held is None:
            if self._routes >= self._most_routes:
                return events
            held = peer.routes[prefix] = Held(time, first_unix_ns=time)
            self._routes += 1
            self._holders.setdefault(prefix, set()).add(peer.key)
        in_parts = self._comes_in_parts(peer, held, update, time)
        if held.void:
            held.before_void = held.state if in_parts else None
            held.void = False
            held.paths.clear()
        held.time_unix_ns = time
        if update.kind is UpdateKind.WITHDRAW:
            held.paths.pop(update.path_id, None)
        else:
            held.paths[update.path_id] = update.as_path
        after = held.state
        if not in_parts and before not in {_UNKNOWN, after}:
            self._changed(peer, prefix, before, after, since, time)
        return events

    def _comes_in_parts(self, peer: Peer, held: Held, update: RouteUpdate, time: int) -> bool:
        """Whether this is one of several paths of a first table (RFC 7911), which is compared with
        what there was when it is whole.
        """
        if update.path_id is None:
            return False
        if update.kind is UpdateKind.RIB:
            return held.first_unix_ns == time
        return peer.key in self._booting and not is_table_of(peer, update.prefix)

    def _before(
        self, peer: Peer, held: Held | None, update: RouteUpdate, time: int
    ) -> tuple[str | None, int]:
        """What the peer had, and since when it may have changed.

        `_UNKNOWN` where this is the first news and so no change; None where a route is withdrawn
        that we never saw.
        """
        doubt = peer.doubt_unix_ns
        if held is None:
            since = doubt or time
            if update.kind is UpdateKind.RIB:
                peer.complete.add(family_of(update.prefix))
                return _UNKNOWN, since
            if is_table_of(peer, update.prefix):
                return ABSENT, since
            return (None if update.kind is UpdateKind.WITHDRAW else _UNKNOWN), since
        if held.void:
            return held.state, peer.down_unix_ns or time
        if update.kind is UpdateKind.RIB:  # a change that no update told
            return held.state, held.time_unix_ns
        return held.state, doubt if doubt and held.time_unix_ns <= doubt else time

    def _changed(
        self, peer: Peer, prefix: str, before: str | None, after: str, since: int, time: int
    ) -> None:
        turn = self._turns.setdefault(prefix, Turn(prefix, time, time))
        turn.note(peer.key, before, after, min(since, time), time)

    def _overdue(self, prefix: str, time: int) -> Sequence[Event]:
        """Close a turn that is over by now, before anything changes."""
        turn = self._turns.get(prefix)
        over = turn is not None and turn.over(time, self._settle_ns, self._longest_ns)
        return self._close(turn) if over and turn is not None else ()

    def _complete(self, peer: Peer, family: str, time: int) -> list[Event]:
        """The first table of a session is whole: what was not in it is gone."""
        if family in peer.complete:
            return []
        peer.complete.add(family)
        events: list[Event] = []
        for prefix, held in peer.routes.items():
            before = held.state if held.void else held.before_void
            if before is None or family_of(prefix) != family:
                continue
            events += self._overdue(prefix, time)
            if held.void:
                held.void, held.time_unix_ns = False, time
                held.paths.clear()
            held.before_void = None
            if before != held.state:
                since = peer.down_unix_ns or time
                self._changed(peer, prefix, before, held.state, since, held.time_unix_ns)
        return events

    def _settle_tables(self) -> list[Event]:
        """Speakers without an end of RIB: a first table is whole when there was time for it."""
        events: list[Event] = []
        for peer in [self.peers[key] for key in self._booting]:
            whole = (peer.since_unix_ns or 0) + 2 * self._settle_ns
            if self._now_unix_ns >= whole:
                self._booting.discard(peer.key)
                for family in _FAMILIES:
                    events += self._complete(peer, family, whole)
        return events

    def _close(self, turn: Turn) -> Sequence[BgpEvent]:
        del self._turns[turn.prefix]
        knowing = self._knowing(turn.prefix)
        states = {peer.key: peer.routes[turn.prefix].state for peer in knowing}
        others = [
            state for key, state in states.items() if key not in turn.changes and state != ABSENT
        ]
        if self._shadowed(turn):
            return ()
        site = self.watch.site_of(turn.prefix) or ""
        found = outcomes(turn, states.get)
        gone = sum(key not in states for key in turn.changes) - (len(turn.changes) - len(found))
        live = len(knowing) + gone + self._known_to_lack(turn.prefix)
        event = event_of(turn, site, found, others, live, self._vrps)
        if event is None:
            return ()
        self._changes[turn.prefix] = self._changes.get(turn.prefix, 0) + 1
        return (event,)

    def _shadowed(self, turn: Turn) -> bool:
        """Whether the packets that we care for follow a longer prefix at every peer anyway."""
        longer = self.watch.shadowed_by(turn.prefix, self._holders)
        if not longer:
            return False
        return all(
            any(self._holds(self.peers[key], prefix) for prefix in longer) for key in turn.changes
        )

    @staticmethod
    def _holds(peer: Peer, prefix: str) -> bool:
        held = peer.routes.get(prefix)
        return held is not None and not held.void and held.state != ABSENT

    def _known_to_lack(self, prefix: str) -> int:
        """Live peers whose whole table we have, and whose table never had the prefix."""
        holders = self._holders.get(prefix, set())
        return sum(
            key not in holders and is_table_of(peer, prefix) and self.freshness.counts(peer)
            for key, peer in self.peers.items()
        )

    def _knowing(self, prefix: str) -> list[Peer]:
        """Live peers whose state of `prefix` is known: those that count for a quorum."""
        peers = (self.peers[key] for key in self._holders.get(prefix, ()))
        return [
            peer for peer in peers if self.freshness.counts(peer) and not peer.routes[prefix].void
        ]


_UNKNOWN = "?"
"""Not known: what comes first is no change."""
_FAMILIES = ("ipv4 unicast", "ipv6 unicast")

__all__ = ["Event", "FeedRules", "FeedState", "PrefixStatus", "RouteTable", "Watch"]
