"""The trace probe on real sockets, from wherever the caller is; what it left behind, as links."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import Options, ProbeEnvironment, Shot
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Metric, Note, Sample, Target
from pathbudget.probes.trace.probe import TRACE

TIMEOUT_NS = 1_000_000_000
LinkSet = set[tuple[int, str, str]]


@dataclass(frozen=True)
class Traced:
    """One trace of one address."""

    address: str
    samples: Sequence[Sample]

    @property
    def target(self) -> Sample:
        """The sample of the destination; there is exactly one."""
        [found] = (one for one in self.samples if one.metric == Metric.RTT)
        return found

    @property
    def notes(self) -> dict[str, Note]:
        return self.target.notes or {}

    @property
    def hops(self) -> list[Sample]:
        return [one for one in self.samples if one.metric == Metric.HOP_RTT]

    @property
    def links(self) -> LinkSet:
        return links_of(self.hops, self.address)

    def answers_of(self, address: str) -> list[Sample]:
        return [one for one in self.hops if one.responder == address]


def links_of(hops: Iterable[Sample], destination: str) -> LinkSet:
    """What one flow saw at two hop limits in a row."""
    flows: dict[int | None, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for sample in hops:
        if sample.value_ns is not None and sample.part is not None:
            flows[sample.flow][sample.part].add(sample.responder or destination)
    found: LinkSet = set()
    for seen in flows.values():
        for hop, names in seen.items():
            after = seen.get(hop + 1, set())
            if len(names) == len(after) == 1 and names != {destination}:
                found.add((hop, min(names), min(after)))
    return found


def trace_all(addresses: Sequence[str], options: Options, seed: int | None = None) -> list[Traced]:
    """Trace them at the same time, through the sockets of this namespace."""
    return asyncio.run(_trace_all(addresses, options, seed))


async def _trace_all(addresses: Sequence[str], options: Options, seed: int | None) -> list[Traced]:
    clock, network = SystemClock(), SystemNetwork()
    samples: dict[int, list[Sample]] = defaultdict(list)
    environment = ProbeEnvironment(
        network=network,
        clock=clock,
        rng=random.Random(seed),
        emit=lambda series, sample: samples[series].append(sample),
        count=lambda _, __: None,
    )
    try:
        probe = TRACE.open(environment, options)
        try:
            for number, address in enumerate(addresses):
                family = AddressFamily.IPV6 if ":" in address else AddressFamily.IPV4
                target = Target(address, address)
                probe.fire(Shot(number, 0, target, address, family, TIMEOUT_NS))
            await probe.drain()
        finally:
            probe.close()
    finally:
        network.close()
    return [Traced(address, samples[n]) for n, address in enumerate(addresses)]
