"""Addresses, paths and routing of worlds; worlds out of coordinates."""

import ipaddress

import pytest

from pathbudget.agents.lab.geography import CARRIERS, apart_km, hub_places, world_from_places
from pathbudget.agents.lab.link import DirectionModel
from pathbudget.agents.lab.tables import node_table, truth_table
from pathbudget.agents.lab.topology import Link, Node, NodeKind, StaticRoute
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_check import build_world
from pathbudget.probes.errors import ConfigError
from pathbudget.probes.record import AddressFamily
from pathbudget.sites.geodesy import floor_one_way_ms

REGIONS = [
    ("rome", 41.9, 12.5),
    ("oslo", 59.9, 10.8),
    ("lima", -12.0, -77.0),
    ("cairo", 30.0, 31.2),
]
SITES = [("paris", 48.9, 2.3), ("miami", 25.8, -80.2), ("milan", 45.5, 9.2)]


def model(milliseconds: float) -> DirectionModel:
    return DirectionModel(delay_ns=round(milliseconds * 1e6))


def link(one: str, other: str, there: float, back: float, cost: float | None = None) -> Link:
    return Link(one, other, model(there), model(back), cost)


def square(*, region_carrier: str = "", routes: tuple[StaticRoute, ...] = ()) -> World:
    """region - (north | south) - site; north is quicker there, south is quicker back."""
    nodes = [
        Node("region", NodeKind.REGION, region_carrier),
        Node("north", NodeKind.ROUTER, "n"),
        Node("south", NodeKind.ROUTER, "s"),
        Node("site", NodeKind.SITE),
    ]
    links = [
        link("region", "north", 1, 1),
        link("region", "south", 1, 1),
        link("north", "site", 10, 30),
        link("south", "site", 20, 15),
        link("north", "south", 2, 2),
    ]
    return build_world(nodes, links, routes=routes)


def names(world: World, source: str, destination: str) -> list[str]:
    return [step.destination for step in world.path(source, destination)]


def test_the_shortest_delay_decides_for_each_way() -> None:
    assert names(square(), "region", "site") == ["north", "site"]
    assert names(square(), "site", "region") == ["south", "region"]


def test_the_carrier_decides_the_first_hop_only() -> None:
    assert names(square(region_carrier="s"), "region", "site") == ["south", "north", "site"]


def test_a_static_route_wins() -> None:
    world = square(
        routes=(StaticRoute("region", "site", "south"), StaticRoute("south", "site", "site"))
    )
    assert names(world, "region", "site") == ["south", "site"]
    assert names(world, "site", "region") == ["south", "region"]


def test_cost_stands_in_for_delay() -> None:
    nodes = list(square().nodes.values())
    links = [*square().links[:2], link("north", "site", 10, 30, cost=50), *square().links[3:]]
    assert names(build_world(nodes, links), "region", "site") == ["south", "site"]


def test_regions_and_sites_carry_nobody_elses_packets() -> None:
    nodes = [
        Node("region", NodeKind.REGION),
        Node("middle", NodeKind.REGION),
        Node("one", NodeKind.ROUTER),
        Node("two", NodeKind.ROUTER),
        Node("site", NodeKind.SITE),
    ]
    links = [
        link("region", "one", 1, 1),
        link("one", "middle", 1, 1),
        link("middle", "two", 1, 1),
        link("two", "site", 1, 1),
    ]
    with pytest.raises(ConfigError, match="no way from region to site"):
        build_world(nodes, links)
    detour = build_world(nodes, [*links, link("one", "two", 100, 100)])
    assert names(detour, "region", "site") == ["one", "two", "site"]


def test_equal_ways_are_decided_the_same_way_each_time() -> None:
    nodes = [
        Node("region", NodeKind.REGION),
        *(Node(name, NodeKind.ROUTER) for name in ("a", "b", "c")),
        Node("site", NodeKind.SITE),
    ]
    links = [link("region", name, 1, 1) for name in ("c", "a", "b")]
    links += [link(name, "site", 1, 1) for name in ("b", "a", "c")]
    assert names(build_world(nodes, links), "region", "site") == ["c", "site"]


@pytest.mark.parametrize("family", list(AddressFamily))
def test_every_interface_has_an_address_of_its_own(family: AddressFamily) -> None:
    world = world_from_places(REGIONS, SITES)
    seen = [world.address_of(name, family) for name in world.nodes]
    for index, one in enumerate(world.links):
        ends = world.link_addresses(index, family)
        seen += ends
        networks = [
            ipaddress.ip_network(world.prefix_of(name, family))
            for name in (one.a, one.b)
            if world.nodes[name].kind is NodeKind.ROUTER
        ]
        assert any(all(ipaddress.ip_address(end) in net for end in ends) for net in networks)
        low = ipaddress.ip_address(ends[0])
        assert int(low) % 2 == 0  # so that both ends are one /31 or /127
    assert len(seen) == len(set(seen))
    prefixes = [ipaddress.ip_network(world.prefix_of(name, family)) for name in world.nodes]
    assert not any(one.overlaps(other) for one in prefixes for other in prefixes if one != other)


def test_the_300th_region_has_an_address_too() -> None:
    nodes = [Node(f"r{number}", NodeKind.REGION) for number in range(300)]
    world = World({node.name: node for node in nodes}, ())
    assert world.address_of("r299") == "10.17.43.1"


def test_a_router_with_too_many_links_is_a_fault() -> None:
    nodes = [Node("hub", NodeKind.ROUTER), Node("site", NodeKind.SITE)]
    nodes += [Node(f"r{number}", NodeKind.REGION) for number in range(126)]
    links = [link("hub", node.name, 1, 1) for node in nodes[1:]]
    with pytest.raises(ConfigError, match="at most 126 at one router"):
        build_world(nodes, links)


def test_no_leg_of_a_geographic_world_is_quicker_than_light() -> None:
    world = world_from_places(REGIONS, SITES)
    for one in world.links:
        a, b = world.nodes[one.a], world.nodes[one.b]
        assert None not in (a.latitude, a.longitude, b.latitude, b.longitude)
        apart = apart_km(
            ("", a.latitude or 0, a.longitude or 0), ("", b.latitude or 0, b.longitude or 0)
        )
        floor = floor_one_way_ms(apart)
        for side in (one.forward, one.reverse):
            assert side.delay_ns / 1e6 >= 1.2 * floor
            assert side.delay_ns / 1e6 <= 2.0 * floor + 3


def test_a_geographic_world_uses_both_carriers_and_differs_by_direction() -> None:
    world = world_from_places(REGIONS, SITES)
    carriers = {
        world.nodes[step.destination].carrier
        for region in world.regions
        for site in world.sites
        for step in world.path(region, site)
        if world.nodes[step.destination].kind is NodeKind.ROUTER
    }
    assert carriers == {carrier.name for carrier in CARRIERS}
    differing = [one for one in world.links if one.forward.delay_ns != one.reverse.delay_ns]
    assert len(differing) > len(world.links) / 2
    assert world_from_places(REGIONS, SITES) == world
    assert world_from_places(REGIONS, SITES, seed=2) != world


def test_packets_stay_with_their_carrier() -> None:
    world = world_from_places(REGIONS, SITES)
    for region in world.regions:
        for site in world.sites:
            passed = {
                world.nodes[step.destination].carrier for step in world.path(region, site)[:-1]
            }
            assert passed == {world.nodes[region].carrier}


def test_hubs_are_where_the_places_are() -> None:
    crowd = [(f"near{number}", 50.0 + number / 100, 8.0) for number in range(5)]
    far = ("far", -30.0, 150.0)
    hubs = hub_places([*crowd, far], 2)
    assert far in hubs
    assert len(hub_places(crowd, 9)) == 5


def test_places_of_the_same_name_are_a_fault() -> None:
    with pytest.raises(ConfigError, match="already"):
        world_from_places(REGIONS, [REGIONS[0]])


def test_tables_fit_the_terminal() -> None:
    long = [("a-region-with-quite-a-long-name-indeed", 1.0, 2.0), *REGIONS]
    world = world_from_places(long, SITES)
    for table in (node_table(world), truth_table(world)):
        assert max(map(len, table.splitlines())) <= 80
        assert "rome" in table
