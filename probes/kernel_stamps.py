"""Linux socket options that Python has no names for, and what they put into control messages.

SO_TIMESTAMPING delivers CLOCK_REALTIME stamps: of a received packet with its data, of a sent one
on the socket's error queue (Linux Documentation/networking/timestamping.rst). ICMP errors come on
the same queue (ip(7), IP_RECVERR).
"""

import socket
import struct
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SO_TIMESTAMPING = 37
SCM_TIMESTAMPING = 37
SO_SNDBUFFORCE, SO_RCVBUFFORCE = 32, 33
TX_SOFTWARE, RX_SOFTWARE, SOFTWARE, TX_ACK = 1 << 1, 1 << 3, 1 << 4, 1 << 9
OPT_ID, OPT_TSONLY, OPT_ID_TCP = 1 << 7, 1 << 11, 1 << 16
DATAGRAM_STAMPS = TX_SOFTWARE | RX_SOFTWARE | SOFTWARE | OPT_ID | OPT_TSONLY
STREAM_STAMPS = DATAGRAM_STAMPS | OPT_ID_TCP

MSG_ERRQUEUE = 0x2000
IP_RECVERR, IPV6_RECVERR = 11, 25
IP_TTL, IP_RECVTTL = 2, 12
IPV6_RECVHOPLIMIT, IPV6_HOPLIMIT = 51, 52
IP_TOS, IP_RECVTOS = 1, 13
IPV6_RECVTCLASS, IPV6_TCLASS = 66, 67
IP_PKTINFO, IPV6_RECVPKTINFO, IPV6_PKTINFO = 8, 49, 50
IP_BIND_ADDRESS_NO_PORT = 24
ORIGIN_ICMP, ORIGIN_ICMP6, ORIGIN_TIMESTAMPING = 2, 3, 4
STAMP_OF_ACK = 2
"""SCM_TSTAMP_ACK: the stamp says when the bytes were acknowledged."""
CONTROL_BYTES = 512

_STAMP = struct.Struct("@ll")
_EXTENDED_ERROR = struct.Struct("@IBBBBII")
_EXTENSION = struct.Struct("@IH")
"""Behind the types of an extended error: ee_info, then ee_rfc4884.len (Linux 5.9)."""
_INT = struct.Struct("@i")
_PKTINFO_V4 = struct.Struct("@i4s4s")
_PKTINFO_V6 = struct.Struct("@16si")
_STAMPED = (socket.SOL_SOCKET, SCM_TIMESTAMPING)
_TTL = frozenset({(socket.SOL_IP, IP_TTL), (socket.IPPROTO_IPV6, IPV6_HOPLIMIT)})
_CLASS = frozenset({(socket.SOL_IP, IP_TOS), (socket.IPPROTO_IPV6, IPV6_TCLASS)})
_PKTINFO = frozenset({(socket.SOL_IP, IP_PKTINFO), (socket.IPPROTO_IPV6, IPV6_PKTINFO)})
_RECVERR = frozenset({(socket.SOL_IP, IP_RECVERR), (socket.IPPROTO_IPV6, IPV6_RECVERR)})


class PathError(NamedTuple):
    """An ICMP error on the error queue, with all that the kernel says of it.

    `info` is the MTU of a "too big"; `extension_at` where the extension structure begins in the
    quoted payload (RFC 4884), 0: there is none, or this kernel does not say; `ttl` that of the
    error as it came.
    """

    icmp_type: int
    icmp_code: int
    responder: str
    info: int
    extension_at: int
    ttl: int | None
    stamp_unix_ns: int | None


ControlMessages = Iterable[tuple[int, int, bytes]]


class Control(NamedTuple):
    """What the control messages of one datagram say."""

    stamp_unix_ns: int | None = None
    ttl: int | None = None
    sent_key: int | None = None
    icmp: tuple[int, int, str] | None = None
    """Type, code and sender of an ICMP error."""
    traffic_class: int | None = None
    """The whole octet: DSCP above, ECN in the lower two bits."""
    local: str = ""
    """The address of ours that the packet was sent to."""


def read_control(messages: ControlMessages) -> Control:
    """Read what is known and pass over the rest. Never raises: the kernel may know more than we."""
    stamp = ttl = key = traffic_class = None
    icmp = None
    local = ""
    for level, kind, data in messages:
        place = (level, kind)
        try:
            if place == _STAMPED:
                seconds, nanoseconds = _STAMP.unpack_from(data)
                # The kernel fills the software field with zeros where it has no stamp.
                stamp = seconds * 1_000_000_000 + nanoseconds or None
            elif place in _TTL:
                (ttl,) = _INT.unpack_from(data)
            elif place in _RECVERR:
                key, icmp = _read_error(data)
            elif place in _CLASS:
                # One octet over IPv4, an int over IPv6 (ip(7), RFC 3542).
                traffic_class = data[0] if len(data) < _INT.size else _INT.unpack_from(data)[0]
            elif place in _PKTINFO:
                local = read_local(data)
        except (struct.error, IndexError):
            continue
    return Control(stamp, ttl, key, icmp, traffic_class, local)


def read_local(data: bytes) -> str:
    """Where a packet was sent to: struct in_pktinfo (ip(7)) or in6_pktinfo (RFC 3542)."""
    if len(data) >= _PKTINFO_V6.size:
        return socket.inet_ntop(socket.AF_INET6, _PKTINFO_V6.unpack_from(data)[0])
    return socket.inet_ntop(socket.AF_INET, _PKTINFO_V4.unpack_from(data)[2])


def leave_from(family: int, address: str) -> tuple[int, int, bytes]:
    """A control message that gives one packet its source. Raises OSError where it is none."""
    raw = socket.inet_pton(family, address)
    if family == socket.AF_INET:
        return socket.SOL_IP, IP_PKTINFO, _PKTINFO_V4.pack(0, raw, bytes(4))
    return socket.IPPROTO_IPV6, IPV6_PKTINFO, _PKTINFO_V6.pack(raw, 0)


def of_class(family: int, traffic_class: int) -> tuple[int, int, bytes]:
    """A control message that gives one packet its traffic class octet."""
    if family == socket.AF_INET:
        return socket.SOL_IP, IP_TOS, _INT.pack(traffic_class)
    return socket.IPPROTO_IPV6, IPV6_TCLASS, _INT.pack(traffic_class)


def with_hop_limit(family: int, hop_limit: int) -> tuple[int, int, bytes]:
    """A control message that gives one packet its TTL or hop limit."""
    if family == socket.AF_INET:
        return socket.SOL_IP, IP_TTL, _INT.pack(hop_limit)
    return socket.IPPROTO_IPV6, IPV6_HOPLIMIT, _INT.pack(hop_limit)


def is_acknowledgement(messages: ControlMessages) -> bool:
    """Whether the stamp is of an acknowledgement, and not of a packet that left."""
    for level, kind, data in messages:
        if (level, kind) in _RECVERR and len(data) >= _EXTENDED_ERROR.size:
            _, origin, _, _, _, info, _ = _EXTENDED_ERROR.unpack_from(data)
            return bool(origin == ORIGIN_TIMESTAMPING and info == STAMP_OF_ACK)
    return False


def read_path_error(messages: Sequence[tuple[int, int, bytes]]) -> PathError | None:
    """The ICMP error that these control messages tell of; None where it is none. Never raises."""
    stamp, ttl, _, icmp, _, _ = read_control(messages)
    if icmp is None:
        return None
    for level, kind, data in messages:
        if (level, kind) in _RECVERR and len(data) >= _EXTENDED_ERROR.size:
            info, extension_at = _EXTENSION.unpack_from(data, 8)
            return PathError(*icmp, info, extension_at, ttl, stamp)
    return None


def _read_error(data: bytes) -> tuple[int | None, tuple[int, int, str] | None]:
    _, origin, icmp_type, code, _, _, value = _EXTENDED_ERROR.unpack_from(data)
    if origin == ORIGIN_TIMESTAMPING:
        return value, None
    if origin in (ORIGIN_ICMP, ORIGIN_ICMP6):
        return None, (icmp_type, code, _read_address(data[_EXTENDED_ERROR.size :]))
    return None, None


def _read_address(raw: bytes) -> str:
    """The offender behind an extended error: a struct sockaddr, or nothing."""
    if len(raw) < 8:
        return ""
    (family,) = struct.unpack_from("@H", raw)
    if family == socket.AF_INET:
        return socket.inet_ntop(family, raw[4:8])
    if family == socket.AF_INET6 and len(raw) >= 24:
        return socket.inet_ntop(family, raw[8:24])
    return ""


def switch_on(sock: socket.socket, flags: int) -> bool:
    """Ask for kernel stamps; false where this kernel has none of that kind."""
    try:
        sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, flags)
    except OSError:
        return False
    return True


def switch_on_option(sock: socket.socket, level: int, option: int) -> bool:
    """Set an option to 1; false where this kernel does not know it."""
    try:
        sock.setsockopt(level, option, 1)
    except OSError:
        return False
    return True


def enlarge_buffers(sock: socket.socket, size: int) -> None:
    """Large buffers, so that a busy loop loses nothing; as large as this user may have."""
    enlarge_receive_buffer(sock, size)
    _enlarge(sock, size, SO_SNDBUFFORCE, socket.SO_SNDBUF)


def enlarge_receive_buffer(sock: socket.socket, size: int) -> None:
    """The one buffer that what comes and the stamps of what was sent wait in."""
    _enlarge(sock, size, SO_RCVBUFFORCE, socket.SO_RCVBUF)


def _enlarge(sock: socket.socket, size: int, forced: int, plain: int) -> None:
    try:
        sock.setsockopt(socket.SOL_SOCKET, forced, size)
    except OSError:
        sock.setsockopt(socket.SOL_SOCKET, plain, size)
