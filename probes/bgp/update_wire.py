"""BGP messages from bytes: UPDATE with its attributes, and why a NOTIFICATION ended a session.

RFC 4271, with multiprotocol routes (RFC 4760), four-octet AS numbers (RFC 6793), add-path
(RFC 7911), IPv4 routes with IPv6 next hops (RFC 8950) and large communities (RFC 8092). Unicast
routes only. Whether a session has add-path or two-octet numbers stands outside the message; it is
never guessed from the bytes. Everything raises MalformedError for what is not as it should be.
"""

import functools
import socket
import struct
from dataclasses import dataclass, field
from typing import NamedTuple

from pathbudget.probes.bgp.as_path_wire import AsPath, merged
from pathbudget.probes.bgp.quarantine import MalformedError

OPEN, UPDATE, NOTIFICATION, KEEPALIVE, ROUTE_REFRESH = 1, 2, 3, 4, 5
IPV4, IPV6 = 1, 2
UNICAST = 1
AS_TRANS = 23456
HEADER_SIZE = 19
MARKER = b"\xff" * 16
ORIGINS = ("igp", "egp", "incomplete")

_ORIGIN, _AS_PATH, _NEXT_HOP, _MED, _LOCAL_PREFERENCE, _AGGREGATOR = 1, 2, 3, 4, 5, 7
_COMMUNITIES, _MP_REACH, _MP_UNREACH = 8, 14, 15
_AS4_PATH, _AS4_AGGREGATOR, _LARGE_COMMUNITIES = 17, 18, 32
_EXTENDED_LENGTH = 0x10
_MOST_TO_KEEP = 256
"""Bytes; so what is kept stays small whoever sends."""
_COMMUNITY, _LARGE_COMMUNITY = struct.Struct(">HH"), struct.Struct(">III")
FAMILY_WORDS = {IPV4: "ipv4 unicast", IPV6: "ipv6 unicast"}
_SOCKET_FAMILY = {IPV4: socket.AF_INET, IPV6: socket.AF_INET6}
_ntop = socket.inet_ntop
_ADDRESS_SIZE = {IPV4: 4, IPV6: 16}


class Encoding(NamedTuple):
    """What the two ends of a session agreed on, and the message does not say."""

    as_size: int = 4
    add_path: bool = False


class Nlri(NamedTuple):
    """One prefix. `path_id` is None where the session has no add-path."""

    prefix: str
    path_id: int | None = None


@dataclass(slots=True)
class Attributes:
    """Path attributes that a `RouteUpdate` has a place for, and the routes among them."""

    as_path: str = ""
    origin: str = ""
    next_hop: str = ""
    local_preference: int | None = None
    med: int | None = None
    communities: tuple[str, ...] = ()
    announced: list[Nlri] = field(default_factory=list[Nlri])
    withdrawn: list[Nlri] = field(default_factory=list[Nlri])
    other_families: int = 0
    """Groups of routes that are not unicast."""
    mp_next_hop: str = ""
    mp_family: str = ""
    """Of routes that are withdrawn, also of none: what an end of RIB is about."""


@dataclass(slots=True)
class Update:
    """Content of an UPDATE. Routes of `attributes.announced` go by `attributes.mp_next_hop`."""

    attributes: Attributes
    announced: list[Nlri]
    withdrawn: list[Nlri]

    @property
    def end_of_rib(self) -> bool:
        """Whether it only says that the starting table is complete (RFC 4724)."""
        attributes = self.attributes
        routes = (self.announced, self.withdrawn, attributes.announced, attributes.withdrawn)
        others = attributes.as_path or attributes.origin or attributes.other_families
        return not any(routes) and not others

    @property
    def family(self) -> str:
        """What an end of RIB is about: ``ipv4 unicast``."""
        return self.attributes.mp_family or FAMILY_WORDS[IPV4]


def split_message(data: bytes) -> tuple[int, bytes]:
    """Type and body of one whole message."""
    if len(data) < HEADER_SIZE or data[:16] != MARKER:
        raise MalformedError("no BGP message")
    size = int.from_bytes(data[16:18], "big")
    if not HEADER_SIZE <= size <= len(data):
        raise MalformedError("a BGP message of a wrong length")
    return data[18], data[HEADER_SIZE:size]


def parse_update(body: bytes, encoding: Encoding) -> Update:
    """An UPDATE without its header (RFC 4271, 4.3). Raises MalformedError."""
    withdrawn, at = _sized(body, 0, "withdrawn routes")
    attributes, at = _sized(body, at, "attributes")
    add_path = encoding.add_path
    return Update(
        parse_attributes(attributes, encoding),
        parse_nlri(body[at:], IPV4, add_path=add_path),
        parse_nlri(withdrawn, IPV4, add_path=add_path),
    )


def parse_notification(body: bytes) -> str:
    """``notification 6/2 (cease, administrative shutdown)``, and what the peer wrote with it."""
    if len(body) < 2:
        raise MalformedError("a NOTIFICATION that is cut off")
    code, subcode = body[0], body[1]
    words = _NOTIFICATIONS.get(code, "unknown error")
    if code == 6 and subcode in _CEASES:
        words += f", {_CEASES[subcode]}"
    said = _shutdown_text(body[2:]) if code == 6 and subcode in {2, 4} else ""
    return f"notification {code}/{subcode} ({words})" + (f": {said}" if said else "")


def parse_attributes(data: bytes, encoding: Encoding, of_table: int | None = None) -> Attributes:
    """Path attributes. Nobody may change them: many routes have the same, and they are kept.

    `of_table`: those of a table dump, about routes of this address family, where MP_REACH_NLRI may
    be the next hop alone (RFC 6396, 4.3.4).
    """
    if len(data) <= _MOST_TO_KEEP:
        return _parse_and_keep(data, encoding, of_table)
    return _parse(data, encoding, of_table)


def _parse(data: bytes, encoding: Encoding, of_table: int | None) -> Attributes:
    found = Attributes()
    values: dict[int, bytes] = {}
    at, size = 0, len(data)
    while at < size:
        wide = at + 4 if data[at] & _EXTENDED_LENGTH else at + 3
        end = wide + int.from_bytes(data[at + 2 : wide], "big")
        if wide > size or end > size:
            raise MalformedError("an attribute that is cut off")
        values.setdefault(data[at + 1], data[wide:end])  # the first counts (RFC 7606, 3 g)
        at = end
    _read_plain(found, values)
    found.as_path = _as_path(values, encoding)
    if _MP_REACH in values:
        _read_reach(found, values[_MP_REACH], encoding, of_table)
    if _MP_UNREACH in values:
        _read_unreach(found, values[_MP_UNREACH], encoding)
    return found


_parse_and_keep = functools.lru_cache(maxsize=8192)(_parse)


def parse_nlri(data: bytes, family: int, *, add_path: bool) -> list[Nlri]:
    """Prefixes one behind the other."""
    found: list[Nlri] = []
    at, size = 0, len(data)
    while at < size:
        path_id = None
        if add_path:
            if at + 5 > size:
                raise MalformedError("a prefix that is cut off")
            path_id = int.from_bytes(data[at : at + 4], "big")
            at += 4
        prefix, at = parse_prefix(data, at, family)
        found.append(Nlri(prefix, path_id))
    return found


def parse_prefix(data: bytes, at: int, family: int) -> tuple[str, int]:
    """A prefix at `at`, and where it ends. Bits beyond its length mean nothing (RFC 4271, 4.3)."""
    if at >= len(data):
        raise MalformedError("a prefix that is cut off")
    bits = data[at]
    if bits > 8 * _ADDRESS_SIZE[family]:
        raise MalformedError("a prefix that is too long")
    size = (bits + 7) // 8
    end = at + 1 + size
    if end > len(data):
        raise MalformedError("a prefix that is cut off")
    octets = data[at + 1 : end]
    if bits % 8:
        octets = octets[:-1] + bytes((octets[-1] & (0xFF00 >> bits % 8) & 0xFF,))
    padded = octets.ljust(_ADDRESS_SIZE[family], b"\0")
    return f"{_ntop(_SOCKET_FAMILY[family], padded)}/{bits}", end


def address_text(octets: bytes) -> str:
    """An address of 4 or 16 octets."""
    if len(octets) == 4:
        return _ntop(socket.AF_INET, octets)
    if len(octets) == 16:
        return _ntop(socket.AF_INET6, octets)
    raise MalformedError("an address that is cut off")


def _sized(data: bytes, at: int, what: str) -> tuple[bytes, int]:
    """What stands behind a length of two octets."""
    end = at + 2 + int.from_bytes(data[at : at + 2], "big")
    if len(data) < at + 2 or end > len(data):
        raise MalformedError(f"an UPDATE with {what} that are cut off")
    return data[at + 2 : end], end


def _read_plain(found: Attributes, values: dict[int, bytes]) -> None:
    origin = values.get(_ORIGIN)
    if origin is not None:
        if len(origin) != 1 or origin[0] >= len(ORIGINS):
            raise MalformedError("an unknown ORIGIN")
        found.origin = ORIGINS[origin[0]]
    if _NEXT_HOP in values:
        found.next_hop = address_text(values[_NEXT_HOP])
    found.med = _number(values.get(_MED), "MULTI_EXIT_DISC")
    found.local_preference = _number(values.get(_LOCAL_PREFERENCE), "LOCAL_PREF")
    found.communities = (
        *_numbers(values.get(_COMMUNITIES, b""), _COMMUNITY, "COMMUNITIES"),
        *_numbers(values.get(_LARGE_COMMUNITIES, b""), _LARGE_COMMUNITY, "LARGE_COMMUNITY"),
    )


def _number(value: bytes | None, name: str) -> int | None:
    if value is None:
        return None
    if len(value) != 4:
        raise MalformedError(f"{name} of a wrong length")
    return int.from_bytes(value, "big")


def _numbers(value: bytes, form: struct.Struct, name: str) -> list[str]:
    if len(value) % form.size:
        raise MalformedError(f"{name} of a wrong length")
    return [":".join(map(str, numbers)) for numbers in form.iter_unpack(value)]


def _as_path(values: dict[int, bytes], encoding: Encoding) -> str:
    path = AsPath.parse(values.get(_AS_PATH, b""), encoding.as_size)
    if encoding.as_size == 2 and _AS4_PATH in values and _new_path_counts(values):
        path = merged(path, AsPath.parse(values[_AS4_PATH], 4))
    return path.text


def _new_path_counts(values: dict[int, bytes]) -> bool:
    """False where an old speaker aggregated, and so did not keep AS4_PATH (RFC 6793, 4.2.3)."""
    aggregator = values.get(_AGGREGATOR)
    if aggregator is None or _AS4_AGGREGATOR not in values:
        return True
    return int.from_bytes(aggregator[:2], "big") == AS_TRANS


def _read_reach(found: Attributes, value: bytes, encoding: Encoding, of_table: int | None) -> None:
    if of_table is not None and value[:1] != b"\0":
        found.mp_next_hop = _next_hop(value, 0)[0]
        return
    family, kind = _family(value)
    if kind != UNICAST or family not in _ADDRESS_SIZE:
        found.other_families += 1
        return
    found.mp_next_hop, at = _next_hop(value, 3)
    if of_table is None:
        routes = value[at + 1 :]  # behind an octet that is reserved
        found.announced = parse_nlri(routes, family, add_path=encoding.add_path)


def _read_unreach(found: Attributes, value: bytes, encoding: Encoding) -> None:
    family, kind = _family(value)
    if kind != UNICAST or family not in _ADDRESS_SIZE:
        found.other_families += 1
        return
    found.mp_family = FAMILY_WORDS[family]
    found.withdrawn = parse_nlri(value[3:], family, add_path=encoding.add_path)


def _family(value: bytes) -> tuple[int, int]:
    if len(value) < 3:
        raise MalformedError("multiprotocol routes that are cut off")
    return int.from_bytes(value[:2], "big"), value[2]


def _next_hop(value: bytes, at: int) -> tuple[str, int]:
    """The next hop behind its length; of a global and a link-local one the global (RFC 2545)."""
    size = value[at] if at < len(value) else 0
    end = at + 1 + size
    if size not in {4, 16, 32} or end > len(value):
        raise MalformedError("a next hop of a wrong length")
    return address_text(value[at + 1 : at + 1 + min(size, 16)]), end


_NOTIFICATIONS = {
    1: "message header error",
    2: "open message error",
    3: "update message error",
    4: "hold timer expired",
    5: "state machine error",
    6: "cease",
    7: "route refresh error",
}
_CEASES = {
    1: "too many prefixes",
    2: "administrative shutdown",
    3: "peer unconfigured",
    4: "administrative reset",
    5: "connection rejected",
    6: "other configuration change",
    7: "connection collision",
    8: "out of resources",
    9: "hard reset",
    10: "BFD down",
}


def _shutdown_text(data: bytes) -> str:
    """What an operator wrote when closing a session (RFC 9003)."""
    said = data[1 : 1 + data[0]].decode(errors="replace") if data else ""
    return "".join(letter if letter.isprintable() else "?" for letter in said)
