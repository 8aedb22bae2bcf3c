"""How fast a campaign of a million samples evaluates. Run by hand:

python benchmarks/analysis.py [SAMPLES [REGIONS [SITES]]]
"""

import random
import resource
import sys
import time
from collections.abc import Iterator

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    ConnectionMode,
    Measurement,
    Metric,
    Sample,
    Target,
    Vantage,
)
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier

MIXTURE = {"warm": 0.9, "resumed": 0.08, "cold": 0.02}
TIERS = (
    Tier("voice-ai", "Voice AI", 400.0, {"network": 25.0}, 95.0, "warm", 800, MIXTURE),
    Tier("chat", "Chat", 800.0, {"network": 45.0}, 95.0, "mixture", 4000, MIXTURE),
    Tier("rag", "RAG", 1500.0, {"network": 70.0}, 95.0, "mixture", 32000, MIXTURE),
)
SERIES = (
    ("icmp", Metric.RTT, None, 1.0),
    ("tls", Metric.CONNECT, None, 1.0),
    ("tls", Metric.TLS_HANDSHAKE, ConnectionMode.COLD, 1.1),
    ("tls", Metric.SETUP, ConnectionMode.COLD, 2.1),
    ("tls", Metric.SETUP, ConnectionMode.RESUMED, 2.0),
)


def catalogue(regions: int, sites: int) -> Catalogue:
    rng = random.Random(1)
    places = [(rng.uniform(-50, 60), rng.uniform(-180, 180)) for _ in range(regions + sites)]
    return Catalogue(
        {f"r{i:03d}": Region(f"r{i:03d}", *places[i], 1.0 + i % 7) for i in range(regions)},
        {f"s{i:03d}": Site(f"s{i:03d}", *places[regions + i]) for i in range(sites)},
        {tier.name: tier for tier in TIERS},
    )


def measurements(places: Catalogue, samples: int) -> Iterator[Measurement]:
    per_series = max(1, samples // (len(places.regions) * len(places.sites) * len(SERIES)))
    for region in places.regions:
        for site in places.sites:
            base = random.Random(region + site).uniform(3, 150)
            for number, (probe, metric, mode, factor) in enumerate(SERIES):
                rng = random.Random(f"{region} {site} {number}")
                yield Measurement(
                    id=f"{region}-{site}-{number}",
                    vantage=Vantage(f"{region}-1", region),
                    target=Target(f"{site}-edge", "edge.example", site),
                    probe=probe,
                    started_unix_ns=0,
                    address="192.0.2.1",
                    family=AddressFamily.IPV4,
                    samples=tuple(
                        Sample(
                            seq=i,
                            metric=metric,
                            sent_unix_ns=i * 100_000_000,
                            value_ns=round(base * factor * (1e6 + 5e4 * rng.expovariate(1))),
                            clock_source=ClockSource.KERNEL,
                            mode=mode,
                            lateness_ns=1000,
                        )
                        for i in range(per_series)
                    ),
                )


def main() -> None:
    given = [*map(int, sys.argv[1:])]
    samples, regions, sites = (given + [1_000_000, 5, 4][len(given) :])[:3]
    places = catalogue(regions, sites)
    made = list(measurements(places, samples))
    count = sum(len(measurement.samples) for measurement in made)
    began, cpu = time.perf_counter(), time.process_time()
    evaluation = evaluate(made, places, EvaluationOptions())
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count} samples, {regions} regions x {sites} sites, {len(evaluation.lines)} lines:")
    print(f"{wall:.1f} s wall, {cpu:.1f} s CPU, {count / cpu:,.0f} samples/s, peak {peak:.0f} MiB")


if __name__ == "__main__":
    main()
