"""Which way packets go. A `Routing` is a function from the topology to the next hop of every node.

`shortest_delay` is what the lab uses by itself. A routing daemon or equal-cost multipath comes in
by another function (or by leaving the tables to the daemon).
"""

import heapq
from collections.abc import Callable

from pathbudget.agents.lab.topology import LinkPass, NodeKind, Topology

NextHops = dict[str, dict[str, LinkPass]]
Routing = Callable[[Topology], NextHops]


def shortest_delay(topology: Topology) -> NextHops:
    """Hop by hop along the lowest sum of costs; regions and sites forward for nobody.

    A region or site with a `carrier` sends through a router of that carrier. Ties go to fewer hops,
    then to the earlier link of the definition. Static routes come last and win.
    """
    next_hops: NextHops = {name: {} for name in topology.nodes}
    for destination in topology.nodes:
        distances = _distances_to(topology, destination)
        for name in topology.nodes:
            step = _best_step(topology, name, destination, distances)
            if step is not None:
                next_hops[name][destination] = step
    for route in topology.routes:
        next_hops[route.at][route.to] = next(
            step for step in topology.passes[route.at] if step.destination == route.via
        )
    return next_hops


def _forwards(topology: Topology, name: str) -> bool:
    return topology.nodes[name].kind is NodeKind.ROUTER


def _distances_to(topology: Topology, destination: str) -> dict[str, tuple[float, int]]:
    """(cost, hops) from every node that has a way (Dijkstra 1959, on the reversed directions)."""
    arriving: dict[str, list[LinkPass]] = {name: [] for name in topology.nodes}
    for steps in topology.passes.values():
        for step in steps:
            arriving[step.destination].append(step)
    found: dict[str, tuple[float, int]] = {}
    waiting: list[tuple[float, int, str]] = [(0.0, 0, destination)]
    while waiting:
        cost, hops, name = heapq.heappop(waiting)
        if name in found:
            continue
        found[name] = (cost, hops)
        if name == destination or _forwards(topology, name):
            for step in arriving[name]:
                heapq.heappush(waiting, (cost + step.cost, hops + 1, step.source))
    return found


def _best_step(
    topology: Topology, name: str, destination: str, distances: dict[str, tuple[float, int]]
) -> LinkPass | None:
    if name == destination:
        return None
    usable = [
        step
        for step in topology.passes[name]
        if step.destination in distances
        and (step.destination == destination or _forwards(topology, step.destination))
    ]
    carrier = topology.nodes[name].carrier
    if carrier and not _forwards(topology, name):
        own = [step for step in usable if topology.nodes[step.destination].carrier == carrier]
        usable = own or usable
    return min(
        usable,
        key=lambda step: (
            step.cost + distances[step.destination][0],
            distances[step.destination][1],
            step.link,
        ),
        default=None,
    )
