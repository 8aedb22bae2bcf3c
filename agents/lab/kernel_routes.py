"""Reads the routes of a namespace back from its kernel: what packets really do.

RTM_GETROUTE of rtnetlink(7); main table, both families.
"""

import ipaddress
import os
import socket
import struct
from collections.abc import Iterator

from pathbudget.agents.lab.namespaces import inside

_GET_ROUTE, _NEW_ROUTE, _DONE, _ERROR = 26, 24, 3, 2
_REQUEST_DUMP = 0x1 | 0x300
_MAIN, _UNICAST = 254, 1
_DESTINATION, _OUTPUT, _MULTIPATH, _PRIORITY = 1, 4, 9, 6

Table = dict[str, frozenset[int]]
"""Interfaces by prefix; several where the kernel spreads flows."""


class RouteReader:
    """A socket into a namespace for looking at its routes again and again."""

    def __init__(self, namespace: int) -> None:
        with inside(namespace):
            self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._socket.settimeout(5.0)

    def close(self) -> None:
        """Give the socket back."""
        self._socket.close()

    def table(self) -> Table:
        """All unicast routes now. Raises OSError."""
        found: Table = {}
        for family in (socket.AF_INET, socket.AF_INET6):
            body = struct.pack("=BBBBBBBBI", family, 0, 0, 0, 0, 0, 0, 0, 0)
            head = struct.pack("=IHHII", 16 + len(body), _GET_ROUTE, _REQUEST_DUMP, 1, 0)
            self._socket.send(head + body)
            for prefix, interfaces in self._answers():
                found[prefix] = found.get(prefix, frozenset()) | interfaces
        return found

    def _answers(self) -> Iterator[tuple[str, frozenset[int]]]:
        while True:
            octets = self._socket.recv(1 << 18)
            at = 0
            while at + 16 <= len(octets):
                length, kind = struct.unpack_from("=IH", octets, at)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    code = struct.unpack_from("=i", octets, at + 16)[0]
                    raise OSError(-code, os.strerror(-code), "routes")
                if kind == _NEW_ROUTE:
                    yield from _route(octets[at + 16 : at + length])
                at += (length + 3) & ~3


def _route(body: bytes) -> Iterator[tuple[str, frozenset[int]]]:
    family, length, _, _, table, _, _, kind = struct.unpack_from("=BBBBBBBB", body)
    if table != _MAIN or kind != _UNICAST:
        return
    octets = 4 if family == socket.AF_INET else 16
    destination, interfaces = bytes(octets), set[int]()
    for number, value in _attributes(body, 12):
        if number == _DESTINATION:
            destination = value
        elif number == _OUTPUT:
            interfaces.add(struct.unpack("=I", value)[0])
        elif number == _MULTIPATH:
            interfaces |= set(_hops(value))
    if interfaces:
        yield f"{ipaddress.ip_address(destination)}/{length}", frozenset(interfaces)


def _hops(octets: bytes) -> Iterator[int]:
    at = 0
    while at + 8 <= len(octets):
        length, _, _, interface = struct.unpack_from("=HBBi", octets, at)
        yield interface
        at += max(8, (length + 3) & ~3)


def _attributes(octets: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    while at + 4 <= len(octets):
        length, number = struct.unpack_from("=HH", octets, at)
        if length < 4:
            return
        yield number & 0x3FFF, octets[at + 4 : at + length]
        at += (length + 3) & ~3
