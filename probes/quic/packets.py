"""What a QUIC datagram says in clear: the packets in it, by their headers (RFC 9000, 17). Sans-IO.

Long headers of versions 1 and 2 (RFC 9369) and Version Negotiation are understood; of any other
version no more than that it is one.
"""

from enum import StrEnum
from typing import NamedTuple

VERSION_1 = 1
VERSION_2 = 0x6B3343CF
LONGEST_ID = 20
RETRY_TAG_BYTES = 16


class PacketKind(StrEnum):
    """What a packet is."""

    INITIAL = "initial"
    ZERO_RTT = "0-rtt"
    HANDSHAKE = "handshake"
    RETRY = "retry"
    VERSION_NEGOTIATION = "version negotiation"
    ONE_RTT = "1-rtt"


_OF_VERSION_1 = (PacketKind.INITIAL, PacketKind.ZERO_RTT, PacketKind.HANDSHAKE, PacketKind.RETRY)
_KINDS = {VERSION_1: _OF_VERSION_1, VERSION_2: (_OF_VERSION_1[3], *_OF_VERSION_1[:3])}


class PacketHead(NamedTuple):
    """One packet of a datagram: what it is, and where it lies in it."""

    kind: PacketKind
    start: int
    end: int
    version: int = 0
    """0 where the packet does not say."""
    token: bytes = b""
    versions: tuple[int, ...] = ()
    """What a Version Negotiation packet offers."""


def read_datagram(data: bytes) -> list[PacketHead]:
    """The packets of one datagram, in order; stops at the first thing that is none."""
    heads: list[PacketHead] = []
    at = 0
    while at < len(data):
        head = _read_packet(data, at)
        if head is None:
            break
        heads.append(head)
        at = head.end
    return heads


def _read_packet(data: bytes, start: int) -> PacketHead | None:
    first = data[start]
    if not first & 0x80:
        # A short header says nothing more, and takes the rest of the datagram.
        return PacketHead(PacketKind.ONE_RTT, start, len(data)) if first & 0x40 else None
    version = int.from_bytes(data[start + 1 : start + 5], "big")
    at = _after_ids(data, start + 5)
    if at is None:
        return None
    if version == 0:
        rest = data[at:]
        offered = (rest[place : place + 4] for place in range(0, len(rest) - 3, 4))
        versions = tuple(int.from_bytes(one, "big") for one in offered)
        kind = PacketKind.VERSION_NEGOTIATION
        return PacketHead(kind, start, len(data), versions=versions) if versions else None
    kinds = _KINDS.get(version)
    if kinds is None or not first & 0x40:
        return None
    return _read_long(data, start, at, version, kinds[first >> 4 & 3])


def _read_long(
    data: bytes, start: int, at: int, version: int, kind: PacketKind
) -> PacketHead | None:
    token = b""
    if kind is PacketKind.RETRY:
        end = len(data)
        token = data[at : end - RETRY_TAG_BYTES]
        return PacketHead(kind, start, end, version, token) if token else None
    if kind is PacketKind.INITIAL:
        length, at = _read_number(data, at)
        token = data[at : at + length]
        at += length
    length, at = _read_number(data, at)
    end = at + length
    if length < 1 or end > len(data):
        return None
    return PacketHead(kind, start, end, version, token)


def _after_ids(data: bytes, at: int) -> int | None:
    """Where the two connection ids end; None where they are cut short or too long."""
    for _ in range(2):
        if at >= len(data) or data[at] > LONGEST_ID:
            return None
        at += 1 + data[at]
    return at if at <= len(data) else None


def _read_number(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length integer (RFC 9000, 16), and where it ends; past the end where cut short."""
    if at >= len(data):
        return 0, len(data) + 1
    count = 1 << (data[at] >> 6)
    value = int.from_bytes(data[at : at + count], "big")
    return value & ((1 << 8 * count - 2) - 1), at + count
