"""TCP segments as far as a connect needs them (RFC 9293 section 3.1). Bytes in, values out.

Nothing here raises: what cannot be read is None.
"""

import functools
import socket
import struct
from typing import NamedTuple

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
SEQUENCES = 1 << 32
HEADER_BYTES = 20
_HEADER = struct.Struct("!HHIIBBHHH")
_QUOTED = struct.Struct("!HHI")
_WINDOW = 64_240
_OPTIONS = bytes.fromhex("020405b40402010101030307")
"""MSS 1460, SACK permitted, padding, window scale 7: what a common host says."""
_PROTOCOL = 6


class Answer(NamedTuple):
    """What a segment says that may answer a SYN."""

    source_port: int
    destination_port: int
    acknowledged: int
    refused: bool


class QuotedSyn(NamedTuple):
    """What an ICMP error quotes of a SYN: its first 8 bytes are enough."""

    source_port: int
    destination_port: int
    sequence: int


def build_syn(
    source: str, address: str, source_port: int, destination_port: int, sequence: int
) -> bytes:
    """A SYN with its checksum, which covers both addresses."""
    offset = (HEADER_BYTES + len(_OPTIONS)) // 4 << 4
    header = (source_port, destination_port, sequence, 0, offset, SYN, _WINDOW)
    plain = _HEADER.pack(*header, 0, 0) + _OPTIONS
    return _HEADER.pack(*header, checksum(source, address, plain), 0) + _OPTIONS


def parse_answer(segment: bytes) -> Answer | None:
    """A SYN-ACK or a RST that acknowledges something; None for everything else.

    A RST without ACK proves nothing to who has sent a SYN (RFC 9293 section 3.10.7.3).
    """
    if len(segment) < HEADER_BYTES:
        return None
    source, destination, _, acknowledged, offset, flags, _, _, _ = _HEADER.unpack_from(segment)
    if not HEADER_BYTES <= offset >> 4 << 2 <= len(segment):
        return None
    kind = flags & (FIN | SYN | RST | ACK)
    if kind not in (SYN | ACK, RST | ACK):
        return None
    return Answer(source, destination, acknowledged, refused=bool(kind & RST))


def parse_quoted_syn(quoted: bytes) -> QuotedSyn | None:
    """The first 8 bytes of a segment of ours, as an ICMP error quotes them."""
    if len(quoted) < _QUOTED.size:
        return None
    return QuotedSyn(*_QUOTED.unpack_from(quoted))


def checksum(source: str, address: str, segment: bytes) -> int:
    """RFC 9293 section 3.1, over the pseudo header and the segment as it stands."""
    return ~_folded(_pseudo_sum(source, address) + len(segment) + _sum(segment)) & 0xFFFF


def checksum_holds(source: str, address: str, segment: bytes) -> bool:
    """Whether the segment came undamaged.

    On a path without hardware (loopback, veth) the sender leaves the sum to a device that there is
    none of, and only the sum of the pseudo header stands there: that is whole, too.
    """
    if checksum(source, address, segment) == 0:
        return True
    stands = int.from_bytes(segment[16:18], "big")
    return (stands - _pseudo_sum(source, address) - len(segment)) % 0xFFFF == 0


def strip_ip(packet: bytes) -> tuple[bytes, str, int] | None:
    """What a raw IPv4 socket receives: the segment, its destination, its TTL."""
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    length = (packet[0] & 0xF) * 4
    if length < 20 or len(packet) < length:
        return None
    return packet[length:], socket.inet_ntop(socket.AF_INET, packet[16:20]), packet[8]


@functools.lru_cache(maxsize=16_384)
def _pseudo_sum(source: str, address: str) -> int:
    return _sum(_packed(source)) + _sum(_packed(address)) + _PROTOCOL


def _packed(address: str) -> bytes:
    plain = address.partition("%")[0]
    return socket.inet_pton(socket.AF_INET6 if ":" in plain else socket.AF_INET, plain)


def _sum(data: bytes) -> int:
    """The sum of 16-bit words is, but for carries, the number modulo 0xFFFF."""
    padded = data + b"\0" if len(data) % 2 else data
    return int.from_bytes(padded, "big") % 0xFFFF


def _folded(total: int) -> int:
    """To 16 bits with end-around carry, as ones' complement adds: never 0, for it is of headers."""
    return total % 0xFFFF or 0xFFFF
