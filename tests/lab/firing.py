"""Fires shots of one probe where it runs and prints what came of them, for tests inside a lab.

    python firing.py JSON

The order: ``{"waves": [[{"name", "kind", "options", "address", "port", "server_name", "shots",
"gap_ms"}]], "timeout_ms"}``. The jobs of a wave run at once, each with one probe of its own and its
shots in series: the next one leaves when the one before has ended, so that tickets and warm
connections are there. Prints ``{name: [sample, ...]}``.
"""

import asyncio
import sys
from typing import Any

import msgspec

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import Sample
from pathbudget.probes.table import probe_table


async def fire(job: dict[str, Any], network: SystemNetwork, timeout_ns: int) -> list[Sample]:
    collector = Collector(network, SystemClock())
    probe = collector.open(probe_table()[job["kind"]], job.get("options", {}))
    for seq in range(job.get("shots", 1)):
        shot = shot_at(
            job["address"],
            seq=seq,
            port=job.get("port"),
            server_name=job.get("server_name", ""),
            timeout_ns=timeout_ns,
        )
        probe.fire(shot)
        await probe.drain()
        await asyncio.sleep(job.get("gap_ms", 0) / 1000)
    probe.close()
    return [sample for _, sample in collector.emitted]


async def main(order: dict[str, Any]) -> None:
    network = SystemNetwork()
    await asyncio.sleep(0.1)  # the kernel begins to stamp packets a moment after it is asked
    timeout_ns = order.get("timeout_ms", 5000) * 1_000_000
    told: dict[str, list[Sample]] = {}
    for jobs in order["waves"]:
        found = await asyncio.gather(*(fire(job, network, timeout_ns) for job in jobs))
        told |= {job["name"]: samples for job, samples in zip(jobs, found, strict=True)}
    network.close()
    sys.stdout.buffer.write(msgspec.json.encode(told))


asyncio.run(main(msgspec.json.decode(sys.argv[1])))
