"""All feeds of a file at work: into the journal and the store, and through the route table.

What a peer said is in the journal before anything else is done with it; the journal is brought
into the store every minute, and by ``pathbudget store recover`` if this process dies before.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable

from pathbudget.agents.bgp.bmp_feed import BmpFeed
from pathbudget.agents.bgp.hearing import Feed
from pathbudget.agents.bgp.mrt_feed import MrtFeed
from pathbudget.agents.bgp.plans import (
    BgpPlan,
    BmpPlan,
    FeedPlan,
    MrtPlan,
    RisLivePlan,
    SessionPlan,
)
from pathbudget.agents.bgp.ris_feed import RisLiveFeed
from pathbudget.agents.bgp.session_feed import SessionFeed
from pathbudget.agents.store.parquet import Store
from pathbudget.agents.store.recovery import commit_updates
from pathbudget.agents.store.update_journal import UpdateJournal
from pathbudget.analysis.routes.bgp_state import Event, RouteTable
from pathbudget.analysis.routes.model import FeedEvent, FeedState
from pathbudget.probes.bgp.identity import digest_of, update_id
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind
from pathbudget.sites.rpki import load_vrps

COMMIT_S = 60.0
MOST_WAITING = 50_000
"""Updates after which the journal is brought in at once."""
TICK_S = 0.5
SHOWN = 20


class Hearing:
    """The listener of all feeds. `tell` gets each event as it is certain."""

    def __init__(
        self,
        plan: BgpPlan,
        store: Store | None,
        tell: Callable[[Event], None] = lambda _event: None,
    ) -> None:
        self.plan = plan
        self.table = RouteTable(
            plan.watch,
            feeds={feed.name: feed.rules for feed in plan.feeds},
            settle_ns=plan.settle_ns,
            vrps=load_vrps(plan.vrps) if plan.vrps else None,
        )
        self.events: deque[Event] = deque(maxlen=SHOWN)
        self.notes: dict[str, str] = {}
        """What each feed said of itself last."""
        self.stored = 0
        self._store = store
        self._tell = tell
        self._kinds = {feed.name: feed.kind for feed in plan.feeds}
        self._heartbeats = plan.heartbeats
        self._watch = plan.watch
        self._journal: UpdateJournal | None = None
        self._waiting = 0
        now = time.time_ns()
        for feed in plan.feeds:
            self.table.freshness.expect(feed.name, feed.kind, now)

    def hear(self, updates: Iterable[RouteUpdate]) -> None:
        """Keep what concerns our prefixes and sessions, and see what it changes."""
        for update in updates:
            if self._concerns_us(update.prefix):
                self._keep(update)
                self._told(self.table.see(update))

    def connected(self, feed: str, detail: str = "") -> None:
        """The feed works (again)."""
        self.notes[feed] = detail
        if self._state_of(feed) in {FeedState.DOWN, FeedState.STALE}:
            self._of_feed(feed, UpdateKind.PEER_UP, detail)

    def lost(self, feed: str, why: str) -> None:
        """The feed is away."""
        self.notes[feed] = why
        if self._state_of(feed) in {FeedState.LIVE, FeedState.STALE}:
            self._of_feed(feed, UpdateKind.PEER_DOWN, why)

    def set_aside(self, feed: str, count: int, why: str = "") -> None:
        """So many messages of the feed could not be read until now."""
        self.table.freshness.set_quarantined(feed, count)
        if why:
            self.notes[feed] = why

    def tick(self) -> None:
        """Time passes."""
        events = self.table.advance(time.time_ns())
        for event in events:
            fell_silent = isinstance(event, FeedEvent) and event.after is FeedState.STALE
            if fell_silent and isinstance(event, FeedEvent) and not event.peer:
                self._keep(self._news(event.feed, UpdateKind.PEER_DOWN, event.detail))
        self._told(events)

    @property
    def full(self) -> bool:
        """Whether the journal should be brought into the store now."""
        return self._waiting >= MOST_WAITING

    def commit(self) -> None:
        """Bring what was heard until now into the store. Takes time; safe in another thread only
        while nobody hears.
        """
        journal, self._journal = self._journal, None
        if journal is None or self._store is None:
            return
        journal.close()
        self._waiting = 0
        self.stored += commit_updates(journal.path, self._store).updates

    def take_journal(self) -> UpdateJournal | None:
        """The journal as it is, for `bring_in`; the next update begins another one."""
        journal, self._journal, self._waiting = self._journal, None, 0
        return journal

    def _concerns_us(self, prefix: str) -> bool:
        ours = not prefix or prefix in self._heartbeats
        return ours or self._watch.site_of(prefix) is not None

    def _keep(self, update: RouteUpdate) -> None:
        if self._store is None:
            return
        if self._journal is None:
            self._journal = UpdateJournal.begin(self._store.spool, time.time_ns())
        self._journal.append(update)
        self._waiting += 1

    def _state_of(self, feed: str) -> FeedState:
        return self.table.freshness.feeds[feed].state

    def _of_feed(self, feed: str, kind: UpdateKind, detail: str) -> None:
        update = self._news(feed, kind, detail)
        self._keep(update)
        self._told(self.table.see(update))

    def _news(self, feed: str, kind: UpdateKind, detail: str) -> RouteUpdate:
        """News of a feed as a whole."""
        now = time.time_ns()
        known: FeedKind = self._kinds[feed]
        digest = digest_of(feed.encode(), kind.encode(), detail.encode())
        return RouteUpdate(
            id=update_id(now, 0, 0, digest),
            feed=feed,
            feed_kind=known,
            peer_address="",
            peer_asn=0,
            kind=kind,
            time_unix_ns=now,
            arrived_unix_ns=now,
            detail=detail,
        )

    def _told(self, events: Iterable[Event]) -> None:
        for event in events:
            self.events.append(event)
            self._tell(event)


def feed_of(plan: FeedPlan, prefixes: Iterable[str]) -> Feed:
    """The feed that a plan describes; RIS Live is asked about `prefixes`."""
    source = plan.source
    if isinstance(source, SessionPlan):
        return SessionFeed(plan.name, source)
    if isinstance(source, RisLivePlan):
        asked = dict.fromkeys((*prefixes, *sorted(plan.rules.heartbeats)))
        return RisLiveFeed(plan.name, source, tuple(asked))
    if isinstance(source, MrtPlan):
        return MrtFeed(plan.name, source)
    assert isinstance(source, BmpPlan)
    return BmpFeed(plan.name, source)


async def listen(hearing: Hearing, store: Store | None, until: asyncio.Event) -> None:
    """Run all feeds until `until`; then everything is in the store.

    Raises PathbudgetError when a feed cannot work at all.
    """
    prefixes = [prefix for _, prefix in hearing.plan.prefixes]
    feeds = [feed_of(plan, prefixes) for plan in hearing.plan.feeds]
    tasks = [asyncio.ensure_future(feed.run(hearing)) for feed in feeds]
    tasks.append(asyncio.ensure_future(_tick(hearing, store)))
    stopping = asyncio.ensure_future(until.wait())
    try:
        done, _ = await asyncio.wait({*tasks, stopping}, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        stopping.cancel()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        hearing.commit()


async def _tick(hearing: Hearing, store: Store | None) -> None:
    loop = asyncio.get_running_loop()
    due = loop.time() + COMMIT_S
    while True:
        await asyncio.sleep(TICK_S)
        hearing.tick()
        if store is not None and (loop.time() >= due or hearing.full):
            due = loop.time() + COMMIT_S
            journal = hearing.take_journal()
            if journal is not None:
                hearing.stored += await asyncio.to_thread(_bring_in, journal, store)


def _bring_in(journal: UpdateJournal, store: Store) -> int:
    journal.close()
    return commit_updates(journal.path, store).updates
