"""Which way packets go. A `Routing` is a function from the topology to the next hop of every node.

`shortest_delay` is what the lab uses by itself; `bgp_routes.py` has what routing daemons decide.
"""

import heapq
import math
from collections.abc import Callable

from pathbudget.agents.lab.topology import LinkPass, LinkState, NodeKind, Topology

NextHops = dict[str, dict[str, tuple[LinkPass, ...]]]
"""Equally good link directions by node and destination, the preferred one first."""

Routing = Callable[[Topology], NextHops]


def shortest_delay(topology: Topology) -> NextHops:
    """Hop by hop along the lowest sum of costs; regions and sites forward for nobody.

    A region or site with a `carrier` sends through a router of that carrier. Ties go to fewer hops,
    then to the earlier link of the definition; with `ecmp` all of equal cost are used. Static
    routes come last and win.
    """
    next_hops: NextHops = {name: {} for name in topology.nodes}
    for destination in topology.nodes:
        distances = _distances_to(topology, destination)
        for name in topology.nodes:
            steps = _best_steps(topology, name, destination, distances)
            if steps:
                next_hops[name][destination] = steps
    fix_routes(topology, next_hops)
    return next_hops


def fix_routes(topology: Topology, next_hops: NextHops) -> None:
    """Have the static routes in."""
    for route in topology.routes:
        over = tuple(
            step
            for step in topology.passes[route.at]
            if step.destination == route.via and step.state is not LinkState.DOWN
        )
        if over:
            all_of_them = topology.uses_all_equal(route.at)
            next_hops[route.at][route.to] = over if all_of_them else over[:1]


def _forwards(topology: Topology, name: str) -> bool:
    return topology.nodes[name].kind is NodeKind.ROUTER


def _distances_to(topology: Topology, destination: str) -> dict[str, tuple[float, int]]:
    """(cost, hops) from every node that has a way (Dijkstra 1959, on the reversed directions)."""
    arriving: dict[str, list[LinkPass]] = {name: [] for name in topology.nodes}
    for steps in topology.passes.values():
        for step in steps:
            if step.state is not LinkState.DOWN:
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


def _best_steps(
    topology: Topology, name: str, destination: str, distances: dict[str, tuple[float, int]]
) -> tuple[LinkPass, ...]:
    """All that are equally good where the node uses them all, else the first of them."""
    if name == destination:
        return ()
    usable = [
        step
        for step in topology.passes[name]
        if step.destination in distances
        and step.state is not LinkState.DOWN
        and (step.destination == destination or _forwards(topology, step.destination))
    ]
    carrier = topology.nodes[name].carrier
    if carrier and not _forwards(topology, name):
        own = [step for step in usable if topology.nodes[step.destination].carrier == carrier]
        usable = own or usable

    def cost(step: LinkPass) -> float:
        return step.cost + distances[step.destination][0]

    usable.sort(key=lambda step: (cost(step), distances[step.destination][1], step.link))
    if not usable or not topology.uses_all_equal(name):
        return tuple(usable[:1])
    least = cost(usable[0])
    return tuple(
        step
        for step in usable
        if math.isclose(cost(step), least, rel_tol=1e-12)
        and distances[step.destination] < distances[name]  # so that nothing goes in a circle
    )
