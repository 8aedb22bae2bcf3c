"""How a Session-Reflector answers extensions: in their places, never a longer packet (RFC 8972)."""

import socket
from collections.abc import Sequence
from typing import NamedTuple

from pathbudget.probes.stamp import tlvs
from pathbudget.probes.stamp.authentication import Key
from pathbudget.probes.stamp.tlvs import HEADER_OCTETS, Kind, Located, Method, Place, SyncSource

SUB_TLV_LENGTHS = {Located.SOURCE_MAC: 8, Located.DESTINATION_IP: 16, Located.SOURCE_IP: 16}
"""What a sender may ask for, and the length that the question must have."""
ACCESS_NETWORKS = (1, 2)


_KNOWN = frozenset(Kind)
_ASKED = frozenset(SUB_TLV_LENGTHS)


class Seen(NamedTuple):
    """What a reflector knows of one request and of its session, to answer extensions with.

    `follow_up` is sequence, timestamp and method of an earlier reply. `reported_location` false
    leaves addresses and ports zero.
    """

    sender: str
    sender_port: int
    local: str
    local_port: int
    traffic_class: int | None
    received: int
    transmitted: int
    follow_up: tuple[int, int, int]
    sync_source: SyncSource
    permitted_dscps: frozenset[int] | None
    reported_location: bool


class Answered(NamedTuple):
    """The extensions of the reply, as long as those of the request, and the DSCP to reply with
    where one was asked for and is permitted.
    """

    region: bytes
    dscp: int | None = None


def answer(
    region: bytes,
    seen: Seen,
    *,
    keys: Sequence[Key],
    must_sign: bool,
    asked: bytes,
    replied: bytes,
) -> Answered:
    """Answer everything behind the base packet.

    `asked` and `replied` are the sequence numbers of request and reply as on the wire, which an
    HMAC extension covers. With `must_sign` extensions without one have failed already.
    """
    if not region or region.count(0) == len(region):
        return Answered(region)  # the zeros of a peer that pads without extensions
    signature = tlvs.signed_part(region)
    key = _signer(region, signature, keys, asked)
    if key is None and not _unsigned(region, signature, must_sign=must_sign):
        return Answered(_failed(region))
    reply = bytearray(region)
    dscp = _answer_each(reply, seen)
    if signature is not None and key is not None:
        reply[signature.value] = key.sign(replied + reply[: signature.start])
    return Answered(bytes(reply), dscp)


def _signer(
    region: bytes, signature: Place | None, keys: Sequence[Key], asked: bytes
) -> Key | None:
    """Whose signature the extensions carry, at the place where it must stand."""
    if signature is None:
        return None
    covered, signed = asked + region[: signature.start], region[signature.value]
    return next((key for key in keys if key.verify(covered, signed)), None)


def _unsigned(region: bytes, signature: Place | None, *, must_sign: bool) -> bool:
    """Whether extensions may go without: there is no HMAC, wherever, and none is needed.

    RFC 8972 section 4.8: Extra Padding alone need not be signed.
    """
    if signature is not None or any(place.kind == Kind.HMAC for place in tlvs.places(region)):
        return False
    return not must_sign or tlvs.only_padding(region)


def _failed(region: bytes) -> bytes:
    """As it came, with I set in each extension."""
    reply = bytearray(region)
    for place in tlvs.places(region):
        beyond = place.end > len(region)
        reply[place.start] = tlvs.INTEGRITY | (tlvs.MALFORMED if beyond else 0)
    return bytes(reply)


def _answer_each(reply: bytearray, seen: Seen) -> int | None:
    """Answer one after the other, up to one that is malformed; the rest stays as it came."""
    dscp = None
    for place in tlvs.places(reply):
        if place.end > len(reply) or not tlvs.fits(place):
            reply[place.start] = tlvs.MALFORMED
            if place.kind == Kind.FOLLOW_UP:
                _zero(reply, place.start + HEADER_OCTETS, min(place.end, len(reply)), 12)
            return dscp
        reply[place.start] = 0
        if place.kind == Kind.CLASS_OF_SERVICE:
            dscp = _class_of_service(reply, place, seen)
        elif not _answer_one(reply, place, seen):
            reply[place.start] = tlvs.UNRECOGNISED
    return dscp


def _answer_one(reply: bytearray, place: Place, seen: Seen) -> bool:
    """Whether it was understood."""
    at = place.start + HEADER_OCTETS
    if place.kind == Kind.FOLLOW_UP:
        tlvs.FOLLOW_UP.pack_into(reply, at, *seen.follow_up)
    elif place.kind == Kind.DIRECT_MEASUREMENT:
        (sent,) = tlvs.CLASS_OF_SERVICE.unpack_from(reply, at)
        tlvs.DIRECT_MEASUREMENT.pack_into(reply, at, sent, seen.received, seen.transmitted)
    elif place.kind == Kind.TIMESTAMP_INFORMATION:
        clock = (seen.sync_source, Method.SOFTWARE_LOCAL)
        tlvs.TIMESTAMP_INFORMATION.pack_into(reply, at, *clock, *clock)
    elif place.kind == Kind.LOCATION:
        _location(reply, place, seen)
    elif place.kind == Kind.ACCESS_REPORT:
        return reply[at] >> 4 in ACCESS_NETWORKS
    return place.kind in _KNOWN


def _class_of_service(reply: bytearray, place: Place, seen: Seen) -> int | None:
    """RFC 8972 section 4.4 with erratum 8199."""
    at = place.start + HEADER_OCTETS
    asked = tlvs.read_class_of_service(bytes(reply[place.value])).asked_dscp
    came = seen.traffic_class or 0
    permitted = seen.permitted_dscps is None or asked in seen.permitted_dscps
    refused = 0 if permitted else 1
    bits = asked << 26 | (came >> 2) << 20 | (came & 3) << 18 | refused << 16
    tlvs.CLASS_OF_SERVICE.pack_into(reply, at, bits)
    return asked if permitted else None


def _location(reply: bytearray, place: Place, seen: Seen) -> None:
    """Ports and addresses as this end sees them (RFC 8972 section 4.2)."""
    at = place.start + HEADER_OCTETS
    ports = (seen.local_port, seen.sender_port) if seen.reported_location else (0, 0)
    tlvs.LOCATION_PORTS.pack_into(reply, at, *ports)
    for sub in tlvs.places(reply, at + tlvs.LOCATION_PORTS.size, place.end):
        if sub.end > place.end:
            reply[sub.start] = tlvs.MALFORMED
            return
        length = SUB_TLV_LENGTHS.get(Located(sub.kind)) if sub.kind in _ASKED else None
        if length is None:
            reply[sub.start] = tlvs.UNRECOGNISED
        elif sub.end - sub.start != HEADER_OCTETS + length:
            reply[sub.start] = tlvs.MALFORMED
            return
        else:
            _locate(reply, sub, seen)


def _locate(reply: bytearray, sub: Place, seen: Seen) -> None:
    kind, content = _found(sub.kind, seen)
    if not seen.reported_location:
        content = b""
    tlvs.HEADER.pack_into(reply, sub.start, 0, kind, sub.end - sub.start - HEADER_OCTETS)
    reply[sub.value] = content.ljust(sub.end - sub.start - HEADER_OCTETS, b"\0")


def _found(kind: int, seen: Seen) -> tuple[int, bytes]:
    """The type that answers a question, and the address. A socket never sees a MAC address."""
    if kind == Located.SOURCE_MAC:
        return Located.SOURCE_EUI64, b""
    is_v6 = ":" in seen.sender
    if kind == Located.DESTINATION_IP:
        answer_with = (Located.DESTINATION_IPV4, Located.DESTINATION_IPV6)[is_v6]
        return answer_with, _octets(seen.local, is_v6)
    return (Located.SOURCE_IPV4, Located.SOURCE_IPV6)[is_v6], _octets(seen.sender, is_v6)


def _octets(address: str, is_v6: bool) -> bytes:
    """The octets of an address; none where it is not known."""
    plain = address.partition("%")[0]
    return socket.inet_pton(socket.AF_INET6 if is_v6 else socket.AF_INET, plain) if plain else b""


def _zero(reply: bytearray, start: int, end: int, octets: int) -> None:
    """Zero so many octets, as far as there are that many."""
    last = min(start + octets, end)
    if last > start:
        reply[start:last] = bytes(last - start)
