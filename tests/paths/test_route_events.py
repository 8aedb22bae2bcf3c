"""What is told of a changing path set, and that balancers, silence and sampling are told apart.

The network is known, so every event that is told is right or wrong.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.routes.canonical import Sight
from pathbudget.analysis.routes.chance import unseen_by_chance
from pathbudget.analysis.routes.model import (
    FlowPath,
    Granularity,
    PathObservation,
    PathSeries,
    RouteEvent,
    RouteEventKind,
)
from pathbudget.analysis.routes.route_events import RouteWatch, first_difference, route_events
from pathbudget.sites.prefix_table import Origin

GAP_S = 300
SECOND = 10**9
FLOWS = (1, 2, 3, 4, 5, 6)
FLUTTER, FLAP, SHIFT = RouteEventKind.FLUTTER, RouteEventKind.FLAP, RouteEventKind.SHIFT
LOST, FOUND = RouteEventKind.LOST, RouteEventKind.FOUND

FlowsOf = Callable[[int, random.Random], Sequence[int | None]]


def same(_: int, __: random.Random) -> Sequence[int | None]:
    return FLOWS


def fresh(_: int, rng: random.Random) -> Sequence[int | None]:
    """Other ports with every trace."""
    return [rng.randrange(10**6) for _ in range(6)]


def one(_: int, __: random.Random) -> Sequence[int | None]:
    return (1,)


def classic(_: int, __: random.Random) -> Sequence[int | None]:
    """Every packet is a flow of its own."""
    return (None,)


def rotating(index: int, _: random.Random) -> Sequence[int | None]:
    """As RIPE Atlas does with its Paris numbers."""
    return (index % 16 + 1,)


def traces(
    networks: Sequence[tuple[Any, int]], flows: FlowsOf = same, packets: int = 1, gap_s: int = GAP_S
) -> list[PathObservation]:
    """So many traces of each network, one after the other."""
    order = [network for network, count in networks for _ in range(count)]
    return [
        network.trace(index * gap_s, flows(index, network.rng), packets)
        for index, network in enumerate(order)
    ]


def kinds(events: Sequence[RouteEvent]) -> list[RouteEventKind]:
    return [event.kind for event in events if event.kind is not FLUTTER]


def window(event: RouteEvent) -> tuple[float, float]:
    """In numbers of traces."""
    return tuple(round((time / SECOND - 1) / GAP_S, 1) for time in event.window)  # type: ignore[return-value]


def balanced(sim: Any, *names: str, seed: int = 3, by_packet: bool = False) -> Any:
    ways = sim.ways(*names, seed=seed, by_packet=by_packet)
    return sim.Network([sim.chain("x"), ways, sim.chain("y")], seed)


@pytest.mark.parametrize("flows", [same, fresh, one, classic, rotating])
@pytest.mark.parametrize("members", [2, 8])
def test_a_balancer_of_flows_makes_no_event(simulated: Any, flows: FlowsOf, members: int) -> None:
    names = [f"a{number}" for number in range(members)]
    observations = traces([(balanced(simulated, *names), 120)], flows, packets=3)
    assert kinds(route_events(observations)) == []


@pytest.mark.parametrize(("flows", "packets"), [(same, 1), (fresh, 1), (one, 3), (classic, 3)])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_balancer_of_packets_is_flutter_told_once(
    simulated: Any, flows: FlowsOf, packets: int, seed: int
) -> None:
    """Others raise a flag of a flapping route here."""
    network = balanced(simulated, *"abcdefgh", seed=seed, by_packet=True)
    events = route_events(traces([(network, 80)], flows, packets))
    assert kinds(events) == []
    assert len(events) == (flows is not fresh)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_packets_over_ways_of_different_lengths_are_flutter(simulated: Any, seed: int) -> None:
    ways = simulated.Balancer([["a", "c"], ["b"]], True)
    network = simulated.Network([simulated.chain("x"), ways, simulated.chain("y")], seed)
    events = route_events(traces([(network, 80)], one, packets=3))
    assert [event.kind for event in events] == [FLUTTER]


def test_one_flow_with_one_packet_learns_of_a_balancer_by_its_going_to_and_fro(
    simulated: Any,
) -> None:
    """One trace cannot know; after a dozen the rest is flutter."""
    network = balanced(simulated, "a", "b", by_packet=True)
    events = route_events(traces([(network, 200)], one))
    assert FLUTTER in {event.kind for event in events}
    assert all(event.window.by_unix_ns < 24 * GAP_S * SECOND for event in events)


def test_silent_and_rate_limited_hops_are_no_change(simulated: Any) -> None:
    network = simulated.Network(
        [simulated.chain("x?", "-"), simulated.ways("a?", "b", seed=2), simulated.chain("y?")],
        silence=0.2,
    )
    assert route_events(traces([(network, 120)])) == []


def test_a_rare_member_that_shows_for_the_first_time_is_no_change(simulated: Any) -> None:
    ways = simulated.Balancer([["a"], ["b"]], False, 1, (0.97, 0.03))
    network = simulated.Network([simulated.chain("x"), ways, simulated.chain("y")], 1)
    observations = traces([(network, 150)], fresh)
    seen = {word for trace in observations for flow in trace.flows for word in flow.hops[1]}
    assert seen == {"a", "b"}
    assert route_events(observations) == []


@pytest.mark.parametrize(
    ("flows", "packets", "widest"),
    [(same, 1, 1), (fresh, 1, 2), (one, 1, 1), (classic, 3, 2), (rotating, 3, 7)],
)
def test_another_way_is_one_shift_in_its_window(
    simulated: Any, flows: FlowsOf, packets: int, widest: int
) -> None:
    before = simulated.Network([simulated.chain("x", "a", "y")])
    after = simulated.Network([simulated.chain("x", "b", "c", "y")])
    (event,) = route_events(traces([(before, 30), (after, 12)], flows, packets))
    assert event.kind is SHIFT
    assert event.before == {("x", "a", "y", "dst")}
    assert event.after == {("x", "b", "c", "y", "dst")}
    assert event.first_difference == 2
    last, first = window(event)
    assert last <= 29 < 30 <= first
    assert first - last <= widest


@pytest.mark.parametrize("flows", [same, fresh])
@pytest.mark.parametrize(
    ("before", "after"), [("abcd", "abc"), ("ab", "a"), ("a", "ab"), ("abcd", "efgh")]
)
@pytest.mark.parametrize("seed", [1, 5])
def test_members_that_come_and_go_change_the_set(
    simulated: Any, flows: FlowsOf, before: str, after: str, seed: int
) -> None:
    networks = [
        (balanced(simulated, *before, seed=seed), 40),
        (balanced(simulated, *after, seed=seed), 40),
    ]
    seen = [
        {word for trace in part for flow in trace.flows for word in flow.hops[1]}
        for both in [traces(networks, flows)]
        for part in (both[:40], both[40:])
    ]
    (event,) = [one for one in route_events(traces(networks, flows)) if one.kind is not FLUTTER]
    assert event.kind is SHIFT
    assert {path[1] for path in event.before} == seen[0]
    last, first = window(event)
    assert last <= 39 < 40 <= first


def test_away_for_less_than_ten_minutes_is_one_flap(simulated: Any) -> None:
    home = simulated.Network([simulated.chain("x", "a", "y")])
    away = simulated.Network([simulated.chain("x", "b", "y")])
    (event,) = route_events(traces([(home, 20), (away, 2), (home, 20)]))
    assert event.kind is FLAP
    assert event.after == {("x", "b", "y", "dst")}
    assert window(event) == (19, 20)
    assert event.back is not None
    assert [round((time / SECOND - 1) / GAP_S) for time in event.back] == [21, 22]


def test_away_for_longer_is_two_shifts(simulated: Any) -> None:
    home = simulated.Network([simulated.chain("x", "a", "y")])
    away = simulated.Network([simulated.chain("x", "b", "y")])
    events = route_events(traces([(home, 20), (away, 4), (home, 20)]))
    assert kinds(events) == [SHIFT, SHIFT]
    assert [window(event) for event in events] == [(19, 20), (23, 24)]
    assert events[1].after == events[0].before


def test_on_the_way_from_one_to_another_is_one_shift(simulated: Any) -> None:
    """BGP explores paths; a trace may even see half of each."""
    chains = [("x", "a", "y"), ("x", "b", "y"), ("x", "c", "y")]
    home, between, there = (simulated.Network([simulated.chain(*hops)]) for hops in chains)
    (event,) = route_events(traces([(home, 20), (between, 1), (there, 20)]))
    assert (event.kind, window(event)) == (SHIFT, (19, 20))
    assert event.after == {("x", "c", "y", "dst")}


def test_what_is_undecided_at_the_end_is_a_shift_and_pending_until_then(simulated: Any) -> None:
    home = simulated.Network([simulated.chain("x", "a", "y")])
    away = simulated.Network([simulated.chain("x", "b", "y")])
    watch = RouteWatch()
    told = [event for trace in traces([(home, 5), (away, 1)]) for event in watch.see(trace)]
    assert told == []
    (pending,) = watch.pending()
    assert (pending.kind, watch.finish()) == (SHIFT, [pending])


def test_lost_and_found(simulated: Any) -> None:
    network = simulated.Network([simulated.chain("x", "a", "y")])
    observations = [
        network.trace(index * GAP_S, (1,), reached=not 10 <= index < 14) for index in range(20)
    ]
    lost, found = route_events(observations)
    assert (lost.kind, window(lost)) == (LOST, (9, 10))
    assert (found.kind, window(found)) == (FOUND, (13, 14))
    assert lost.after == {("x", "a", "y", "...")}


def test_one_trace_that_is_not_answered_is_not_lost(simulated: Any) -> None:
    """One packet to the destination was lost, no more; six in a row are no accident."""
    network = simulated.Network([simulated.chain("x", "a", "y")])
    once = [network.trace(index * GAP_S, (1,), reached=index != 5) for index in range(10)]
    assert route_events(once) == []
    many = [network.trace(index * GAP_S, FLOWS, reached=index != 5) for index in range(10)]
    assert kinds(route_events(many)) == [LOST, FOUND]


class Table:
    """``a`` is of AS1, ``b`` of AS2 ..."""

    def look_up(self, address: str) -> Origin | None:
        known = {"x": 1, "y": 9, "dst": 9, "a": 2, "b": 3, "c": 2}
        return Origin("8.0.0.0/8", (known[address],)) if address in known else None


def test_flows_that_asked_no_more_than_a_hop_do_not_count_as_lost(simulated: Any) -> None:
    """Most flows of an enumeration are sent to hops with several members alone."""
    network = simulated.Network([simulated.chain("x", "a", "y")])

    def enumerated(index: int) -> PathObservation:
        trace: PathObservation = network.trace(index * GAP_S, (1,), reached=index != 5)
        asked = [FlowPath(flow, (frozenset[str](), frozenset({"a"})), False) for flow in FLOWS[1:]]
        return replace(trace, flows=(*trace.flows, *asked))

    assert route_events([enumerated(index) for index in range(10)]) == []


def test_events_say_which_ases_were_passed_before_and_after(simulated: Any) -> None:
    before = simulated.Network([simulated.chain("x", "a", "y")])
    after = simulated.Network([simulated.chain("x", "b", "y")])
    (event,) = route_events(traces([(before, 10), (after, 10)]), Table())
    assert event.as_before == ("AS1", "AS2", "AS9")
    assert event.as_after == ("AS1", "AS3", "AS9")


def test_at_as_granularity_another_router_of_the_same_as_is_no_change(simulated: Any) -> None:
    networks = [
        (simulated.Network([simulated.chain(*hops)]), 10)
        for hops in [("x", "a", "y"), ("x", "c", "y"), ("x", "-", "y"), ("x", "b", "y")]
    ]
    sight = Sight(Granularity.AS, Table())
    (event,) = route_events(traces(networks), sight=sight)
    assert (event.kind, event.granularity) == (SHIFT, Granularity.AS)
    assert event.before == {("AS1", "AS2", "AS9")}
    assert event.after == {("AS1", "AS3", "AS9")}
    assert kinds(route_events(traces(networks))) == [SHIFT, SHIFT]


def test_at_router_granularity_aliases_are_one(simulated: Any) -> None:
    before = simulated.Network([simulated.chain("x", "a", "y")])
    after = simulated.Network([simulated.chain("x", "b", "y")])
    sight = Sight(Granularity.ROUTER, routers={"a": "r1", "b": "r1"})
    assert route_events(traces([(before, 10), (after, 10)]), sight=sight) == []


@pytest.mark.parametrize(
    ("before", "after", "index"),
    [
        ({("a", "b")}, {("a", "c")}, 2), ({("a", "*", "c")}, {("a", "b", "d")}, 2),
        ({("a",)}, {("a", "b")}, 2), ({("a",)}, {("a",)}, None),
    ],
)  # fmt: skip
def test_first_difference(before: Any, after: Any, index: int | None) -> None:
    assert first_difference(frozenset(before), frozenset(after)) == index


def test_chance_against_counting_all_orders() -> None:
    from math import comb

    for seen, tested, later in [(1, 1, 1), (2, 5, 3), (5, 5, 7), (3, 9, 1)]:
        expected = comb(tested + later - seen, later) / comb(tested + later, later)
        assert unseen_by_chance(seen, tested, later) == pytest.approx(expected)


def flow_path(flow: int | None, row: list[str], reached: bool) -> FlowPath:
    hops = [*row, "dst" if reached else "x"]
    return FlowPath(flow, tuple(frozenset({hop} - {""}) for hop in hops), reached)


hops = st.sampled_from(["", "a", "b", "c"])
flow_paths = st.builds(
    flow_path,
    st.sampled_from([1, 2, None]),
    st.lists(hops, min_size=1, max_size=3),
    st.booleans(),
)
SERIES = [PathSeries(name, "r", "s", "t", "192.0.2.1", None) for name in ("v", "w")]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(SERIES),
            st.integers(0, 400),
            st.lists(flow_paths, min_size=1, max_size=3),
        ),
        max_size=25,
    )
)
def test_a_watch_over_all_series_tells_what_each_alone_tells(
    rows: list[tuple[PathSeries, int, list[FlowPath]]],
) -> None:
    now, observations = 0, list[PathObservation]()
    for series, gap_s, flows in rows:
        now += gap_s * SECOND
        observations.append(PathObservation(series, now, now, tuple(flows)))
    watch = RouteWatch()
    told = [event for trace in observations for event in watch.see(trace)] + watch.finish()
    alone = [
        event
        for series in SERIES
        for event in route_events(trace for trace in observations if trace.series == series)
    ]
    assert sorted(map(repr, told)) == sorted(map(repr, alone))
    for event in told:
        assert event.window.after_unix_ns <= event.window.by_unix_ns


def test_what_comes_late_is_counted_and_not_taken(simulated: Any) -> None:
    network = simulated.Network([simulated.chain("x", "a", "y")])
    watch = RouteWatch()
    watch.see(network.trace(100))
    assert watch.see(network.trace(50)) == []
    assert watch.late == 1


def test_memory_of_a_series_is_bounded(simulated: Any) -> None:
    """Flows, members and paths that never come again are forgotten."""
    import pickle

    def size(count: int) -> int:
        watch = RouteWatch()
        rng = random.Random(1)
        for index in range(count):
            hop = f"{rng.randrange(10**9)}"
            path = FlowPath(rng.randrange(10**9), (frozenset({hop}), frozenset({"d"})), True)
            watch.see(PathObservation(SERIES[0], index, index, (path,)))
        return len(pickle.dumps(watch))

    assert size(1200) < 1.2 * size(600)
