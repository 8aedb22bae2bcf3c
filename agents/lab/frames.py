"""Just enough of Ethernet, IP and ICMP to change packets on their way: where things are, and sums.

A frame begins with 14 octets of Ethernet; links carry no VLAN tags, and kernels of a lab send no
IPv6 extension headers.
"""

import struct

ETHERNET = 14
ICMP, TCP, UDP, ICMP6 = 1, 6, 17, 58
ECHO = {ICMP: (8, 0), ICMP6: (128, 129)}
"""Request and reply."""
_ERRORS = {ICMP: (3, 4, 5, 11, 12), ICMP6: (1, 2, 3, 4)}
_CHECKSUM_AT = {ICMP: 2, ICMP6: 2, TCP: 16, UDP: 6}


def is_ipv4(frame: bytes) -> bool:
    """By the EtherType; what is not IPv4 on a link of a lab is IPv6."""
    return frame[12:14] == b"\x08\x00"


class Spots:
    """Offsets in one packet that begins at `start` of some octets. Truncated ones are `short`."""

    __slots__ = (
        "destination",
        "four",
        "octets",
        "protocol",
        "size",
        "source",
        "start",
        "transport",
    )

    def __init__(self, octets: bytes, start: int = ETHERNET) -> None:
        self.octets = octets
        self.start = start
        self.four = len(octets) > start and octets[start] >> 4 == 4
        self.size = 4 if self.four else 16
        self.source = start + (12 if self.four else 8)
        self.destination = self.source + self.size
        self.transport = start + (4 * (octets[start] & 15) if self.four else 40)
        self.protocol = octets[start + (9 if self.four else 6)] if len(octets) > start + 9 else -1

    @property
    def short(self) -> bool:
        """Whether the first eight octets of the transport header are not all there."""
        return len(self.octets) < self.transport + 8

    @property
    def later_fragment(self) -> bool:
        """Whether what follows the IP header is no transport header."""
        return self.four and bool(
            (self.octets[self.start + 6] & 0x1F) or self.octets[self.start + 7]
        )

    @property
    def source_address(self) -> bytes:
        """In network order."""
        return self.octets[self.source : self.source + self.size]

    @property
    def destination_address(self) -> bytes:
        """In network order."""
        return self.octets[self.destination : self.destination + self.size]

    @property
    def is_icmp_error(self) -> bool:
        """Whether it quotes another packet."""
        kinds = _ERRORS.get(self.protocol, ())
        return not self.short and self.octets[self.transport] in kinds

    @property
    def checksum(self) -> int | None:
        """Offset of the transport checksum."""
        at = _CHECKSUM_AT.get(self.protocol)
        found = None if at is None else self.transport + at
        return None if found is None or found + 2 > len(self.octets) else found


def checksum(octets: bytes) -> int:
    """RFC 1071."""
    if len(octets) & 1:
        octets += b"\0"
    total: int = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def adjusted(before: int, old: bytes, new: bytes) -> int:
    """A checksum after an even number of octets changed from `old` to `new` (RFC 1624)."""
    half = f"!{len(old) // 2}H"
    total: int = (~before & 0xFFFF) + sum(~word & 0xFFFF for word in struct.unpack(half, old))
    total += sum(struct.unpack(half, new))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def sum_anew(frame: bytearray) -> None:
    """Set length fields and checksums of an ICMP packet in a frame by what is in it."""
    spots = Spots(bytes(frame))
    at = spots.transport
    frame[at + 2 : at + 4] = b"\0\0"
    if spots.four:
        struct.pack_into("!H", frame, ETHERNET + 2, len(frame) - ETHERNET)
        frame[ETHERNET + 10 : ETHERNET + 12] = b"\0\0"
        struct.pack_into("!H", frame, ETHERNET + 10, checksum(bytes(frame[ETHERNET:at])))
        pseudo = b""
    else:
        struct.pack_into("!H", frame, ETHERNET + 4, len(frame) - at)
        pseudo = bytes(frame[spots.source : spots.source + 32])
        pseudo += struct.pack("!II", len(frame) - at, ICMP6)
    struct.pack_into("!H", frame, at + 2, checksum(pseudo + bytes(frame[at:])))
