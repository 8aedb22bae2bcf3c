"""Worlds built in Python, and what can be wrong with one as a whole: names, links, ways."""

from collections.abc import Iterable, Iterator, Sequence

from pathbudget.agents.lab.bgp_check import bgp_faults
from pathbudget.agents.lab.routing import Routing, shortest_delay
from pathbudget.agents.lab.topology import (
    LINKS_PER_NODE,
    NODES_PER_KIND,
    Link,
    Node,
    NodeKind,
    StaticRoute,
)
from pathbudget.agents.lab.ways import check
from pathbudget.agents.lab.world import World
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import did_you_mean, show

Found = tuple[str, str, str]
"""Key path, what is there, what is expected."""


def build_world(
    nodes: Iterable[Node],
    links: Iterable[Link],
    *,
    routes: Iterable[StaticRoute] = (),
    seed: int = 1,
    routing: Routing = shortest_delay,
    ecmp: bool = False,
) -> World:
    """A checked world, built in Python. Raises ConfigError with every fault."""
    listed = list(nodes)
    by_name = {node.name: node for node in listed}
    world = World(by_name, tuple(links), tuple(routes), ecmp, seed, routing)
    faults = faults_of(world, listed)
    if faults:
        raise ConfigError([Fault("world", *fault) for fault in faults])
    return world


def faults_of(world: World, listed: Sequence[Node]) -> list[Found]:
    """Every fault. Ways are looked at only when names and links are right."""
    faults = [*_names(listed), *_links(world), *_routes(world), *bgp_faults(world)]
    return faults or [*_carriers(world), *_translators(world), *_ways(world)]


def _names(listed: Sequence[Node]) -> Iterator[Found]:
    seen: dict[str, str] = {}
    counts: dict[NodeKind, int] = {}
    for node in listed:
        counts[node.kind] = counts.get(node.kind, 0) + 1
        where = f"{node.kind}[{counts[node.kind]}].name"
        if node.name in seen:
            yield where, f"{show(node.name)} is {seen[node.name]} already", "a name of its own"
        seen[node.name] = f"{node.kind}[{counts[node.kind]}]"
    for kind in (NodeKind.REGION, NodeKind.SITE):
        if not counts.get(kind):
            yield kind, "there is none", f"at least one [[{kind}]]"
    for kind, count in counts.items():
        if count > NODES_PER_KIND:
            yield kind, f"{count} of them", f"at most {NODES_PER_KIND}"


def _links(world: World) -> Iterator[Found]:
    pairs: dict[frozenset[str], int] = {}
    names: dict[str, int] = {}
    for number, link in enumerate(world.links, start=1):
        where = f"link[{number}].between"
        unknown = [name for name in (link.a, link.b) if name not in world.nodes]
        for name in unknown:
            yield where, f"{show(name)} is no node", did_you_mean(name, world.nodes)
        if link.name in names:
            problem = f"{show(link.name)} is link[{names[link.name]}] already"
            yield f"link[{number}].name", problem, "a name of its own, or none"
        elif link.name:
            names[link.name] = number
        pair = frozenset((link.a, link.b))
        if link.a == link.b:
            yield where, f"{show(link.a)} at both ends", "two different nodes"
        elif pair in pairs and not all(_is_router(world, name) for name in pair if not unknown):
            problem = f"the same two nodes as link[{pairs[pair]}]"
            yield where, problem, "one link between two nodes, but for two routers"
        elif not unknown and not any(_is_router(world, name) for name in pair):
            yield where, "no router at either end", "a router at one end at least"
        pairs.setdefault(pair, number)
    if all(name in world.nodes for pair in pairs for name in pair):
        for name in world.nodes:
            if world.links_owned_by(name) > LINKS_PER_NODE:
                yield "link", f"too many at {show(name)}", f"at most {LINKS_PER_NODE} at one router"


def _routes(world: World) -> Iterator[Found]:
    ends = {frozenset((link.a, link.b)) for link in world.links}
    for number, route in enumerate(world.routes, start=1):
        named = {"at": route.at, "to": route.to, "via": route.via}
        unknown = {key: name for key, name in named.items() if name not in world.nodes}
        for key, name in unknown.items():
            problem = f"{show(name)} is no node"
            yield f"route[{number}].{key}", problem, did_you_mean(name, world.nodes)
        if not unknown and frozenset((route.at, route.via)) not in ends:
            problem = f"no link between {show(route.at)} and {show(route.via)}"
            yield f"route[{number}].via", problem, f"a neighbour of {show(route.at)}"
        if not unknown and route.at == route.to:
            yield f"route[{number}].to", "the node itself", "another node"


def _carriers(world: World) -> Iterator[Found]:
    for node in [*world.of_kind(NodeKind.REGION), *world.of_kind(NodeKind.SITE)]:
        near = {world.nodes[step.destination].carrier for step in world.passes[node.name]}
        if node.carrier and node.carrier not in near:
            problem = f"{show(node.name)} has no link to carrier {show(node.carrier)}"
            yield node.kind, problem, did_you_mean(node.carrier, sorted(near - {""}))


def _translators(world: World) -> Iterator[Found]:
    for number, node in enumerate(world.of_kind(NodeKind.ROUTER), start=1):
        near = [world.nodes[step.destination].kind for step in world.passes[node.name]]
        if node.hop.translation and NodeKind.REGION not in near:
            where = f"router[{number}].nat"
            yield where, f"no region is linked to {show(node.name)}", "a router next to a region"


def _ways(world: World) -> Iterator[Found]:
    for region in world.regions:
        for site in world.sites:
            for source, destination in ((region, site), (site, region)):
                try:
                    check(world.next_hops, source, destination)
                except LookupError as error:
                    yield "link", str(error.args[0]), "a way there and back for every pair"


def _is_router(world: World, name: str) -> bool:
    return world.nodes[name].kind is NodeKind.ROUTER
