"""Runs scenarios in network namespaces of its own; prints one JSON object: samples by scenario.

    python namespace_child.py raw|datagram|none SCENARIO...

A host with a router behind it: 10.1.0.1 and fd01::1 here, 10.1.0.2 and fd01::2 there. The router
has no way to 10.9.0.0/16 and fd09::/16, and may not let through 10.8.0.0/16 and fd08::/16.
"""

import asyncio
import ctypes
import os
import struct
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from pathbudget.probes.clock import SystemClock
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.fake_collector import Collector, shot_at
from pathbudget.probes.icmp import ICMP
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.record import Sample
from pathbudget.probes.tcp import TCP

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
MS = 1_000_000
LIBC = ctypes.CDLL(None, use_errno=True)


def check(result: int) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def enter_namespaces() -> None:
    uid, gid = os.getuid(), os.getgid()
    if LIBC.unshare(CLONE_NEWNET) == 0:
        return  # a privileged user
    check(LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNET))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
    Path("/proc/self/gid_map").write_text(f"0 {gid} 1")


def drop_capabilities() -> None:
    """No capability is left, as for an ordinary user."""
    header = struct.pack("=Ii", 0x20080522, 0)
    check(LIBC.capset(header, bytes(24)))


def switch_ipv6_off() -> None:
    for name in ("all", "default", "lo", "here"):
        Path(f"/proc/sys/net/ipv6/conf/{name}/disable_ipv6").write_text("1")


class Switch:
    """A process that keeps the right to switch IPv6 off, when this one has dropped it."""

    def prepare(self) -> None:
        """Call after `build`, before `drop_capabilities`."""
        read_order, self._order = os.pipe()
        self._done, tell_done = os.pipe()
        if os.fork() == 0:
            os.close(self._order)
            if os.read(read_order, 1):
                switch_ipv6_off()
                os.write(tell_done, b"1")
            os._exit(0)
        os.close(read_order)
        os.close(tell_done)

    def ask(self) -> None:
        """IPv6 is off on return."""
        os.write(self._order, b"1")
        check(len(os.read(self._done, 1)) - 1)


SWITCH = Switch()


def router(ready: int, done: int) -> None:
    """The other side, in a process of its own."""
    from pyroute2 import IPRoute

    check(LIBC.unshare(CLONE_NEWNET))
    os.write(ready, b"1")
    os.read(done, 1)  # our end of the link is there now
    for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
        Path(f"/proc/sys/net/{name}").write_text("1")
    Path("/proc/sys/net/ipv4/icmp_ratelimit").write_text("0")
    Path("/proc/sys/net/ipv6/icmp/ratelimit").write_text("0")
    with IPRoute() as ip:
        address(ip, "there", "10.1.0.2", "fd01::2")
        for kind, v4, v6 in (
            ("unreachable", "10.9.0.0/16", "fd09::/16"),
            ("prohibit", "10.8.0.0/16", "fd08::/16"),
        ):
            ip.route("add", dst=v4, type=kind)
            ip.route("add", dst=v6, type=kind)
        wait_until_up(ip, "there")
    os.write(ready, b"2")
    os.read(done, 1)
    os._exit(0)


def address(ip: object, name: str, v4: str, v6: str) -> None:
    (index,) = ip.link_lookup(ifname=name)  # type: ignore[attr-defined]
    ip.addr("add", index=index, address=v4, prefixlen=24)  # type: ignore[attr-defined]
    ip.addr("add", index=index, address=v6, prefixlen=64, flags=2)  # type: ignore[attr-defined]
    ip.link("set", index=index, state="up")  # type: ignore[attr-defined]


def wait_until_up(ip: object, name: str) -> None:
    """The kernel makes a link ready a moment after both ends are up; till then it drops packets."""
    for _ in range(500):
        (link,) = ip.get_links(ifname=name)  # type: ignore[attr-defined]
        if link.get_attr("IFLA_OPERSTATE") == "UP":
            return
        time.sleep(0.01)
    raise TimeoutError(f"{name} does not come up")


def build() -> int:
    """Both namespaces and the link between them; returns what to close at the end."""
    from pyroute2 import IPRoute

    enter_namespaces()
    ready, tell_ready = os.pipe()
    done, tell_done = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(tell_done)
        router(tell_ready, done)
    os.read(ready, 1)
    with IPRoute() as ip:
        (loopback,) = ip.link_lookup(ifname="lo")
        ip.link("set", index=loopback, state="up")
        ip.link("add", ifname="here", kind="veth", peer={"ifname": "there"})
        (peer,) = ip.link_lookup(ifname="there")
        ip.link("set", index=peer, net_ns_pid=pid)
        os.write(tell_done, b"1")
        address(ip, "here", "10.1.0.1", "fd01::1")
        os.read(ready, 1)
        for network, gateway in (("10.8.0.0/15", "10.1.0.2"), ("fd08::/15", "fd01::2")):
            ip.route("add", dst=network, gateway=gateway)
        wait_until_up(ip, "here")
    return tell_done


async def echo(collector: Collector) -> None:
    probe = collector.open(ICMP)
    for seq in range(10):
        for address_ in ("127.0.0.1", "::1", "10.1.0.2", "fd01::2"):
            probe.fire(shot_at(address_, seq=seq, host=address_))
        await asyncio.sleep(0.005)
    await probe.drain()
    probe.close()


async def busy(collector: Collector) -> None:
    """The loop is blocked for 50 ms after every send."""
    probe = collector.open(ICMP)
    for seq in range(12):
        probe.fire(shot_at("127.0.0.1", seq=seq))
        time.sleep(0.05)  # noqa: ASYNC251
        await asyncio.sleep(0)
    await probe.drain()
    probe.close()


async def deadline(collector: Collector) -> None:
    """The loop is blocked over the deadline; the answers have long been there."""
    probe = collector.open(ICMP)
    for seq in range(3):
        probe.fire(shot_at("127.0.0.1", seq=seq, timeout_ns=50 * MS))
    time.sleep(0.2)  # noqa: ASYNC251
    await probe.drain()
    probe.close()


async def errors(collector: Collector) -> None:
    probe = collector.open(ICMP)
    for seq, there in enumerate(("10.9.0.1", "fd09::1", "10.8.0.1", "fd08::1")):
        probe.fire(shot_at(there, seq=seq))
    # No way there from this host; a neighbour that is not there; a target that is down.
    for seq, there in enumerate(("203.0.113.1", "2001:db8::1", "10.1.0.77"), start=4):
        probe.fire(shot_at(there, seq=seq, timeout_ns=300 * MS))
    probe.fire(shot_at("10.1.0.2", seq=7))
    await probe.drain()
    probe.close()


async def connects(collector: Collector) -> None:
    probe = collector.open(TCP)
    for seq, there in enumerate(("10.9.0.1", "fd09::1", "10.8.0.1", "fd08::1")):
        probe.fire(shot_at(there, seq=seq, port=80))
    for seq, there in enumerate(("203.0.113.1", "2001:db8::1", "10.1.0.77"), start=4):
        probe.fire(shot_at(there, seq=seq, port=80, timeout_ns=300 * MS))
    probe.fire(shot_at("10.1.0.2", seq=7, port=80))
    probe.fire(shot_at("fd01::2", seq=8, port=80))
    await probe.drain()
    probe.close()


async def refused_sends(collector: Collector) -> None:
    """Sends that the kernel refuses must not shift which stamp belongs to which request."""
    probe = collector.open(ICMP, {"payload_bytes": 2000})
    small = collector.open(ICMP)
    for seq in range(10):
        small.fire(shot_at("203.0.113.1", seq=100 + seq))
        small.fire(shot_at("10.1.0.2", seq=seq))
        probe.fire(shot_at("255.255.255.255", seq=200 + seq))
        await asyncio.sleep(0.01)
    await small.drain()
    small.close()
    probe.close()


async def without_ipv6(collector: Collector) -> None:
    SWITCH.ask()
    await asyncio.gather(echo(collector), connects(collector))


SCENARIOS: dict[str, Callable[[Collector], Awaitable[None]]] = {
    "echo": echo,
    "busy": busy,
    "deadline": deadline,
    "errors": errors,
    "connects": connects,
    "refused_sends": refused_sends,
    "without_ipv6": without_ipv6,
}


async def run(names: list[str]) -> dict[str, list[Sample]]:
    samples: dict[str, list[Sample]] = {}
    network = SystemNetwork()
    await asyncio.sleep(0.1)  # until the kernel stamps
    for name in names:
        collector = Collector(network, SystemClock())
        await SCENARIOS[name](collector)
        samples[name] = [sample for _, sample in collector.emitted]
    return samples


def main(kind: str, names: list[str]) -> None:
    hold = build()
    if kind == "datagram":
        Path("/proc/sys/net/ipv4/ping_group_range").write_text("0 0")
    SWITCH.prepare()
    if kind != "raw":
        drop_capabilities()
    try:
        said: object = asyncio.run(run(names))
    except PrivilegeError as error:
        said = {"refused": str(error)}
    finally:
        os.close(hold)
    sys.stdout.write(msgspec.json.encode(said).decode())


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
