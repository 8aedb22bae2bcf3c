"""Whether feeds and peers are alive: silence of a dead feed is no news of stability."""

import re
from collections.abc import Iterable, Mapping

from pathbudget.analysis.routes.bgp_peers import Feed, FeedRules, Peer, PeerKey
from pathbudget.analysis.routes.model import FeedEvent, FeedState, FeedStatus, Window
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind

STALE = "stale"
"""Begins the detail of news that a feed is silent, in contrast to one that ended."""

ENDED_FOR_SILENCE = re.compile(r"notification sent \(4,|closed by the router, notification 4/")
"""Begins the detail where our end (exabgp) or the router's (BMP) closed a session because its peer
had said nothing for the hold time (RFC 4271, section 4.5, code 4). Where it is the peer that says
so, it was alive until then.
"""


class Freshness:
    """State of every feed. `peers` is the route table's own mapping."""

    def __init__(
        self, rules: Mapping[str, FeedRules], default: FeedRules, peers: Mapping[PeerKey, Peer]
    ) -> None:
        self._rules = dict(rules)
        self._default = default
        self._peers = peers
        self.feeds: dict[str, Feed] = {}
        self._quarantined: dict[str, int] = {}

    def rules_of(self, feed: str) -> FeedRules:
        """What is expected of it."""
        return self._rules.get(feed, self._default)

    def feed_of(self, update: RouteUpdate, time: int) -> Feed:
        """The feed of an update, which is counted."""
        feed = self.feeds.get(update.feed)
        if feed is None:
            feed = self.feeds[update.feed] = Feed(update.feed, update.feed_kind, time)
        feed.updates += 1
        if update.peer_address:
            feed.lags.append(max(update.arrived_unix_ns - update.time_unix_ns, 0))
        return feed

    def expect(self, name: str, kind: FeedKind, now_unix_ns: int) -> None:
        """A feed that is configured, and has said nothing yet."""
        self.feeds.setdefault(name, Feed(name, kind, now_unix_ns, FeedState.NEVER))

    def set_quarantined(self, feed: str, count: int) -> None:
        """How many messages of a feed its reader has set aside, from whoever reads it."""
        self._quarantined[feed] = count

    def counts(self, peer: Peer) -> bool:
        """Whether a peer counts for a quorum."""
        return peer.up and not peer.stale and self.feeds[peer.feed].state is FeedState.LIVE

    def told(self, feed: Feed, update: RouteUpdate, time: int) -> list[FeedEvent]:
        """News of the feed as a whole, from whoever runs it."""
        if update.kind is UpdateKind.PEER_UP:
            feed.heartbeat_unix_ns = feed.last_unix_ns = time
            return self._set(feed, FeedState.LIVE, time, update.detail)
        if update.kind is not UpdateKind.PEER_DOWN:
            return []
        stale = update.detail.startswith(STALE)
        state = FeedState.STALE if stale else FeedState.DOWN
        return self._set(feed, state, time, update.detail)

    def heard(self, feed: Feed, peer: Peer, update: RouteUpdate, time: int) -> list[FeedEvent]:
        """A peer spoke. Returns who came back by that."""
        peer.last_unix_ns = max(peer.last_unix_ns, time)
        events: list[FeedEvent] = []
        rules = self.rules_of(feed.name)
        if update.prefix in rules.heartbeats:
            feed.heartbeat_unix_ns = max(feed.heartbeat_unix_ns or 0, time)
            if peer.stale:
                before = peer.heartbeat_unix_ns or peer.first_unix_ns
                events.append(_of(feed, peer, before, time, FeedState.STALE, FeedState.LIVE))
            peer.heartbeat_unix_ns, peer.stale = time, False
        alive = update.prefix in rules.heartbeats or not rules.heartbeats
        if feed.state is not FeedState.LIVE and alive:
            events += self._set(feed, FeedState.LIVE, time, "")
        feed.last_unix_ns = max(feed.last_unix_ns or 0, time)
        return events

    def peer_up(self, peer: Peer, time: int) -> list[FeedEvent]:
        """Its session is there again."""
        if peer.down_unix_ns is None or peer.up:
            return []
        feed = self.feeds[peer.feed]
        return [_of(feed, peer, peer.down_unix_ns, time, FeedState.DOWN, FeedState.LIVE)]

    def peer_down(self, peer: Peer, time: int, why: str, heard_unix_ns: int) -> list[FeedEvent]:
        """Its session ended; for silence, at some time since its last word before."""
        feed = self.feeds[peer.feed]
        state = FeedState.STALE if peer.stale else FeedState.LIVE
        after = min(heard_unix_ns, time) if ENDED_FOR_SILENCE.match(why) else time
        return [_of(feed, peer, after, time, state, FeedState.DOWN, why)]

    def advance(self, now_unix_ns: int) -> list[FeedEvent]:
        """Who has been silent for too long by now."""
        events: list[FeedEvent] = []
        for feed in self.feeds.values():
            rules = self.rules_of(feed.name)
            limit = rules.stale_after_ns
            if limit is None or feed.state is not FeedState.LIVE:
                continue
            last = feed.sign_of_life(rules)
            if now_unix_ns - last > limit:
                why = f"{STALE}: no {'heartbeat' if rules.heartbeats else 'message'}"
                events += self._set(feed, FeedState.STALE, last + limit, why)
            elif rules.heartbeats:
                events += self._silent_peers(feed, limit, now_unix_ns)
        return events

    def _silent_peers(self, feed: Feed, limit: int, now_unix_ns: int) -> Iterable[FeedEvent]:
        """Peers that carried heartbeats, and no longer do while others still do."""
        for peer in self._peers.values():
            last = peer.heartbeat_unix_ns
            mine = peer.feed == feed.name and peer.up and not peer.stale
            if mine and last is not None and now_unix_ns - last > limit:
                peer.stale = True
                yield _of(feed, peer, last, last + limit, FeedState.LIVE, FeedState.STALE)

    def _set(self, feed: Feed, state: FeedState, time: int, detail: str) -> list[FeedEvent]:
        feed.detail = detail
        if feed.state is state:
            return []
        before, feed.state = feed.state, state
        last = feed.sign_of_life(self.rules_of(feed.name))
        if state is not FeedState.LIVE:
            for peer in self._peers.values():
                if peer.feed == feed.name:
                    peer.doubt_unix_ns = min(last, time)
        since = min(last, time)
        return [FeedEvent(feed.name, "", Window(since, time), before, state, detail)]

    def status(
        self, now_unix_ns: int, prefixes: Mapping[str, set[str]], *, full: bool = False
    ) -> list[FeedStatus]:
        """One entry per feed, by name."""
        return [
            self._status(feed, now_unix_ns, len(prefixes.get(name, ())), full=full)
            for name, feed in sorted(self.feeds.items())
        ]

    def _status(self, feed: Feed, now_unix_ns: int, prefixes: int, *, full: bool) -> FeedStatus:
        peers = [peer for peer in self._peers.values() if peer.feed == feed.name]
        last = feed.last_unix_ns
        notes = [feed.detail] if feed.detail else []
        if feed.late:
            notes.append(f"{feed.late} updates older than what was known")
        if full:
            notes.append("the table is full: further routes are left out")
        return FeedStatus(
            feed=feed.name,
            kind=feed.kind,
            state=feed.state,
            last_unix_ns=last,
            age_ns=None if last is None else max(now_unix_ns - last, 0),
            lag_ns=feed.lag_ns(),
            peers=len(peers),
            peers_live=sum(map(self.counts, peers)),
            prefixes=prefixes,
            updates=feed.updates,
            quarantined=feed.from_the_future + self._quarantined.get(feed.name, 0),
            detail="; ".join(notes),
        )


def _of(
    feed: Feed,
    peer: Peer,
    after: int,
    by: int,
    before: FeedState,
    state: FeedState,
    detail: str = "",
) -> FeedEvent:
    return FeedEvent(feed.name, peer.address, Window(after, by), before, state, detail)
