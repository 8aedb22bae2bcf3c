"""Echo probes per second and CPU per probe, beside fping, icmplib and scapy in the same run.

    sudo apt-get install fping
    python -m venv peers && peers/bin/pip install icmplib scapy
    sudo .venv/bin/python benchmarks/engine_rate.py --peers peers/bin/python

Makes two network namespaces with a veth pair between them; the kernel of the far one answers for
2,000 addresses. Ours is the whole probe: shot, send, kernel send stamp, reply matched by its
secret, sample with all stamps. CPU is user + system time of the process, without start-up for what
is Python. Every row says how many were answered. CPU per probe falls as the rate rises, so tools
are compared at equal rate; fping is paced by its `-i` (ms), what rate that gives is measured, and
ours is run at that rate. `floor` is what no asyncio program can be below: a timerfd that rings for
each packet, and one `sendto`; no stamp, no receiving, no matching, no sample.
`icmplib` is also run over a path of 15 ms, which is how it is mostly used: the rate is then
bounded by its 50 probes under way. Rounds are interleaved and medians taken: on a shared machine
only the ratios mean much. For a quieter one: `taskset -c 1 chrt -f 10` before the command.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

TARGETS = 2_000
TICK_NS = 5_000_000
NEAR, FAR = f"pbnear{os.getpid()}", f"pbfar{os.getpid()}"
ADDRESSES = [f"10.9.{1 + n // 250}.{1 + n % 250}" for n in range(TARGETS)]
Row = dict[str, Any]
OURS_15, ICMPLIB_15 = "pathbudget, 1,000/s, 15 ms path", "icmplib, 50 at once, 15 ms path"


def cpu_seconds(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def together(rate: int, count: int) -> Row:
    """As a campaign with `coalesce = "5ms"`: what is due within 5 ms leaves at once."""
    return ours(rate, count, TICK_NS)


def ours(rate: int, count: int, tick_ns: int = 1) -> Row:
    """`rate` 0: flat out. Otherwise each series has its own due times, as a campaign has."""
    from pathbudget.probes.clock import SystemClock
    from pathbudget.probes.contract import ProbeEnvironment, Shot
    from pathbudget.probes.icmp import ICMP, IcmpProbe
    from pathbudget.probes.network import SystemNetwork
    from pathbudget.probes.record import AddressFamily, ClockSource, Sample, Target

    family, kernel = AddressFamily.IPV4, ClockSource.KERNEL
    targets = [Target("target", address) for address in ADDRESSES]
    values: list[int] = []

    def emit(series: int, sample: Sample) -> None:
        del series
        if sample.value_ns is not None and sample.clock_source is kernel:
            assert sample.stamps is not None
            values.append(sample.value_ns)

    def shot(number: int, due_ns: int | None) -> Shot:
        series = number % TARGETS
        address = ADDRESSES[series]
        return Shot(
            series, number, targets[series], address, family, 1_000_000_000, 0, False, due_ns
        )

    async def run() -> Row:
        network = SystemNetwork()
        await asyncio.sleep(0.2)
        environment = ProbeEnvironment(
            network, SystemClock(), random.Random(), emit, lambda *_: None
        )
        probe = ICMP.open(environment, {})
        assert isinstance(probe, IcmpProbe)
        probe.fire_all([shot(number, None) for number in range(TARGETS)])
        await probe.drain()
        values.clear()
        cpu, began = cpu_seconds(), time.monotonic()
        if rate:
            start = time.monotonic_ns() + 10_000_000
            after = (number * 1_000_000_000 // rate for number in range(count))
            due = ((start + at - at % tick_ns, number) for number, at in enumerate(after))
            over = asyncio.Event()
            network.pace(
                due, lambda items: probe.fire_all([shot(n, at) for at, n in items]), over.set
            )
            await over.wait()
        else:
            for first in range(0, count, 64):
                probe.fire_all([shot(n, None) for n in range(first, min(count, first + 64))])
                await asyncio.sleep(0)
        took = time.monotonic() - began
        await probe.drain()
        used = cpu_seconds() - cpu
        probe.close()
        network.close()
        return row(count, len(values), used, took, statistics.median(values))

    return asyncio.run(run())


def floor(rate: int, count: int) -> Row:
    from pathbudget.probes.icmp_wire import Echo, build_request
    from pathbudget.probes.network import try_icmp
    from pathbudget.probes.record import AddressFamily
    from pathbudget.probes.timer import Alarm

    sock = try_icmp(AddressFamily.IPV4, privileged=True)
    sock.setsockopt(255, 1, b"\xff\xff\xff\xff")  # ICMP_FILTER: nothing is heard
    message = build_request(AddressFamily.IPV4, Echo(7, 7, bytes(56)))
    gap_ns = 1_000_000_000 // rate

    async def run() -> Row:
        over = asyncio.Event()
        due_ns, sent = time.monotonic_ns(), 0

        def ring() -> None:
            nonlocal due_ns, sent
            sock.sendto(message, (ADDRESSES[sent % TARGETS], 0))
            sent += 1
            due_ns += gap_ns
            if sent == count:
                over.set()
            else:
                alarm.set(due_ns)

        alarm = Alarm(ring)
        cpu, began = cpu_seconds(), time.monotonic()
        alarm.set(due_ns)
        await over.wait()
        used, took = cpu_seconds() - cpu, time.monotonic() - began
        alarm.close()
        return row(count, count, used, took, float("nan"))

    return asyncio.run(run())


def row(sent: int, answered: int, cpu: float, took: float, median_ns: float) -> Row:
    return {"sent": sent, "answered": answered, "cpu": cpu, "took": took, "median_ns": median_ns}


def icmplib(concurrency: int, count: int) -> Row:
    from icmplib import async_multiping

    async def run() -> Row:
        cpu, began = cpu_seconds(), time.monotonic()
        hosts = await async_multiping(
            ADDRESSES[:count], count=1, interval=0, timeout=2, concurrent_tasks=concurrency
        )
        used, took = cpu_seconds() - cpu, time.monotonic() - began
        times = [host.avg_rtt * 1e6 for host in hosts if host.is_alive]
        return row(count, len(times), used, took, statistics.median(times or [float("nan")]))

    return asyncio.run(run())


def scapy(_: int, count: int) -> Row:
    from scapy.all import ICMP, IP, conf, sr

    conf.verb = 0
    packets = [IP(dst=address) / ICMP(id=77, seq=n) for n, address in enumerate(ADDRESSES[:count])]
    cpu, began = cpu_seconds(), time.monotonic()
    answers, _unanswered = sr(packets, timeout=2)
    used, took = cpu_seconds() - cpu, time.monotonic() - began
    times = [(float(reply.time) - float(request.sent_time)) * 1e9 for request, reply in answers]
    return row(count, len(times), used, took, statistics.median(times or [float("nan")]))


def fping(interval: str, loops: int) -> Row:
    """Runs in the parent. CPU of the whole process; it starts in a few milliseconds."""
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write("\n".join(ADDRESSES))
        file.flush()
        command = ["ip", "netns", "exec", NEAR, "fping", "-q", "-i", interval, "-p", "1"]
        cpu, began = cpu_seconds(resource.RUSAGE_CHILDREN), time.monotonic()
        done = subprocess.run(
            [*command, "-c", str(loops), "-f", file.name],
            check=False,
            capture_output=True,
            text=True,
        )
        took = time.monotonic() - began
        used = cpu_seconds(resource.RUSAGE_CHILDREN) - cpu
    found = re.findall(r"= (\d+)/(\d+)/[\d.]+%(?:, min/avg/max = \S+?/([\d.]+)/)?", done.stderr)
    sent, answered = sum(int(one[0]) for one in found), sum(int(one[1]) for one in found)
    times = [float(one[2]) * 1e6 for one in found if one[2]]
    return row(sent, answered, used, took, statistics.median(times or [float("nan")]))


CHILDREN: dict[str, Callable[[int, int], Row]] = {
    "ours": ours,
    "together": together,
    "floor": floor,
    "icmplib": icmplib,
    "scapy": scapy,
}


def child(python: str, name: str, argument: int, count: int, namespace: str = NEAR) -> Row:
    command = ["ip", "netns", "exec", namespace, python, __file__, "--child", name]
    done = subprocess.run(
        [*command, str(argument), str(count)],
        check=False,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode:
        sys.exit(done.stderr)
    answer: Row = json.loads(done.stdout)
    return answer


@contextlib.contextmanager
def namespaces() -> Iterator[None]:
    commands = (
        f"netns add {NEAR}",
        f"netns add {FAR}",
        f"-n {NEAR} link add near type veth peer name far netns {FAR}",
        f"-n {NEAR} addr add 10.77.0.1/30 dev near",
        f"-n {FAR} addr add 10.77.0.2/30 dev far",
        *(f"-n {space} link set {name} up" for space, name in ((NEAR, "near"), (FAR, "far"))),
        *(f"-n {space} link set lo up" for space in (NEAR, FAR)),
        f"-n {FAR} route add local 10.9.0.0/16 dev lo",
        f"-n {NEAR} route add 10.9.0.0/16 via 10.77.0.2",
    )
    try:
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True)
        yield
    finally:
        for space in (NEAR, FAR):
            subprocess.run(["ip", "netns", "del", space], check=False)


def over_15_ms(peers: str) -> list[tuple[str, Row]]:
    """icmplib and ours where answers take a while, at a rate that the path can carry."""
    sys.path.insert(0, str(Path(__file__).parent / "wire"))
    from path import ADDRESS, PEER, PROBER, Delay

    with Delay(7.5):
        for words in (
            f"-n {PEER} route add local 10.9.0.0/16 dev lo",
            f"-n {PROBER} route add 10.9.0.0/16 via {ADDRESS[4][1]}",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        return [
            (OURS_15, child(sys.executable, "ours", 1_000, TARGETS, PROBER)),
            (ICMPLIB_15, child(peers, "icmplib", 50, TARGETS, PROBER)),
        ]


def rows_of(options: argparse.Namespace) -> list[tuple[str, Callable[[], Row]]]:
    here, peers = sys.executable, options.peers
    one = options.probes
    rate = 0

    def paced_fping(interval: str, loops: int) -> Row:
        nonlocal rate
        found = fping(interval, loops)
        rate = round(found["sent"] / found["took"])
        return found

    def at_that_rate(name: str, count: int) -> Row:
        return child(here, name, rate, count)

    rows: list[tuple[str, Callable[[], Row]]] = [
        ("pathbudget, flat out", lambda: child(here, "ours", 0, 5 * one)),
        ("fping -i 0, flat out", lambda: fping("0", 10)),
        ("fping -i 0.2", lambda: paced_fping("0.2", 5)),
        ("pathbudget at that rate", lambda: at_that_rate("ours", one // 2)),
        ("pathbudget at that rate, 5 ms", lambda: at_that_rate("together", one // 2)),
        ("floor at that rate", lambda: at_that_rate("floor", one // 2)),
        ("fping -i 0.05", lambda: paced_fping("0.05", 10)),
        ("pathbudget at that rate too", lambda: at_that_rate("ours", one)),
        ("pathbudget at that rate too, 5 ms", lambda: at_that_rate("together", one)),
        ("floor at that rate too", lambda: at_that_rate("floor", one)),
        ("pathbudget, 20,000/s", lambda: child(here, "ours", 20_000, 2 * one)),
        ("pathbudget, 50,000/s", lambda: child(here, "ours", 50_000, 5 * one)),
    ]
    if peers:
        rows += [
            ("icmplib async_multiping, 50 at once", lambda: child(peers, "icmplib", 50, TARGETS)),
            ("scapy sr", lambda: child(peers, "scapy", 0, 500)),
        ]
    return rows


def summarise(name: str, found: Sequence[Row]) -> Row:
    median: Row = {key: statistics.median(one[key] for one in found) for key in found[0]}
    rate, cpu_us = median["sent"] / median["took"], 1e6 * median["cpu"] / median["sent"]
    answered, sent = sum(one["answered"] for one in found), sum(one["sent"] for one in found)
    print(
        f"{name:36}{rate:9,.0f}/s {cpu_us:8.1f} us CPU each  "
        f"{answered}/{sent} answered  median {median['median_ns'] / 1e3:,.0f} us"
    )
    return {"rate": rate, "cpu_us": cpu_us, "lost": sent - answered}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probes", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", default="", help="a Python that has icmplib and scapy")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, argument, count = options.child
        print(json.dumps(CHILDREN[name](int(argument), int(count))))
        return
    if shutil.which("fping") is None:
        sys.exit("fping is missing: sudo apt-get install fping")
    found: dict[str, list[Row]] = {}
    with namespaces():
        for _ in range(options.rounds):
            for name, run in rows_of(options):
                found.setdefault(name, []).append(run())
    if options.peers:
        for name, one in over_15_ms(options.peers):
            found[name] = [one]
    print(f"load {Path('/proc/loadavg').read_text().split()[0]} on {os.cpu_count()} cores")
    said = {name: summarise(name, rows) for name, rows in found.items()}
    flat = said["pathbudget, flat out"]
    print(f"\nflat out / 50,000 per second: {flat['rate'] / 50_000:.2f} (goal 1, nothing lost)")
    for ours_, theirs in (
        ("pathbudget at that rate", "fping -i 0.2"),
        ("pathbudget at that rate, 5 ms", "fping -i 0.2"),
        ("floor at that rate", "fping -i 0.2"),
        ("pathbudget at that rate too", "fping -i 0.05"),
        ("pathbudget at that rate too, 5 ms", "fping -i 0.05"),
        ("floor at that rate too", "fping -i 0.05"),
        ("pathbudget, flat out", "fping -i 0, flat out"),
    ):
        ratio = said[ours_]["cpu_us"] / said[theirs]["cpu_us"]
        print(f"CPU per probe, {ours_} / {theirs}: {ratio:.2f} (goal 1 or less)")
    for name, goal in (
        ("icmplib async_multiping, 50 at once", 30),
        (ICMPLIB_15, 30),
        ("scapy sr", 100),
    ):
        if name in said:
            rate, cpu = (
                flat["rate"] / said[name]["rate"],
                said[name]["cpu_us"] / flat["cpu_us"],
            )
            print(f"flat out / {name}: rate {rate:.0f}, CPU {cpu:.0f} (goal {goal})")


if __name__ == "__main__":
    main()
