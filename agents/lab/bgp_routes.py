"""What BGP speakers of a world settle on: which links their packets take.

A synchronous path-vector computation with the decisions that BIRD makes by our configuration
(`bird_config.py`), in this order: higher LOCAL_PREF, shorter AS path, lower MED, external before
internal, lower router (or originator) number, shorter cluster list, lower neighbour address.

Inside an AS each speaker reflects to its neighbours (RFC 4456) with itself as next hop, and MED is
the sum of the link costs to where packets leave the AS: the nearest exit, loop-free, and re-routed
around what fails without another protocol.
"""

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from pathbudget.agents.lab.bgp import OWN_CARRIER, PREFERENCE
from pathbudget.agents.lab.routing import NextHops, fix_routes
from pathbudget.agents.lab.topology import LinkPass, LinkState, NodeKind, Topology
from pathbudget.probes.record import AddressFamily

MOST_ROUNDS = 200


@dataclass(frozen=True, slots=True)
class Route:
    """One route to a prefix as a speaker has it. `step` None: it is its own."""

    step: LinkPass | None
    preference: int = PREFERENCE
    as_path: tuple[int, ...] = ()
    med: int = 0
    internal: bool = False
    originator: int | None = None
    clusters: tuple[int, ...] = ()
    neighbour: int = 0
    """Router number of who told it."""

    @property
    def mergeable(self) -> tuple[int, int, int, bool]:
        """Equal for routes that are used together."""
        return (-self.preference, len(self.as_path), self.med, self.internal)

    @property
    def order(self) -> tuple[object, ...]:
        """The smallest is the best."""
        number = self.neighbour if self.originator is None else self.originator
        # Addresses of links are in the order of their owners and places, like these.
        return (self.step is not None, *self.mergeable, number, len(self.clusters))


Routes = dict[str, Route]
"""The best route of every speaker that has one."""


def by_bgp(topology: Topology) -> NextHops:
    """A `Routing`: what the speakers settle on. Regions and sites without `asn` have one link."""
    next_hops: NextHops = {name: {} for name in topology.nodes}
    for name in topology.nodes:
        if not speaks(topology, name):
            step = topology.passes[name][0]
            for other in topology.nodes:
                if other != name and step.state is not LinkState.DOWN:
                    next_hops[name][other] = (step,)
    for destination in topology.nodes:
        for name, routes in settled(topology, destination).items():
            steps = _steps(topology, name, routes)
            if steps:
                next_hops[name][destination] = steps
    fix_routes(topology, next_hops)
    return next_hops


def speaks(topology: Topology, name: str) -> bool:
    """Whether a node has a BGP speaker."""
    node = topology.nodes[name]
    return node.kind is NodeKind.ROUTER or node.asn is not None


def best_routes(topology: Topology, destination: str) -> Routes:
    """The best route of every speaker to the prefix of a node."""
    return {name: routes[0] for name, routes in settled(topology, destination).items()}


def settled(topology: Topology, destination: str) -> dict[str, list[Route]]:
    """All routes that speakers know to the prefix of a node, best first.

    Raises LookupError when they never settle (preferences in a circle).
    """
    kept: dict[str, dict[str, list[Route]]] = topology.derived.setdefault("bgp", {})
    if destination not in kept:
        kept[destination] = _settle(topology, destination)
    return kept[destination]


def _settle(topology: Topology, destination: str) -> dict[str, list[Route]]:
    speakers = [name for name in topology.nodes if speaks(topology, name)]
    numbers = _numbers(topology)
    known: dict[str, list[Route]] = {}
    changed = set(speakers)
    for _ in range(MOST_ROUNDS):
        heard = dict(known)
        for name in speakers:
            told = any(step.destination in changed for step in topology.passes[name])
            if told or not known:
                routes = _routes_of(topology, name, destination, known, numbers)
                if routes:
                    heard[name] = routes
                else:
                    heard.pop(name, None)
        changed = {name for name in speakers if heard.get(name, [])[:1] != known.get(name, [])[:1]}
        known = heard
        if not changed:
            return known
    raise LookupError(f"BGP never settles on routes to {destination}")


def _routes_of(
    topology: Topology,
    name: str,
    destination: str,
    known: dict[str, list[Route]],
    numbers: dict[str, int],
) -> list[Route]:
    routes = [*_own(topology, name, destination)]
    for step in topology.passes[name]:
        route = _heard(topology, step, known, numbers)
        if route:
            routes.append(route)
    places = _places(topology)
    routes.sort(key=lambda route: (*route.order, places[route.step.link] if route.step else ()))
    return routes


def _numbers(topology: Topology) -> dict[str, int]:
    """The router numbers: those of the IPv4 addresses, or anything in the same order."""
    found: dict[str, int] | None = topology.derived.get("numbers")
    if found is None:
        address_of = getattr(topology, "address_of", None)
        found = {
            name: int(ipaddress.ip_address(address_of(name))) if address_of else at
            for at, name in enumerate(topology.nodes)
        }
        topology.derived["numbers"] = found
    return found


def _places(topology: Topology) -> list[tuple[int, ...]]:
    """Something in the order of the addresses of links."""
    found: list[tuple[int, ...]] | None = topology.derived.get("places")
    if found is None:
        addresses = getattr(topology, "link_addresses", None)
        found = [
            (int(ipaddress.ip_address(addresses(at, AddressFamily.IPV4)[0])),)
            if addresses
            else (at,)
            for at in range(len(topology.links))
        ]
        topology.derived["places"] = found
    return found


def _own(topology: Topology, name: str, destination: str) -> Iterator[Route]:
    node = topology.nodes[name]
    if destination in node.also_announces or (name == destination and node.announces):
        yield Route(None)
    if not speaks(topology, destination):
        for step in topology.passes[name]:
            announced = topology.nodes[destination].announces
            if step.destination == destination and step.state is not LinkState.DOWN and announced:
                yield Route(step, preference=1 << 32)  # a static route is before all of BGP


def _heard(
    topology: Topology, step: LinkPass, known: dict[str, list[Route]], numbers: dict[str, int]
) -> Route | None:
    """What the node at the start of `step` hears from the one at its end."""
    link = topology.links[step.link]
    told = known.get(step.destination)
    if not told or link.state is not LinkState.UP or not link.session:
        return None
    best = told[0]
    teller, hearer = topology.nodes[step.destination], topology.nodes[step.source]
    own = best.step is None or not speaks(topology, best.step.destination)
    if teller.kind is not NodeKind.ROUTER and not own:
        return None  # regions and sites tell of nothing but themselves
    if best.step is not None and best.step.link == step.link:
        return None  # it came from here
    side = 0 if link.a == step.source else 1
    number = numbers[step.source]
    clusters: tuple[int, ...] = ()
    originator = None
    if teller.asn != hearer.asn:
        path = (teller.asn or 0,) * (1 + link.prepends[side]) + best.as_path
        if hearer.asn in path:
            return None
        preference, med = PREFERENCE, 0
    else:
        path = best.as_path
        preference = PREFERENCE if own else best.preference
        med = best.med + med_of(step)
        if best.internal:
            originator = best.neighbour if best.originator is None else best.originator
            clusters = (numbers[step.destination], *best.clusters)
            if originator == number or number in clusters:
                return None
    return Route(
        step,
        preference_of(topology, step, preference),
        path,
        med,
        teller.asn == hearer.asn,
        originator,
        clusters,
        numbers[step.destination],
    )


def med_of(step: LinkPass) -> int:
    """What passing a link inside an AS adds to MED."""
    return max(1, round(step.cost * 100))


def preference_of(topology: Topology, step: LinkPass, otherwise: int = PREFERENCE) -> int:
    """LOCAL_PREF that the node at the start of `step` gives what it hears over it."""
    link = topology.links[step.link]
    said = link.preferences[0 if link.a == step.source else 1]
    if said is not None:
        return said
    hearer = topology.nodes[step.source]
    own = hearer.carrier and hearer.carrier == topology.nodes[step.destination].carrier
    if own and hearer.kind is not NodeKind.ROUTER:
        return OWN_CARRIER
    return otherwise


def _steps(topology: Topology, name: str, routes: list[Route]) -> tuple[LinkPass, ...]:
    best = routes[0]
    if best.step is None:
        return ()
    if not topology.uses_all_equal(name):
        return (best.step,)
    return tuple(route.step for route in routes if route.step and route.mergeable == best.mergeable)
