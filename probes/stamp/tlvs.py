"""The extensions behind a STAMP packet: type, length, value (RFC 8972 section 4).

    flags 1 (U 0x80, M 0x40, I 0x20), type 1, length of the value 2, value

A sender sends each with U set; a reflector that knows the type clears it. M says that a length is
wrong, I that the integrity of the extensions could not be shown.
"""

import struct
from collections.abc import Iterable, Iterator
from enum import IntEnum
from typing import NamedTuple

HEADER_OCTETS = 4
UNRECOGNISED = 0x80
MALFORMED = 0x40
INTEGRITY = 0x20
MAX_TLVS = 64
"""A packet with more is not read to its end: reading costs far more than sending."""


class Kind(IntEnum):
    """The types of RFC 8972; others are unknown here."""

    EXTRA_PADDING = 1
    LOCATION = 2
    TIMESTAMP_INFORMATION = 3
    CLASS_OF_SERVICE = 4
    DIRECT_MEASUREMENT = 5
    ACCESS_REPORT = 6
    FOLLOW_UP = 7
    HMAC = 8


class Located(IntEnum):
    """Types of the sub-TLVs of Location (RFC 8972 section 4.2.1)."""

    SOURCE_MAC = 1
    SOURCE_EUI48 = 2
    SOURCE_EUI64 = 3
    DESTINATION_IP = 4
    DESTINATION_IPV4 = 5
    DESTINATION_IPV6 = 6
    SOURCE_IP = 7
    SOURCE_IPV4 = 8
    SOURCE_IPV6 = 9


class SyncSource(IntEnum):
    """Who disciplines a clock (RFC 8972 section 5.4)."""

    NTP = 1
    PTP = 2
    SSU_BITS = 3
    SATELLITE = 4
    LOCAL = 5


class Method(IntEnum):
    """How a timestamp was taken (RFC 8972 section 5.5). The kernel's stamp is `SOFTWARE_LOCAL`."""

    HARDWARE_ASSIST = 1
    SOFTWARE_LOCAL = 2
    CONTROL_PLANE = 3


HEADER = struct.Struct("!BBH")
FOLLOW_UP = struct.Struct("!IQB3x")
DIRECT_MEASUREMENT = struct.Struct("!III")
CLASS_OF_SERVICE = struct.Struct("!I")
TIMESTAMP_INFORMATION = struct.Struct("!BBBB")
LOCATION_PORTS = struct.Struct("!HH")

LENGTHS: dict[int, range] = {
    Kind.TIMESTAMP_INFORMATION: range(4, 0x10000),
    Kind.LOCATION: range(4, 0x10000),
    Kind.CLASS_OF_SERVICE: range(4, 5),
    Kind.DIRECT_MEASUREMENT: range(12, 13),
    Kind.ACCESS_REPORT: range(4, 5),
    Kind.FOLLOW_UP: range(16, 17),
    Kind.HMAC: range(16, 17),
}
"""Lengths of the value that are allowed; of Extra Padding and of unknown types all are."""


class Tlv(NamedTuple):
    """One extension."""

    flags: int
    kind: int
    value: bytes


class Place(NamedTuple):
    """Where an extension stands in the octets behind the base packet: its header and its end."""

    start: int
    kind: int
    end: int

    @property
    def value(self) -> slice:
        """Where its value stands."""
        return slice(self.start + HEADER_OCTETS, self.end)


def encode(tlvs: Iterable[Tlv]) -> bytes:
    """One behind the other."""
    return b"".join(HEADER.pack(tlv.flags, tlv.kind, len(tlv.value)) + tlv.value for tlv in tlvs)


def places(region: bytes | bytearray, start: int = 0, end: int | None = None) -> Iterator[Place]:
    """Walk over the extensions. One that does not fit ends the walk: its end lies beyond."""
    last = len(region) if end is None else end
    for _ in range(MAX_TLVS):
        if start >= last:
            return
        if last - start < HEADER_OCTETS:
            yield Place(start, 0, last + 1)
            return
        _, kind, length = HEADER.unpack_from(region, start)
        place = Place(start, kind, start + HEADER_OCTETS + length)
        yield place
        start = place.end
    if start < last:
        yield Place(start, 0, last + 1)


def fits(place: Place) -> bool:
    """Whether the length of a value is one that its type allows."""
    allowed = LENGTHS.get(place.kind)
    return allowed is None or place.end - place.start - HEADER_OCTETS in allowed


def decode(region: bytes) -> tuple[list[Tlv], bytes]:
    """The extensions, and what is left where one does not fit."""
    found: list[Tlv] = []
    for place in places(region):
        if place.end > len(region):
            return found, region[place.start :]
        found.append(Tlv(region[place.start], place.kind, region[place.value]))
    return found, b""


def request(kind: Kind, octets: int) -> bytes:
    """An extension that asks: everything zero but its header."""
    return HEADER.pack(UNRECOGNISED, kind, octets) + bytes(octets)


def extra_padding(content: bytes) -> bytes:
    """Fill with these octets; they come back as they are."""
    return HEADER.pack(UNRECOGNISED, Kind.EXTRA_PADDING, len(content)) + content


def class_of_service(reply_dscp: int) -> bytes:
    """Ask for a reply with this DSCP, and for the DSCP and ECN that the request came with."""
    body = CLASS_OF_SERVICE.pack(reply_dscp << 26)
    return HEADER.pack(UNRECOGNISED, Kind.CLASS_OF_SERVICE, len(body)) + body


class ClassOfService(NamedTuple):
    """What a reflector saw of ours. `refused`: the reply did not get the DSCP that was asked."""

    asked_dscp: int
    seen_dscp: int
    seen_ecn: int
    refused: bool


def read_class_of_service(value: bytes) -> ClassOfService:
    """Read four octets: DSCP1 6 bits, DSCP2 6, ECN 2, RP 2, reserved 16 (erratum 8199)."""
    (bits,) = CLASS_OF_SERVICE.unpack(value)
    return ClassOfService(bits >> 26, bits >> 20 & 63, bits >> 18 & 3, bool(bits >> 16 & 3))


class FollowUp(NamedTuple):
    """When a reply of before really left: the reflector's sequence number and timestamp of it."""

    sequence: int
    timestamp: int
    method: int


def read_follow_up(value: bytes) -> FollowUp:
    """Read 16 octets."""
    return FollowUp(*FOLLOW_UP.unpack(value))


def usable(region: bytes, *, verified: bool) -> dict[int, bytes]:
    """The values that a reflector has answered, by type; of two of one type the first.

    Those it did not know (U) are passed over. From one on that is malformed (M) nothing is read,
    and nothing at all where the integrity is in doubt: I is set, or an HMAC extension is there and
    could not be `verified` (RFC 8972 sections 4 and 4.8).
    """
    found: dict[int, bytes] = {}
    for place in places(region):
        if place.end > len(region):
            break
        flags = region[place.start]
        if flags & INTEGRITY or (place.kind == Kind.HMAC and not verified):
            return {}
        if flags & MALFORMED or not fits(place):
            break
        if not flags & UNRECOGNISED:
            found.setdefault(place.kind, region[place.value])
    return found


def signed_part(region: bytes | bytearray) -> Place | None:
    """The HMAC extension, where it stands as it must: behind all others but Extra Padding."""
    found: Place | None = None
    for place in places(region):
        if place.end > len(region):
            break
        if place.kind == Kind.HMAC:
            if found is not None or place.end - place.start != HEADER_OCTETS + 16:
                return None
            found = place
        elif found is not None and place.kind != Kind.EXTRA_PADDING:
            return None
    return found


def only_padding(region: bytes | bytearray) -> bool:
    """Whether nothing is there that would have to be signed."""
    return all(
        place.kind == Kind.EXTRA_PADDING and place.end <= len(region) for place in places(region)
    )
