"""Is the path set that a trace finds the true one, as often as it says? 200 seeded networks.

    .venv/bin/python benchmarks/trace_truth.py [--runs 200] [--confidence 0.95 0.99]

Each seed draws a network (`probes/fake_topology`): diamonds of 2, 4 and 8 ways at several hops,
plain and meshed, paths of unequal length, MPLS labels, a NAT, silent and rate-limited routers. The
whole probe runs over it, on real packets and a clock that jumps; what is compared with the truth
are the samples it leaves behind. A run fails where one link is missing; a false link is one that
is not there. The last column is the chance of as many failures or more, were the stated confidence
right (binomial): a small one would be bad news. `sure`: failures of runs that called themselves
complete; the others have said that they are not.
"""

import argparse
import asyncio
import math
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Sequence

from pathbudget.probes.contract import Option, ProbeEnvironment, Shot
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.fake_topology import FakeNat, FakeTopology
from pathbudget.probes.record import AddressFamily, Metric, Sample, Target
from pathbudget.probes.trace.contract import LabelEntry
from pathbudget.probes.trace.probe import TRACE

DESTINATION = "192.0.2.9"
HEAD = "kind     algorithm conf    right complete sure false  packets  (most) seconds P(so many)"
KINDS = ["single", "plain", "meshed", "unequal", "odd", "all"]
Links = set[tuple[int, str, str]]


def draw(seed: int, kind: str) -> FakeTopology:
    """A network of a kind."""
    rng = random.Random(f"{seed}/{kind}")
    topology = FakeTopology(seed)
    widths = [1, *_diamonds(rng, kind), 1]
    layers = [[f"10.{hop}.0.{1 + n}" for n in range(width)] for hop, width in enumerate(widths)]
    meshed = [
        hop
        for hop in range(len(widths) - 1)
        if kind in ("meshed", "all") and min(widths[hop : hop + 2]) > 1 and rng.random() < 0.7
    ]
    topology.layers(DESTINATION, layers, meshed=meshed)
    if kind in ("unequal", "all"):
        _shorten(topology, layers, rng)
    if kind in ("odd", "all"):
        _make_odd(topology, layers, rng)
    return topology


def _diamonds(rng: random.Random, kind: str) -> list[int]:
    widths: list[int] = []
    for _ in range(rng.randint(1, 3)):
        widths += rng.choice(([2], [4], [8], [2, 2], [2, 4], [4, 4], [2, 4, 8], [8, 4], [4, 2]))
        widths += [1] * rng.randint(1, 2)
    if kind == "single":
        widths = [1] * len(widths)
    return widths


def _shorten(topology: FakeTopology, layers: list[list[str]], rng: random.Random) -> None:
    """One router of a diamond also has a link to the layer after the next."""
    wide = [n for n, layer in enumerate(layers[:-2]) if len(layer) == 1 and len(layers[n + 1]) > 1]
    if wide:
        at = rng.choice(wide)
        topology.link(DESTINATION, layers[at][0], layers[at + 2][0])


def _make_odd(topology: FakeTopology, layers: list[list[str]], rng: random.Random) -> None:
    """Labels, a NAT, a silent hop, one silent router of several, and one that rations answers."""
    inner = layers[1:-1]
    for address in rng.choice(inner):
        topology.node(address).labels = (LabelEntry(rng.randrange(16, 1 << 20), 0, True, 1),)
    topology.node(layers[0][0]).nat = FakeNat("198.51.100.7", port_shift=rng.choice((0, 1_000)))
    single = [layer for layer in inner if len(layer) == 1]
    for address in rng.choice(single):
        topology.node(address).silent = True
    several = [layer for layer in inner if len(layer) > 1]
    if several:
        topology.node(rng.choice(rng.choice(several))).silent = True
    limited = topology.node(rng.choice(rng.choice(inner)))
    limited.per_second, limited.burst = rng.choice((2.0, 10.0)), 6


def run(
    topology: FakeTopology, seed: int, options: dict[str, Option]
) -> tuple[list[Sample], float]:
    """The samples of one trace, and how many seconds it took."""
    return asyncio.run(_run(topology, seed, options))


async def _run(
    topology: FakeTopology, seed: int, options: dict[str, Option]
) -> tuple[list[Sample], float]:
    clock = FakeClock(jumps=True)
    samples: list[Sample] = []
    environment = ProbeEnvironment(
        network=FakeNetwork(clock, topology=topology),
        clock=clock,
        rng=random.Random(seed),
        emit=lambda _, sample: samples.append(sample),
        count=lambda _, __: None,
    )
    probe = TRACE.open(environment, options)
    began_ns = clock.monotonic_ns()
    target = Target("t", DESTINATION)
    probe.fire(Shot(0, 0, target, DESTINATION, AddressFamily.IPV4, 1_000_000_000))
    await probe.drain()
    probe.close()
    return samples, (clock.monotonic_ns() - began_ns) / 1e9


def links_of(samples: Sequence[Sample]) -> Links:
    """What one flow saw at two hop limits in a row."""
    flows: dict[int | None, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    for sample in samples:
        if sample.metric == Metric.HOP_RTT and sample.value_ns is not None:
            assert sample.part is not None
            flows[sample.flow][sample.part].add(sample.responder or DESTINATION)
    found: Links = set()
    for hops in flows.values():
        for hop, names in hops.items():
            after = hops.get(hop + 1, set())
            if len(names) == len(after) == 1 and names != {DESTINATION}:
                found.add((hop, next(iter(names)), next(iter(after))))
    return found


def at_least(failures: int, runs: int, chance: float) -> float:
    """Probability of so many failures or more."""
    return sum(
        math.comb(runs, k) * chance**k * (1 - chance) ** (runs - k)
        for k in range(failures, runs + 1)
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--confidence", type=float, nargs="*", default=[0.95, 0.99])
    parser.add_argument("--protocol", default="udp")
    parser.add_argument("--kinds", nargs="*", default=KINDS)
    parser.add_argument("--algorithms", nargs="*", default=["mda", "mda-lite"])
    parser.add_argument("--of", default="trace", choices=("trace", "vertex"))
    told = parser.parse_args()
    print(HEAD)
    for kind in told.kinds:
        for algorithm in told.algorithms:
            for confidence in told.confidence:
                options: dict[str, Option] = {
                    "protocol": told.protocol,
                    "algorithm": algorithm,
                    "confidence": confidence,
                    "confidence_of": told.of,
                    "max_packets": 20_000,
                    "deadline": 300.0,
                }
                _row(kind, told.runs, options)


def _row(kind: str, runs: int, options: dict[str, Option]) -> None:
    right = complete = false = sure = 0
    packets: list[int] = []
    took: list[float] = []
    missing: list[int] = []
    for seed in range(runs):
        topology = draw(seed, kind)
        samples, seconds = run(topology, seed, options)
        truth, found = topology.links(DESTINATION), links_of(samples)
        right += found == truth
        false += len(found - truth)
        notes = samples[-1].notes or {}
        complete += bool(notes["complete"])
        if truth - found:
            missing.append(seed)
            sure += bool(notes["complete"])
        packets.append(len(samples) - 1)
        took.append(seconds)
    confidence = float(str(options["confidence"]))
    chance = at_least(sure, complete, 1 - confidence)
    print(
        f"{kind:8} {options['algorithm']:9} {confidence:.2f} {right:4}/{runs} {complete:8} {sure:4}"
        f" {false:5} {statistics.mean(packets):8.0f} {max(packets):7} {statistics.mean(took):7.1f}"
        f" {chance:10.3f}  {missing[:6]}",
        flush=True,
    )


if __name__ == "__main__":
    began = time.monotonic()
    main()
    print(f"{time.monotonic() - began:.0f} s")
