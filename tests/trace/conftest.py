"""The trace probe over a fake network: one trace or many, and what it left behind."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pathbudget.probes.contract import Options, Probe, ProbeEnvironment, Shot
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.fake_topology import FakeTopology
from pathbudget.probes.record import AddressFamily, Metric, Note, Sample, Target
from pathbudget.probes.trace.probe import TRACE

MS, SECOND = 1_000_000, 1_000_000_000
DESTINATION = "192.0.2.9"
During = Callable[[FakeNetwork, Probe], None]


@dataclass
class Traced:
    """All that came of some traces."""

    samples: list[Sample] = field(default_factory=list[Sample])
    counts: Counter[str] = field(default_factory=Counter[str])
    took_ns: int = 0
    packets: int = 0

    @property
    def target(self) -> Sample:
        """The sample of the only destination."""
        [found] = self.targets
        return found

    @property
    def targets(self) -> list[Sample]:
        return [one for one in self.samples if one.metric == Metric.RTT]

    @property
    def hops(self) -> list[Sample]:
        return [one for one in self.samples if one.metric == Metric.HOP_RTT]

    @property
    def notes(self) -> dict[str, Note]:
        return self.target.notes or {}

    def at(self, limit: int) -> list[Sample]:
        """Samples of one hop limit."""
        return [one for one in self.hops if one.part == limit]


def shot(
    address: str = DESTINATION,
    *,
    series: int = 0,
    seq: int = 0,
    port: int | None = None,
    timeout_ns: int = SECOND,
) -> Shot:
    family = AddressFamily.IPV6 if ":" in address else AddressFamily.IPV4
    target = Target("target", address, port=port)
    return Shot(series, seq, target, address, family, timeout_ns)


def network_of(topology: FakeTopology, **settings: bool | None) -> FakeNetwork:
    network = FakeNetwork(FakeClock(jumps=True), topology=topology)
    for name, value in settings.items():
        setattr(network, name, value)
    return network


def run_traces(
    network: FakeNetwork,
    shots: Sequence[Shot],
    options: Options | None = None,
    *,
    during: During | None = None,
    seed: int = 1,
) -> Traced:
    """Fire them all at once and wait until all have ended."""

    async def run() -> Traced:
        found = Traced()
        clock = network.clock
        environment = ProbeEnvironment(
            network=network,
            clock=clock,
            rng=random.Random(seed),
            emit=lambda _, sample: found.samples.append(sample),
            count=lambda _, word: found.counts.update([word]),
        )
        probe = TRACE.open(environment, options or {})
        began_ns = clock.monotonic_ns()
        for one in shots:
            probe.fire(one)
        if during is not None:
            during(network, probe)
        await asyncio.wait_for(probe.drain(), 60)
        found.took_ns = clock.monotonic_ns() - began_ns
        probe.close()
        return found

    return asyncio.run(run())
