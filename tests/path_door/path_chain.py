"""A chain of network namespaces: this host, two routers, a destination. See `path_child`."""

import contextlib
import importlib
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "probes"))
NAMESPACES = importlib.import_module("namespace_child")
OPEN_PORT, NARROW = 8080, 1_400
NO_WAITING = {"ipv6/conf/default/accept_dad": 0, "ipv6/conf/all/accept_dad": 0}
"""Link-local addresses can be used at once."""


def apply(settings: dict[str, int]) -> None:
    for name, value in settings.items():
        with contextlib.suppress(OSError):  # some are not in every namespace
            Path(f"/proc/sys/net/{name}").write_text(str(value))


def hardware(link: int, end: int) -> str:
    return f"02:00:00:00:0{link}:0{end}"


def address(ip: Any, name: str, link: int, end: int) -> None:
    """Addresses of one end of a link; who is at the other end is known, nobody asks."""
    NAMESPACES.address(ip, name, f"10.{link}.0.{end}", f"fd0{link}::{end}")
    (index,) = ip.link_lookup(ifname=name)
    other = 3 - end
    for there in (f"10.{link}.0.{other}", f"fd0{link}::{other}"):
        ip.neigh("add", dst=there, lladdr=hardware(link, other), ifindex=index, state="permanent")


def part(number: int, ready: int, done: int) -> None:
    """One of the other three, in a process of its own: 1 and 2 are routers, 3 the destination."""
    from pyroute2 import IPRoute

    NAMESPACES.check(NAMESPACES.LIBC.unshare(NAMESPACES.CLONE_NEWNET))
    os.write(ready, b"1")
    os.read(done, 1)
    settings = {"ipv4/icmp_ratelimit": 0, "ipv6/icmp/ratelimit": 0, "ipv4/icmp_msgs_per_sec": 10**6}
    settings |= NO_WAITING | {
        "ipv4/icmp_msgs_burst": 10**5,
        "ipv4/ip_forward": 1,
        "ipv6/conf/all/forwarding": 1,
    }
    apply(settings)
    with IPRoute() as ip:
        address(ip, "near", number, 2)
        if number < 3:
            address(ip, "far", number + 1, 1)
            if number == 2:
                (index,) = ip.link_lookup(ifname="far")
                ip.link("set", index=index, mtu=NARROW)
        for other in range(1, 4):
            forth = other > number + 1
            gateway = number + 1 if forth else number
            if forth or other < number:
                end = 2 if forth else 1
                ip.route("add", dst=f"10.{other}.0.0/24", gateway=f"10.{gateway}.0.{end}")
                ip.route("add", dst=f"fd0{other}::/64", gateway=f"fd0{gateway}::{end}")
    places = ((f"10.{number}.0.2", socket.AF_INET), (f"fd0{number}::2", socket.AF_INET6))
    for own, kind in places:
        listener = socket.create_server((own, OPEN_PORT), family=kind)
        threading.Thread(target=echo, args=(listener,), daemon=True).start()
    os.write(ready, b"2")
    os.read(done, 1)
    os._exit(0)


def echo(listener: socket.socket) -> None:
    """Say what is said, on one connection after the other."""
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            while data := connection.recv(100):
                connection.sendall(data)


def build_chain() -> list[int]:
    """All namespaces; returns what to close at the end."""
    from pyroute2 import IPRoute

    NAMESPACES.enter_namespaces()
    apply(NO_WAITING)
    pids: list[int] = []
    ends: list[tuple[int, int]] = []
    for number in range(1, 4):
        ready, tell_ready = os.pipe()
        done, tell_done = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(tell_done)
            for _, other in ends:
                os.close(other)
            part(number, tell_ready, done)
        os.close(done)
        os.close(tell_ready)
        NAMESPACES.check(len(os.read(ready, 1)) - 1)
        pids.append(pid)
        ends.append((ready, tell_done))
    with IPRoute() as ip:
        (loopback,) = ip.link_lookup(ifname="lo")
        ip.link("set", index=loopback, state="up")
        for number, pid in enumerate(pids, start=1):
            peer = {"ifname": f"f{number}", "address": hardware(number, 2)}
            near = {"ifname": f"n{number}", "address": hardware(number, 1)}
            ip.link("add", kind="veth", peer=peer, **near)
            (near,), (far,) = (ip.link_lookup(ifname=f"{end}{number}") for end in "nf")
            if number == 1:
                ip.link("set", index=near, ifname="here")
            else:
                ip.link("set", index=near, ifname="far", net_ns_pid=pids[number - 2])
            ip.link("set", index=far, ifname="near", net_ns_pid=pid)
        address(ip, "here", 1, 1)
        for number in (2, 3):
            ip.route("add", dst=f"10.{number}.0.0/24", gateway="10.1.0.2")
            ip.route("add", dst=f"fd0{number}::/64", gateway="fd01::2")
    for ready, tell_done in ends:
        os.write(tell_done, b"1")
        NAMESPACES.check(len(os.read(ready, 1)) - 1)
    return [tell_done for _, tell_done in ends]
