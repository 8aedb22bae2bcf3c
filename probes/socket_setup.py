"""Socket options of probe sockets: what they hear about, and how their packets leave."""

import errno
import os
import socket
import struct

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import PacketOptions
from pathbudget.probes.errors import NotOnThisHostError, PrivilegeError
from pathbudget.probes.packets import socket_address
from pathbudget.probes.record import AddressFamily

BUFFER_BYTES = 4 << 20
SOL_RAW, ICMP_FILTER = 255, 1
IPPROTO_ICMPV6, ICMP6_FILTER = 58, 1
SO_BINDTODEVICE = 25
LONGEST_INTERFACE = 15
"""Octets (IFNAMSIZ less its end)."""
IP_MTU_DISCOVER, IPV6_MTU_DISCOVER, IP_PMTUDISC_DO = 10, 23, 2
_HEARD_V4 = (0, 3, 11, 12)
"""Echo reply, unreachable, time exceeded, parameter problem."""
_HEARD_V6 = (129, 1, 2, 3, 4)


def hear_only_answers(sock: socket.socket, family: AddressFamily) -> None:
    """Let the kernel drop what is no answer to an echo request (raw sockets get everything)."""
    if family is AddressFamily.IPV4:
        dropped = 0xFFFFFFFF
        for heard in _HEARD_V4:
            dropped &= ~(1 << heard)
        sock.setsockopt(SOL_RAW, ICMP_FILTER, struct.pack("@I", dropped))
        return
    words = [0xFFFFFFFF] * 8
    for heard in _HEARD_V6:
        words[heard >> 5] &= ~(1 << (heard & 31))
    sock.setsockopt(IPPROTO_ICMPV6, ICMP6_FILTER, struct.pack("@8I", *words))


def hear_everything_about(sock: socket.socket, family: AddressFamily, *, privileged: bool) -> None:
    """TTL of the answers, ICMP errors (a raw socket receives those as messages), large buffers."""
    if family is AddressFamily.IPV4:
        sock.setsockopt(socket.SOL_IP, stamps.IP_RECVTTL, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, stamps.IPV6_RECVHOPLIMIT, 1)
    if not privileged:
        hear_errors(sock, family)
    stamps.enlarge_buffers(sock, BUFFER_BYTES)


def hear_errors(sock: socket.socket, family: AddressFamily) -> None:
    """Get ICMP errors on the error queue, with their type, code and sender."""
    if family is AddressFamily.IPV4:
        sock.setsockopt(socket.SOL_IP, stamps.IP_RECVERR, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, stamps.IPV6_RECVERR, 1)


def hear_headers(sock: socket.socket, family: AddressFamily) -> None:
    """Get the traffic class of each packet, and which address of ours it was sent to."""
    if family is AddressFamily.IPV4:
        sock.setsockopt(socket.SOL_IP, stamps.IP_RECVTOS, 1)
        sock.setsockopt(socket.SOL_IP, stamps.IP_PKTINFO, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, stamps.IPV6_RECVTCLASS, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, stamps.IPV6_RECVPKTINFO, 1)


def apply_packet_options(sock: socket.socket, family: AddressFamily, packet: PacketOptions) -> None:
    """Everything of `packet` but the source, which `bind` takes. Raises OSError."""
    v4 = family is AddressFamily.IPV4
    level = socket.SOL_IP if v4 else socket.IPPROTO_IPV6
    if packet.interface:
        name = packet.interface.encode()
        if len(name) > LONGEST_INTERFACE:  # the kernel would cut it, and take another device
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        sock.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, name + b"\0")
    if packet.dscp:
        kind = stamps.IP_TOS if v4 else stamps.IPV6_TCLASS
        sock.setsockopt(level, kind, packet.dscp << 2)
    if packet.ttl is not None:
        kind = stamps.IP_TTL if v4 else socket.IPV6_UNICAST_HOPS
        sock.setsockopt(level, kind, packet.ttl)
    if not packet.fragment:
        sock.setsockopt(level, IP_MTU_DISCOVER if v4 else IPV6_MTU_DISCOVER, IP_PMTUDISC_DO)


def bind_source(sock: socket.socket, family: AddressFamily, source: str, port: int) -> None:
    """Bind to a source address (empty: any) and port (0: the system's choice). Raises OSError."""
    anywhere = "0.0.0.0" if family is AddressFamily.IPV4 else "::"  # noqa: S104
    sock.bind(socket_address(source or anywhere, port, family))


def prepare_icmp(
    sock: socket.socket,
    family: AddressFamily,
    packet: PacketOptions,
    source: str,
    *,
    privileged: bool,
) -> None:
    """Make an ICMP socket as it was asked for; where that cannot be, close it.

    Raises:
        PrivilegeError: not for this user; NotOnThisHostError: no such interface or source address.
    """
    try:
        if privileged:
            hear_only_answers(sock, family)
        hear_everything_about(sock, family, privileged=privileged)
        apply_packet_options(sock, family, packet)
        if source or not privileged:  # the unprivileged kind has its identifier from then on
            bind_source(sock, family, source, 0)
    except OSError as error:
        sock.close()
        raise refusal("ICMP", family, packet, source, error) from error


def open_udp(
    family: AddressFamily, port: int, packet: PacketOptions, source: str
) -> socket.socket | None:
    """A UDP socket as it was asked for; None where this kernel lacks the family.

    Raises:
        PrivilegeError: port taken, or not for this user.
        NotOnThisHostError: no such interface or source address.
    """
    kind = socket.AF_INET if family is AddressFamily.IPV4 else socket.AF_INET6
    try:
        sock = socket.socket(kind, socket.SOCK_DGRAM)
    except OSError as error:
        if error.errno in (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT):
            return None
        raise refusal("UDP", family, packet, source, error, port) from error
    try:
        if family is AddressFamily.IPV6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        hear_everything_about(sock, family, privileged=False)
        hear_headers(sock, family)
        apply_packet_options(sock, family, packet)
        bind_source(sock, family, source, port)
    except OSError as error:
        sock.close()
        raise refusal("UDP", family, packet, source, error, port) from error
    return sock


def refusal(
    protocol: str,
    family: AddressFamily,
    packet: PacketOptions,
    source: str,
    error: OSError,
    port: int = 0,
) -> PrivilegeError:
    """What a call refused, in words that name what was asked for."""
    what = f"{protocol} socket ({family})"
    if error.errno == errno.ENODEV and packet.interface:
        return NotOnThisHostError(what, f"this host has no interface {packet.interface}")
    if error.errno == errno.EADDRNOTAVAIL and source:
        return NotOnThisHostError(what, f"this host has no address {source}")
    place = (what, source, f"port {port}" if port else "", packet.interface)
    return PrivilegeError(" ".join(filter(None, place)), str(error))
