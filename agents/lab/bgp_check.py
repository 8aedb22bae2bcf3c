"""What can be wrong with BGP in a world."""

from collections.abc import Iterator

from pathbudget.agents.lab.bgp_routes import speaks
from pathbudget.agents.lab.hop import Balancing
from pathbudget.agents.lab.topology import NodeKind
from pathbudget.agents.lab.world import World
from pathbudget.sites.entry import did_you_mean, show

Found = tuple[str, str, str]
_BY_KERNEL = (Balancing.PORTS, Balancing.ADDRESSES)


def bgp_faults(world: World) -> Iterator[Found]:
    """Every fault."""
    yield from _listeners(world)
    yield from _speakers(world) if world.bgp else _without_bgp(world)


def _without_bgp(world: World) -> Iterator[Found]:
    for number, link in enumerate(world.links, start=1):
        if link.preferences != (None, None):
            yield f"link[{number}].local_preference", "there is no BGP", "a table [bgp]"
        if link.prepends != (0, 0):
            yield f"link[{number}].prepend", "there is no BGP", "a table [bgp]"
    for number, _ in enumerate(world.listeners, start=1):
        yield f"listener[{number}]", "there is no BGP", "a table [bgp]"


def _speakers(world: World) -> Iterator[Found]:
    for kind in NodeKind:
        for number, node in enumerate(world.of_kind(kind), start=1):
            where = f"{kind}[{number}]"
            if kind is NodeKind.ROUTER and node.asn is None:
                yield f"{where}.asn", "is missing", "an AS number: with [bgp] every router has one"
            links = len(world.passes.get(node.name, ()))
            if not speaks(world, node.name) and links != 1:
                problem = f"{links} links and no AS number"
                yield f"{where}.asn", problem, "an AS number, or one link"
            if node.hop.balancing not in _BY_KERNEL:
                problem = f"{show(node.hop.balancing.value)} does not go with [bgp]"
                yield f"{where}.balancing", problem, "one of " + ", ".join(_BY_KERNEL)


def _listeners(world: World) -> Iterator[Found]:
    names: dict[str, int] = {}
    places: dict[tuple[str, int], int] = {}
    for number, listener in enumerate(world.listeners, start=1):
        where = f"listener[{number}]"
        for key, name in (("at", listener.at), ("router", listener.router)):
            if name not in world.nodes:
                yield f"{where}.{key}", f"{show(name)} is no node", did_you_mean(name, world.nodes)
            elif key == "router" and not speaks(world, name):
                yield f"{where}.router", f"{show(name)} speaks no BGP", "a router"
        if listener.at == listener.router:
            yield f"{where}.at", "the router itself", "another node"
        if listener.name in names:
            problem = f"{show(listener.name)} is listener[{names[listener.name]}] already"
            yield f"{where}.name", problem, "a name of its own"
        place = (listener.at, listener.port)
        if place in places:
            problem = f"listener[{places[place]}] is there already"
            yield f"{where}.port", problem, "another port or node"
        names.setdefault(listener.name, number)
        places.setdefault(place, number)
