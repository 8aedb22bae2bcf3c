"""A network of balancers as a few tables, traced without a packet."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field

from pathbudget.analysis.routes.model import FlowPath, Hop, PathObservation, PathSeries

SECOND = 10**9
SERIES = PathSeries("v", "r", "s", "t", "192.0.2.1", None, "udp")
DESTINATION = "dst"


@dataclass(slots=True)
class Balancer:
    """Hops in a row that are chosen together: `ways` of equal length or not, by flow or packet."""

    ways: Sequence[Sequence[str]]
    by_packet: bool = False
    seed: int = 0
    weights: Sequence[float] = ()

    def way(self, flow: int, rng: random.Random) -> Sequence[str]:
        chooser = rng if self.by_packet else random.Random(hash((flow, self.seed)))
        return chooser.choices(self.ways, self.weights or None)[0]


@dataclass(slots=True)
class Network:
    """`parts` one after the other. A hop named ``a?`` answers every other packet, ``-`` none."""

    parts: list[Balancer]
    seed: int = 1
    silence: float = 0.0
    rng: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self.rng = random.Random(self.seed)

    def trace(
        self,
        time_s: float,
        flows: Sequence[int | None] = (1, 2, 3, 4, 5, 6),
        packets: int = 1,
        *,
        reached: bool = True,
        series: PathSeries = SERIES,
    ) -> PathObservation:
        paths = tuple(self.flow(flow, packets, reached=reached) for flow in flows)
        start = round(time_s * SECOND)
        return PathObservation(series, start, start + SECOND, paths)

    def flow(self, flow: int | None, packets: int = 1, *, reached: bool = True) -> FlowPath:
        """Every packet of no flow is a flow of its own."""
        rows = [
            self.packet(self.rng.randrange(10**6) if flow is None else flow) for _ in range(packets)
        ]
        length = max(map(len, rows))
        hops: list[Hop] = [
            frozenset(row[at] for row in rows if at < len(row) and row[at]) for at in range(length)
        ]
        answered = tuple(
            sum(at < len(row) and bool(row[at]) for row in rows) for at in range(length)
        )
        if not reached:
            hops[-1] = frozenset()
        sent = (packets,) * length
        return FlowPath(flow, tuple(hops), reached, sent=sent, answered=answered)

    def packet(self, flow: int) -> list[str]:
        row = [hop for part in self.parts for hop in part.way(flow, self.rng)]
        return [*map(self._answer, row), DESTINATION]

    def _answer(self, hop: str) -> str:
        silent = hop == "-" or (hop.endswith("?") and self.rng.random() < 0.5)
        return "" if silent or self.rng.random() < self.silence else hop


def chain(*hops: str) -> Balancer:
    """No choice at all."""
    return Balancer([hops])


def ways(*names: str, by_packet: bool = False, seed: int = 0) -> Balancer:
    """One hop each: ``ways("a", "b")`` is a two-way balancer."""
    return Balancer([[name] for name in names], by_packet, seed)
