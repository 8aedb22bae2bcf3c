"""TCP connects per CPU second of the client, beside plain asyncio in the same run.

    python benchmarks/tcp_connect.py [--connects 6000] [--rate 2000] [--syn]

The server is a process of its own, so only the client's CPU time is counted. `--syn` adds half-open
probes (needs CAP_NET_RAW). Numbers of one machine and minute mean little; the ratios are what is
compared. Each row says how many were answered.
"""

import argparse
import asyncio
import contextlib
import multiprocessing
import multiprocessing.connection
import random
import resource
import select
import socket
import time
from collections.abc import Callable

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import Option, ProbeEnvironment, Shot
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Sample, Target
from pathbudget.probes.tcp import TCP

HERE = "127.0.0.1"
BURST = 20
SECOND_NS = 1_000_000_000
NO_BOUND = 512


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def serve(tell: multiprocessing.connection.Connection) -> None:
    """Accept everybody, wait for their FIN, close."""
    listener = socket.create_server((HERE, 0), backlog=4096)
    listener.setblocking(False)
    tell.send(listener.getsockname()[1])
    poll = select.epoll()
    poll.register(listener, select.EPOLLIN)
    clients: dict[int, socket.socket] = {}
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


async def ours(count: int, rate: int, port: int, method: str) -> int:
    answered = 0

    def emit(series: int, sample: Sample) -> None:
        nonlocal answered
        del series
        answered += sample.value_ns is not None

    network = SystemNetwork()
    await asyncio.sleep(0.1)
    environment = ProbeEnvironment(network, SystemClock(), random.Random(1), emit, count_nothing)
    wanted: dict[str, Option] = {"method": method, "max_half_open": NO_BOUND}
    known = {name: option.default for name, option in TCP.options.items()}
    probe = TCP.open(environment, {**known, **{k: v for k, v in wanted.items() if k in known}})
    target = Target("here", HERE, port=port)

    def send(number: int) -> None:
        probe.fire(Shot(0, number, target, HERE, AddressFamily.IPV4, SECOND_NS))

    await paced(count, rate, send)
    await probe.drain()
    probe.close()
    network.close()
    return answered


async def plain_asyncio(count: int, rate: int, port: int) -> int:
    """One task, one socket, one timeout per connect: the usual way."""
    answered = 0
    tasks: set[asyncio.Task[None]] = set()
    loop = asyncio.get_running_loop()

    async def connect() -> None:
        nonlocal answered
        with socket.socket() as sock:
            sock.setblocking(False)
            with contextlib.suppress(TimeoutError, OSError):
                async with asyncio.timeout(1):
                    await loop.sock_connect(sock, (HERE, port))
                    answered += 1

    def send(number: int) -> None:
        del number
        task = asyncio.create_task(connect())
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    await paced(count, rate, send)
    await asyncio.gather(*tasks)
    return answered


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--connects", type=int, default=6_000)
    parser.add_argument("--rate", type=int, default=2_000)
    parser.add_argument("--syn", action="store_true")
    wanted = parser.parse_args()
    listen, tell = multiprocessing.Pipe()
    server = multiprocessing.Process(target=serve, args=(tell,), daemon=True)
    server.start()
    port: int = listen.recv()
    ways: dict[str, Callable[[], int]] = {
        "ours": lambda: asyncio.run(ours(wanted.connects, wanted.rate, port, "connect")),
        "plain asyncio": lambda: asyncio.run(plain_asyncio(wanted.connects, wanted.rate, port)),
    }
    if wanted.syn:
        ways["ours, half-open"] = lambda: asyncio.run(
            ours(wanted.connects, wanted.rate, port, "syn")
        )
    print(f"{'':<16} {'answered':>9} {'us CPU each':>12} {'per CPU second':>15}")
    for name, run in ways.items():
        before = cpu_seconds()
        answered = run()
        used = cpu_seconds() - before
        each = used / wanted.connects
        print(f"{name:<16} {answered:>9} {each * 1e6:>12.1f} {1 / each:>15.0f}")
    server.terminate()


if __name__ == "__main__":
    main()
