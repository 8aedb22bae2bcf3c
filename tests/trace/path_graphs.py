"""Networks of names for the enumeration: who passes what on to whom. No packets, no time."""

import itertools
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pathbudget.probes.trace.enumeration import Enumeration

SOURCE, DESTINATION = "", "D"
Graph = Mapping[str, Sequence[str]]


def chain(*widths: int, meshed: Sequence[int] = ()) -> dict[str, list[str]]:
    """Hops of these widths between source and destination. From a hop to the next every vertex has
    its own part of them; all of them where the hop (counted from 1) is in `meshed`.
    """
    layers = [[SOURCE]]
    layers += [[f"r{hop}.{n}" for n in range(width)] for hop, width in enumerate(widths, 1)]
    layers.append([DESTINATION])
    graph: dict[str, list[str]] = {}
    for hop, (here, there) in enumerate(itertools.pairwise(layers)):
        for index, name in enumerate(here):
            if hop in meshed or len(here) == 1:
                graph[name] = list(there)
            elif len(there) >= len(here):
                ways = len(there) // len(here)
                graph[name] = there[index * ways : (index + 1) * ways]
            else:
                graph[name] = [there[index * len(there) // len(here)]]
    return graph


def links_of(graph: Graph, hidden: frozenset[str] = frozenset()) -> set[tuple[int, str, str]]:
    """All links between two who answer, with the hop limit of the first."""
    found: set[tuple[int, str, str]] = set()
    here, limit = {SOURCE}, 0
    while here:
        there: set[str] = set()
        for name in here:
            for after in graph.get(name, ()):
                there.add(after)
                if name != SOURCE and not {name, after} & hidden:
                    found.add((limit, name, after))
        here, limit = there, limit + 1
    return found


@dataclass
class World:
    """Carries packets of flows through a graph. `sprays`: who balances by packet; `silent`: who
    never answers; `lost`: share of answers lost; `after_packets`: another graph from then on.
    """

    graph: Graph
    seed: int
    silent: frozenset[str] = frozenset()
    sprays: frozenset[str] = frozenset()
    lost: Mapping[str, float] = field(default_factory=dict[str, float])
    weights: Mapping[str, Sequence[float]] = field(default_factory=dict[str, Sequence[float]])
    later: Graph | None = None
    after_packets: int = 0
    packets: int = 0
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def carry(self, flow: int, limit: int) -> str | None:
        """Who answers; None: nobody."""
        self.packets += 1
        changed = self.later is not None and self.packets > self.after_packets
        graph = self.later if changed and self.later is not None else self.graph
        name = SOURCE
        for _ in range(limit):
            if name == DESTINATION:
                break
            name = self._next(graph, name, flow)
        if name in self.silent or self.rng.random() < self.lost.get(name, 0.0):
            return None
        return name

    def _next(self, graph: Graph, name: str, flow: int) -> str:
        ways = graph[name]
        if len(ways) == 1:
            return ways[0]
        rng = self.rng if name in self.sprays else random.Random(f"{self.seed}/{name}/{flow}")
        return rng.choices(ways, self.weights.get(name))[0]


def explore(trace: Enumeration, world: World, *, rounds: int = 10_000) -> Enumeration:
    """Run a trace to its end: every packet of a round is answered before the next round."""
    for _ in range(rounds):
        wants = trace.wanted()
        if not wants and trace.done:
            return trace
        assert wants, "it neither asks nor ends"
        world.rng.shuffle(wants)
        for flow, limit, asked in wants:
            name = world.carry(flow, limit)
            if name is None:
                trace.silent(flow, limit)
            else:
                trace.answered(flow, limit, name, terminal=name == DESTINATION, asked=asked)
    raise AssertionError("it does not end")
