"""What the emulator does to the packets of one router: silence, labels, translation, balancing.

Sans-IO: frames in, frames out. RFC 4884 (extensions), 4950 (MPLS), 5837 (interfaces).
"""

import ipaddress
import random
import struct
from collections.abc import Mapping

import msgspec

from pathbudget.agents.lab.direction import flow_key, member_of
from pathbudget.agents.lab.frames import ICMP, Spots, checksum, is_ipv4, sum_anew
from pathbudget.agents.lab.hop import Balancing, Hop, Label
from pathbudget.agents.lab.translation import Translator

QUOTED = 128
"""Octets of the original datagram before extensions, padded or cut (RFC 4884, 4)."""
_MPLS, _INTERFACE = (1, 1), 2
_EVERYTHING_OF_INCOMING = 0b00_00_1111
"""C-Type of RFC 5837: role 0 (incoming); index, address, name and MTU are there."""
_EXTENDED = {1: (3, 11, 12), 58: (1, 3)}
_LENGTH_AT = {1: (5, 4), 58: (4, 8)}
"""Where an ICMP header says how long the quote is, in units of how many octets."""


class Interface(msgspec.Struct, frozen=True):
    """One interface of a router, as it speaks of it."""

    index: int
    name: str
    ipv4: str
    ipv6: str
    mtu: int


class HopSetup(msgspec.Struct, frozen=True):
    """One router with peculiarities. `interfaces` by link."""

    node: str
    hop: Hop
    seed: str
    addresses: tuple[str, ...]
    """All of its own; the first two, IPv4 and IPv6, are those it translates to."""
    interfaces: dict[int, Interface]
    inside: tuple[str, ...] = ()
    """Addresses whose packets it translates."""
    groups: dict[str, tuple[int, ...]] = {}
    """Equally good ways: interfaces of the emulator by first octets of the destination, in hex."""


class HopWork:
    """The work of one router."""

    def __init__(self, setup: HopSetup) -> None:
        self.setup = setup
        self.hop = setup.hop
        self._own = {_packed(address) for address in setup.addresses}
        self._groups = {bytes.fromhex(key): group for key, group in setup.groups.items()}
        self._random = random.Random(f"{setup.seed} balance")
        self._link_of = {_packed(one.ipv4): link for link, one in setup.interfaces.items()}
        self.translator = (
            Translator(setup.inside, setup.addresses[:2], setup.hop.translation)
            if setup.hop.translation
            else None
        )

    def entering(self, frame: bytes) -> bytes:
        """A frame on its way to the router."""
        return self.translator.inward(frame) if self.translator else frame

    def leaving(self, frame: bytes, came_by: int | None) -> bytes | None:
        """A frame that the router's kernel put on a link; None: it never did. `came_by` is the
        link of the packet that caused it, where that is known.
        """
        spots = Spots(frame)
        if spots.is_icmp_error and spots.source_address in self._own:
            if self.hop.silent:
                return None
            frame = self._extended(frame, spots, came_by)
        return self.translator.outward(frame) if self.translator else frame

    def way(self, frame: bytes) -> int | None:
        """The interface of the emulator by which it goes on, where that is not for the kernel
        to say."""
        key = frame[30:33] if is_ipv4(frame) else frame[38:46]
        group = self._groups.get(key)
        if group is None:
            return None
        if self.hop.balancing is Balancing.PACKET:
            return self._random.choice(group)
        return group[member_of(flow_key(frame), self.setup.seed, len(group))]

    def _extended(self, frame: bytes, spots: Spots, came_by: int | None) -> bytes:
        if frame[spots.transport] not in _EXTENDED.get(spots.protocol, ()):
            return frame
        objects = mpls_object(self.hop.labels) if self.hop.labels else b""
        if self.hop.interface:
            link = self._link_of.get(spots.source_address, came_by)
            interface = self.setup.interfaces.get(-1 if link is None else link)
            objects += interface_object(interface, spots.four) if interface else b""
        return extended(frame, objects) if objects else frame


def hop_works(setups: tuple[HopSetup, ...]) -> Mapping[str, HopWork]:
    """The workers by router."""
    return {setup.node: HopWork(setup) for setup in setups}


def mpls_object(labels: tuple[Label, ...]) -> bytes:
    """RFC 4950: the label stack that a packet came with."""
    last = len(labels) - 1
    stack = b"".join(
        struct.pack("!I", one.label << 12 | one.traffic_class << 9 | (at == last) << 8 | one.ttl)
        for at, one in enumerate(labels)
    )
    return struct.pack("!HBB", 4 + len(stack), *_MPLS) + stack


def interface_object(interface: Interface, four: bool) -> bytes:
    """RFC 5837, 4: interface index, address, name and MTU of where a packet came in."""
    address = _packed(interface.ipv4 if four else interface.ipv6)
    name = interface.name.encode()[:62]
    padded = (1 + len(name) + 3) // 4 * 4
    body = struct.pack("!I", interface.index)
    body += struct.pack("!HH", 1 if four else 2, 0) + address
    body += bytes([padded]) + name.ljust(padded - 1, b"\0") + struct.pack("!I", interface.mtu)
    return struct.pack("!HBB", 4 + len(body), _INTERFACE, _EVERYTHING_OF_INCOMING) + body


def extended(frame: bytes, objects: bytes) -> bytes:
    """An ICMP error with an extension structure behind its quote (RFC 4884)."""
    spots = Spots(frame)
    quote_at = spots.transport + 8
    structure = struct.pack("!BBH", 0x20, 0, 0) + objects
    structure = structure[:2] + struct.pack("!H", checksum(structure)) + structure[4:]
    longer = bytearray(
        frame[:quote_at] + frame[quote_at:][:QUOTED].ljust(QUOTED, b"\0") + structure
    )
    at, unit = _LENGTH_AT[ICMP if spots.four else 58]
    longer[spots.transport + at] = QUOTED // unit
    sum_anew(longer)
    return bytes(longer)


def _packed(address: str) -> bytes:
    return ipaddress.ip_address(address).packed
