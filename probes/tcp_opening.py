"""How a TCP socket is made ready: where it leaves from, what its packets look like, which ports.

Sockets come from `network`. All functions raise OSError; `why_not_connected` puts it into words.
"""

import errno
import functools
import socket
from collections.abc import Sequence

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import PacketOptions
from pathbudget.probes.failures import from_refused_call
from pathbudget.probes.packets import SocketAddress, socket_address
from pathbudget.probes.record import AddressFamily, Failure, FailureKind, Stage
from pathbudget.probes.segment_filter import attach_filter
from pathbudget.probes.socket_setup import apply_packet_options, bind_source, hear_errors

RESET_ON_CLOSE = b"\x01\x00\x00\x00" + bytes(4)
"""struct linger: on, 0 seconds."""
IPV6_CHECKSUM = 7
TCP_CHECKSUM_OFFSET = 16
BUFFER_BYTES = 4 << 20
_ANYWHERE = {AddressFamily.IPV4: "0.0.0.0", AddressFamily.IPV6: "::"}  # noqa: S104


class HeldPorts:
    """See `channels.ReservedPorts`: bound sockets that never listen nor connect."""

    def __init__(self) -> None:
        self._sockets: list[socket.socket] = []

    @property
    def ports(self) -> list[int]:
        """See `channels.ReservedPorts.ports`."""
        return [int(sock.getsockname()[1]) for sock in self._sockets]

    def add(self, sock: socket.socket) -> None:
        """Keep this one open."""
        self._sockets.append(sock)

    def close(self) -> None:
        """See `channels.ReservedPorts.close`."""
        for sock in self._sockets:
            sock.close()
        self._sockets.clear()


def hold_port(
    sock: socket.socket, family: AddressFamily, packet: PacketOptions, source: str
) -> None:
    """Bind to a free port. Only who also sets SO_REUSEADDR can bind to it as well: we do."""
    apply_packet_options(sock, family, packet)
    bind_source(sock, family, source or _ANYWHERE[family], 0)
    # Set afterwards: with it the kernel may hand out a port that somebody else holds.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def connect_address(address: str, port: int, family: AddressFamily) -> SocketAddress:
    """What connect(2) takes for a numeric address. Raises OSError where it is none."""
    if "%" in address:
        return socket_address(address, port, family)  # the number of an interface may change
    return _known_address(address, port, family)


@functools.lru_cache(maxsize=16_384)
def _known_address(address: str, port: int, family: AddressFamily) -> SocketAddress:
    return socket_address(address, port, family)


def prepare_connection(
    sock: socket.socket,
    family: AddressFamily,
    packet: PacketOptions,
    source: str,
    source_port: int,
) -> None:
    """Everything before connect(2): at once, without Nagle, with ICMP errors told."""
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    hear_errors(sock, family)
    apply_packet_options(sock, family, packet)
    if source_port:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    elif source:
        # The port is chosen with the destination known, so that ports do not run out early.
        sock.setsockopt(socket.SOL_IP, stamps.IP_BIND_ADDRESS_NO_PORT, 1)
    if source or source_port:  # a bind to nothing would take a port with no destination known
        bind_source(sock, family, source, source_port)


def choose_congestion(sock: socket.socket, name: str) -> Failure | None:
    """Let a connection have this congestion control, where one is named; why it cannot."""
    if not name:
        return None
    try:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
    except (OSError, ValueError) as error:
        may_not = isinstance(error, OSError) and error.errno == errno.EPERM
        why = "not allowed to this user" if may_not else "not in this kernel"
        return Failure(FailureKind.LOCAL, Stage.CONNECT, f"congestion control {name!r}: {why}")
    return None


def prepare_segments(
    sock: socket.socket,
    family: AddressFamily,
    ports: Sequence[int],
    packet: PacketOptions,
    source: str,
) -> None:
    """A raw socket that hears answers to SYNs and ICMP errors about them, and nothing else."""
    attach_filter(sock, family, ports)
    sock.setblocking(False)
    hear_errors(sock, family)
    if family is AddressFamily.IPV4:
        sock.setsockopt(socket.SOL_IP, stamps.IP_RECVTTL, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_CHECKSUM, TCP_CHECKSUM_OFFSET)
        sock.setsockopt(socket.IPPROTO_IPV6, stamps.IPV6_RECVHOPLIMIT, 1)
    apply_packet_options(sock, family, packet)
    if source:
        bind_source(sock, family, source, 0)
    stamps.enlarge_buffers(sock, BUFFER_BYTES)


def why_not_connected(
    error: OSError,
    family: AddressFamily,
    packet: PacketOptions,
    source: str,
    source_port: int = 0,
) -> Failure:
    """What a call refused, in words that name what was asked for."""
    detail = ""
    if error.errno == errno.ENODEV and packet.interface:
        detail = f"this host has no interface {packet.interface}"
    elif error.errno == errno.EPERM and packet.interface:
        detail = f"binding to interface {packet.interface} needs CAP_NET_RAW"
    elif error.errno == errno.EADDRNOTAVAIL and source_port:
        detail = f"source port {source_port} is still busy with an earlier connection"
    elif error.errno == errno.EADDRNOTAVAIL and source:
        detail = f"this host has no address {source}"
    elif isinstance(error, socket.gaierror):
        detail = f"{source or 'the address'} is no {family} address"
    if detail:
        return Failure(FailureKind.LOCAL, Stage.CONNECT, detail=detail)
    return from_refused_call(error, Stage.CONNECT, family)
