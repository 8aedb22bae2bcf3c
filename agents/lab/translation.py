"""Source address translation of one router, as boxes at the edge of networks do it.

Packets of the inside leave with the router's own address; a port (or the identifier of an echo)
stays as it is where it is free on the outside, and is another one else. Mappings do not depend on
the destination (RFC 4787, REQ-1) and are kept for the length of the lab. Answers go back by the
port, ICMP errors by the port in what they quote.
"""

import ipaddress
import struct
from collections.abc import Sequence

from pathbudget.agents.lab.frames import (
    ECHO,
    ETHERNET,
    ICMP6,
    TCP,
    UDP,
    Spots,
    adjusted,
    sum_anew,
)
from pathbudget.agents.lab.hop import Translation

Inside = tuple[int, bytes, int]
"""Protocol, address, port."""
Outside = tuple[int, int, int]
"""Protocol, octets of the address, port."""

_LOWEST, _HIGHEST = 1024, 65535


class Translator:
    """State of one box."""

    def __init__(
        self, inside: Sequence[str], outside: Sequence[str], translation: Translation
    ) -> None:
        """`outside`: its own addresses, one of each family."""
        self._inside = {ipaddress.ip_address(address).packed for address in inside}
        packed = [ipaddress.ip_address(address).packed for address in outside]
        self._outside = {len(address): address for address in packed}
        self._restores = translation is Translation.RESTORE
        self._ports: dict[Inside, int] = {}
        self._owners: dict[Outside, tuple[bytes, int]] = {}

    def outward(self, frame: bytes) -> bytes:
        """A frame that leaves the router."""
        spots = Spots(frame)
        source = spots.source_address
        if source not in self._inside or spots.destination_address in self._inside:
            return frame
        outside = self._outside[spots.size]
        port_at = None if spots.short or spots.later_fragment else _own_port(spots)
        if port_at is None:
            return rewritten(frame, spots.source, outside, None, 0)
        port = self._port_of(spots.protocol, source, _port(frame, port_at))
        return rewritten(frame, spots.source, outside, port_at, port)

    def inward(self, frame: bytes) -> bytes:
        """A frame on its way to the router."""
        spots = Spots(frame)
        if spots.short or spots.later_fragment:
            return frame
        if spots.destination_address != self._outside[spots.size]:
            return frame
        if spots.is_icmp_error:
            return self._error_inward(frame, spots)
        port_at = _others_port(spots)
        owner = port_at and self._owner(spots, _port(frame, port_at))
        if not port_at or not owner:
            return frame
        return rewritten(frame, spots.destination, owner[0], port_at, owner[1])

    def _error_inward(self, frame: bytes, spots: Spots) -> bytes:
        quoted = Spots(frame, spots.transport + 8)
        if quoted.short or quoted.source_address != self._outside.get(quoted.size):
            return frame
        port_at = _own_port(quoted)
        owner = port_at and self._owner(quoted, _port(frame, port_at))
        if not port_at or not owner:
            return frame
        changed = bytearray(frame)
        changed[spots.destination : spots.destination + spots.size] = owner[0]
        if self._restores:
            _restore(changed, quoted, owner, port_at)
        sum_anew(changed)
        return bytes(changed)

    def _owner(self, spots: Spots, port: int) -> tuple[bytes, int] | None:
        return self._owners.get((spots.protocol, spots.size, port))

    def _port_of(self, protocol: int, source: bytes, port: int) -> int:
        known = self._ports.get((protocol, source, port))
        if known is not None:
            return known
        size, free = len(source), port
        while (protocol, size, free) in self._owners:
            free = free + 1 if _LOWEST <= free < _HIGHEST else _LOWEST
        self._ports[protocol, source, port] = free
        self._owners[protocol, size, free] = (source, port)
        return free


def rewritten(
    frame: bytes, address_at: int, address: bytes, port_at: int | None, port: int
) -> bytes:
    """A frame with another address and port, its checksums adjusted."""
    spots = Spots(frame)
    changed = bytearray(frame)
    old = frame[address_at : address_at + spots.size]
    changed[address_at : address_at + spots.size] = address
    if spots.four:
        _adjust(changed, ETHERNET + 10, old, address)
    at = None if spots.later_fragment else spots.checksum
    unused = spots.protocol == UDP and at is not None and frame[at : at + 2] == b"\0\0"
    if at is not None and not unused and spots.protocol in (TCP, UDP, ICMP6):
        _adjust(changed, at, old, address)
    if port_at is not None:
        new = struct.pack("!H", port)
        if at is not None and not unused:
            _adjust(changed, at, frame[port_at : port_at + 2], new)
        changed[port_at : port_at + 2] = new
    if (
        spots.protocol == UDP
        and at is not None
        and not unused
        and bytes(changed[at : at + 2]) == b"\0\0"
    ):
        changed[at : at + 2] = b"\xff\xff"
    return bytes(changed)


def _restore(changed: bytearray, quoted: Spots, owner: tuple[bytes, int], port_at: int) -> None:
    """Put address and port of the inside into the quote; its transport checksum stays."""
    old = quoted.source_address
    changed[quoted.source : quoted.source + quoted.size] = owner[0]
    if quoted.four:
        _adjust(changed, quoted.start + 10, old, owner[0])
    struct.pack_into("!H", changed, port_at, owner[1])


def _adjust(changed: bytearray, at: int, old: bytes, new: bytes) -> None:
    before = struct.unpack_from("!H", changed, at)[0]
    struct.pack_into("!H", changed, at, adjusted(before, old, new))


def _port(octets: bytes, at: int) -> int:
    return int(struct.unpack_from("!H", octets, at)[0])


def _own_port(spots: Spots) -> int | None:
    """Where the port of the sender is, or the identifier of an echo request."""
    if spots.protocol in (TCP, UDP):
        return spots.transport
    request, _ = ECHO.get(spots.protocol, (None, None))
    return spots.transport + 4 if spots.octets[spots.transport] == request else None


def _others_port(spots: Spots) -> int | None:
    """Where the port of the receiver is, or the identifier of an echo reply."""
    if spots.protocol in (TCP, UDP):
        return spots.transport + 2
    _, reply = ECHO.get(spots.protocol, (None, None))
    return spots.transport + 4 if spots.octets[spots.transport] == reply else None
