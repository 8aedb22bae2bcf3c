"""Path sets out of networks of names: what is found, what is not made up, and that it ends."""

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.trace.path_graphs import World, chain, explore, links_of

from pathbudget.probes.trace.enumeration import Enumeration
from pathbudget.probes.trace.rules import Algorithm, Rules, Stopped

BOTH = pytest.mark.parametrize("algorithm", [Algorithm.MDA, Algorithm.MDA_LITE])
SEEDS = range(3)
UNEQUAL = {
    "": ["a"],
    "a": ["b", "c"],
    "b": ["d"],
    "d": ["e"],
    "c": ["e"],
    "e": ["f"],
    "f": ["D"],
}
SHORTER = {"": ["a"], "a": ["b", "c"], "b": ["d"], "d": ["D"], "c": ["D"]}
NETWORKS: dict[str, dict[str, Any]] = {
    "plain": {"graph": chain(1, 1, 1, 1, 1, 1)},
    "two-four-eight": {"graph": chain(1, 2, 4, 8, 1, 4, 1)},
    "eight-eight": {"graph": chain(1, 8, 8, 1)},
    "meshed": {"graph": chain(1, 2, 8, 4, 1, meshed=(2, 3))},
    "unequal": {"graph": UNEQUAL},
    "unequal-to-the-end": {"graph": SHORTER},
    "silent-hop": {"graph": chain(1, 2, 2, 4, 2, 1), "silent": frozenset({"r3.0", "r3.1"})},
    "silent-branch": {"graph": chain(1, 2, 2, 1), "silent": frozenset({"r2.0"})},
    "lossy": {
        "graph": chain(1, 2, 2, 1, 4, 1),
        "lost": {f"r{hop}.{n}": 0.1 for hop in range(7) for n in range(4)},
    },
}  # fmt: skip


def trace(world: World, algorithm: Algorithm, **rules: Any) -> Enumeration:
    return explore(Enumeration(Rules(algorithm=algorithm, **rules), "D"), world)


@BOTH
@pytest.mark.parametrize("name", NETWORKS)
def test_all_links_are_found_and_no_other(name: str, algorithm: Algorithm) -> None:
    network = NETWORKS[name]
    truth = links_of(network["graph"], network.get("silent", frozenset()))
    for seed in SEEDS:
        found = trace(World(seed=seed, **network), algorithm, confidence=0.99)
        assert set(found.links()) == truth
        assert found.stopped is Stopped.ARRIVED
        assert found.complete
        assert all(one.confirmed for one in found.links().values())


def test_lite_takes_fewer_packets_where_nothing_is_meshed() -> None:
    worlds = [World(chain(1, 8, 8, 1), seed) for seed in (1, 2)]
    full = trace(worlds[0], Algorithm.MDA)
    lite = trace(worlds[1], Algorithm.MDA_LITE)
    assert not lite.full
    assert lite.asked < 0.7 * full.asked


@pytest.mark.parametrize(
    "graph", [chain(1, 2, 2, 1, meshed=(2,)), UNEQUAL, chain(1, 3, 3, 1, meshed=(2,))]
)
def test_lite_becomes_full_where_it_may_not_be_used(graph: Any) -> None:
    found = trace(World(graph, 4), Algorithm.MDA_LITE)
    assert found.full
    assert set(found.links()) == links_of(graph)


@BOTH
def test_uneven_shares_are_allowed_for_once_they_are_seen(algorithm: Algorithm) -> None:
    graph = chain(1, 4, 1)
    for seed in range(6):
        world = World(graph, seed, weights={"r1.0": (5, 5, 5, 1)})
        found = trace(world, algorithm, confidence=0.999)
        assert set(found.links()) == links_of(graph)


@BOTH
def test_pitfall_30_balancing_by_packet_is_no_diamond_and_no_change(algorithm: Algorithm) -> None:
    graph = chain(1, 4, 4, 1, 1)
    for seed in SEEDS:
        found = trace(World(graph, seed, sprays=frozenset({"r1.0"})), algorithm)
        assert found.sights.sprayed == [2, 3]
        assert found.restarts == 0
        assert set(found.links()) == {(4, "r4.0", "r5.0"), (5, "r5.0", "D")}
        assert found.asked < 120


@BOTH
@pytest.mark.parametrize("after", [3, 10, 30, 60])
def test_a_path_that_changes_under_way_makes_no_false_link(
    algorithm: Algorithm, after: int
) -> None:
    before = chain(1, 1, 1, 1, 1, 1, 1)
    names = ["r1.0", "x2", "x3", "x4", "x5", "r6.0", "D"]
    later = {"": ["r1.0"], **{a: [b] for a, b in itertools.pairwise(names)}}
    for seed in SEEDS:
        world = World(before, seed, later=later, after_packets=after)
        found = trace(world, algorithm)
        assert set(found.links()) == links_of(later)
        assert found.restarts <= 1
        assert found.asked < 300


@BOTH
def test_pitfall_26_a_path_that_grew_is_followed_to_its_new_end(algorithm: Algorithm) -> None:
    longer = chain(*[1] * 10)
    for after in (3, 10, 30):
        world = World(chain(*[1] * 7), 5, later=longer, after_packets=after)
        found = trace(world, algorithm)
        assert found.stopped is Stopped.ARRIVED
        assert found.sights.ends[0] == 11
        assert set(found.links()) == links_of(longer)


@BOTH
@pytest.mark.parametrize("every", [1, 20, 40])
def test_a_path_that_never_rests_ends_a_trace_incomplete(algorithm: Algorithm, every: int) -> None:
    found = Enumeration(Rules(algorithm=algorithm), "D")
    packets = 0
    while wants := found.wanted():
        for flow, limit, asked in wants:
            packets += 1
            name = "D" if limit > 4 else f"r{packets // every}.{limit}"
            found.answered(flow, limit, name, terminal=limit > 4, asked=asked)
    assert found.done
    assert not found.complete or found.sights.sprayed
    assert packets < 1_500


@BOTH
def test_a_loop_ends_a_trace(algorithm: Algorithm) -> None:
    found = trace(World({"": ["a"], "a": ["b"], "b": ["c"], "c": ["b"]}, 1), algorithm)
    assert found.stopped is Stopped.LOOP
    assert found.asked < 100


@BOTH
def test_a_destination_that_does_not_answer_ends_at_the_gap(algorithm: Algorithm) -> None:
    graph = chain(1, 2, 2, 1)
    found = trace(World(graph, 1, silent=frozenset({"D"})), algorithm, gap=3)
    assert found.stopped is Stopped.GAP
    assert set(found.links()) == links_of(graph, frozenset({"D"}))
    assert max(found.sights.hops) == 4 + 3


@BOTH
def test_nobody_answers_at_all(algorithm: Algorithm) -> None:
    everybody = frozenset({"D", *(f"r{hop}.0" for hop in range(9))})
    found = trace(World(chain(1, 1, 1), 1, silent=everybody), algorithm)
    assert found.stopped is Stopped.GAP
    assert found.links() == {}
    assert found.asked < 120


@BOTH
def test_who_refuses_a_flow_is_no_next_hop_of_itself(algorithm: Algorithm) -> None:
    found = Enumeration(Rules(algorithm=algorithm), "D")
    while wants := found.wanted():
        for flow, limit, asked in wants:
            name = f"r{min(limit, 3)}"
            found.answered(flow, limit, name, terminal=limit > 3, asked=asked)
    assert found.stopped is Stopped.UNREACHABLE
    assert set(found.links()) == {(1, "r1", "r2"), (2, "r2", "r3")}


@BOTH
def test_packets_are_bounded(algorithm: Algorithm) -> None:
    world = World(chain(1, 8, 8, 8, 1, meshed=(2, 3)), 1)
    found = trace(world, algorithm, most_packets=200)
    assert world.packets == 200
    assert found.stopped is Stopped.BUDGET
    assert not found.complete


def test_paris_sends_what_it_was_told() -> None:
    found = trace(World(chain(1, 4, 4, 1), 1), Algorithm.PARIS, flows=3)
    assert {flow for hop in found.sights.hops.values() for flow in hop.sights} == {0, 1, 2}
    assert found.asked <= 3 * 5 + 6  # the first flow looks ahead
    assert set(found.links()) <= links_of(chain(1, 4, 4, 1))


def test_hop_limits_stay_within_bounds() -> None:
    found = trace(World(chain(*[1] * 12), 1), Algorithm.MDA_LITE, first_hop=3, max_hops=7)
    assert (min(found.sights.hops), max(found.sights.hops)) == (3, 7)
    assert found.stopped is Stopped.LIMIT


def test_rationed_answers_are_told_from_loss() -> None:
    world = World(chain(1, 1, 2, 2, 1, 1), 2, lost={"r2.0": 0.6})
    found = trace(world, Algorithm.MDA_LITE)
    limited = [limit for limit, hop in found.sights.hops.items() if hop.limited]
    assert limited == [2]
    assert set(found.links()) == links_of(world.graph)


def test_answers_that_come_after_silence_count_and_those_nobody_asked_for_do_not() -> None:
    found = Enumeration(Rules(algorithm=Algorithm.PARIS, flows=1), "D")
    first = found.wanted()
    for flow, limit, _ in first:
        found.silent(flow, limit)
    found.answered(0, 1, "r1", terminal=False, asked=first[0].asked)
    found.answered(7, 1, "x", terminal=False)
    found.answered(0, 99, "x", terminal=False)
    found.silent(7, 1)
    found.silent(0, 99)
    assert found.sights.name(0, 1) == "r1"
    assert found.sights.name(7, 1) is None


@settings(max_examples=25, deadline=None)
@given(
    st.lists(st.sampled_from([1, 2, 4]), min_size=1, max_size=5),
    st.sets(st.integers(1, 4)),
    st.integers(0, 1_000),
    st.sampled_from([0.0, 0.2, 0.9]),
    st.sampled_from([Algorithm.MDA, Algorithm.MDA_LITE]),
)
def test_whatever_the_network_it_ends_and_makes_nothing_up(
    widths: list[int], meshed: set[int], seed: int, lost: float, algorithm: Algorithm
) -> None:
    graph = chain(*widths, meshed=tuple(meshed))
    everybody = dict.fromkeys(graph, lost)
    found = trace(World(graph, seed, lost=everybody), algorithm, most_packets=3_000)
    assert set(found.links()) <= links_of(graph)
