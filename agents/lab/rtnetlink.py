"""The five things a lab asks of the kernel's routing socket (rtnetlink(7)), many in one go.

A lab of 20 nodes makes 1600 requests. By a general library each takes about a millisecond of
processor time; packed together they take some tens of milliseconds in all.
"""

import ipaddress
import os
import socket
import struct
from collections.abc import Sequence

from pathbudget.probes.record import AddressFamily

_REQUEST, _ACKNOWLEDGE, _CREATE_EXCLUSIVE = 0x1, 0x4, 0x600
_NLMSG_ERROR = 2
_NEW_LINK, _NEW_ADDRESS, _NEW_ROUTE, _DELETE_ROUTE, _NEW_NEIGHBOUR = 16, 20, 24, 25, 28

_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINKINFO, _IFLA_NET_NS_FD = 1, 3, 4, 18, 28
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_NDA_DESTINATION, _NDA_LINK_ADDRESS = 1, 2
_RTA_DESTINATION, _RTA_OUTPUT, _RTA_GATEWAY, _RTA_PREFERRED_SOURCE, _RTA_MULTIPATH = 1, 4, 5, 7, 9

UP, NO_ARP = 0x1, 0x80
_NO_DUPLICATE_DETECTION = 0x2
_PERMANENT = 0x80
_MAIN_TABLE, _STATIC, _UNICAST = 254, 4, 1

_FAMILIES = {AddressFamily.IPV4: socket.AF_INET, AddressFamily.IPV6: socket.AF_INET6}
_CHUNK = 16_000
"""Octets sent at once; answers to more would not fit the receive buffer."""


class RoutingSocket:
    """Collects requests to the namespace in which it was made; `flush` carries them out.

    Only `flush` and `close` do anything. `flush` raises OSError for the first request that fails.
    """

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        self._waiting: list[tuple[int, int, bytes, str]] = []

    def close(self) -> None:
        """Give the socket back; requests that were not flushed are forgotten."""
        self._socket.close()

    def veth(
        self, name: str, index: int, hardware: bytes, peer: str, peer_index: int, namespace: int
    ) -> None:
        """A pair of interfaces, the peer in the namespace behind a descriptor."""
        inner = _interface(peer_index)
        inner += _attribute(_IFLA_IFNAME, peer.encode() + b"\0")
        inner += _attribute(_IFLA_NET_NS_FD, struct.pack("=I", namespace))
        kind = _attribute(_INFO_KIND, b"veth")
        kind += _attribute(_INFO_DATA, _attribute(_VETH_PEER, inner))
        body = _interface(index) + _attribute(_IFLA_IFNAME, name.encode() + b"\0")
        body += _attribute(_IFLA_ADDRESS, hardware) + _attribute(_IFLA_LINKINFO, kind)
        self._ask(_NEW_LINK, _CREATE_EXCLUSIVE, body, f"link {name}")

    def set_flags(self, index: int, flags: int) -> None:
        """Bring an interface `UP`, or without `NO_ARP`."""
        self._ask(_NEW_LINK, 0, _interface(index, flags), f"flags of interface {index}")

    def set_mtu(self, index: int, mtu: int) -> None:
        """The largest packet of an interface, in octets."""
        body = _interface(index) + _attribute(_IFLA_MTU, struct.pack("=I", mtu))
        self._ask(_NEW_LINK, 0, body, f"mtu of interface {index}")

    def set_down(self, index: int) -> None:
        """Take an interface down: both ends of a veth pair lose their carrier."""
        body = struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, 0, UP)
        self._ask(_NEW_LINK, 0, body, f"interface {index} down")

    def address(self, index: int, address: str, length: int) -> None:
        """An address with the length of its prefix."""
        parsed = ipaddress.ip_address(address)
        head = struct.pack("=BBBBI", _family_of(parsed), length, _NO_DUPLICATE_DETECTION, 0, index)
        body = head + _attribute(_IFA_LOCAL, parsed.packed)
        body += _attribute(_IFA_ADDRESS, parsed.packed)
        self._ask(_NEW_ADDRESS, _CREATE_EXCLUSIVE, body, f"address {address}")

    def neighbour(self, index: int, address: str, hardware: bytes) -> None:
        """A neighbour that is never asked for its hardware address."""
        parsed = ipaddress.ip_address(address)
        head = struct.pack("=BxxxiHBB", _family_of(parsed), index, _PERMANENT, 0, 0)
        body = head + _attribute(_NDA_DESTINATION, parsed.packed)
        body += _attribute(_NDA_LINK_ADDRESS, hardware)
        self._ask(_NEW_NEIGHBOUR, _CREATE_EXCLUSIVE, body, f"neighbour {address}")

    def route(self, prefix: str, next_hops: Sequence[tuple[str, int]], source: str) -> None:
        """A route over gateways, each with its interface, all equally good; our own packets on it
        leave from address `source`."""
        network = ipaddress.ip_network(prefix)
        body = struct.pack(
            "=BBBBBBBBI",
            _family_of(network),
            network.prefixlen, 0, 0, _MAIN_TABLE, _STATIC, 0, _UNICAST, 0,
        )  # fmt: skip
        if network.prefixlen:
            body += _attribute(_RTA_DESTINATION, network.network_address.packed)
        body += _next_hops(next_hops)
        body += _attribute(_RTA_PREFERRED_SOURCE, ipaddress.ip_address(source).packed)
        self._ask(_NEW_ROUTE, _CREATE_EXCLUSIVE, body, f"route {prefix}")

    def no_route(self, prefix: str) -> None:
        """Remove a route."""
        network = ipaddress.ip_network(prefix)
        body = struct.pack(
            "=BBBBBBBBI", _family_of(network), network.prefixlen, 0, 0, _MAIN_TABLE, 0, 255, 0, 0
        )  # scope 255 (nowhere): any
        if network.prefixlen:
            body += _attribute(_RTA_DESTINATION, network.network_address.packed)
        self._ask(_DELETE_ROUTE, 0, body, f"no route {prefix}")

    def flush(self) -> None:
        """Carry out what was asked for, in order. Raises OSError."""
        waiting, self._waiting = self._waiting, []
        while waiting:
            octets = 0
            count = 0
            while count < len(waiting) and octets < _CHUNK:
                octets += 16 + len(waiting[count][2])
                count += 1
            self._exchange(waiting[:count])
            del waiting[:count]

    def _ask(self, kind: int, flags: int, body: bytes, what: str) -> None:
        self._waiting.append((kind, _REQUEST | flags, body, what))

    def _exchange(self, requests: list[tuple[int, int, bytes, str]]) -> None:
        """Send them together. Only errors and the last one are answered."""
        last = len(requests) - 1
        self._socket.send(
            b"".join(
                _message(kind, flags | (_ACKNOWLEDGE if number == last else 0), number, body)
                for number, (kind, flags, body, _) in enumerate(requests)
            )
        )
        number = -1
        while number < last:
            answer = self._socket.recv(1 << 16)
            _, kind, _, number, _, code = struct.unpack_from("=IHHIIi", answer)
            if kind == _NLMSG_ERROR and code:
                raise OSError(-code, os.strerror(-code), requests[number][3])


def _next_hops(next_hops: Sequence[tuple[str, int]]) -> bytes:
    packed = [
        (_attribute(_RTA_GATEWAY, ipaddress.ip_address(gateway).packed), index)
        for gateway, index in next_hops
    ]
    if len(packed) == 1:
        return packed[0][0] + _attribute(_RTA_OUTPUT, struct.pack("=I", packed[0][1]))
    return _attribute(
        _RTA_MULTIPATH,  # struct rtnexthop: length, flags, weight - 1, interface
        b"".join(
            struct.pack("=HBBi", 8 + len(gateway), 0, 0, index) + gateway
            for gateway, index in packed
        ),
    )


def _message(kind: int, flags: int, number: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, flags, number, 0) + body


def _interface(index: int, flags: int = 0) -> bytes:
    """struct ifinfomsg: sets the given flags and leaves the others."""
    return struct.pack("=BxHiII", socket.AF_UNSPEC, 0, index, flags, flags)


def _attribute(number: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), number) + value + bytes(-len(value) % 4)


def _family_of(
    parsed: ipaddress.IPv4Address
    | ipaddress.IPv6Address
    | ipaddress.IPv4Network
    | ipaddress.IPv6Network,
) -> int:
    return _FAMILIES[AddressFamily.IPV4 if parsed.version == 4 else AddressFamily.IPV6]
