"""IPv4 and IPv6 headers of probes, and of what ICMP errors quote. Bytes in, values out.

Probes over IPv4 always say "do not fragment": the identification of such a datagram means nothing
to anybody (RFC 6864, 4.1), so it may carry the token. Readers return None for what they cannot
read; they never raise.
"""

import functools
import socket
import struct
from typing import NamedTuple

from pathbudget.probes.record import AddressFamily

ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
V4_BYTES, V6_BYTES = 20, 40
LARGEST_LABEL = (1 << 20) - 1

_V4 = struct.Struct("!BBHHHBBH4s4s")
_V6 = struct.Struct("!IHBB16s16s")
_DO_NOT_FRAGMENT = 0x4000
_OFFSET_MASK = 0x1FFF
_HOP_BY_HOP, _ROUTING, _FRAGMENT, _AUTHENTICATION, _OPTIONS = 0, 43, 44, 51, 60
_SKIPPED = frozenset((_HOP_BY_HOP, _ROUTING, _OPTIONS))
_MOST_EXTENSIONS = 8


class Datagram(NamedTuple):
    """A quoted IP packet, as far as it was quoted. `identification` is None over IPv6.

    `transport` begins with the TCP, UDP or ICMP header. `length` is what the header says the
    transport has, which may be more than was quoted.
    """

    source: str
    destination: str
    protocol: int
    hop_limit: int
    identification: int | None
    length: int
    transport: bytes


@functools.lru_cache(maxsize=16_384)
def packed(address: str) -> bytes:
    """Octets of an address; the zone of a link-local one is not on the wire.

    Raises ValueError for a text that is no address.
    """
    plain = address.partition("%")[0]
    try:
        return socket.inet_pton(socket.AF_INET6 if ":" in plain else socket.AF_INET, plain)
    except OSError:
        raise ValueError(f"{address!r} is no IP address") from None


def words_sum(data: bytes) -> int:
    """Sum of the 16-bit words modulo 0xFFFF; ones' complement adds the same, but for carries."""
    padded = data + b"\0" if len(data) % 2 else data
    return int.from_bytes(padded, "big") % 0xFFFF


@functools.lru_cache(maxsize=16_384)
def pseudo_sum(source: str, destination: str, protocol: int) -> int:
    """Sum of the pseudo header without its length (RFC 768, RFC 9293 3.1, RFC 8200 8.1)."""
    return (words_sum(packed(source)) + words_sum(packed(destination)) + protocol) % 0xFFFF


def closing(total: int) -> int:
    """The word that makes a sum complete: 0 to 0xFFFE."""
    return -total % 0xFFFF


def header_bytes(family: AddressFamily) -> int:
    """Size of the IP header of a probe."""
    return V4_BYTES if family is AddressFamily.IPV4 else V6_BYTES


def build_v4(
    source: bytes,
    destination: bytes,
    protocol: int,
    length: int,
    hop_limit: int,
    token: int,
    dscp: int,
) -> bytes:
    """Header of a datagram that carries `length` octets, its checksum included."""
    fields = (0x45, dscp << 2, V4_BYTES + length, token, _DO_NOT_FRAGMENT, hop_limit, protocol)
    plain = _V4.pack(*fields, 0, source, destination)
    return _V4.pack(*fields, closing(words_sum(plain)), source, destination)


def build_v6(
    source: bytes,
    destination: bytes,
    protocol: int,
    length: int,
    hop_limit: int,
    label: int,
    dscp: int,
) -> bytes:
    """The same over IPv6, with the flow label."""
    first = 6 << 28 | dscp << 22 | label
    return _V6.pack(first, length, protocol, hop_limit, source, destination)


def read_datagram(family: AddressFamily, data: bytes) -> Datagram | None:
    """The packet that begins here, whole or cut off; None where there is no readable header, or
    where it is a later fragment (which has no transport header).
    """
    return _read_v4(data) if family is AddressFamily.IPV4 else _read_v6(data)


def _read_v4(data: bytes) -> Datagram | None:
    if len(data) < V4_BYTES or data[0] >> 4 != 4:
        return None
    start = (data[0] & 15) * 4
    if not V4_BYTES <= start <= len(data):
        return None
    _, _, total, token, fragment, ttl, protocol, _, source, there = _V4.unpack_from(data)
    if fragment & _OFFSET_MASK:
        return None
    here, to = socket.inet_ntop(socket.AF_INET, source), socket.inet_ntop(socket.AF_INET, there)
    return Datagram(here, to, protocol, ttl, token, max(0, total - start), data[start:])


def _read_v6(data: bytes) -> Datagram | None:
    if len(data) < V6_BYTES or data[0] >> 4 != 6:
        return None
    _, length, header, hop_limit, source, there = _V6.unpack_from(data)
    found = _behind_extensions(data, header)
    if found is None:
        return None
    protocol, start = found
    here, to = socket.inet_ntop(socket.AF_INET6, source), socket.inet_ntop(socket.AF_INET6, there)
    inner = max(0, length - (start - V6_BYTES))
    return Datagram(here, to, protocol, hop_limit, None, inner, data[start:])


def _behind_extensions(data: bytes, header: int) -> tuple[int, int] | None:
    """Protocol behind the extension headers (RFC 8200, section 4), and where it begins."""
    start = V6_BYTES
    for _ in range(_MOST_EXTENSIONS):
        if header in _SKIPPED:
            size = (data[start + 1] + 1) * 8 if start + 2 <= len(data) else 0
        elif header == _AUTHENTICATION:
            size = (data[start + 1] + 2) * 4 if start + 2 <= len(data) else 0
        elif header == _FRAGMENT:
            whole = start + 8 <= len(data)
            size = 8 if whole and not (data[start + 2] << 8 | data[start + 3]) >> 3 else 0
        else:
            return header, start
        if not size or start + size > len(data):
            return None
        header, start = data[start], start + size
    return None
