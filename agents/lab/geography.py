"""A World out of coordinates: two carriers with routers in a few metros, all places on both.

What is plausible about it: distance on the Earth, light in fibre, a detour per carrier and leg
that differs by direction, an access network in front of every region, queues that some packets
meet, a little loss. What it is not: a model of any real carrier.
"""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

from pathbudget.agents.lab.link import DirectionModel, Variation, VariationKind
from pathbudget.agents.lab.topology import Link, Node, NodeKind
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_check import build_world
from pathbudget.sites.geodesy import distance_km, floor_one_way_ms

Place = tuple[str, float, float]
"""Name, latitude, longitude."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """`inflation`: how much longer its fibre is than the straight way, on average."""

    name: str
    asn: int
    inflation: float


CARRIERS = (Carrier("north", 64501, 1.45), Carrier("south", 64502, 1.75))
HUBS = 5
SPREAD = 0.08
"""A leg's inflation is the carrier's times 1 +- this; the way back differs by a quarter of it."""
SHORTEST_MS = 0.15
"""Delay of a cable within a metro."""
ACCESS_MS = (0.8, 2.5)
"""Range of the access network of a region, one way."""
TRANSFER_COST = 10_000.0
"""Carriers hand over to each other only when there is no other way."""


def world_from_places(
    regions: Sequence[Place],
    sites: Sequence[Place],
    *,
    carriers: Sequence[Carrier] = CARRIERS,
    hubs: int = HUBS,
    seed: int = 1,
) -> World:
    """A world of `len(carriers) * hubs` routers around the given places.

    Regions and sites have a link to the nearest hub of every carrier and send by them in turn, so
    the way back is often another one. Names must differ between all places.
    Raises ConfigError when they do not, ValueError for coordinates off the Earth.
    """
    drawn = random.Random(f"geography {seed}")
    metros = hub_places([*regions, *sites], hubs)
    nodes = [
        _end(place, kind, carriers[index % len(carriers)])
        for kind, places in ((NodeKind.REGION, regions), (NodeKind.SITE, sites))
        for index, place in enumerate(places)
    ]
    links: list[Link] = []
    for carrier in carriers:
        nodes += [_router(carrier, metro) for metro in metros]
        links += _backbone(carrier, metros, drawn)
        links += [_access(carrier, place, metros, drawn) for place in regions]
        links += [_cross_connect(carrier, place, metros, drawn) for place in sites]
    links += _interconnects(carriers, metros)
    return build_world(nodes, links, seed=seed)


def hub_places(places: Sequence[Place], count: int) -> list[Place]:
    """`count` of the places as metros: each next one shortens the ways to the nearest hub most."""

    def total_km(hubs: Sequence[Place]) -> float:
        return sum(min(apart_km(place, hub) for hub in hubs) for place in places)

    taken: list[Place] = []
    for _ in range(min(count, len(set(places)))):
        left = [place for place in places if place not in taken]
        taken.append(min(left, key=lambda place: total_km([*taken, place])))
    return taken


def apart_km(one: Place, other: Place) -> float:
    """Geodesic between two places."""
    return distance_km(one[1], one[2], other[1], other[2])


def _end(place: Place, kind: NodeKind, carrier: Carrier) -> Node:
    return Node(place[0], kind, carrier.name, latitude=place[1], longitude=place[2])


def _router_name(carrier: Carrier, metro: Place) -> str:
    return f"{carrier.name}-{metro[0]}"


def _router(carrier: Carrier, metro: Place) -> Node:
    name = _router_name(carrier, metro)
    return Node(name, NodeKind.ROUTER, carrier.name, carrier.asn, metro[1], metro[2])


def _backbone(carrier: Carrier, metros: Sequence[Place], drawn: random.Random) -> list[Link]:
    return [
        Link(
            _router_name(carrier, one),
            _router_name(carrier, other),
            *_leg(apart_km(one, other), carrier, drawn, busy_share=0.10),
        )
        for index, one in enumerate(metros)
        for other in metros[index + 1 :]
    ]


def _access(carrier: Carrier, place: Place, metros: Sequence[Place], drawn: random.Random) -> Link:
    """From a region over its access network to the nearest hub, with a little loss."""
    hub = min(metros, key=lambda metro: apart_km(place, metro))
    last_mile = drawn.uniform(*ACCESS_MS)
    sides = _leg(
        apart_km(place, hub),
        carrier,
        drawn,
        extra_ms=last_mile,
        busy_share=0.25,
        loss=round(drawn.uniform(0.0005, 0.003), 5),
    )
    return Link(place[0], _router_name(carrier, hub), *sides)


def _cross_connect(
    carrier: Carrier, place: Place, metros: Sequence[Place], drawn: random.Random
) -> Link:
    hub = min(metros, key=lambda metro: apart_km(place, metro))
    return Link(place[0], _router_name(carrier, hub), *_leg(apart_km(place, hub), carrier, drawn))


def _interconnects(carriers: Sequence[Carrier], metros: Sequence[Place]) -> list[Link]:
    """In every hub metro each carrier meets the next."""
    model = DirectionModel(delay_ns=_ns(SHORTEST_MS))
    return [
        Link(_router_name(one, metro), _router_name(other, metro), model, model, TRANSFER_COST)
        for one, other in itertools.pairwise(carriers)
        for metro in metros
    ]


def _leg(
    kilometres: float,
    carrier: Carrier,
    drawn: random.Random,
    *,
    extra_ms: float = 0.0,
    busy_share: float = 0.0,
    loss: float = 0.0,
) -> tuple[DirectionModel, DirectionModel]:
    """Both directions. Queues: a share of packets waits, a Pareto tail that grows with distance."""
    inflation = carrier.inflation * (1 + drawn.uniform(-SPREAD, SPREAD))
    sides: list[DirectionModel] = []
    for _ in range(2):
        turn = inflation * (1 + drawn.uniform(-SPREAD, SPREAD) / 4)
        delay = max(SHORTEST_MS, floor_one_way_ms(kilometres) * turn) + extra_ms
        scale = 0.12 + 0.008 * delay
        variation = Variation(VariationKind.PARETO, _ns(scale), 3.5, busy_share)
        sides.append(
            DirectionModel(
                delay_ns=_ns(delay),
                variation=variation if busy_share else Variation(),
                loss=loss,
            )
        )
    return sides[0], sides[1]


def _ns(milliseconds: float) -> int:
    """Whole microseconds, in nanoseconds."""
    return round(milliseconds * 1000) * 1000
