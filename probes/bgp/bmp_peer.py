"""Whose routes a BMP message is about (RFC 7854, 4.2), and whether they have add-path."""

from dataclasses import dataclass

from pathbudget.probes.bgp.cursor import Cursor
from pathbudget.probes.bgp.quarantine import MalformedError
from pathbudget.probes.bgp.update_wire import HEADER_SIZE, MARKER, OPEN

GLOBAL, VRF, LOCAL, LOC_RIB = range(4)
_IPV6, _POST_POLICY, _OLD_AS_PATH, _ADJ_RIB_OUT = 0x80, 0x40, 0x20, 0x10
_CAPABILITIES, _ADD_PATH, _EXTENDED = 2, 69, 255
_RECEIVE, _SEND = 1, 2

PeerKey = tuple[int, bytes, bytes]
"""Kind, distinguisher and address: what RFC 7854 tells peers apart by."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The header that messages about a peer begin with."""

    key: PeerKey
    address: str
    asn: int
    table: str
    """Distinguisher of the VRF; empty for the global table."""
    own_table: bool
    """Whether it is the router's own table (Loc-RIB), and no peer."""
    post_policy: bool
    adj_rib_out: bool
    old_as_path: bool
    """Whether AS numbers have two octets."""
    time_unix_ns: int | None


def read_peer(body: Cursor) -> Peer:
    """The per-peer header. Raises MalformedError."""
    kind, flags = body.number(1), body.number(1)
    distinguisher, raw = body.take(8), body.take(16)
    asn, identifier = body.number(4), body.take(4)
    seconds, micros = body.number(4), body.number(4)
    if kind > LOC_RIB:
        raise MalformedError("an unknown kind of peer")
    own_table = kind == LOC_RIB
    octets = raw if flags & _IPV6 else raw[12:]
    if own_table:
        octets, flags = identifier, 0  # its only flag is whether it is filtered (RFC 9069)
    return Peer(
        key=(kind, distinguisher, octets),
        address=Cursor(octets).address(len(octets)),
        asn=asn,
        table=_distinguisher_text(distinguisher),
        own_table=own_table,
        post_policy=bool(flags & _POST_POLICY),
        adj_rib_out=bool(flags & _ADJ_RIB_OUT),
        old_as_path=bool(flags & _OLD_AS_PATH),
        time_unix_ns=(seconds * 1_000_000 + min(micros, 999_999)) * 1_000 or None,
    )


def opened_with_add_path(body: Cursor, *, own_table: bool) -> bool:
    """Whether the router may receive add-path for any family, by the OPENs of both ends.

    The OPENs of a Loc-RIB are made up (RFC 9069): there either is enough.
    """
    sent, received = _add_path_families(body), _add_path_families(body)
    if own_table:
        return bool(sent or received)
    return any(mode & _RECEIVE and received.get(family, 0) & _SEND for family, mode in sent.items())


def _add_path_families(body: Cursor) -> dict[bytes, int]:
    """Family to send and receive bits, from the OPEN that comes next."""
    if body.take(16) != MARKER:
        raise MalformedError("a peer up without its OPENs")
    size, kind = body.number(2), body.number(1)
    if kind != OPEN or size < HEADER_SIZE + 10:
        raise MalformedError("a peer up without its OPENs")
    message = Cursor(body.take(size - HEADER_SIZE))
    message.take(9)  # version, AS number, hold time, identifier
    wide = _skip_length(message)
    found: dict[bytes, int] = {}
    while message.left:
        parameter, content = message.number(1), Cursor(message.take(message.number(wide)))
        while parameter == _CAPABILITIES and content.left:
            code, value = content.number(1), content.take(content.number(1))
            if code == _ADD_PATH:
                found.update(
                    (value[at : at + 3], value[at + 3]) for at in range(0, len(value) - 3, 4)
                )
    return found


def _skip_length(message: Cursor) -> int:
    """Pass the length of the optional parameters; returns the size of each one's (RFC 9072)."""
    message.take(1)
    if message.data[message.at : message.at + 1] == bytes((_EXTENDED,)):
        message.take(3)
        return 2
    return 1


def _distinguisher_text(octets: bytes) -> str:
    """``64499:11`` (RFC 4364, 4.2); empty for none."""
    if not any(octets):
        return ""
    kind = int.from_bytes(octets[:2], "big")
    if kind == 1:
        return f"{Cursor(octets[2:6]).address(4)}:{int.from_bytes(octets[6:], 'big')}"
    cut = 4 if kind == 0 else 6
    return f"{int.from_bytes(octets[2:cut], 'big')}:{int.from_bytes(octets[cut:], 'big')}"
