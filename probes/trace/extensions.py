"""Extension structures behind the quote of an ICMP error: RFC 4884, RFC 4950, RFC 5837.

Where the length attribute says how long the quote is, the extensions begin there. Older routers
do not say it and quote exactly 128 octets (RFC 4884, 5.5); those are believed only with a checksum
that holds. Classes that are not known are passed over. Nothing here raises.
"""

import socket
from collections.abc import Iterator
from typing import NamedTuple

from pathbudget.probes.trace.contract import InterfaceNote, LabelEntry
from pathbudget.probes.trace.ip_headers import words_sum

QUOTED_AT_LEAST = 128
"""Octets of a quote that extensions follow."""
MPLS, INTERFACE = 1, 2
LONGEST_NAME = 63
ROLES = ("incoming", "sub", "outgoing", "next")
_HEADER_BYTES = 4
_VERSION = 2
_MOST_OBJECTS = 32
_MOST_LABELS = 16
_INDEX, _ADDRESS, _NAME, _MTU = 8, 4, 2, 1


class Extensions(NamedTuple):
    """What a router added. `quoted` is how many octets of the error's body are the quote."""

    quoted: int
    stack: tuple[LabelEntry, ...] = ()
    interfaces: tuple[InterfaceNote, ...] = ()


def read_extensions(body: bytes, said: int) -> Extensions:
    """`body` is what follows the 8 octets of the ICMP header; `said` the octets that the length
    attribute stands for, 0 where it says nothing.
    """
    for start, old in ((said, False), (QUOTED_AT_LEAST, True)):
        if start and _is_structure(body[start:], old=old):
            return _read_structure(body[start:], start)
    return Extensions(min(said, len(body)) if said >= QUOTED_AT_LEAST else len(body))


def _is_structure(data: bytes, *, old: bool) -> bool:
    if len(data) < _HEADER_BYTES or data[0] >> 4 != _VERSION:
        return False
    unchecked = data[2:4] == b"\0\0"  # RFC 4884, 7: the sender made no checksum
    return not old if unchecked else words_sum(data) == 0


def _read_structure(data: bytes, start: int) -> Extensions:
    stack: list[LabelEntry] = []
    interfaces: list[InterfaceNote] = []
    for class_number, kind, content in _objects(data):
        if class_number == MPLS and kind == 1:
            stack += read_stack(content)
        elif class_number == INTERFACE and (note := read_interface(kind, content)) is not None:
            interfaces.append(note)
    return Extensions(start, tuple(stack[:_MOST_LABELS]), tuple(interfaces))


def _objects(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Class, sub-type and content of each object, until one does not fit."""
    at = _HEADER_BYTES
    for _ in range(_MOST_OBJECTS):
        length = int.from_bytes(data[at : at + 2], "big")
        if at + _HEADER_BYTES > len(data) or not _HEADER_BYTES <= length <= len(data) - at:
            return
        yield data[at + 2], data[at + 3], data[at + _HEADER_BYTES : at + length]
        at += length


def read_stack(content: bytes) -> list[LabelEntry]:
    """MPLS label stack entries (RFC 4950, section 4), outermost first."""
    words = [int.from_bytes(content[at : at + 4], "big") for at in range(0, len(content) - 3, 4)]
    return [
        LabelEntry(word >> 12, word >> 9 & 7, bool(word >> 8 & 1), word & 255) for word in words
    ]


def read_interface(kind: int, content: bytes) -> InterfaceNote | None:
    """Interface information (RFC 5837, section 4); None where a part that it announces is missing.

    Names are text of somebody else: what is not printable is left out.
    """
    rest = content
    number = mtu = None
    address = name = ""
    if kind & _INDEX:
        number, rest = _number(rest)
    if kind & _ADDRESS:
        address, rest = _address(rest)
    if kind & _NAME:
        name, rest = _name(rest)
    if kind & _MTU:
        mtu, rest = _number(rest)
    missing = (
        (kind & _INDEX and number is None)
        or (kind & _ADDRESS and not address)
        or (kind & _MTU and mtu is None)
    )
    return None if missing else InterfaceNote(ROLES[kind >> 6], number, address, name, mtu)


def _number(data: bytes) -> tuple[int | None, bytes]:
    if len(data) < 4:
        return None, b""
    return int.from_bytes(data[:4], "big"), data[4:]


def _address(data: bytes) -> tuple[str, bytes]:
    family = int.from_bytes(data[:2], "big")
    if family == 1 and len(data) >= 8:
        return socket.inet_ntop(socket.AF_INET, data[4:8]), data[8:]
    if family == 2 and len(data) >= 20:
        return socket.inet_ntop(socket.AF_INET6, data[4:20]), data[20:]
    return "", b""


def _name(data: bytes) -> tuple[str, bytes]:
    length = data[0] if data else 0
    if not 1 <= length <= min(len(data), LONGEST_NAME + 1):
        return "", b""
    text = data[1:length].split(b"\0")[0].decode("utf-8", "replace")
    return "".join(one for one in text if one.isprintable() and not one.isspace()), data[length:]
