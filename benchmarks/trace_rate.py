"""100 destinations x 30 hops traced in parallel: wall time and CPU per probe, beside other tools.

    sudo apt-get install gcc scamper mtr-tiny
    sudo .venv/bin/python benchmarks/trace_rate.py

One network namespace with a TUN device; behind it `hops.c` plays 30 routers and 100 destinations, 1
ms for each hop there and back, and counts what it got and answered: so it is known who lost what.
The rows `door` send all hop limits of all destinations at a fixed rate through the door of the
trace probe (`Network.open_paths`), with packets built and answers read by its codecs, both kernel
stamps for each answer; the last column is by how much the median exceeds the path's own time.
`probe trace` is the whole probe, one flow to each destination, samples out, with what its rules ask
for. CPU is user + system time of the tool, without start-up for
what is Python. CPU per probe falls with the rate, so compare rows of one rate. scamper waits for
one hop before it asks for the next, so its wall time is bounded by the path (465 ms); the mtr
command paces itself. Rounds are interleaved and medians taken: on a shared machine only ratios mean
much. For a quieter one: `chrt -f 10` before the command, with `--short`, which leaves out scapy and
the mtr command.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import re
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from typing import Any

DESTINATIONS, HOPS, HOP_US = 100, 30, 1_000
PROBES = DESTINATIONS * HOPS
SPACE = f"pbtrace{os.getpid()}"
ADDRESSES = [f"10.65.0.{1 + n}" for n in range(DESTINATIONS)]
SOURCE = Path(__file__).with_name("hops.c")
Row = dict[str, Any]


def cpu_seconds(who: int = resource.RUSAGE_SELF) -> float:
    used = resource.getrusage(who)
    return used.ru_utime + used.ru_stime


def ours(protocol: str, rate: int) -> Row:
    from pathbudget.probes.channels import PathBatch
    from pathbudget.probes.network import SystemNetwork
    from pathbudget.probes.record import AddressFamily
    from pathbudget.probes.trace.contract import Flow, TraceProtocol
    from pathbudget.probes.trace.wire import build, read

    family, kind = AddressFamily.IPV4, TraceProtocol(protocol)
    sent_ns: dict[int, int] = {}
    tokens: dict[int, int] = {}
    answers: dict[int, tuple[str, int]] = {}

    def hear(batch: PathBatch) -> None:
        sent_ns.update(batch.sent)
        for arrival in batch.arrivals:
            answer = read(arrival, family)
            if answer is not None and answer.kernel_unix_ns is not None:
                answers[answer.token] = answer.responder, answer.kernel_unix_ns

    async def run() -> Row:
        network = SystemNetwork()
        await asyncio.sleep(0.2)
        channel = network.open_paths(family, hear)
        assert channel is not None
        port = 0 if kind is TraceProtocol.ICMP else 33_434
        flows: list[Flow] = []
        for number, address in enumerate(ADDRESSES):
            source = channel.source_for(address)
            assert isinstance(source, str)
            flows.append(Flow(kind, family, source, address, 40_000 + number, port))

        def fire(items: Sequence[tuple[int, int]]) -> None:
            packets = [
                build(flows[n % DESTINATIONS], 1 + n // DESTINATIONS, 1 + n) for _, n in items
            ]
            keys = channel.send_all(packets)
            for packet, key in zip(packets, keys, strict=True):
                assert isinstance(key, int)
                tokens[packet.token] = key

        cpu, began = cpu_seconds(), time.monotonic()
        start = time.monotonic_ns() + 1_000_000
        over = asyncio.Event()
        network.pace(((start + n * 10**9 // rate, n) for n in range(PROBES)), fire, over.set)
        await over.wait()
        while len(answers) < PROBES and time.monotonic() - began < 3:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        took, used = time.monotonic() - began, cpu_seconds() - cpu
        channel.poll()
        right, errors = 0, []
        for token, (responder, came_ns) in answers.items():
            n = token - 1
            hop, there = 1 + n // DESTINATIONS, ADDRESSES[n % DESTINATIONS]
            key = tokens.get(token)
            if responder == responder_at(hop, there) and key in sent_ns:
                right += 1
                errors.append(came_ns - sent_ns[key] - hop * HOP_US * 1_000)
        channel.close()
        network.close()
        beyond = statistics.median(errors) / 1e3 if errors else float("nan")
        return {"sent": PROBES, "answered": right, "took": took, "cpu": used, "beyond_us": beyond}

    return asyncio.run(run())


def probe(protocol: str, rate: int) -> Row:
    """The probe itself, with everything: shots in, samples out; one flow for each destination."""
    from pathbudget.probes.clock import SystemClock
    from pathbudget.probes.contract import ProbeEnvironment, Shot
    from pathbudget.probes.network import SystemNetwork
    from pathbudget.probes.record import AddressFamily, ClockSource, Metric, Sample, Target
    from pathbudget.probes.trace.probe import TRACE, TraceProbe

    samples: list[tuple[int, Sample]] = []

    async def run() -> Row:
        network = SystemNetwork()
        await asyncio.sleep(0.2)
        environment = ProbeEnvironment(
            network,
            SystemClock(),
            random.Random(1),
            lambda series, sample: samples.append((series, sample)),
            lambda _, __: None,
        )
        one = TRACE.open(environment, {"protocol": protocol, "flows": 1, "rate": rate})
        assert isinstance(one, TraceProbe)
        cpu, began = cpu_seconds(), time.monotonic()
        shots = [
            Shot(
                n, 0, Target("target", address), address, AddressFamily.IPV4, 10**9, 0, False, None
            )
            for n, address in enumerate(ADDRESSES)
        ]
        one.fire_all(shots)
        await one.drain()
        took, used = time.monotonic() - began, cpu_seconds() - cpu
        one.close()
        network.close()
        hops = [(n, sample) for n, sample in samples if sample.metric is Metric.HOP_RTT]
        right = {
            (n, sample.part)
            for n, sample in hops
            if sample.value_ns is not None
            and sample.clock_source is ClockSource.KERNEL
            and sample.part is not None
            and (sample.responder or ADDRESSES[n]) == responder_at(sample.part, ADDRESSES[n])
        }
        return {"sent": len(hops), "answered": len(right), "took": took, "cpu": used}

    return asyncio.run(run())


def responder_at(hop: int, there: str) -> str:
    return there if hop >= HOPS else f"10.64.{hop}.{there.rpartition('.')[2]}"


def scapy_sr(_: str, timeout: int) -> Row:
    from scapy.config import conf
    from scapy.layers.inet import IP, UDP
    from scapy.sendrecv import sr

    conf.verb = 0
    packets = [
        IP(dst=address, ttl=hop, id=hop) / UDP(sport=30_000 + n * HOPS + hop, dport=33_434)
        for n, address in enumerate(ADDRESSES)
        for hop in range(1, HOPS + 1)
    ]
    cpu, began = cpu_seconds(), time.monotonic()
    answers, _unanswered = sr(packets, timeout=timeout)
    return python_row(PROBES, len(answers), cpu, began)


def scapy_traceroute(_: str, timeout: int) -> Row:
    from scapy.config import conf
    from scapy.layers.inet import traceroute

    conf.verb = 0
    cpu, began = cpu_seconds(), time.monotonic()
    answers, _unanswered = traceroute(ADDRESSES, maxttl=HOPS, timeout=timeout, verbose=0)
    return python_row(PROBES, len(answers), cpu, began)


def python_row(sent: int, answered: int, cpu: float, began: float) -> Row:
    took, used = time.monotonic() - began, cpu_seconds() - cpu
    return {"sent": sent, "answered": answered, "took": took, "cpu": used}


CHILDREN: dict[str, Callable[[str, int], Row]] = {
    "ours": ours,
    "probe": probe,
    "scapy sr": scapy_sr,
    "scapy traceroute": scapy_traceroute,
}


def child(name: str, word: str, number: int) -> Row:
    done = program([sys.executable, __file__, "--child", name, word, str(number)])
    answer: Row = json.loads(done)
    return answer


def program(command: Sequence[str], **options: Any) -> str:
    inside = ["ip", "netns", "exec", SPACE, *command]
    done = subprocess.run(
        inside, check=False, capture_output=True, text=True, timeout=120, **options
    )
    if done.returncode:
        sys.exit(f"{' '.join(command[:6])}: {done.stderr or done.stdout}")
    return done.stdout


def measured(run: Callable[[], int]) -> Row:
    """CPU of the programs that `run` starts; they start in a few milliseconds."""
    cpu, began = cpu_seconds(resource.RUSAGE_CHILDREN), time.monotonic()
    answered = run()
    took = time.monotonic() - began
    used = cpu_seconds(resource.RUSAGE_CHILDREN) - cpu
    return {"sent": PROBES, "answered": answered, "took": took, "cpu": used}


def scamper(rate: int) -> Row:
    def run() -> int:
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("\n".join(ADDRESSES))
            file.flush()
            command = ["scamper", "-p", str(rate), "-O", "text"]
            trace = f"trace -P udp-paris -q 1 -w 1 -m {HOPS}"
            said = program([*command, "-c", trace, "-f", file.name])
        return len(re.findall(r"^ *\d+ +10\.6[45]\.", said, re.MULTILINE))

    return measured(run)


def mtr_packet(rate: int) -> Row:
    """The program that sends for mtr, fed through its pipe at a fixed rate."""

    def run() -> int:
        command = ["ip", "netns", "exec", SPACE, "mtr-packet"]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            said: list[str] = []
            reader = threading.Thread(target=said.extend, args=(process.stdout,))
            reader.start()
            start = time.monotonic()
            for n in range(PROBES):
                while time.monotonic() < start + n / rate:
                    time.sleep(0.0005)
                address, hop = ADDRESSES[n % DESTINATIONS], 1 + n // DESTINATIONS
                process.stdin.write(f"{n + 1} send-probe ip-4 {address} ttl {hop} timeout 1\n")
            while len(said) < PROBES and time.monotonic() < start + 5:
                time.sleep(0.002)
            process.stdin.close()
            reader.join()
        return sum(" ttl-expired " in line or " reply " in line for line in said)

    return measured(run)


def mtr_commands() -> Row:
    """One mtr for each destination, all at once; each asks for every hop once."""

    def run() -> int:
        with contextlib.ExitStack() as stack:
            command = ["ip", "netns", "exec", SPACE, "mtr", "-4", "-n", "-r", "-c", "1", "-G", "1"]
            command += ["-m", str(HOPS), "-i", "0.1"]
            started = [
                stack.enter_context(
                    subprocess.Popen([*command, address], stdout=subprocess.PIPE, text=True)
                )
                for address in ADDRESSES
            ]
            said = [process.communicate()[0] for process in started]
        return sum(len(re.findall(r"\|-- 10\.6[45]\.", one)) for one in said)

    return measured(run)


@contextlib.contextmanager
def path(folder: str) -> Generator[None]:
    binary = f"{folder}/hops"
    subprocess.run(["gcc", "-O2", "-o", binary, str(SOURCE)], check=True)
    subprocess.run(["ip", "netns", "add", SPACE], check=True)
    emulator = subprocess.Popen(
        ["ip", "netns", "exec", SPACE, binary, "hops0", str(HOPS), str(HOP_US)],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert emulator.stdout is not None
        assert emulator.stdout.readline() == "ready\n"
        for words in (
            "link set lo up",
            "link set hops0 txqueuelen 10000 up",
            "addr add 10.65.255.1/32 dev hops0",
            "route add 10.64.0.0/15 dev hops0 src 10.65.255.1",
        ):
            subprocess.run(["ip", "-n", SPACE, *words.split()], check=True)
        yield
        emulator.send_signal(signal.SIGTERM)
        came, left, full = emulator.stdout.read().split()
        print(f"\nthe path got {came} packets, sent {left} answers, had no room for {full}")
    finally:
        emulator.kill()
        subprocess.run(["ip", "netns", "del", SPACE], check=False)


ROWS: dict[str, Callable[[], Row]] = {
    "probe trace udp, 20,000/s": lambda: child("probe", "udp", 20_000),
    "probe trace udp, 10,000/s": lambda: child("probe", "udp", 10_000),
    "door udp, 20,000/s": lambda: child("ours", "udp", 20_000),
    "door icmp, 20,000/s": lambda: child("ours", "icmp", 20_000),
    "door tcp, 20,000/s": lambda: child("ours", "tcp", 20_000),
    "door udp, 10,000/s": lambda: child("ours", "udp", 10_000),
    "scamper udp-paris, 10,000/s": lambda: scamper(10_000),
    "mtr-packet, 10,000/s": lambda: mtr_packet(10_000),
    "mtr -c 1, 100 at once": mtr_commands,
    "scapy sr": lambda: child("scapy sr", "-", 2),
    "scapy traceroute": lambda: child("scapy traceroute", "-", 2),
}
SLOW = frozenset({"mtr -c 1, 100 at once", "scapy sr", "scapy traceroute"})
PAIRS = (
    ("door udp, 10,000/s", "scamper udp-paris, 10,000/s"),
    ("door udp, 10,000/s", "mtr-packet, 10,000/s"),
    ("probe trace udp, 10,000/s", "scamper udp-paris, 10,000/s"),
    ("probe trace udp, 20,000/s", "scapy traceroute"),
    ("door udp, 20,000/s", "mtr -c 1, 100 at once"),
    ("door udp, 20,000/s", "scapy sr"),
    ("door tcp, 20,000/s", "scapy traceroute"),
)


def summarise(name: str, found: Sequence[Row]) -> Row:
    median: Row = {key: statistics.median(one[key] for one in found) for key in found[0]}
    cpu_us = 1e6 * median["cpu"] / median["sent"]
    answered, sent = sum(one["answered"] for one in found), sum(one["sent"] for one in found)
    beyond = f"  {median['beyond_us']:+.0f} us" if "beyond_us" in median else ""
    print(
        f"{name:30}{median['took']:8.2f} s {cpu_us:8.1f} us CPU each  "
        f"{answered}/{sent} answered{beyond}"
    )
    return {"took": median["took"], "cpu_us": cpu_us, "lost": sent - answered}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--short", action="store_true", help="without what takes seconds")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, word, number = options.child
        print(json.dumps(CHILDREN[name](word, int(number))))
        return
    found: dict[str, list[Row]] = {}
    with tempfile.TemporaryDirectory() as folder, path(folder):
        for _ in range(options.rounds):
            for name, run in ROWS.items():
                if options.short and name in SLOW:
                    continue
                found.setdefault(name, []).append(run())
    print(f"load {Path('/proc/loadavg').read_text().split()[0]} on {os.cpu_count()} cores")
    said = {name: summarise(name, rows) for name, rows in found.items()}
    print()
    for ours_, theirs in PAIRS:
        if theirs not in said:
            continue
        time_ratio = said[theirs]["took"] / said[ours_]["took"]
        cpu_ratio = said[theirs]["cpu_us"] / said[ours_]["cpu_us"]
        print(f"{theirs} / {ours_}: wall time {time_ratio:.1f}, CPU {cpu_ratio:.1f}")


if __name__ == "__main__":
    main()
