"""One run of one of our probes inside the prober's namespace; its samples as JSON lines.

python ours.py icmp|tcp|tcp-syn|stamp ADDRESS PORT RATE COUNT BUSY
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Sequence

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import BatchProbe, Options, ProbeEnvironment, Shot
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Sample, Target
from pathbudget.probes.table import probe_table

SECOND = 1_000_000_000
TIMEOUT_NS = 3 * SECOND
PROBES: dict[str, tuple[str, Options]] = {
    "icmp": ("icmp", {}),
    "tcp": ("tcp", {"max_half_open": 4096}),
    "tcp-syn": ("tcp", {"method": "syn", "max_half_open": 4096}),
    "stamp": ("stamp", {}),
}


async def _spin() -> None:
    """What a busy agent does to its loop: 3 ms of work at a time, half of the time."""
    while True:
        until = time.monotonic() + 0.003
        while time.monotonic() < until:
            pass
        await asyncio.sleep(0.003)


async def measure(name: str, address: str, port: int, rate: float, count: int, busy: bool) -> None:
    kind, given = PROBES[name]
    spec = probe_table()[kind]
    known = {one: option.default for one, option in spec.options.items()}
    options = {**known, **{one: value for one, value in given.items() if one in known}}
    samples: list[Sample] = []
    network, clock = SystemNetwork(), SystemClock()

    def emit(series: int, sample: Sample) -> None:
        del series
        samples.append(sample)

    def count_nothing(series: int, word: str) -> None:
        del series, word

    environment = ProbeEnvironment(
        network=network,
        clock=clock,
        rng=random.Random(),
        emit=emit,
        count=count_nothing,
    )
    probe = spec.open(environment, options)
    family = AddressFamily.IPV6 if ":" in address else AddressFamily.IPV4
    target = Target("peer", address, port=port or None)
    finished = asyncio.Event()
    start = clock.monotonic_ns() + SECOND // 2
    gap = round(SECOND / rate)

    def fire(due: Sequence[tuple[int, int]]) -> None:
        now = clock.monotonic_ns()
        shots = [
            Shot(0, seq, target, address, family, TIMEOUT_NS, max(0, now - at), due_ns=at)
            for at, seq in due
        ]
        if isinstance(probe, BatchProbe) and len(shots) > 1:
            probe.fire_all(shots)
        else:
            for shot in shots:
                probe.fire(shot)

    spinning = asyncio.create_task(_spin()) if busy else None
    network.pace(((start + seq * gap, seq) for seq in range(count)), fire, finished.set)
    await finished.wait()
    await probe.drain()
    probe.close()
    if spinning is not None:
        spinning.cancel()
    network.close()
    for sample in samples:
        line = {
            "seq": sample.seq,
            "metric": str(sample.metric),
            "value_ns": sample.value_ns,
            "source": str(sample.clock_source),
            "flow": sample.flow,
            "sent_unix_ns": sample.sent_unix_ns,
            "flags": list(sample.flags),
            "failure": None if sample.failure is None else sample.failure.detail,
        }
        sys.stdout.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    _, name, address, port, rate, count, busy = sys.argv
    asyncio.run(measure(name, address, int(port), float(rate), int(count), busy == "busy"))
