"""Echo probes per CPU second on loopback, beside two peers in the same run.

    python benchmarks/probe_rate.py [--probes 20000] [--rate 5000]

The peers: one asyncio task, future and timeout per probe on the same kind of socket, stamped in
user space (what most Python pingers are), and scapy's sr1. Numbers of one machine and minute mean
little; the ratios are what is compared. Each row says how many were answered.
"""

import argparse
import asyncio
import random
import resource
import socket
import statistics
import struct
import time
from collections.abc import Callable

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.icmp import ICMP
from pathbudget.probes.icmp_wire import Echo, build_request, parse_reply, strip_ipv4
from pathbudget.probes.network import SystemNetwork, try_icmp
from pathbudget.probes.record import AddressFamily, Sample, Target

HERE = "127.0.0.1"
BURST = 50
SECOND_NS = 1_000_000_000


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


async def paced(count: int, rate: int, send: Callable[[int], None]) -> None:
    """Call `send(number)` at a rate, a few at a time."""
    start = time.monotonic()
    for first in range(0, count, BURST):
        for number in range(first, min(count, first + BURST)):
            send(number)
        due = start + (first + BURST) / rate
        await asyncio.sleep(max(0.0, due - time.monotonic()))


def count_nothing(series: int, word: str) -> None:
    del series, word


async def ours(count: int, rate: int) -> list[int]:
    values: list[int] = []

    def emit(series: int, sample: Sample) -> None:
        del series
        if sample.value_ns is not None:
            values.append(sample.value_ns)

    network = SystemNetwork()
    await asyncio.sleep(0.1)
    environment = ProbeEnvironment(network, SystemClock(), random.Random(), emit, count_nothing)
    probe = ICMP.open(environment, {})
    target = Target("here", HERE)
    family = AddressFamily.IPV4

    def send(number: int) -> None:
        probe.fire(Shot(0, number, target, HERE, family, SECOND_NS))

    await paced(count, rate, send)
    await probe.drain()
    probe.close()
    network.close()
    return values


class TaskPerProbe:
    """The usual way: a task waits for each answer."""

    def __init__(self) -> None:
        self.values: list[int] = []
        self._waiting: dict[int, asyncio.Future[int]] = {}
        self._socket = try_icmp(AddressFamily.IPV4, privileged=True)
        self._socket.setblocking(False)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self._socket.setsockopt(255, 1, struct.pack("@I", ~1 & 0xFFFFFFFF))
        self._tasks: set[asyncio.Task[None]] = set()
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def _read(self) -> None:
        while True:
            try:
                packet = self._socket.recv(2048)
            except BlockingIOError:
                return
            stripped = strip_ipv4(packet)
            reply = stripped and parse_reply(AddressFamily.IPV4, stripped[0])
            if reply:
                waiting = self._waiting.pop(int.from_bytes(reply.payload[:8], "big"), None)
                if waiting is not None and not waiting.done():
                    waiting.set_result(time.monotonic_ns())

    def send(self, number: int) -> None:
        task = asyncio.create_task(self._probe(number))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _probe(self, number: int) -> None:
        future: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._waiting[number] = future
        payload = number.to_bytes(8, "big") + bytes(48)
        request = build_request(AddressFamily.IPV4, Echo(77, number & 0xFFFF, payload))
        sent = time.monotonic_ns()
        self._socket.sendto(request, (HERE, 0))
        try:
            async with asyncio.timeout(1):
                self.values.append(await future - sent)
        except TimeoutError:
            self._waiting.pop(number, None)

    async def finish(self) -> list[int]:
        await asyncio.gather(*self._tasks)
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        return self.values


async def task_per_probe(count: int, rate: int) -> list[int]:
    peer = TaskPerProbe()
    await paced(count, rate, peer.send)
    return await peer.finish()


async def scapy_sr1(count: int, rate: int) -> list[int]:
    del rate  # it has none
    from scapy.config import conf
    from scapy.layers.inet import ICMP as SCAPY_ICMP
    from scapy.layers.inet import IP
    from scapy.sendrecv import sr1
    from scapy.supersocket import L3RawSocket

    conf.L3socket = L3RawSocket
    values: list[int] = []
    for number in range(count):
        sent = time.time()
        answer = sr1(IP(dst=HERE) / SCAPY_ICMP(id=78, seq=number), timeout=1, verbose=0)
        if answer is not None:
            values.append(int((float(answer.time) - sent) * 1e9))
    return values


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probes", type=int, default=20_000)
    parser.add_argument("--rate", type=int, default=5_000)
    options = parser.parse_args()
    rows = (
        ("pathbudget", ours, options.probes),
        ("a task per probe", task_per_probe, options.probes),
        ("scapy sr1", scapy_sr1, 200),
    )
    per_second: dict[str, float] = {}
    for name, run, count in rows:
        before = cpu_seconds()
        values = asyncio.run(run(count, options.rate))
        used = cpu_seconds() - before
        per_second[name] = count / used
        median_us = statistics.median(values) / 1e3 if values else float("nan")
        print(
            f"{name:18} {count / used:9.0f} probes per CPU second, "
            f"{1e6 * used / count:7.1f} us each, {len(values)}/{count} answered, "
            f"median {median_us:.0f} us"
        )
    for name, _, _ in rows[1:]:
        print(f"pathbudget / {name}: {per_second['pathbudget'] / per_second[name]:.1f}")


if __name__ == "__main__":
    main()
