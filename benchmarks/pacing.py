"""How late 2,000 Poisson series leave, each once a second, beside a task per series.

    python benchmarks/pacing.py [--series 2000] [--seconds 20] [--hog] [--rounds 1]

Echo requests go through a veth pair to a namespace that answers, by the runner that campaigns use;
the peer of the comparison is the usual one: an asyncio task per series that sleeps until each send,
with the same send times and the same probe. With and without SCHED_FIFO, and with --hog a program
on the same core that computes without a pause. Each row says what was lost, and what share of
processor time the hypervisor took: while a processor is taken away, what is due is late whatever we
do. Needs root, or: unshare -rn python benchmarks/...
"""

import argparse
import asyncio
import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection

from long_run import CountingSink, address_of, enter_a_world_of_our_own, plan_of

from pathbudget.agents.campaign.plan import VantagePlan, due_shots
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.host_cpu import read_ticks, steal_ratio
from pathbudget.probes.icmp import ICMP
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Measurement, Sample, Target
from pathbudget.probes.scheduling import RealTime, schedule_this_process
from pathbudget.probes.table import probe_table

SECOND_NS = 1_000_000_000
HEAD_START_NS = SECOND_NS // 2


class LatenessSink(CountingSink):
    """Keeps how late each probe left: user space, just before the send call."""

    def __init__(self) -> None:
        super().__init__(None)
        self.lateness_ns: list[int] = []

    def begin(self, series: int, measurement: Measurement) -> None:
        del series, measurement

    def append(self, series: int, sample: Sample) -> None:
        super().append(series, sample)
        if sample.lateness_ns is not None:
            self.lateness_ns.append(sample.lateness_ns)


async def by_pacer(plan: VantagePlan, sink: LatenessSink) -> None:
    clock, network = SystemClock(), SystemNetwork()
    run = VantageRun(plan, table=probe_table(), network=network, clock=clock, sink=sink)
    await run.prepare()
    await run.run(clock.monotonic_ns() + HEAD_START_NS)
    run.finish()
    network.close()


async def by_tasks(plan: VantagePlan, sink: LatenessSink) -> None:
    clock, network = SystemClock(), SystemNetwork()
    await asyncio.sleep(0.1)
    environment = ProbeEnvironment(network, clock, random.Random(), sink.append, sink.count)
    probe = ICMP.open(environment, {})
    offsets: list[list[int]] = [[] for _ in plan.series]
    for offset, series, _ in due_shots(plan):
        offsets[series].append(offset)
    start = clock.monotonic_ns() + HEAD_START_NS

    async def one_series(series: int) -> None:
        address = address_of(series)
        target = Target(address, address)
        for seq, offset in enumerate(offsets[series]):
            due = start + offset
            await asyncio.sleep((due - time.monotonic_ns()) / 1e9)
            late = time.monotonic_ns() - due
            family = AddressFamily.IPV4
            probe.fire(Shot(series, seq, target, address, family, SECOND_NS, late, due_ns=due))

    await asyncio.gather(*(one_series(series) for series in range(len(plan.series))))
    await probe.drain()
    probe.close()
    network.close()


WAYS = {"one pacer": by_pacer, "a task per series": by_tasks}


def measure(way: str, realtime: str, options: argparse.Namespace, answer: Connection) -> None:
    """In a process of its own, bound to one core."""
    os.sched_setaffinity(0, {options.core})
    scheduling = schedule_this_process(RealTime(realtime), alone=True)
    sink = LatenessSink()
    plan = plan_of(options.series, SECOND_NS, options.seconds * SECOND_NS)
    before, began, ticks = time.process_time(), time.monotonic(), read_ticks()
    asyncio.run(WAYS[way](plan, sink))
    share = (time.process_time() - before) / (time.monotonic() - began)
    stolen = steal_ratio(ticks, read_ticks())
    planned = sum(1 for _ in due_shots(plan))
    late = sorted(sink.lateness_ns)
    answer.send((late, planned, sink.answered, share, stolen, scheduling.given_up))


@contextmanager
def hog(core: int, *, wanted: bool) -> Iterator[None]:
    """A program that wants all of the core."""
    if not wanted:
        yield
        return
    process = multiprocessing.get_context("fork").Process(target=compute, args=(core,), daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def compute(core: int) -> None:
    os.sched_setaffinity(0, {core})
    while True:
        sum(range(10_000))


def row(way: str, realtime: str, options: argparse.Namespace, *, with_hog: bool) -> None:
    receiver, sender = multiprocessing.Pipe(duplex=False)
    with hog(options.core, wanted=with_hog):
        process = multiprocessing.get_context("fork").Process(
            target=measure, args=(way, realtime, options, sender)
        )
        process.start()
        sender.close()
        late, planned, answered, share, stolen, given_up = receiver.recv()
        process.join()
    note = ", fifo given up" if given_up else ""
    figures = [late[min(len(late) - 1, int(len(late) * q))] / 1e6 for q in (0.5, 0.99)]
    print(
        f"{way:18} {'fifo' if realtime == 'on' else 'usual':6}{'hog' if with_hog else 'alone':6}"
        f" late ms p50 {figures[0]:.3f} p99 {figures[1]:.3f} max {late[-1] / 1e6:.2f};"
        f" {answered}/{planned} answered, core {share:.0%}, stolen {stolen:.1%}{note}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--series", type=int, default=2_000)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--hog", action="store_true", help="also with a program on the same core")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    options = parser.parse_args()
    enter_a_world_of_our_own()
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    for _ in range(options.rounds):
        for with_hog in (False, True) if options.hog else (False,):
            for way in WAYS:
                for realtime in ("off", "on"):
                    row(way, realtime, options, with_hog=with_hog)


if __name__ == "__main__":
    main()
