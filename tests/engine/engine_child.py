"""Echo scenarios of the engine in network namespaces of its own; prints samples by scenario.

    python engine_child.py raw|datagram

The namespaces are those of tests/probes/namespace_child.py.
"""

import asyncio
import importlib.util
import os
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import ModuleType
from unittest import mock

import msgspec

from pathbudget.probes import message_batch
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import BatchProbe, Probe, Shot
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.icmp import ICMP
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import Sample

THERE = ("10.1.0.2", "fd01::2")
MS = 1_000_000


def load_namespaces() -> ModuleType:
    file = Path(__file__).parents[1] / "probes" / "namespace_child.py"
    spec = importlib.util.spec_from_file_location("namespace_child", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def fire_all(probe: Probe, shots: list[Shot]) -> None:
    assert isinstance(probe, BatchProbe)
    due_ns = time.monotonic_ns()
    probe.fire_all([msgspec.structs.replace(shot, due_ns=due_ns) for shot in shots])


async def finish(probe: Probe) -> None:
    await probe.drain()
    probe.close()


async def many(collector: Collector) -> None:
    """1,000 at once, both families mixed, of several lengths of timeout."""
    probe = collector.open(ICMP)
    shots = [
        shot_at(THERE[n // 10 % 2], seq=n, timeout_ns=(2_000 + n % 3) * MS) for n in range(1_000)
    ]
    fire_all(probe, shots)
    await finish(probe)


async def refused_in_between(collector: Collector) -> None:
    """Every third has no way to go; the answers of the others must keep their own stamps."""
    probe = collector.open(ICMP)
    nowhere = ("203.0.113.1", "2001:db8::1")
    for burst in range(5):
        shots = [
            shot_at((nowhere if n % 3 == 0 else THERE)[n % 2], seq=burst * 100 + n)
            for n in range(100)
        ]
        fire_all(probe, shots)
        await asyncio.sleep(0.02)
    await finish(probe)


async def flows(collector: Collector) -> None:
    probe = collector.open(ICMP, {"flows": 4, "dscp": 10, "interface": "here"})
    fire_all(probe, [shot_at(there, seq=n) for n in range(20) for there in THERE])
    await finish(probe)


async def large(collector: Collector) -> None:
    """Fragments there and back."""
    probe = collector.open(ICMP, {"payload_bytes": 8_972})
    fire_all(probe, [shot_at(there, seq=n) for n in range(20) for there in THERE])
    await finish(probe)


async def errors_in_between(collector: Collector) -> None:
    """A router's errors about some requests, while others are answered."""
    probe = collector.open(ICMP)
    beyond = ("10.9.0.1", "fd09::1")
    fire_all(probe, [shot_at((beyond if n % 4 == 0 else THERE)[n % 2], seq=n) for n in range(80)])
    fire_all(
        probe, [shot_at((beyond if n % 4 < 2 else THERE)[n % 2], seq=n) for n in range(80, 99)]
    )
    await finish(probe)


async def one_by_one(collector: Collector) -> None:
    """As on a system without sendmmsg and recvmmsg."""
    with mock.patch.object(message_batch, "multi_calls", return_value=None):
        await many(collector)


async def just_after_the_start(_: Collector) -> list[tuple[int, Sample]]:
    """The kernel begins to stamp a moment after it is asked to."""
    network = SystemNetwork()
    collector = Collector(network, SystemClock())
    probe = collector.open(ICMP)
    fire_all(probe, [shot_at(there, seq=n) for n in range(20) for there in THERE])
    await finish(probe)
    network.close()
    return collector.emitted


SCENARIOS: dict[str, Callable[[Collector], Awaitable[object]]] = {
    "many": many,
    "refused_in_between": refused_in_between,
    "flows": flows,
    "large": large,
    "errors_in_between": errors_in_between,
    "one_by_one": one_by_one,
}


async def run() -> dict[str, object]:
    said: dict[str, object] = {}
    first = await just_after_the_start(Collector(SystemNetwork(), SystemClock()))
    said["just_after_the_start"] = [sample for _, sample in first]
    network = SystemNetwork()
    await asyncio.sleep(0.1)
    for name, scenario in SCENARIOS.items():
        collector = Collector(network, SystemClock())
        await scenario(collector)
        said[name] = [sample for _, sample in collector.emitted]
        said[f"{name}_counts"] = {word: count for (_, word), count in collector.counts.items()}
    network.close()
    return said


def main(kind: str) -> None:
    namespaces = load_namespaces()
    hold: int = namespaces.build()
    if kind == "datagram":
        Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 0")
        namespaces.drop_capabilities()
    try:
        said = asyncio.run(run())
    finally:
        os.close(hold)
    sys.stdout.write(msgspec.json.encode(said).decode())


if __name__ == "__main__":
    main(sys.argv[1])
