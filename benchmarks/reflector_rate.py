"""How many packets a second one core reflects, beside a bare Python echo loop in the same run.

    python benchmarks/reflector_rate.py [--seconds 3] [--rounds 3] [--in-flight 192] [--profile]

Run as root or as a user who may make user namespaces; needs gcc. Two namespaces joined by a veth
pair: `datagram_load.c` on one core, the responder on the other. Each row says what was lost. Kernel
send stamps are on; `follow-up` asks for them in every packet. Figures of one machine and minute
mean little; the ratio to the echo loop of the same round is what is compared.
"""

import argparse
import asyncio
import cProfile
import os
import pstats
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from pathbudget.agents.lab.container import loopback_up
from pathbudget.agents.lab.namespaces import enter_descriptor, inside, new_namespace
from pathbudget.agents.lab.rootless import reexec_in_user_namespace
from pathbudget.agents.lab.rtnetlink import UP, RoutingSocket
from pathbudget.agents.reflector.limits import Rates
from pathbudget.agents.reflector.options import Options
from pathbudget.agents.reflector.process import Service, serve
from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.message_batch import open_packets
from pathbudget.probes.stamp import tlvs

LOAD = Path(__file__).with_name("datagram_load.c")
CLIENT, SERVER, PORT = "10.99.0.1", "10.99.0.2", 8620
LOAD_CORE, SERVER_CORE = 0, 1
FLOWS = 8
UNLIMITED = Rates(10_000_000, 10_000_000)
PLAIN = bytes(44)
FOLLOW_UP = PLAIN + tlvs.request(tlvs.Kind.FOLLOW_UP, 16)


class Row(NamedTuple):
    """One run. `lost` and `wrong` must be 0 for it to count."""

    rate: float
    cpu_us: float
    lost: int
    wrong: int


def wired_namespaces() -> tuple[int, int]:
    """Two namespaces joined by a veth pair, as descriptors."""
    client, server = new_namespace(), new_namespace()
    with inside(client):
        loopback_up()
        kernel = RoutingSocket()
        kernel.veth("load", 10, bytes.fromhex("020000000001"), "served", 10, server)
        kernel.flush()
        kernel.address(10, CLIENT, 24)
        kernel.set_flags(10, UP)
        kernel.flush()
    with inside(server):
        loopback_up()
        kernel = RoutingSocket()
        kernel.address(10, SERVER, 24)
        kernel.set_flags(10, UP)
        kernel.flush()
    return client, server


def echo(*, send_stamps: bool) -> None:
    """The least that Python can do with batched receives, single sends and the same stamps."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    stamps.enlarge_buffers(sock, 4 << 20)
    flags = stamps.DATAGRAM_STAMPS if send_stamps else stamps.RX_SOFTWARE | stamps.SOFTWARE
    stamps.switch_on(sock, flags)
    sock.bind((SERVER, PORT))
    sock.setblocking(False)
    packets = open_packets(sock, 2048, headers=False)
    loop = asyncio.new_event_loop()

    def on_readable() -> None:
        received: list[tuple[bytes, str, int, str, int | None, int | None, int | None]] = []
        packets.receive(received)
        for payload, sender, port, *_ in received:
            sock.sendto(payload, (sender, port))
        if send_stamps:
            packets.receive_errors([], [])

    loop.add_reader(sock.fileno(), on_readable)
    loop.add_signal_handler(signal.SIGTERM, loop.stop)
    loop.run_forever()


def reflect(*, stateless: bool = False, profile: bool = False) -> None:
    service = Service(Options((SERVER,), PORT, stateless=stateless, rates=UNLIMITED))
    if not profile:
        serve(service)
        return
    profiler = cProfile.Profile()
    profiler.runcall(serve, service)
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


def run(
    client: int,
    server: int,
    load: Path,
    responder: Callable[[], None],
    payload: bytes,
    offset: int,
    options: argparse.Namespace,
) -> Row:
    """Load one responder for some seconds."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            enter_descriptor(server)
            os.sched_setaffinity(0, {SERVER_CORE})
            responder()
            code = 0
        except Exception:  # noqa: BLE001 (the child must not go on as its parent)
            traceback.print_exc()
        finally:
            sys.stdout.flush()
            os._exit(code)
    time.sleep(1.0)
    before = cpu_seconds(child)
    command = [str(load), SERVER, str(PORT), str(FLOWS), str(options.in_flight)]
    command += [str(options.seconds), str(offset), payload.hex()]
    with inside(client):
        told = subprocess.run(
            ["taskset", "-c", str(LOAD_CORE), *command], capture_output=True, text=True, check=True
        )
    used = cpu_seconds(child) - before
    os.kill(child, signal.SIGTERM)
    os.waitpid(child, 0)
    _, received, lost, wrong, seconds = told.stdout.split()
    count = int(received)
    if not count:
        sys.exit("the responder answered nothing")
    return Row(count / float(seconds), 1e6 * used / max(1, count), int(lost), int(wrong))


def cpu_seconds(process: int) -> float:
    """User and system time of a process, from the scheduler's own clock (nanoseconds)."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-flight", type=int, default=192)
    parser.add_argument("--profile", action="store_true", help="where the reflector's time goes")
    options = parser.parse_args()
    if os.geteuid():
        reexec_in_user_namespace(sys.argv)
    cases: dict[str, tuple[Callable[[], None], bytes, int]] = {
        "echo loop, receive stamps": (lambda: echo(send_stamps=False), PLAIN, 0),
        "echo loop, send stamps too": (lambda: echo(send_stamps=True), PLAIN, 0),
        "reflector, stateful": (reflect, PLAIN, 24),
        "reflector, stateless": (lambda: reflect(stateless=True), PLAIN, 24),
        "reflector, follow-up": (reflect, FOLLOW_UP, 24),
    }
    if options.profile:
        cases = {"profile": (lambda: reflect(profile=True), FOLLOW_UP, 24)}
        options.rounds = 1
    rows: dict[str, list[Row]] = {name: [] for name in cases}
    with tempfile.TemporaryDirectory() as folder:
        load = Path(folder, "load")
        subprocess.run(["gcc", "-O2", "-o", load, LOAD], check=True)
        client, server = wired_namespaces()
        for _ in range(options.rounds):
            for name, (responder, payload, offset) in cases.items():
                row = run(client, server, load, responder, payload, offset, options)
                rows[name].append(row)
    show(rows)


def show(rows: dict[str, list[Row]]) -> None:
    base = next(iter(rows.values()))
    head = ("packets/s", "us CPU", "per CPU s", "/ echo")
    print(f"{'best of the rounds':28} {head[0]:>10} {head[1]:>7} {head[2]:>10} {head[3]:>7} lost")
    for name, found in rows.items():
        rate = max(row.rate for row in found)
        # Whatever else runs on this host only adds to it: the least is nearest to the truth.
        cpu = min(row.cpu_us for row in found)
        ratio = cpu / min(row.cpu_us for row in base)
        lost = sum(row.lost + row.wrong for row in found)
        print(f"{name:28} {rate:10,.0f} {cpu:7.1f} {1e6 / cpu:10,.0f} {ratio:7.2f} {lost}")


if __name__ == "__main__":
    main()
