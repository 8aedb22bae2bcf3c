"""A path for benchmarks: two network namespaces, joined by a veth pair or by a delay of our own.

    prober  10.99.0.1  fd99::1     peer  10.99.0.2  fd99::2

`Veth` joins them by the kernel alone. `Delay` puts a TUN device into each and carries packets
between the two after a fixed time, so that thousands of probes can be in flight; what it adds to
that time differs from packet to packet, so errors are only ever taken against a capture.
Needs root and iproute2.
"""

import contextlib
import ctypes
import fcntl
import os
import select
import signal
import struct
import subprocess
import sys
import time
from collections import deque
from pathlib import Path
from types import TracebackType
from typing import Self

PROBER, PEER = "pbwire-prober", "pbwire-peer"
ADDRESS = {4: ("10.99.0.1", "10.99.0.2"), 6: ("fd99::1", "fd99::2")}
DEVICE = "pbw0"
CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
SLICE_NS = 50_000


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, stdout=subprocess.DEVNULL)


def inside(namespace: str, *command: str) -> list[str]:
    """The command line that runs `command` in a namespace."""
    return ["ip", "netns", "exec", namespace, *command]


def enter(namespace: str) -> None:
    """Move this thread into a namespace."""
    descriptor = os.open(f"/run/netns/{namespace}", os.O_RDONLY)
    library = ctypes.CDLL(None, use_errno=True)
    if library.setns(descriptor, CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), f"cannot enter {namespace}")
    os.close(descriptor)


class _Namespaces:
    def __enter__(self) -> Self:
        self._remove()
        for namespace in (PROBER, PEER):
            ip("netns", "add", namespace)
        self.join()
        for side, namespace in enumerate((PROBER, PEER)):
            ip("-n", namespace, "link", "set", "lo", "up")
            ip("-n", namespace, "link", "set", DEVICE, "up")
            ip("-n", namespace, "addr", "add", f"{ADDRESS[4][side]}/24", "dev", DEVICE)
            ip("-n", namespace, "addr", "add", f"{ADDRESS[6][side]}/64", "dev", DEVICE, "nodad")
        for sysctl in ("net.ipv4.icmp_ratelimit=0", "net.ipv4.icmp_msgs_per_sec=1000000"):
            subprocess.run(inside(PEER, "sysctl", "-qw", sysctl), check=False)
        subprocess.run(
            inside(PROBER, "sysctl", "-qw", "net.ipv4.ping_group_range=0 0"), check=False
        )
        time.sleep(0.5)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.part()
        self._remove()

    def join(self) -> None:
        raise NotImplementedError

    def part(self) -> None:
        """Nothing to give back."""

    def _remove(self) -> None:
        for namespace in (PROBER, PEER):
            if Path(f"/run/netns/{namespace}").exists():
                ip("netns", "del", namespace)


class Veth(_Namespaces):
    """A veth pair."""

    name = "veth"

    def join(self) -> None:
        ip("link", "add", DEVICE, "netns", PROBER, "type", "veth", "peer", "name", DEVICE,
           "netns", PEER)  # fmt: skip


class Delay(_Namespaces):
    """Both directions delayed by `one_way_ms`, by a process of its own."""

    def __init__(self, one_way_ms: float) -> None:
        self.name = f"{2 * one_way_ms:g} ms"
        self._one_way_ms = one_way_ms
        self._process: subprocess.Popen[bytes] | None = None

    def join(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, str(self._one_way_ms)], stdout=subprocess.PIPE
        )
        assert self._process.stdout is not None
        self._process.stdout.readline()

    def part(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGTERM)
            self._process.wait()


def _tun(namespace: str) -> int:
    enter(namespace)
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    request = struct.pack("16sH22x", DEVICE.encode(), IFF_TUN | IFF_NO_PI)
    fcntl.ioctl(descriptor, TUNSETIFF, request)
    return descriptor


def _carry(one_way_ns: int) -> None:
    ends = (_tun(PROBER), _tun(PEER))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    waiting: dict[int, deque[tuple[int, bytes]]] = {end: deque() for end in ends}
    other = {ends[0]: ends[1], ends[1]: ends[0]}
    poll = select.epoll()
    for end in ends:
        poll.register(end, select.EPOLLIN)
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    while True:
        due = min((queue[0][0] for queue in waiting.values() if queue), default=None)
        now = time.monotonic_ns()
        # A wait is a whole number of milliseconds; the last one is spent looking.
        rest = 100 if due is None else max(0, (due - now) // 1_000_000)
        for end, _ in poll.poll(0 if due is not None and rest < 1 else rest / 1e3):
            _read(end, waiting[other[end]], one_way_ns)
        now = time.monotonic_ns()
        for end, queue in waiting.items():
            while queue and queue[0][0] <= now:
                _, packet = queue.popleft()
                with contextlib.suppress(OSError):  # the device is not up yet
                    os.write(end, packet)


def _read(end: int, queue: "deque[tuple[int, bytes]]", one_way_ns: int) -> None:
    try:
        while True:
            packet = os.read(end, 65_536)
            queue.append((time.monotonic_ns() + one_way_ns, packet))
    except BlockingIOError:
        return


if __name__ == "__main__":
    _carry(int(float(sys.argv[1]) * 1e6))
