"""The one door to the network: the only module of the product's probes that opens sockets."""

import asyncio
import contextlib
import errno
import os
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Mapping

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import (
    Cancellable,
    IcmpBatch,
    IcmpChannel,
    LoopbackTest,
    Network,
    Resolution,
    TcpChannel,
    TcpListener,
)
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.failures import from_refused_call, from_resolver, no_address, no_name
from pathbudget.probes.icmp_socket import (
    StampedIcmpSocket,
    hear_everything_about,
    hear_only_answers,
    socket_address,
)
from pathbudget.probes.loopback import test_loopback
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage
from pathbudget.probes.tcp_socket import StampedTcpSocket
from pathbudget.probes.timer import PreciseTimer

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
        # The kernel stamps packets only while somebody asks for it, and starts late: the first
        # packets of a fresh socket go without. So one socket asks for as long as we live.
        keeper = try_udp()
        stamps.switch_on(keeper, stamps.RX_SOFTWARE | stamps.SOFTWARE)
        self._release = weakref.finalize(self, os.close, keeper.detach())

    def close(self) -> None:
        """Give back what is held: connections that are ending, the timer, the packet stamps."""
        for connection in tuple(self._connections):
            connection.close()
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

    def look_up(
        self, host: str, family: AddressFamily, done: Callable[[Resolution | Failure], None]
    ) -> None:
        """See `channels.Network.look_up`. A thread of its own each time: a resolver that hangs
        holds up no other lookup, and never the end of the program.
        """
        loop = asyncio.get_running_loop()

        def work() -> None:
            found = _resolve(host, family)
            with contextlib.suppress(RuntimeError):  # the loop has been closed meanwhile
                loop.call_soon_threadsafe(done, found)

        threading.Thread(target=work, name=f"resolve {host}", daemon=True).start()

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
        self, family: AddressFamily, listener: Callable[[IcmpBatch], None]
    ) -> IcmpChannel | None:
        """See `channels.Network.open_icmp`."""
        for privileged in (True, False):
            try:
                sock = try_icmp(family, privileged=privileged)
            except OSError as error:
                if error.errno in _NO_FAMILY:
                    return None
                if error.errno not in _REFUSED:
                    raise PrivilegeError(f"ICMP socket ({family})", str(error)) from error
                continue
            return self._prepare_icmp(sock, family, listener, privileged=privileged)
        raise PrivilegeError(f"ICMP socket ({family})", icmp_remedy())

    def connect(
        self, address: str, port: int, family: AddressFamily, listener: TcpListener
    ) -> TcpChannel | Failure:
        """See `channels.Network.connect`."""
        try:
            sock = socket.socket(_FAMILY[family], socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        except OSError as error:
            return from_refused_call(error, Stage.CONNECT, family)
        try:
            self._prepare_tcp(sock, family)
            sock.connect(socket_address(address, port, family))
        except BlockingIOError:
            pass
        except OSError as error:
            sock.close()
            return from_refused_call(error, Stage.CONNECT, family)
        connection = StampedTcpSocket(sock, listener, self._connections.discard)
        self._connections.add(connection)
        return connection

    async def loopback_test(self, packets: int) -> LoopbackTest:
        """See `channels.Network.loopback_test`."""
        sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with sender, receiver:
            return await test_loopback(sender, receiver, packets)

    def _prepare_icmp(
        self,
        sock: socket.socket,
        family: AddressFamily,
        listener: Callable[[IcmpBatch], None],
        *,
        privileged: bool,
    ) -> IcmpChannel:
        try:
            if privileged:
                hear_only_answers(sock, family)
            hear_everything_about(sock, family, privileged=privileged)
            if family in self._source:
                sock.bind(socket_address(self._source[family], 0, family))
        except OSError as error:
            sock.close()
            place = self._source.get(family, "")
            raise PrivilegeError(f"ICMP socket ({family}) {place}".rstrip(), str(error)) from error
        return StampedIcmpSocket(sock, family, listener, privileged=privileged)

    def _prepare_tcp(self, sock: socket.socket, family: AddressFamily) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if family is AddressFamily.IPV4:
            sock.setsockopt(socket.SOL_IP, stamps.IP_RECVERR, 1)
        else:
            sock.setsockopt(socket.IPPROTO_IPV6, stamps.IPV6_RECVERR, 1)
        if family in self._source:
            # The port is chosen with the destination known, so that ports do not run out early.
            sock.setsockopt(socket.SOL_IP, stamps.IP_BIND_ADDRESS_NO_PORT, 1)
            sock.bind(socket_address(self._source[family], 0, family))


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
