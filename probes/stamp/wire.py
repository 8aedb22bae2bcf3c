"""The packets of STAMP (RFC 8762 sections 4.2 and 4.3, RFC 8972 section 3), octet by octet.

Session-Sender, unauthenticated, 44 octets:

    sequence 4, timestamp 8 (T1), error estimate 2, SSID 2, zero 28, TLVs

Session-Reflector, unauthenticated, 44 octets:

    sequence 4, timestamp 8 (T3), error estimate 2, SSID 2, receive timestamp 8 (T2),
    sender sequence 4, sender timestamp 8 (T1), sender error estimate 2, zero 2,
    sender TTL 1, zero 3

Authenticated, 112 octets each: the same fields on borders of 16 octets, then 16 octets of
HMAC-SHA-256 over the first 96. TLVs follow behind (`tlvs.py`).

A TWAMP-Light peer (RFC 5357 appendix I) speaks the unauthenticated form without SSID. Its sender
needs only 14 octets before its padding, its reflector may answer with 41.

Timestamps and error estimates are kept as the integers of the packet: see `timestamps.py`.
"""

import struct
from typing import NamedTuple

BASE_OCTETS = 44
AUTHENTICATED_OCTETS = 112
HMAC_OCTETS = 16
SIGNED_OCTETS = AUTHENTICATED_OCTETS - HMAC_OCTETS
TWAMP_REPLY_OCTETS = 41
"""What a TWAMP reflector needs: the last three octets of STAMP's 44 are zero."""
DEFAULT_PORT = 862
UNKNOWN_TTL = 255
"""What a reflector writes where it cannot see the TTL (RFC 5357 section 4.2.1)."""
SEQUENCES = 1 << 32
LONGEST_HELD = 16
"""Seconds that a reflector may keep a packet, or its clock be set meanwhile, and it is known for a
reply all the same."""

OPEN_REQUEST = struct.Struct("!IQHH28x")
SIGNED_REQUEST = struct.Struct("!I12xQHH68x")
OPEN_REPLY = struct.Struct("!IQHHQIQH2xB3x")
SIGNED_REPLY = struct.Struct("!I12xQHH4xQ8xI12xQH6xB15x")


_NO_TIME = bytes(8)


class WireError(ValueError):
    """These octets are no packet of STAMP."""


class Request(NamedTuple):
    """What a Session-Sender says. `timestamp` is T1."""

    sequence: int
    timestamp: int
    error: int
    ssid: int = 0


class Reply(NamedTuple):
    """What a Session-Reflector says. `timestamp` is T3, `received` T2, `sender_timestamp` T1."""

    sequence: int
    timestamp: int
    error: int
    ssid: int
    received: int
    sender_sequence: int
    sender_timestamp: int
    sender_error: int
    sender_ttl: int = UNKNOWN_TTL


def base_octets(*, authenticated: bool) -> int:
    """Where the TLVs begin."""
    return AUTHENTICATED_OCTETS if authenticated else BASE_OCTETS


def encode_request(request: Request, *, authenticated: bool = False) -> bytes:
    """The base packet. Of the authenticated one the 96 octets that are to be signed."""
    return (SIGNED_REQUEST if authenticated else OPEN_REQUEST).pack(*request)


def encode_reply(reply: Reply, *, authenticated: bool = False) -> bytes:
    """The base packet. Of the authenticated one the 96 octets that are to be signed."""
    return (SIGNED_REPLY if authenticated else OPEN_REPLY).pack(*reply)


def decode_request(payload: bytes, *, authenticated: bool = False) -> Request:
    """Read a request; octets that must be zero are ignored, those missing taken for zero.

    Raises:
        WireError: too short to hold what a sender says.
    """
    if authenticated:
        if len(payload) < AUTHENTICATED_OCTETS:
            raise WireError(f"{len(payload)} octets, an authenticated packet has 112")
        return Request(*SIGNED_REQUEST.unpack_from(payload))
    if len(payload) < 14:
        raise WireError(f"{len(payload)} octets, the shortest request has 14")
    return Request(*OPEN_REQUEST.unpack_from(_at_least_base(payload)))


def decode_reply(payload: bytes, *, authenticated: bool = False) -> Reply:
    """Read a reply; octets that must be zero are ignored.

    Raises:
        WireError: too short to hold what a reflector says.
    """
    if authenticated:
        if len(payload) < AUTHENTICATED_OCTETS:
            raise WireError(f"{len(payload)} octets, an authenticated packet has 112")
        return Reply._make(SIGNED_REPLY.unpack_from(payload))
    if len(payload) < TWAMP_REPLY_OCTETS:
        raise WireError(f"{len(payload)} octets, the shortest reply has 41")
    return Reply._make(OPEN_REPLY.unpack_from(_at_least_base(payload)))


def is_reply(payload: bytes, *, authenticated: bool = False) -> bool:
    """Whether a packet has the form of a reply, though a request was expected.

    A reflector that answered replies could be set against another one, for ever. A request of
    STAMP is zero where a reply carries T2. A TWAMP request may have padding there, but then neither
    zeros at the five octets where a reply of STAMP has them, nor a time within seconds of its own,
    as a TWAMP reflector that pads with random octets has: for random padding a chance of one in
    2 ** 27, or 2 ** 16 where there are no more than 41 octets.
    """
    if authenticated:
        return payload[32:40] != _NO_TIME
    if payload[16:24] == _NO_TIME:
        return False
    if payload[38:40] == b"\0\0" and not any(payload[41:BASE_OCTETS]):
        return True
    held = int.from_bytes(payload[4:8]) - int.from_bytes(payload[16:20])
    return (held + LONGEST_HELD) % SEQUENCES <= 2 * LONGEST_HELD


def is_signed_request(payload: bytes) -> bool:
    """Whether a packet has the form of an authenticated request, whoever may have signed it."""
    return (
        len(payload) >= AUTHENTICATED_OCTETS
        and not any(payload[4:16])
        and not any(payload[28:SIGNED_OCTETS])
        and any(payload[SIGNED_OCTETS:AUTHENTICATED_OCTETS])
    )


def is_unsigned_request(payload: bytes) -> bool:
    """Whether a packet has the form of a request without a signature, and could be answered: its
    time stands where a signed one has zeros.
    """
    return len(payload) >= TWAMP_REPLY_OCTETS and any(payload[4:12]) and not is_reply(payload)


def _at_least_base(payload: bytes) -> bytes:
    return payload if len(payload) >= BASE_OCTETS else payload.ljust(BASE_OCTETS, b"\0")
