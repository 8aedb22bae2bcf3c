"""Feeds that fall silent: stale is a state of its own, and stale peers do not vote."""

from typing import Any

import pytest

from pathbudget.analysis.routes.bgp_state import FeedRules, RouteTable, Watch
from pathbudget.analysis.routes.model import BgpEvent, FeedEvent, FeedState, Window
from pathbudget.probes.bgp.record import FeedKind

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
PREFIX, BEACON = "203.0.113.0/24", "84.205.64.0/24"
A, B = "64501 65012 65201", "64501 65013 65201"


def at(seconds: float) -> int:
    return START + round(seconds * SECOND)


def table(**rules: Any) -> RouteTable:
    feeds = {"edge": FeedRules(stale_after_ns=600 * SECOND, **rules)}
    return RouteTable(Watch.of_sites([("frankfurt", PREFIX)]), feeds=feeds)


def silent(after: float, by: float, *, heartbeat: bool = False) -> FeedEvent:
    detail = f"stale: no {'heartbeat' if heartbeat else 'message'}"
    return FeedEvent("edge", "", Window(at(after), at(by)), FeedState.LIVE, FeedState.STALE, detail)


def test_silence_is_told_once_and_so_is_its_end(talk: Any) -> None:
    routes = table()
    routes.see(talk.rib(0, A))
    assert routes.advance(at(600)) == []
    assert routes.advance(at(700)) == [silent(0, 600)]
    assert routes.advance(at(5000)) == []
    assert routes.status(at(5000))[0].state is FeedState.STALE
    assert routes.status(at(5000))[0].age_ns == 5000 * SECOND
    back = routes.see(talk.announce(6000, A))
    assert back == [FeedEvent("edge", "", Window(at(0), at(6000)), FeedState.STALE, FeedState.LIVE)]


def test_only_heartbeats_count_where_there_are_some(talk: Any) -> None:
    """BGPalerter 535 and 627: connected, chatting, and without news for days."""
    routes = table(heartbeats=frozenset((BEACON,)))
    routes.see(talk.announce(0, A, prefix=BEACON))
    chatter = [talk.announce(seconds, A) for seconds in range(100, 900, 100)]
    events = [event for update in chatter for event in routes.see(update)]
    assert events == [silent(0, 600, heartbeat=True)]
    (back,) = routes.see(talk.withdraw(1000, prefix=BEACON))
    assert isinstance(back, FeedEvent)
    assert back.after is FeedState.LIVE


def test_a_stale_peer_does_not_vote(talk: Any) -> None:
    routes = table(heartbeats=frozenset((BEACON,)))
    for peer in (1, 2):
        routes.see(talk.rib(0, A, peer))
        routes.see(talk.announce(0, A, peer, prefix=BEACON))
    events: list[Any] = []
    for seconds in (300, 500, 700, 900):
        events += routes.see(talk.announce(seconds, A, 1, prefix=BEACON))
    (stale,) = events
    assert (stale.peer, stale.after) == ("192.0.2.2", FeedState.STALE)
    routes.see(talk.announce(950, B, 1))
    (event,) = [one for one in routes.advance(at(1100)) if isinstance(one, BgpEvent)]
    assert (event.peers_changed, event.peers_live) == (1, 1)
    status = routes.status(at(1100))[0]
    assert (status.peers, status.peers_live) == (2, 1)


def test_a_change_while_a_feed_was_away_lies_in_between(talk: Any) -> None:
    routes = table()
    routes.see(talk.rib(0, A))
    lost = talk.say("peer_down", 50, peer_address="", peer_asn=0, detail="connection lost")
    assert [event.after for event in routes.see(lost)] == [FeedState.DOWN]
    assert routes.status(at(60))[0].peers_live == 0
    routes.see(talk.say("peer_up", 90, peer_address="", peer_asn=0))
    routes.see(talk.announce(100, B))
    (event,) = [one for one in routes.advance(at(300)) if isinstance(one, BgpEvent)]
    assert event.window == Window(at(0), at(100))
    routes.see(talk.announce(400, A))
    (event,) = [one for one in routes.advance(at(500)) if isinstance(one, BgpEvent)]
    assert event.window == Window(at(400), at(400))


def test_what_runs_a_feed_may_say_that_it_is_stale(talk: Any) -> None:
    """So a store that is read again tells of it without the configuration."""
    routes = RouteTable()
    routes.see(talk.rib(0, A))
    (event,) = routes.see(talk.say("peer_down", 50, peer_address="", detail="stale: no message"))
    assert isinstance(event, FeedEvent)
    assert event.after is FeedState.STALE


def test_a_feed_that_is_expected_and_never_speaks(talk: Any) -> None:
    routes = table()
    routes.freshness.expect("edge", FeedKind.SESSION, START)
    assert routes.status(at(10))[0].state is FeedState.NEVER
    assert routes.status(at(10))[0].age_ns is None
    routes.see(talk.rib(20, A))
    assert routes.status(at(30))[0].state is FeedState.LIVE


def test_lag_and_what_readers_set_aside(talk: Any) -> None:
    routes = table()
    for lag in (1, 2, 30):
        routes.see(talk.announce(0, A, arrived_unix_ns=at(lag)))
    routes.freshness.set_quarantined("edge", 4)
    status = routes.status(at(40))[0]
    assert (status.lag_ns, status.quarantined, status.updates) == (2 * SECOND, 4, 3)


@pytest.mark.parametrize(
    ("why", "after"),
    [
        ("notification sent (4,0)", 20),
        ("closed by the router, notification 4/0 (hold timer expired)", 20),
        ("closed by the peer, notification 4/0 (hold timer expired)", 50),
        ("notification 4/0 (hold timer expired)", 50),
        ("notification received (4,0)", 50),
        ("notification received (6,3)", 50),
        ("notification sent (6,4)", 50),
        ("", 50),
    ],
)
def test_a_session_that_ended_for_silence_died_after_its_last_word(
    talk: Any, why: str, after: float
) -> None:
    """The hold time passes before anybody notices (RFC 4271, section 6.5)."""
    routes = table()
    routes.see(talk.rib(0, A))
    routes.see(talk.announce(20, A))
    (event,) = routes.see(talk.say("peer_down", 50, detail=why))
    assert isinstance(event, FeedEvent)
    assert event.window == Window(at(after), at(50))
