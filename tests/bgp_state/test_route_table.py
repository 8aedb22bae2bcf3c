"""What is an event and what is none, with k of n peers on each."""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.routes.bgp_state import FeedRules, RouteTable, Watch
from pathbudget.analysis.routes.model import BgpEvent, BgpEventKind, FeedEvent, FeedState, Window
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind
from pathbudget.sites.rpki import read_vrps

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
PREFIX = "203.0.113.0/24"
A, B, C = "64501 65012 65201", "64501 65013 65201", "64501 65014 65013 65201"
Event = BgpEvent | FeedEvent


def at(seconds: float) -> int:
    return START + round(seconds * SECOND)


def told(table: RouteTable, updates: Iterable[RouteUpdate], until: float = 10_000) -> list[Event]:
    events: list[Event] = []
    for update in updates:
        events += table.see(update)
    return [*events, *table.advance(at(until))]


def of_bgp(events: Iterable[Event]) -> list[BgpEvent]:
    return [event for event in events if isinstance(event, BgpEvent)]


def sites(**more: Any) -> RouteTable:
    return RouteTable(Watch.of_sites([("frankfurt", PREFIX)]), **more)


def test_a_shift_seen_by_three_of_four_peers_is_one_event(talk: Any) -> None:
    table = sites()
    first = [talk.rib(0, A, peer) for peer in (1, 2, 3, 4)]
    moved = [talk.announce(100 + peer, B, peer) for peer in (1, 2, 3)]
    (event,) = of_bgp(told(table, [*first, *moved]))
    assert event == BgpEvent(
        BgpEventKind.PATH, PREFIX, "frankfurt", Window(at(101), at(103)), 3, 4, A, B
    )


def test_a_starting_state_is_no_change(talk: Any) -> None:
    updates = [talk.rib(0, A), talk.announce(5, A), talk.announce(6, f"64501 {A}")]
    assert told(sites(), updates) == []


def test_prepending_moves_nobody(talk: Any) -> None:
    prepended = "64501 64501 64501 65012 65201 65201"
    assert of_bgp(told(sites(), [talk.rib(0, A), talk.announce(9, prepended)])) == []


def test_path_hunting_is_one_event_per_convergence(talk: Any) -> None:
    """A withdrawal behind two other tries (Labovitz 2000), heard by two peers."""
    table = sites()
    hunt = [
        update
        for peer in (1, 2)
        for update in (talk.announce(50 + peer, B, peer), talk.announce(80 + peer, C, peer),
                       talk.withdraw(110 + peer, peer))
    ]  # fmt: skip
    hunt.sort(key=lambda update: update.time_unix_ns)
    (event,) = of_bgp(told(table, [talk.rib(0, A, 1), talk.rib(0, A, 2), *hunt]))
    assert (event.kind, event.before, event.after) == (BgpEventKind.WITHDRAWN, A, "")
    assert (event.peers_changed, event.peers_live) == (2, 2)
    assert event.window == Window(at(51), at(112))


def test_withdrawn_at_some_and_alive_at_others_is_a_path_event(talk: Any) -> None:
    table = sites()
    (event,) = of_bgp(told(table, [talk.rib(0, A, 1), talk.rib(0, A, 2), talk.withdraw(9, 1)]))
    assert (event.kind, event.peers_changed, event.peers_live) == (BgpEventKind.PATH, 1, 2)


def test_away_and_back_within_the_settle_time_is_one_flap(talk: Any) -> None:
    table = sites()
    updates = [talk.rib(0, A), talk.withdraw(100), talk.announce(120, A)]
    (event,) = of_bgp(told(table, updates))
    assert (event.kind, event.before, event.after) == (BgpEventKind.WITHDRAWN, A, "")
    assert event.back == Window(at(100), at(120))


def test_two_changes_apart_are_two_events(talk: Any) -> None:
    updates = [talk.rib(0, A), talk.announce(100, B), talk.announce(300, A)]
    events = of_bgp(told(sites(), updates))
    assert [(e.before, e.after) for e in events] == [(A, B), (B, A)]
    assert [e.window for e in events] == [Window(at(100), at(100)), Window(at(300), at(300))]


def test_what_never_settles_is_told_of_all_the_same(talk: Any) -> None:
    flaps = [talk.announce(30 * n, B if n % 2 else A) for n in range(1, 60)]
    events = of_bgp(told(sites(), [talk.rib(0, A), *flaps]))
    assert 2 <= len(events) <= 4


def test_a_session_that_ends_withdraws_nothing(talk: Any) -> None:
    table = sites()
    updates = [talk.rib(0, A, 1), talk.rib(0, A, 2), talk.say("peer_down", 50, 1, detail="cease")]
    events = told(table, updates)
    assert of_bgp(events) == []
    (down,) = events
    assert down == FeedEvent(
        "edge", "192.0.2.1", Window(at(50), at(50)), FeedState.LIVE, FeedState.DOWN, "cease"
    )
    (event,) = of_bgp(told(table, [talk.announce(20_000, B, 2)], 30_000))
    assert (event.peers_changed, event.peers_live) == (1, 1)


def test_what_a_peer_said_before_its_session_ended_counts(talk: Any) -> None:
    table = sites()
    updates = [talk.rib(0, A, 1), talk.rib(0, A, 2), talk.announce(50, B, 1),
               talk.say("peer_down", 52, 1)]  # fmt: skip
    (event,) = of_bgp(told(table, updates))
    assert (event.before, event.after) == (A, B)
    assert (event.peers_changed, event.peers_live) == (1, 2)


def test_a_session_that_comes_back_with_the_same_table_changed_nothing(talk: Any) -> None:
    updates = [
        talk.rib(0, A),
        talk.say("peer_down", 50),
        talk.say("peer_up", 60),
        talk.announce(61, A),
        talk.say("end_of_rib", 62, detail="ipv4 unicast"),
    ]
    assert of_bgp(told(sites(), updates)) == []


@pytest.mark.parametrize("end_of_rib", [True, False])
def test_what_a_session_lacks_when_it_is_back_is_gone(talk: Any, end_of_rib: bool) -> None:
    """The window says that it went while nobody looked."""
    updates = [talk.rib(0, A), talk.say("peer_down", 50), talk.say("peer_up", 80)]
    if end_of_rib:
        updates.append(talk.say("end_of_rib", 81, detail="ipv4 unicast"))
    (event,) = of_bgp(told(sites(), updates))
    assert (event.kind, event.before, event.after) == (BgpEventKind.WITHDRAWN, A, "")
    assert event.window == Window(at(50), at(81 if end_of_rib else 200))


def test_another_path_after_a_session_was_away_lies_in_between(talk: Any) -> None:
    updates = [talk.rib(0, A), talk.say("peer_down", 50), talk.say("peer_up", 80),
               talk.announce(81, B)]  # fmt: skip
    (event,) = of_bgp(told(sites(), updates))
    assert (event.before, event.after, event.window) == (A, B, Window(at(50), at(81)))


def test_a_new_part_of_a_prefix_by_another_as_is_an_origin_event(talk: Any) -> None:
    """Three peers of four hear it; all four had the table, so all four count."""
    part = "203.0.113.128/25"
    table = sites()
    heard = [talk.announce(9, "64501 666", peer, prefix=part) for peer in (1, 2, 3)]
    (event,) = of_bgp(told(table, [*(talk.rib(0, A, peer) for peer in (1, 2, 3, 4)), *heard]))
    assert (event.prefix, event.site) == (part, "frankfurt")
    assert (event.kind, event.peers_changed, event.peers_live) == (BgpEventKind.ANNOUNCED, 3, 4)


def test_the_first_word_of_a_peer_without_a_table_is_no_change(talk: Any) -> None:
    assert of_bgp(told(sites(), [talk.announce(0, A), talk.announce(1, A, 2)])) == []


def test_a_withdrawal_of_what_was_never_seen_is_one(talk: Any) -> None:
    (event,) = of_bgp(told(sites(), [talk.withdraw(5)]))
    assert (event.kind, event.before) == (BgpEventKind.WITHDRAWN, "")


def test_another_origin_is_told_as_such(talk: Any) -> None:
    updates = [talk.rib(0, A), talk.rib(0, A, 2), talk.announce(9, "64501 666")]
    (event,) = of_bgp(told(sites(), updates))
    assert (event.kind, event.after) == (BgpEventKind.ORIGIN, "64501 666")


VRPS = read_vrps(b'{"roas":[{"asn":65201,"prefix":"203.0.113.0/24","maxLength":24}]}', "vrps")


def test_an_origin_that_rpki_forbids_is_invalid(talk: Any) -> None:
    updates = [talk.rib(0, A), talk.announce(9, "64501 666")]
    (event,) = of_bgp(told(sites(vrps=VRPS), updates))
    assert (event.kind, event.rpki) == (BgpEventKind.INVALID, "invalid")
    (moved,) = of_bgp(told(sites(vrps=VRPS), [talk.rib(0, A), talk.announce(9, B)]))
    assert (moved.kind, moved.rpki) == (BgpEventKind.PATH, "valid")


def test_denied_peers_say_nothing(talk: Any) -> None:
    """BGPalerter 732 and 1217: a broken peer must not alarm."""
    for denied in ("192.0.2.1", "AS64501"):
        table = sites(rules=FeedRules(denied=frozenset((denied,))))
        updates = [talk.rib(0, A), talk.rib(0, A, 2), talk.withdraw(9), talk.announce(10, B, 2)]
        (event,) = of_bgp(told(table, updates))
        assert (event.peers_changed, event.peers_live) == (1, 1)


def test_the_set_of_paths_counts_where_a_session_has_add_path(talk: Any) -> None:
    table = sites()
    updates = [
        talk.rib(0, A, path_id=1),
        talk.rib(0, B, path_id=2),
        talk.announce(50, A, path_id=2),
        talk.announce(51, B, path_id=1),
    ]
    assert of_bgp(told(table, updates)) == []
    (event,) = of_bgp(told(table, [talk.withdraw(20_000, path_id=1)], 30_000))
    assert (event.before, event.after) == (f"{A} | {B}", A)


def test_several_paths_of_a_session_that_is_back_are_compared_when_all_are_there(
    talk: Any,
) -> None:
    up = [talk.say("peer_up", 0), talk.announce(1, A, path_id=1), talk.announce(2, B, path_id=2)]
    end = {"detail": "ipv4 unicast"}
    again = [
        talk.say("peer_down", 500, detail="cease"),
        talk.say("peer_up", 510),
        talk.announce(511, B, path_id=4),
        talk.announce(512, A, path_id=5),
        talk.say("end_of_rib", 513, **end),
    ]
    table = sites()
    assert of_bgp(told(table, [*up, talk.say("end_of_rib", 3, **end), *again], 1000)) == []
    less = [
        talk.say("peer_down", 2000, detail="cease"),
        talk.say("peer_up", 2010),
        talk.announce(2011, A, path_id=1),
        talk.say("end_of_rib", 2013, **end),
    ]
    (event,) = of_bgp(told(table, less))
    assert (event.before, event.after) == (f"{A} | {B}", A)
    assert event.window == Window(at(2000), at(2011))


def test_old_news_changes_nothing(talk: Any) -> None:
    """libbgpstream 247: a stalled mirror replays."""
    table = sites()
    updates = [talk.rib(0, A), talk.announce(100, B), talk.announce(50, A)]
    assert len(of_bgp(told(table, updates))) == 1
    assert table.status(at(10_000))[0].detail == "1 updates older than what was known"


def test_updates_from_the_future_count_at_their_arrival(talk: Any) -> None:
    """ARTEMIS 469: a peer's clock is years ahead; nothing else may wait for it."""
    table = sites()
    ahead = talk.announce(10**8, B, arrived_unix_ns=at(100))
    events = [
        *told(table, [talk.rib(0, A), ahead], 100),
        *told(table, [talk.announce(300, A)], 500),
    ]
    assert [event.window for event in of_bgp(events)] == [
        Window(at(100), at(100)),
        Window(at(300), at(300)),
    ]
    assert table.status(at(500))[0].quarantined == 1


def test_an_address_follows_the_longest_prefix_that_covers_it(talk: Any) -> None:
    """The /24 carries the packets: what happens to the /20 moves none of them."""
    table = RouteTable(Watch.of_sites([("frankfurt", "203.0.113.7")]))
    wide = "203.0.112.0/20"
    both = [talk.rib(0, A), talk.rib(0, A, prefix=wide), talk.rib(0, A, prefix="0.0.0.0/0")]
    assert of_bgp(told(table, [*both, talk.announce(50, B, prefix=wide)])) == []
    (event,) = of_bgp(told(table, [talk.withdraw(20_000)], 30_000))
    assert (event.prefix, event.site) == (PREFIX, "frankfurt")
    (moved,) = of_bgp(told(table, [talk.announce(40_000, A, prefix=wide)], 50_000))
    assert moved.prefix == wide


def test_prefixes_of_nobody_are_left_out(talk: Any) -> None:
    table = sites()
    told(table, [talk.rib(0, A, prefix="198.51.100.0/24"), talk.rib(0, A, prefix="0.0.0.0/0")])
    assert table.prefixes() == []


def test_memory_is_bounded(talk: Any) -> None:
    table = RouteTable(most_routes=10)
    told(table, [talk.rib(0, A, prefix=f"10.{n}.0.0/16") for n in range(50)])
    assert len(table.prefixes()) == 10
    assert "the table is full" in table.status(at(1))[0].detail


def test_a_table_in_the_middle_tells_what_no_update_told(talk: Any) -> None:
    (event,) = of_bgp(told(sites(), [talk.rib(0, A), talk.rib(900, B)]))
    assert (event.before, event.after, event.window) == (A, B, Window(at(0), at(900)))


def test_where_a_prefix_stands(talk: Any) -> None:
    table = sites(vrps=VRPS)
    updates = [talk.rib(0, A), talk.rib(0, A, 2), talk.rib(0, B, 3), talk.withdraw(100, 2)]
    told(table, updates, 86_400)
    (status,) = table.prefixes()
    assert (status.peers_with, status.peers_live, status.path) == (2, 3, A)
    assert (status.peers_on_path, status.origins, status.rpki) == (1, (65201,), "valid")
    assert status.last_change_unix_ns == at(100)
    assert status.changes_per_day == pytest.approx(1)


steps = st.lists(
    st.tuples(
        st.sampled_from(["announce", "withdraw", "rib", "peer_up", "peer_down", "end_of_rib"]),
        st.integers(1, 3),
        st.sampled_from([A, B, C, ""]),
        st.integers(0, 400),
    ),
    max_size=30,
)


@settings(max_examples=40)
@given(steps)
def test_whatever_is_said_counts_stay_sound(said: list[tuple[str, int, str, int]]) -> None:
    """k of n is never more than all; nothing is open when all is finished; twice is the same."""

    def run() -> tuple[list[Event], RouteTable]:
        table, time, events = sites(), START, list[Event]()
        for number, (kind, peer, path, later) in enumerate(said):
            time += later * SECOND
            route = kind in {"announce", "withdraw", "rib"}
            events += table.see(
                RouteUpdate(
                    id=str(number),
                    feed="edge",
                    feed_kind=FeedKind.SESSION,
                    peer_address=f"192.0.2.{peer}",
                    peer_asn=64500 + peer,
                    kind=UpdateKind(kind),
                    time_unix_ns=time,
                    arrived_unix_ns=time,
                    prefix=PREFIX if route else "",
                    as_path=path if route else "",
                    detail="ipv4 unicast" if kind == "end_of_rib" else "",
                )
            )
        return [*events, *table.finish()], table

    events, table = run()
    for event in of_bgp(events):
        assert 1 <= event.peers_changed <= event.peers_live <= 3
        assert event.window.after_unix_ns <= event.window.by_unix_ns
        unknown = not event.before and not event.after  # withdrawn, and never seen before
        assert event.before != event.after or event.back is not None or unknown
    assert events == run()[0]
    assert table.finish() == []
