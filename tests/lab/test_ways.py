"""All ways between two nodes: equal costs, parallel links, bundles, and the truth of them."""

import itertools
from pathlib import Path

import pytest

from pathbudget.agents.lab.link import DirectionModel, Variation, VariationKind
from pathbudget.agents.lab.topology import Link, Node, NodeKind, StaticRoute
from pathbudget.agents.lab.truth import truth
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_check import build_world
from pathbudget.agents.lab.world_file import load_world
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.record import AddressFamily

MS = 1_000_000
PATHS = Path(__file__).with_name("paths.toml")
PLAIN = DirectionModel(delay_ns=MS)


def diamond(
    width: int, *, parallel: int = 1, ecmp: bool = True, last: DirectionModel = PLAIN
) -> World:
    """region - left - (m0, m1, ...) - right - site, the last two routers joined several times."""
    middle = [f"m{number}" for number in range(width)]
    names = ["left", *middle, "right", "end"]
    nodes = [Node("region", NodeKind.REGION), Node("site", NodeKind.SITE)]
    nodes += [Node(name, NodeKind.ROUTER) for name in names]
    links = [Link("region", "left", PLAIN, PLAIN)]
    links += [Link("left", name, PLAIN, PLAIN) for name in middle]
    links += [Link(name, "right", PLAIN, PLAIN) for name in middle]
    links += [Link("right", "end", PLAIN, PLAIN) for _ in range(parallel)]
    links += [Link("end", "site", last, PLAIN)]
    return build_world(nodes, links, ecmp=ecmp)


@pytest.mark.parametrize("width", [2, 4, 8])
def test_all_equal_ways_are_told_by_the_addresses_that_answer(width: int) -> None:
    world = diamond(width)
    paths = world.paths("region", "site")
    assert len(paths) == width
    assert {path[-1] for path in paths} == {world.address_of("site")}
    assert len({path[1] for path in paths}) == width
    assert len({path[2] for path in paths}) == width  # by another interface from each
    assert {path[0] for path in paths} == {world.link_addresses(0, AddressFamily.IPV4)[1]}


def test_routers_answer_ipv6_from_their_own_address() -> None:
    world = diamond(2, parallel=3)
    paths = world.paths("region", "site", AddressFamily.IPV6)
    assert len(paths) == 2  # parallel links end at the same router
    router = world.address_of("right", AddressFamily.IPV6)
    assert {path[2] for path in paths} == {router}


def test_parallel_links_are_ways_of_their_own() -> None:
    world = diamond(1, parallel=4)
    assert len(world.paths("region", "site")) == 4
    assert world.parallels[3:7] == [0, 1, 2, 3]


def test_without_ecmp_there_is_one_way_and_the_truth_of_it() -> None:
    many, one = diamond(4), diamond(4, ecmp=False)
    assert len(one.paths("region", "site")) == 1
    assert one.paths("region", "site") <= many.paths("region", "site")
    assert many.path("region", "site") == one.path("region", "site")
    pair = ("region", "site")
    assert truth(many)[pair].quantile_ms(0.5) == truth(one)[pair].quantile_ms(0.5) == 10.0


def test_sets_of_hops_and_links_do_not_need_the_list_of_ways() -> None:
    middle = [[f"m{stage}-{number}" for number in range(8)] for stage in range(6)]
    stages = [["first"], *middle, ["last"]]
    nodes = [Node("region", NodeKind.REGION), Node("site", NodeKind.SITE)]
    nodes += [Node(name, NodeKind.ROUTER) for stage in stages for name in stage]
    links = [Link("region", "first", PLAIN, PLAIN), Link("last", "site", PLAIN, PLAIN)]
    for left, right in itertools.pairwise(stages):
        links += [Link(one, other, PLAIN, PLAIN) for one in left for other in right]
    world = build_world(nodes, links, ecmp=True)
    hops = world.hops("region", "site")
    assert [len(hop) for hop in hops] == [1, 8, *[64] * 5, 8, 1]
    assert len(world.hop_links("region", "site")) == 8 + 8 * 8 + 4 * 512 + 64 + 8
    assert truth(world)["region", "site"].quantile_ms(0.5) == 18.0
    with pytest.raises(LookupError, match="more than 100,000 ways"):
        world.paths("region", "site")


def test_hop_links_are_those_of_the_paths() -> None:
    world = load_world(PATHS)
    for site in world.sites:
        for family in AddressFamily:
            paths = world.paths("home", site, family)
            expected = {
                (limit, path[limit - 1], path[limit])
                for path in paths
                for limit in range(1, len(path))
            }
            assert world.hop_links("home", site, family) == expected
            hops = world.hops("home", site, family)
            assert hops == [frozenset(hop) for hop in zip(*paths, strict=True)]


def test_the_world_of_paths_has_what_it_says() -> None:
    world = load_world(PATHS)
    counts = {site: len(world.paths("office", site)) for site in world.sites}
    assert counts == {
        "two": 2, "four": 8, "eight": 8, "mesh": 8, "chain": 64, "labelled": 1, "limited": 1,
        "silent": 2, "bundle": 1,
    }  # fmt: skip
    assert any("" in path for path in world.paths("office", "silent"))


def test_one_router_may_keep_to_one_way() -> None:
    world = diamond(4)
    nodes = [
        Node(node.name, node.kind, ecmp=False if node.name == "left" else None)
        for node in world.nodes.values()
    ]
    assert len(build_world(nodes, world.links, ecmp=True).paths("region", "site")) == 1


def test_flows_drawn_by_lot_meet_a_mixture() -> None:
    """Half of the flows pass a link that is 4 ms longer and loses half of its packets."""
    nodes = [Node("region", NodeKind.REGION), Node("site", NodeKind.SITE)]
    nodes += [Node(name, NodeKind.ROUTER) for name in ("left", "right")]
    slow = DirectionModel(delay_ns=5 * MS, loss=0.5)
    links = [
        Link("region", "left", PLAIN, PLAIN),
        Link("left", "right", PLAIN, PLAIN, cost=1),
        Link("left", "right", slow, PLAIN, cost=1),
        Link("right", "site", PLAIN, PLAIN),
    ]
    true = truth(build_world(nodes, links, ecmp=True))["region", "site"]
    assert true.loss == pytest.approx(0.25)
    assert true.minimum_ms == 6.0
    assert true.quantile_ms(0.66) == pytest.approx(6.0, abs=0.002)  # two thirds of the answered
    assert true.quantile_ms(0.68) == pytest.approx(10.0, abs=0.002)


def test_members_of_a_bundle_are_one_hop_and_a_mixture() -> None:
    sick = DirectionModel(delay_ns=MS, loss=0.12)
    nodes = [Node("region", NodeKind.REGION), Node("site", NodeKind.SITE)]
    nodes += [Node(name, NodeKind.ROUTER) for name in ("left", "right")]
    bundle = Link("left", "right", PLAIN, PLAIN, members=((PLAIN, PLAIN),) * 3 + ((sick, PLAIN),))
    ends = [Link("region", "left", PLAIN, PLAIN), Link("right", "site", PLAIN, PLAIN)]
    world = build_world(nodes, [*ends, bundle])
    assert len(world.paths("region", "site")) == 1
    assert truth(world)["region", "site"].loss == pytest.approx(0.03)


def test_a_mixture_of_variations_is_right_at_its_quantiles() -> None:
    wide = DirectionModel(delay_ns=MS, variation=Variation(VariationKind.PARETO, MS, 3.0))
    one, both = diamond(2, last=wide), diamond(2, last=wide, ecmp=False)
    pair = ("region", "site")
    for share in (0.1, 0.5, 0.95):
        a, b = truth(one)[pair], truth(both)[pair]
        assert a.quantile_ms(share) == pytest.approx(b.quantile_ms(share), abs=1e-9)


def test_every_branch_has_to_arrive() -> None:
    world = diamond(2)
    routes = [StaticRoute("m1", "site", "left")]
    with pytest.raises(ConfigError, match="in a circle"):
        build_world(world.nodes.values(), world.links, ecmp=True, routes=routes)
