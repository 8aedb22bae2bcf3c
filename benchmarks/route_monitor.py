"""What a monitor of routes costs: memory per series and processor time per sample.

    .venv/bin/python benchmarks/route_monitor.py [--series 10000] [--samples 700]

Calm series of one sample a second, in pieces of 50; one series in a hundred moves by 12 ms half-way
and has to be told, once. Figures: docs/accuracy.md.
"""

import argparse
import time
from pathlib import Path

import numpy as np

from pathbudget.analysis.routes.monitor import RouteMonitor
from pathbudget.probes.record import AddressFamily, Measurement, Metric, Sample, Target, Vantage

SECOND = 1_000_000_000
START = 1_790_000_000 * SECOND
PIECE = 50


def resident_kb() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmRSS")).split()[1])


def piece(
    number: int, first: int, values: "np.ndarray[tuple[int], np.dtype[np.int64]]"
) -> Measurement:
    samples = tuple(
        Sample(
            seq=first + n,
            metric=Metric.RTT,
            sent_unix_ns=START + (first + n) * SECOND + number,
            value_ns=int(one),
        )
        for n, one in enumerate(values)
    )
    address = f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}"
    return Measurement(
        id=f"{number}-{first}",
        vantage=Vantage(name=f"v{number}", region=f"r{number}"),
        target=Target(name=f"t{number}", host=address, site=f"s{number}"),
        probe="icmp",
        started_unix_ns=START,
        samples=samples,
        address=address,
        family=AddressFamily.IPV4,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=700)
    options = parser.parse_args()
    rng = np.random.default_rng(1)
    monitor = RouteMonitor()
    empty, began, told, spent = resident_kb(), time.monotonic(), 0, 0.0
    for first in range(0, options.samples, PIECE):
        for number in range(options.series):
            values = 20e6 + 0.3e6 * rng.gamma(0.7, 1, PIECE)
            if number % 100 == 0 and first >= options.samples // 2:
                values += 12e6
            one = piece(number, first, values.astype(np.int64))
            at = time.process_time()
            told += len(monitor.see(one))
            spent += time.process_time() - at
        used = (resident_kb() - empty) / options.series
        print(
            f"{first + PIECE:5d} samples each: {used:.1f} kB a series, told {told}, "
            f"{1e6 * spent / (first + PIECE) / options.series:.0f} us a sample, "
            f"{time.monotonic() - began:.0f} s",
            flush=True,
        )


if __name__ == "__main__":
    main()
