"""How far connect times are from the wire: each one against a capture of its SYN and its answer.

    sudo python benchmarks/tcp_wire_error.py [--seconds 4] [--only connect]

Two network namespaces joined by a veth pair, both made here and gone afterwards. In the prober's
namespace a process of its own captures SYNs and their answers (AF_PACKET, nanosecond stamps of the
kernel). Error: what the sample says minus what the capture says. The user clock is that of the same
samples. Rows say how many were matched; loss of the capture is told.

The capture's stamps and the probe's are taken by one kernel: what this shows is independence of
user space, not the error of a network card.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import NamedTuple

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, ClockSource, Flag, Sample, Target
from pathbudget.probes.tcp import TCP

HERE, THERE = "pbtcp-here", "pbtcp-there"
ADDRESSES = {AddressFamily.IPV4: "10.231.0.2", AddressFamily.IPV6: "fd31::2"}
OPEN_PORT, CLOSED_PORT = 8080, 8081
SECOND_NS = 1_000_000_000
NEAR_NS = 50_000_000
"""A SYN further away from what the sample says belongs to another connection on that port."""
CASES = {"idle": (200, False), "2,000/s": (2_000, False), "busy loop": (500, True)}
KINDS = {
    "connect": ("connect", OPEN_PORT),
    "refused": ("connect", CLOSED_PORT),
    "half-open": ("syn", OPEN_PORT),
    "half-open, refused": ("syn", CLOSED_PORT),
}
SYN, RST, ACK = 2, 4, 16
ETH_P_ALL, SO_TIMESTAMPNS, SO_RCVBUFFORCE = 3, 35, 33
SOL_PACKET, PACKET_STATISTICS = 263, 6


def run(*words: str) -> None:
    subprocess.run(words, check=True)


@contextlib.contextmanager
def namespaces() -> Generator[None]:
    """Two hosts and a cable between them."""
    try:
        for name in (HERE, THERE):
            run("ip", "netns", "add", name)
        run("ip", "-n", HERE, "link", "add", "probe0", "type", "veth", "peer", "name", "site0")
        run("ip", "-n", HERE, "link", "set", "site0", "netns", THERE)
        for name, device, number in ((HERE, "probe0", 1), (THERE, "site0", 2)):
            run("ip", "-n", name, "addr", "add", f"10.231.0.{number}/24", "dev", device)
            run("ip", "-n", name, "addr", "add", f"fd31::{number}/64", "dev", device, "nodad")
            run("ip", "-n", name, "link", "set", "lo", "up")
            run("ip", "-n", name, "link", "set", device, "up")
        yield
    finally:
        for name in (HERE, THERE):
            subprocess.run(("ip", "netns", "del", name), check=False)


@contextlib.contextmanager
def helper(namespace: str, *words: str) -> Generator[subprocess.Popen[str]]:
    """This script again, inside a namespace, until the block ends."""
    command = ["ip", "netns", "exec", namespace, sys.executable, __file__, *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()  # it is ready
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait()


def serve() -> None:
    """Accept everybody, wait for their FIN, close."""
    listener = socket.create_server(
        ("", OPEN_PORT), family=socket.AF_INET6, backlog=4096, dualstack_ipv6=True
    )
    listener.setblocking(False)
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    clients: dict[int, socket.socket] = {}
    print("ready", flush=True)
    while True:
        for descriptor, _ in poll.poll():
            if descriptor != listener.fileno():
                client = clients.pop(descriptor)
                with contextlib.suppress(OSError):
                    client.recv(1)
                client.close()
                continue
            with contextlib.suppress(BlockingIOError):
                while True:
                    client, _ = listener.accept()
                    clients[client.fileno()] = client
                    poll.register(client, select.EPOLLIN)


class Seen(NamedTuple):
    """One SYN, or one answer to a SYN, as it was captured."""

    unix_ns: int
    source_port: int
    destination_port: int
    sequence: int
    acknowledged: int
    flags: int


def capture(path: str) -> None:
    """Write down every SYN, SYN-ACK and RST on the wire until SIGTERM."""
    tap = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    tap.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    tap.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    tap.bind(("probe0", 0))
    tap.settimeout(0.2)
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: over.append(number))
    lines: list[Seen] = []
    print("ready", flush=True)
    while not over:
        try:
            frame, messages, _, _ = tap.recvmsg(200, 64)
        except TimeoutError:
            continue
        seen = read_frame(frame, messages)
        if seen is not None:
            lines.append(seen)
    _, dropped = struct.unpack("@II", tap.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))
    Path(path).write_text(json.dumps({"dropped": dropped, "seen": lines}))


def read_frame(frame: bytes, messages: list[tuple[int, int, bytes]]) -> Seen | None:
    kind = frame[12:14]
    if kind == b"\x08\x00" and frame[23] == socket.IPPROTO_TCP:
        segment = frame[14 + (frame[14] & 15) * 4 :]
    elif kind == b"\x86\xdd" and frame[20] == socket.IPPROTO_TCP:
        segment = frame[54:]
    else:
        return None
    if not segment[13] & (SYN | RST):
        return None
    seconds, nanoseconds = struct.unpack("@qq", messages[0][2])
    ports = struct.unpack_from("!HHII", segment)
    return Seen(seconds * SECOND_NS + nanoseconds, *ports, segment[13])


def ignore(series: int, word: str) -> None:
    del series, word


async def probe(method: str, port: int, family: AddressFamily, count: int, rate: int,
                busy: bool) -> list[Sample]:  # fmt: skip
    samples: list[Sample] = []
    network = SystemNetwork()
    await asyncio.sleep(0.2)
    environment = ProbeEnvironment(
        network,
        SystemClock(),
        random.Random(),
        lambda _, sample: samples.append(sample),
        ignore,
    )
    opened = TCP.open(environment, {"method": method, "max_half_open": 256})
    target, address = Target("there", "there", port=port), ADDRESSES[family]
    burning = asyncio.create_task(burn()) if busy else None
    start = time.monotonic()
    for number in range(count):
        await asyncio.sleep(max(0.0, start + number / rate - time.monotonic()))
        opened.fire(Shot(0, number, target, address, family, SECOND_NS))
    await opened.drain()
    if burning is not None:
        burning.cancel()
    opened.close()
    network.close()
    return samples


async def burn() -> None:
    """Keep the loop busy half of the time."""
    while True:
        until = time.monotonic() + 0.003
        while time.monotonic() < until:
            pass
        await asyncio.sleep(0.003)


def probe_here(words: list[str]) -> None:
    method, port, family, count, rate, busy = words
    samples = asyncio.run(
        probe(method, int(port), AddressFamily(family), int(count), int(rate), busy == "True")
    )
    for one in samples:
        user = None if one.stamps is None else one.stamps.user_received_ns
        began = None if one.stamps is None else one.stamps.user_sent_ns
        waited = None if user is None or began is None else user - began
        row = (one.flow, one.sent_unix_ns, one.value_ns, one.clock_source, one.flags, waited)
        print(json.dumps(row))


def wire_spans(file: Path) -> tuple[dict[int, list[tuple[int, int]]], int]:
    """By source port: when each SYN left, and how long until its answer."""
    kept = json.loads(file.read_text())
    seen = sorted(Seen(*one) for one in kept["seen"])
    answers: dict[tuple[int, int], int] = {}
    for one in seen:
        if one.flags & ACK and one.destination_port not in (OPEN_PORT, CLOSED_PORT):
            answers.setdefault((one.destination_port, one.acknowledged), one.unix_ns)
    spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for one in seen:
        answered = answers.get((one.source_port, (one.sequence + 1) % (1 << 32)))
        if one.flags & (SYN | ACK) == SYN and answered is not None:
            spans[one.source_port].append((one.unix_ns, answered - one.unix_ns))
    return spans, kept["dropped"]


def errors_of(said: list[str], file: Path) -> tuple[list[float], list[float], int, str]:
    """Errors of the samples and of the user clock in microseconds, and the rest of a row."""
    spans, dropped = wire_spans(file)
    ours: list[float] = []
    users: list[float] = []
    sources: set[str] = set()
    for line in said:
        flow, sent, value, source, flags, waited = json.loads(line)
        near = [span for span in spans.get(flow, []) if abs(span[0] - sent) < NEAR_NS]
        if value is None or not near or Flag.SYN_RETRANSMITTED in flags:
            continue
        _, true = min(near, key=lambda span: abs(span[0] - sent))
        ours.append((value - true) / 1e3)
        users.append((waited - true) / 1e3)
        sources.add(ClockSource(source))
    return ours, users, dropped, "+".join(sorted(sources))


def at(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def measure(kind: str, case: str, family: AddressFamily, seconds: float) -> str:
    method, port = KINDS[kind]
    rate, busy = CASES[case]
    count = int(rate * seconds)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "capture"
        words = [method, str(port), family, str(count), str(rate), str(busy)]
        with helper(HERE, "capture", str(file)):
            said = subprocess.run(
                ["ip", "netns", "exec", HERE, sys.executable, __file__, "probe", *words],
                check=True, capture_output=True, text=True,
            ).stdout.splitlines()  # fmt: skip
            time.sleep(0.5)
        ours, users, dropped, source = errors_of(said, file)
    far = [abs(error) for error in ours]
    return (
        f"{kind:<19} {case:<10} {family:<5} {source:<15} {len(ours):>5}/{count:<5} {dropped:>4} "
        f"{statistics.median(ours):>7.1f} {at(far, 0.99):>7.1f} {max(far):>8.1f}   "
        f"{statistics.median(users):>7.0f} {at([abs(e) for e in users], 0.99):>7.0f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("role", nargs="?", default="measure")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--only", default="")
    wanted = parser.parse_args()
    roles = {"serve": serve, "capture": lambda: capture(*wanted.words)}
    if wanted.role == "probe":
        probe_here(wanted.words)
        return
    if wanted.role in roles:
        roles[wanted.role]()
        return
    if os.geteuid() != 0:
        parser.error("needs root: it makes network namespaces")
    print(f"{'':<53}{'matched':>10}  lost   error, us: p50, |p99|, |max|   user clock: p50, |p99|")
    with namespaces(), helper(THERE, "serve"):
        for kind in KINDS:
            if wanted.only and kind != wanted.only:
                continue
            for case in CASES:
                for family in AddressFamily:
                    print(measure(kind, case, family, wanted.seconds), flush=True)


if __name__ == "__main__":
    main()
