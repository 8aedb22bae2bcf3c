"""The one door to the network: the only module of the product's probes that opens sockets."""

import asyncio
import contextlib
import errno
import functools
import os
import socket
import sys
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import (
    PLAIN,
    PLAIN_TCP,
    Cancellable,
    DatagramBatch,
    DatagramChannel,
    Due,
    IcmpBatch,
    IcmpChannel,
    LoopbackTest,
    Network,
    PacketOptions,
    Resolution,
    SegmentBatch,
    SegmentChannel,
    TcpChannel,
    TcpListener,
    TcpOptions,
)
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.failures import from_refused_call, from_resolver, no_address, no_name
from pathbudget.probes.icmp_socket import StampedIcmpSocket
from pathbudget.probes.look_ups import LookUps
from pathbudget.probes.loopback import test_loopback
from pathbudget.probes.pacing import Pacer
from pathbudget.probes.packets import socket_address
from pathbudget.probes.path_socket import open_raw_paths
from pathbudget.probes.plain_paths import open_plain_paths
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage
from pathbudget.probes.socket_setup import (
    apply_packet_options,
    bind_source,
    open_udp,
    prepare_icmp,
    refusal,
)
from pathbudget.probes.tcp_opening import (
    HeldPorts,
    choose_congestion,
    connect_address,
    hold_port,
    prepare_connection,
    prepare_segments,
    why_not_connected,
)
from pathbudget.probes.tcp_reactor import TcpReactor
from pathbudget.probes.tcp_segments import StampedSegmentSocket
from pathbudget.probes.tcp_socket import StampedTcpSocket
from pathbudget.probes.timer import PreciseTimer
from pathbudget.probes.trace.contract import PathChannel, PathListener
from pathbudget.probes.udp_socket import StampedUdpSocket

__all__ = ["Network", "SystemNetwork", "icmp_remedy", "try_icmp", "try_udp"]

_FAMILY = {AddressFamily.IPV4: socket.AF_INET, AddressFamily.IPV6: socket.AF_INET6}
_ICMP = {AddressFamily.IPV4: socket.IPPROTO_ICMP, AddressFamily.IPV6: socket.IPPROTO_ICMPV6}
DISCARD_PORT = 9
_NO_FAMILY = frozenset({errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})
_REFUSED = frozenset({errno.EPERM, errno.EACCES})


def icmp_remedy() -> str:
    """What a person can do where the kernel gives no ICMP socket."""
    program = os.path.realpath(sys.executable)
    return (
        f"run: sudo setcap cap_net_raw+ep {program}\n"
        "or:  sudo sysctl -w net.ipv4.ping_group_range='0 2147483647'"
    )


def raw_remedy() -> str:
    """What a person can do where the kernel gives no raw socket for IP or TCP."""
    return f"run: sudo setcap cap_net_raw+ep {os.path.realpath(sys.executable)}"


def try_icmp(family: AddressFamily, *, privileged: bool) -> socket.socket:
    """Open an ICMP socket, or raise OSError."""
    kind = socket.SOCK_RAW if privileged else socket.SOCK_DGRAM
    return socket.socket(_FAMILY[family], kind, _ICMP[family])


def try_udp() -> socket.socket:
    """Open a socket that everybody may have, to ask the kernel about its options."""
    return socket.socket(socket.AF_INET, socket.SOCK_DGRAM)


class SystemNetwork:
    """The network of this host, in the network namespace of the thread that calls.

    `source` gives the local address that probes leave from, per family. One instance serves all
    probes of an agent.
    """

    def __init__(self, source: Mapping[AddressFamily, str] | None = None) -> None:
        self._source = dict(source or {})
        self._timer: PreciseTimer | None = None
        self._connections: set[StampedTcpSocket] = set()
        self._reactor: TcpReactor | None = None
        self._look_ups = LookUps(_resolve)
        # The kernel stamps packets only while somebody asks for it, and starts late: the first
        # packets of a fresh socket go without. So one socket asks for as long as we live.
        keeper = try_udp()
        stamps.switch_on(keeper, stamps.RX_SOFTWARE | stamps.SOFTWARE)
        self._release = weakref.finalize(self, os.close, keeper.detach())

    def close(self) -> None:
        """Give back what is held: connections that are ending, the timer, the packet stamps."""
        for connection in tuple(self._connections):
            connection.close()
        if self._reactor is not None:
            self._reactor.close()
            self._reactor = None
        self._release()
        if self._timer is not None:
            self._timer.close()
            self._timer = None

    def call_at(self, monotonic_ns: int, callback: Callable[[], None]) -> Cancellable:
        """See `channels.Network.call_at`."""
        return asyncio.get_running_loop().call_at(monotonic_ns / 1e9, callback)

    async def wait_until(self, monotonic_ns: int) -> None:
        """See `channels.Network.wait_until`."""
        if self._timer is None or self._timer.loop is not asyncio.get_running_loop():
            if self._timer is not None:
                self._timer.close()
            self._timer = PreciseTimer()
        await self._timer.wait_until(monotonic_ns)

    def pace(
        self,
        due: Iterator[tuple[int, Due]],
        fire: Callable[[Sequence[tuple[int, Due]]], None],
        finished: Callable[[], None],
    ) -> Cancellable:
        """See `channels.Network.pace`."""
        return Pacer(due, fire, finished, now_ns=time.monotonic_ns)

    def look_up(
        self, host: str, family: AddressFamily, done: Callable[[Resolution | Failure], None]
    ) -> None:
        """See `channels.Network.look_up`."""
        self._look_ups.begin(host, family, done)

    async def resolve(self, host: str, family: AddressFamily) -> Resolution | Failure:
        """See `channels.Network.resolve`."""
        future: asyncio.Future[Resolution | Failure] = asyncio.get_running_loop().create_future()

        def done(found: Resolution | Failure) -> None:
            if not future.done():
                future.set_result(found)

        self.look_up(host, family, done)
        return await future

    def has_route(self, address: str, family: AddressFamily) -> bool:
        """See `channels.Network.has_route`: a datagram socket that is connected sends nothing."""
        with contextlib.suppress(OSError), socket.socket(_FAMILY[family], socket.SOCK_DGRAM) as one:
            if family in self._source:
                one.bind(socket_address(self._source[family], 0, family))
            one.connect(socket_address(address, DISCARD_PORT, family))
            return True
        return False

    def open_icmp(
        self,
        family: AddressFamily,
        listener: Callable[[IcmpBatch], None],
        packet: PacketOptions = PLAIN,
    ) -> IcmpChannel | None:
        """See `channels.Network.open_icmp`."""
        source = packet.source or self._source.get(family, "")
        for privileged in (True, False):
            try:
                sock = try_icmp(family, privileged=privileged)
            except OSError as error:
                if error.errno in _NO_FAMILY:
                    return None
                if error.errno not in _REFUSED:
                    raise PrivilegeError(f"ICMP socket ({family})", str(error)) from error
                continue
            prepare_icmp(sock, family, packet, source, privileged=privileged)
            return StampedIcmpSocket(sock, family, listener, privileged=privileged)
        raise PrivilegeError(f"ICMP socket ({family})", icmp_remedy())

    def open_datagrams(
        self,
        family: AddressFamily,
        listener: Callable[[DatagramBatch], None],
        *,
        port: int = 0,
        packet: PacketOptions = PLAIN,
    ) -> DatagramChannel | None:
        """See `channels.Network.open_datagrams`."""
        source = packet.source or self._source.get(family, "")
        sock = open_udp(family, port, packet, source)
        return None if sock is None else StampedUdpSocket(sock, family, listener)

    def connect(
        self,
        address: str,
        port: int,
        family: AddressFamily,
        listener: TcpListener,
        packet: PacketOptions = PLAIN,
        *,
        source_port: int = 0,
        options: TcpOptions = PLAIN_TCP,
    ) -> TcpChannel | Failure:
        """See `channels.Network.connect`."""
        source = packet.source or self._source.get(family, "")
        try:
            sock = socket.socket(_FAMILY[family], socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            return from_refused_call(error, Stage.CONNECT, family)
        failure = choose_congestion(sock, options.congestion)
        if failure is not None:
            sock.close()
            return failure
        sent_ns = 0
        try:
            prepare_connection(sock, family, packet, source, source_port)
            there = connect_address(address, port, family)
            sent_ns = time.monotonic_ns()
            sock.connect(there)
        except BlockingIOError:
            pass
        except OSError as error:
            sock.close()
            return why_not_connected(error, family, packet, source, source_port)
        connection = StampedTcpSocket(
            sock, sent_ns, listener, self._tcp_reactor(), self._connections.discard, options
        )
        self._connections.add(connection)
        return connection

    def reserve_ports(
        self, family: AddressFamily, count: int, packet: PacketOptions = PLAIN
    ) -> HeldPorts | Failure:
        """See `channels.Network.reserve_ports`."""
        source = packet.source or self._source.get(family, "")
        held = HeldPorts()
        try:
            for _ in range(count):
                sock = socket.socket(_FAMILY[family], socket.SOCK_STREAM)
                held.add(sock)
                hold_port(sock, family, packet, source)
        except OSError as error:
            held.close()
            return why_not_connected(error, family, packet, source)
        return held

    def open_segments(
        self,
        family: AddressFamily,
        listener: Callable[[SegmentBatch], None],
        ports: Sequence[int],
        packet: PacketOptions = PLAIN,
    ) -> SegmentChannel | None:
        """See `channels.Network.open_segments`."""
        what = f"raw TCP socket ({family})"
        source = packet.source or self._source.get(family, "")
        try:
            sock = socket.socket(_FAMILY[family], socket.SOCK_RAW, socket.IPPROTO_TCP)
        except OSError as error:
            if error.errno in _NO_FAMILY:
                return None
            remedy = raw_remedy() if error.errno in _REFUSED else str(error)
            raise PrivilegeError(what, remedy) from error
        try:
            prepare_segments(sock, family, ports, packet, source)
        except OSError as error:
            sock.close()
            raise refusal("raw TCP", family, packet, source, error) from error
        find_source = functools.partial(self._local_address, family, packet)
        return StampedSegmentSocket(sock, family, listener, find_source)

    def open_paths(
        self,
        family: AddressFamily,
        listener: PathListener,
        packet: PacketOptions = PLAIN,
        *,
        privileged: bool = True,
    ) -> PathChannel | None:
        """See `channels.Network.open_paths`."""
        source = packet.source or self._source.get(family, "")
        find = functools.partial(self._local_address, family, packet)
        if privileged:
            return open_raw_paths(family, listener, packet, source, find, raw_remedy())
        return open_plain_paths(family, listener, packet, find)

    def _local_address(self, family: AddressFamily, packet: PacketOptions, address: str) -> str:
        """The address that packets to `address` leave from. Raises OSError. Sends nothing."""
        with socket.socket(_FAMILY[family], socket.SOCK_DGRAM) as one:
            source = packet.source or self._source.get(family, "")
            apply_packet_options(one, family, packet)
            if source:
                bind_source(one, family, source, 0)
            one.connect(socket_address(address, DISCARD_PORT, family))
            return str(one.getsockname()[0])

    def _tcp_reactor(self) -> TcpReactor:
        reactor = self._reactor
        if reactor is None or reactor.loop is not asyncio.get_running_loop():
            if reactor is not None:
                reactor.close()
            reactor = self._reactor = TcpReactor()
        return reactor

    async def loopback_test(self, packets: int) -> LoopbackTest:
        """See `channels.Network.loopback_test`."""
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sender, receiver:
            return await test_loopback(sender, receiver, packets)


def _resolve(host: str, family: AddressFamily) -> Resolution | Failure:
    """getaddrinfo(3), timed where it runs: in its own thread, away from a busy loop."""
    began = time.monotonic_ns()
    try:
        found = socket.getaddrinfo(host, None, _FAMILY[family], socket.SOCK_STREAM)
    except (TypeError, ValueError):  # too long a label, a null byte
        return no_name(host, "no valid host name")
    except OSError as error:
        failure = from_resolver(error, host)
        return _tell_apart(failure, host, family)
    duration = time.monotonic_ns() - began
    addresses = tuple(dict.fromkeys(str(entry[4][0]) for entry in found))
    return Resolution(addresses, duration) if addresses else no_address(host, family)


def _tell_apart(failure: Failure, host: str, family: AddressFamily) -> Failure:
    """glibc says "no such name" also where only the other family has an address: look."""
    if failure.kind not in (FailureKind.NAME_NOT_FOUND, FailureKind.NO_ADDRESS):
        return failure
    try:
        socket.getaddrinfo(host, None, 0, socket.SOCK_STREAM)
    except OSError:
        return failure
    return no_address(host, family)
