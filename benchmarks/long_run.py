"""Thousands of echo series on one core for as long as you like: is the memory flat, is any lost?

    python benchmarks/long_run.py [--minutes 60] [--series 10000] [--interval 1s] [--every 30]
                                  [--output FILE] [--journal] [--core 1]

Makes a network namespace with its own addresses behind a veth pair, and measures from a worker
process bound to one core, with the runner and the probes that campaigns use. Samples are counted
and dropped; with --journal they are written to a journal on disk as in a campaign. Resident memory
is written to FILE (JSON lines) every 30 seconds; the slope is that of the second half, because the
first few minutes fill what has a fixed size. Needs root, or: unshare -rn python benchmarks/...
"""

import argparse
import asyncio
import json
import os
import signal
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

from pathbudget.agents.campaign.plan import SeriesPlan, VantagePlan
from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.agents.lab.namespaces import enter_descriptor, inside, new_namespace
from pathbudget.agents.lab.rtnetlink import UP, RoutingSocket
from pathbudget.agents.store.journal import Journal
from pathbudget.agents.units import parse_duration_ns
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import (
    AddressFamily,
    ClockQuality,
    Measurement,
    NoiseFloor,
    Sample,
    Target,
    Vantage,
)
from pathbudget.probes.table import probe_table

SECOND_NS = 1_000_000_000
HERE, PEER = "10.199.0.1", "10.199.0.2"
LARGEST = 60_000
MINIMUM_LINES = 4


class CountingSink:
    """Counts what comes and drops it."""

    def __init__(self, journal: Journal | None) -> None:
        self.answered = 0
        self.failures: Counter[str] = Counter()
        self.sources: Counter[str] = Counter()
        self.busy = 0
        self.words: Counter[str] = Counter()
        self._journal = journal

    def begin(self, series: int, measurement: Measurement) -> None:
        if self._journal is not None:
            self._journal.begin(series, measurement)

    def append(self, series: int, sample: Sample) -> None:
        if self._journal is not None:
            self._journal.append(series, sample)
        if sample.failure is None:
            self.answered += 1
            self.sources[sample.clock_source] += 1
        else:
            self.failures[sample.failure.kind] += 1
        if "host_busy" in sample.flags:
            self.busy += 1

    def count(self, series: int, word: str) -> None:
        self.words[word] += 1
        if self._journal is not None:
            self._journal.count(series, word)

    def end(
        self,
        series: int,
        *,
        clock: ClockQuality | None,
        noise: NoiseFloor | None,
        duration_ns: int,
    ) -> None:
        if self._journal is not None:
            self._journal.end(series, clock=clock, noise=noise, duration_ns=duration_ns)


def enter_a_world_of_our_own() -> None:
    """Put this process into a new namespace whose one link leads to another that answers for all
    of 10.200/16. Both end with this process.
    """
    ours, theirs = new_namespace(), new_namespace()
    with inside(theirs):
        kernel = RoutingSocket()
        kernel.veth("peer", 1000, bytes((2, 0, 0, 0, 0, 2)), "here", 1000, ours)
        kernel.address(1000, PEER, 16)
        kernel.address(1, "10.200.0.1", 16)  # on loopback: every address of it is local
        kernel.set_flags(1, UP)
        kernel.set_flags(1000, UP)
        kernel.flush()
        kernel.close()
    enter_descriptor(ours)
    kernel = RoutingSocket()
    kernel.address(1000, HERE, 16)
    kernel.set_flags(1, UP)
    kernel.set_flags(1000, UP)
    kernel.route("10.200.0.0/16", [(PEER, 1000)], HERE)
    kernel.flush()
    kernel.close()


def address_of(number: int) -> str:
    high, low = divmod(number, 250)
    return f"10.200.{high}.{low + 2}"


def plan_of(series: int, interval_ns: int, duration_ns: int) -> VantagePlan:
    return VantagePlan(
        vantage=Vantage(name="here", region="here"),
        series=tuple(
            SeriesPlan(
                target=Target(name=f"target {number}", host=address_of(number)),
                probe="icmp",
                kind="icmp",
                interval_ns=interval_ns,
                timeout_ns=2 * SECOND_NS,
                family=AddressFamily.IPV4,
            )
            for number in range(series)
        ),
        campaign="long run",
        run_id="long-run",
        seed=1,
        duration_ns=duration_ns,
        packets_per_second=4 * series * SECOND_NS // interval_ns + 1000,
    )


class Record:
    """Writes a line now and then, and sums up at the end."""

    def __init__(self, run: VantageRun, sink: CountingSink, path: Path, every_s: float) -> None:
        self._run = run
        self._sink = sink
        self._every_s = every_s
        self._file = path.open("w", encoding="utf-8")
        self._began = self._before = time.monotonic()
        self._cpu_before = time.process_time()
        self._memory: list[tuple[float, int]] = []
        self._shares: list[float] = []

    async def again_and_again(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            self.line()

    def line(self) -> None:
        now, cpu, memory = time.monotonic(), time.process_time(), resident_kb()
        share = (cpu - self._cpu_before) / (now - self._before)
        self._before, self._cpu_before = now, cpu
        self._memory.append((now - self._began, memory))
        self._shares.append(share)
        progress, noise = self._run.progress, self._run.progress.noise
        line = {
            "seconds": round(now - self._began, 1),
            "resident_kb": memory,
            "cpu_share": round(share, 3),
            "sent": progress.fired,
            "answered": self._sink.answered,
            "failed": {str(kind): number for kind, number in self._sink.failures.items()},
            "host_busy": self._sink.busy,
            "send_lateness_p99_us": noise and (noise.send_lateness_p99_ns or 0) // 1000,
            "receive_lag_p99_us": noise and (noise.receive_lag_p99_ns or 0) // 1000,
            "steal": noise and round(noise.steal_ratio, 4),
        }
        print(json.dumps(line), file=self._file, flush=True)
        print(json.dumps(line), flush=True)

    def summary(self) -> str:
        later = self._memory[len(self._memory) // 2 :]
        slope = "not known: too short"
        if len(later) >= MINIMUM_LINES:
            per_second = statistics.linear_regression(*zip(*later, strict=True)).slope
            slope = f"{per_second * 3600:+.0f} kB an hour over the second half"
        sink, sent = self._sink, self._run.progress.fired
        failed = sum(sink.failures.values())
        lines = [
            f"sent {sent}, answered {sink.answered}, failed {failed} ({counts(sink.failures)})",
            f"without any outcome {sent - sink.answered - failed}; counted {counts(sink.words)}",
            f"stamps {counts(sink.sources)}; samples marked host_busy {sink.busy}",
            f"memory {self._memory[0][1]} kB at first, {self._memory[-1][1]} kB at last; {slope}",
            f"processor share {statistics.mean(self._shares):.2f} of one core",
            *self._run.progress.problems,
        ]
        text = "\n".join(lines)
        self._file.write(json.dumps({"summary": lines}) + "\n")
        self._file.close()
        return text


def counts(counter: Counter[str]) -> str:
    return ", ".join(f"{word} {number}" for word, number in counter.most_common()) or "nothing"


def resident_kb() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    raise OSError("/proc/self/status has no VmRSS")


async def measure(options: argparse.Namespace, journal: Journal | None) -> str:
    sink, clock, network = CountingSink(journal), SystemClock(), SystemNetwork()
    interval_ns = parse_duration_ns(options.interval)
    plan = plan_of(options.series, interval_ns, int(options.minutes * 60 * SECOND_NS))
    run = VantageRun(plan, table=probe_table(), network=network, clock=clock, sink=sink)
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, run.stop)
    await run.prepare()
    record = Record(run, sink, options.output, options.every)
    recording = asyncio.create_task(record.again_and_again())
    try:
        await run.run(clock.monotonic_ns() + SECOND_NS)
    finally:
        recording.cancel()
        record.line()
        run.finish()
        network.close()
    return record.summary()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--series", type=int, default=10_000)
    parser.add_argument("--interval", default="1s")
    parser.add_argument("--every", type=float, default=30.0, help="seconds between two lines")
    parser.add_argument("--output", type=Path, default=Path("long-run.jsonl"))
    parser.add_argument(
        "--journal", action="store_true", help="write a journal, as a campaign does"
    )
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)))
    options = parser.parse_args()
    if not 0 < options.series <= LARGEST:
        parser.error(f"--series: 1 to {LARGEST}")
    os.sched_setaffinity(0, {options.core})
    enter_a_world_of_our_own()
    with tempfile.TemporaryDirectory(prefix="pathbudget-long-run-") as folder:
        journal = Journal.create(Path(folder) / "journal.jsonl") if options.journal else None
        print(asyncio.run(measure(options, journal)))
        if journal is not None:
            journal.close()


if __name__ == "__main__":
    main()
