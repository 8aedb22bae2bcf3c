"""How close the lab comes to what its links define, over a whole world at the rate of the demo.

    python benchmarks/lab_error.py [--seconds 20] [--rate 1000] [--plain]

Run as root or as a user who may make user namespaces. Prints, for every region and site, measured
minus true minimum, median and p95 in ms beside the tolerance (0.3 ms or 1 %), and the lab's own
statement. `--plain`: without the real-time scheduler, as for ordinary users.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

from pathbudget.agents.lab.geography import world_from_places
from pathbudget.agents.lab.rootless import reexec_in_user_namespace
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.truth import truth

PINGER = Path(__file__).resolve().parents[1] / "tests" / "lab" / "pinger.py"
REGIONS = [
    ("dallas", 32.78, -96.80),
    ("chicago", 41.88, -87.63),
    ("new-york", 40.71, -74.01),
    ("los-angeles", 34.05, -118.24),
    ("miami", 25.76, -80.19),
    ("seattle", 47.61, -122.33),
]
SITES = [
    ("dallas-site", 32.80, -96.82),
    ("ashburn-site", 39.04, -77.49),
    ("chicago-site", 41.85, -87.62),
    ("santa-clara-site", 37.35, -121.95),
]


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--plain", action="store_true")
    options = parser.parse_args()
    if os.geteuid():
        reexec_in_user_namespace(sys.argv)
    world = world_from_places(REGIONS, SITES, seed=7)
    expected = truth(world)
    began = time.monotonic()
    with Lab(world, real_time=not options.plain) as lab:
        print(f"{len(world.nodes)} nodes, {len(world.links)} links up in "
              f"{time.monotonic() - began:.2f} s; load {os.getloadavg()[0]:.1f}")  # fmt: skip
        addresses = [lab.address_of(site) for site in world.sites]
        interval = len(world.regions) / options.rate
        count = round(options.seconds / interval / len(addresses))
        order = {"addresses": addresses, "count": count, "interval_s": interval}
        pingers = {
            region: lab.spawn(
                region, [sys.executable, str(PINGER), json.dumps(order)], stdout=subprocess.PIPE
            )
            for region in world.regions
        }
        results = {region: json.loads(one.communicate()[0]) for region, one in pingers.items()}
        report = lab.report()
    worst = 0.0
    print(f"{'region':12} {'site':18} {'n':>5} {'lost':>4} {'min':>8} {'d min':>7} "
          f"{'d p50':>7} {'d p95':>7} {'allowed':>7}")  # fmt: skip
    for (region, site), true in expected.items():
        samples = results[region]["rtt_ms"][world.address_of(site)]
        answered = [value for value in samples if value is not None]
        minimum = min(answered) - true.minimum_ms
        median = quantile(answered, 0.5) - true.quantile_ms(0.5)
        p95 = quantile(answered, 0.95) - true.quantile_ms(0.95)
        allowed = max(0.3, 0.01 * true.quantile_ms(0.5))
        worst = max(worst, *(abs(value) / allowed for value in (minimum, median, p95)))
        print(
            f"{region:12} {site:18} {len(samples):5} {len(samples) - len(answered):4} "
            f"{true.minimum_ms:8.3f} {minimum:+7.3f} {median:+7.3f} {p95:+7.3f} {allowed:7.3f}"
        )
    unsure = sum(result["unsure"] for result in results.values())
    print(f"worst deviation: {100 * worst:.0f} % of what is allowed; {unsure} samples left out")
    print(report.sentence())
    print(f"unchained {report.unchained}, emulator CPU {report.cpu_seconds:.1f} s, "
          f"p95 {report.error_us(0.95):.0f} us, load {os.getloadavg()[0]:.1f}")  # fmt: skip


if __name__ == "__main__":
    main()
