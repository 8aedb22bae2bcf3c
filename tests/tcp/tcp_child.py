"""Connects and half-open probes in network namespaces of its own; prints samples by scenario.

    python tcp_child.py raw|none SCENARIO...

The namespaces are those of ``tests/probes/namespace_child.py``: a router at 10.1.0.2 and fd01::2
that refuses connects, has no way to 10.9.0.0/16 and fd09::/16, and prohibits 10.8.0.0/16 and
fd08::/16.
"""

import asyncio
import contextlib
import importlib
import os
import socket
import sys
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path

import msgspec

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "probes"))
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.contract import Options
from pathbudget.probes.errors import ConfigError, PrivilegeError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import AddressFamily, Failure, Sample
from pathbudget.probes.tcp import TCP

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "probes"))
NAMESPACES = importlib.import_module("namespace_child")
MS = 1_000_000
ROUTER = ("10.1.0.2", "fd01::2")
REFUSED_PORT = 80
SYN = 2


class Telling(Collector):
    """Keeps what was said beside the samples."""

    def count_said(self, words: str) -> None:
        self.counts[-1, words] += 1


@contextlib.contextmanager
def listening() -> Generator[dict[str, int]]:
    """A port on each loopback address; accepts nobody, the kernel answers all the same."""
    ports: dict[str, int] = {}
    with contextlib.ExitStack() as stack:
        for address, family in (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6)):
            listener = socket.create_server((address, 0), family=family, backlog=64)
            ports[address] = stack.enter_context(listener).getsockname()[1]
        yield ports


async def fire(collector: Telling, options: Options, places: list[tuple[str, int]]) -> None:
    probe = collector.open(TCP, options)
    for seq, (address, port) in enumerate(places):
        probe.fire(shot_at(address, seq=seq, port=port, timeout_ns=500 * MS))
        await asyncio.sleep(0.01)
    await probe.drain()
    probe.close()


async def answers(collector: Telling, method: str) -> None:
    with listening() as ports:
        places = [*ports.items(), *((address, REFUSED_PORT) for address in ROUTER)]
        await fire(collector, {"method": method}, places * 3)


async def syn(collector: Telling) -> None:
    await answers(collector, "syn")


async def connect(collector: Telling) -> None:
    await answers(collector, "connect")


async def errors(collector: Telling) -> None:
    places = [(address, 80) for address in ("10.9.0.1", "fd09::1", "10.8.0.1", "fd08::1")]
    await fire(collector, {"method": "syn"}, [*places, ("203.0.113.1", 80), ("10.1.0.77", 80)])


def headers_of_syns(heard: list[socket.socket]) -> set[tuple[int, int]]:
    """Traffic class and hop limit of every SYN on loopback."""
    v4, v6 = heard
    found: set[tuple[int, int]] = set()
    with contextlib.suppress(BlockingIOError):
        while packet := v4.recv(200):
            if packet[(packet[0] & 15) * 4 + 13] == SYN:
                found.add((packet[1], packet[8]))
    with contextlib.suppress(BlockingIOError):
        while True:
            segment, messages, _, _ = v6.recvmsg(200, 200)
            if segment[13] == SYN:
                values = {kind: int.from_bytes(data, "little") for _, kind, data in messages}
                found.add((values[socket.IPV6_TCLASS], values[socket.IPV6_HOPLIMIT]))
    return found


async def marks(collector: Telling) -> None:
    """DSCP and hop limit, as a raw socket sees them."""
    with contextlib.ExitStack() as stack:
        heard = [
            stack.enter_context(socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_TCP))
            for family in (socket.AF_INET, socket.AF_INET6)
        ]
        for one in heard:
            one.setblocking(False)
        heard[1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVTCLASS, 1)
        heard[1].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
        for method in ("connect", "syn"):
            options = {"method": method, "ttl": 7, "dscp": 46}
            await fire(collector, options, [("127.0.0.1", 9), ("::1", 9)])
            collector.count_said(f"{method} {headers_of_syns(heard)}")


async def leaving(collector: Telling) -> None:
    """From an interface and an address that are there."""
    for method in ("connect", "syn"):
        for options in ({"interface": "here"}, {"source": "10.1.0.1"}):
            await fire(collector, {"method": method, **options}, [("10.1.0.2", REFUSED_PORT)])


async def not_there(collector: Telling) -> None:
    """From those that are not; what is said goes into the target of a failure."""
    for method in ("connect", "syn"):
        for options in ({"interface": "nowhere"}, {"source": "10.7.7.7"}):
            try:
                await fire(collector, {"method": method, **options}, [("10.1.0.2", 80)])
            except ConfigError as error:
                collector.count_said(str(error))


async def flows(collector: Telling) -> None:
    """The same few ports again and again, connects and SYNs."""
    with listening() as ports:
        for method in ("connect", "syn"):
            places = [("127.0.0.1", ports["127.0.0.1"])] * 12
            await fire(collector, {"method": method, "flows": 3}, places)


def make_ports_scarce() -> None:
    Path("/proc/sys/net/ipv4/ip_local_port_range").write_text("40000 40019")


async def reserved(collector: Telling) -> None:
    """The kernel's own connects never take a reserved port, scarce as they are."""
    make_ports_scarce()
    held = collector.network.reserve_ports(AddressFamily.IPV4, 8)
    assert not isinstance(held, Failure)
    taken: set[int] = set()
    with listening() as ports, contextlib.ExitStack() as stack:
        for _ in range(30):
            one = stack.enter_context(socket.socket())
            try:
                one.connect(("127.0.0.1", ports["127.0.0.1"]))
            except OSError:
                break
            taken.add(one.getsockname()[1])
    assert taken
    assert not taken & set(held.ports), (taken, held.ports)
    held.close()


SCENARIOS: dict[str, Callable[[Telling], Awaitable[None]]] = {
    "syn": syn,
    "connect": connect,
    "errors": errors,
    "marks": marks,
    "leaving": leaving,
    "not_there": not_there,
    "flows": flows,
    "reserved": reserved,
}


async def run(names: list[str]) -> dict[str, tuple[list[Sample], list[str]]]:
    told: dict[str, tuple[list[Sample], list[str]]] = {}
    network = SystemNetwork()
    for name in names:
        collector = Telling(network, SystemClock())
        await SCENARIOS[name](collector)
        samples = sorted((sample for _, sample in collector.emitted), key=lambda sample: sample.seq)
        told[name] = samples, [word for _, word in collector.counts]
    network.close()
    return told


def main(kind: str, names: list[str]) -> None:
    hold: int = NAMESPACES.build()
    if kind != "raw":
        NAMESPACES.drop_capabilities()
    try:
        said: object = asyncio.run(run(names))
    except PrivilegeError as error:
        said = {"refused": str(error)}
    finally:
        os.close(hold)
    sys.stdout.write(msgspec.json.encode(said).decode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
