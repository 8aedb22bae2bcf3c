"""Whole IP packets as routers and hosts of a fake topology read and answer them.

Bytes in, bytes out, written apart from the codecs of the trace probe so that one checks the other.
"""

import functools
import socket
import struct
from collections.abc import Sequence
from typing import NamedTuple

from pathbudget.probes.icmp_wire import checksum
from pathbudget.probes.record import AddressFamily
from pathbudget.probes.tcp_wire import ACK, RST, SYN
from pathbudget.probes.tcp_wire import checksum as tcp_checksum
from pathbudget.probes.trace.contract import LabelEntry

ICMP, TCP, UDP, ICMPV6 = 1, 6, 17, 58
UNREACHABLE, EXCEEDED, TOO_BIG = "unreachable", "exceeded", "too_big"
_TYPES = {
    (AddressFamily.IPV4, UNREACHABLE): 3,
    (AddressFamily.IPV4, EXCEEDED): 11,
    (AddressFamily.IPV4, TOO_BIG): 3,
    (AddressFamily.IPV6, UNREACHABLE): 1,
    (AddressFamily.IPV6, EXCEEDED): 3,
    (AddressFamily.IPV6, TOO_BIG): 2,
}
EXTENDED_QUOTE_BYTES = 128
"""Extensions stand behind this much of the quote (RFC 4884 section 5.5)."""
_TCP = struct.Struct("!HHIIBBHHH")
_V4, _V6 = AddressFamily.IPV4, AddressFamily.IPV6
_FLOW_LABEL = 0xFFFFF


class FakePacket(NamedTuple):
    """A packet on its way. `data` begins with the IP header, `start` is where its payload does."""

    data: bytes
    family: AddressFamily
    source: str
    destination: str
    protocol: int
    ttl: int
    start: int

    @property
    def transport(self) -> bytes:
        """From the ICMP, TCP or UDP header on."""
        return self.data[self.start :]

    @property
    def ports(self) -> tuple[int, int]:
        """Source and destination port of UDP and TCP."""
        return struct.unpack_from("!HH", self.data, self.start)

    def hashed(self) -> bytes:
        """What a balancer per flow hashes: addresses, protocol, the first four bytes behind the IP
        header (of ICMP the type, code and checksum), the flow label of IPv6.
        """
        head = self.data[self.start : self.start + 4]
        if self.family is _V4:
            return self.data[12:20] + self.data[9:10] + head
        label = int.from_bytes(self.data[:4], "big") & _FLOW_LABEL
        return self.data[8:40] + self.data[6:7] + label.to_bytes(3, "big") + head


def read_packet(data: bytes) -> FakePacket:
    """Raises ValueError for what no router would carry: it is a defect of who sent it."""
    if len(data) >= 20 and data[0] >> 4 == 4:
        start = (data[0] & 15) * 4
        total = int.from_bytes(data[2:4], "big")
        if total not in (0, len(data)) or len(data) < start + 8:
            message = f"IPv4 packet says {total} bytes, has {len(data)}"
            raise ValueError(message)
        return FakePacket(data, _V4, text(data[12:16]), text(data[16:20]), data[9], data[8], start)
    if len(data) >= 48 and data[0] >> 4 == 6:
        if int.from_bytes(data[4:6], "big") != len(data) - 40:
            message = f"IPv6 packet of {len(data)} bytes says another length"
            raise ValueError(message)
        return FakePacket(data, _V6, text(data[8:24]), text(data[24:40]), data[6], data[7], 40)
    message = f"not an IP packet: {data[:20].hex()}"
    raise ValueError(message)


@functools.lru_cache(16_384)
def text(raw: bytes) -> str:
    """An address as people write it."""
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)


@functools.lru_cache(16_384)
def packed(address: str) -> bytes:
    """An address as packets have it."""
    return socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)


def transport_holds(packet: FakePacket) -> bool:
    """Whether the checksum behind the IP header is right: hosts drop what is not."""
    body = packet.transport
    if packet.protocol == ICMP:
        return checksum(body) == 0
    if packet.protocol == UDP and body[6:8] == b"\0\0":
        return packet.family is _V4
    pseudo = packed(packet.source) + packed(packet.destination)
    pseudo += struct.pack("!HI", packet.protocol, len(body))
    return checksum(pseudo + body) == 0


def fragments_forbidden(packet: FakePacket) -> bool:
    """Whether a packet that is too long for a link is refused rather than cut."""
    return packet.family is _V6 or bool(packet.data[6] & 0x40)


def with_ttl(packet: FakePacket, ttl: int) -> bytes:
    """The packet with another hop limit, its header checksum made right."""
    data = packet.data
    if packet.family is _V6:
        return data[:7] + bytes((ttl,)) + data[8:]
    plain = data[:8] + bytes((ttl, data[9], 0, 0)) + data[12 : packet.start]
    total = checksum(plain).to_bytes(2, "big")
    return plain[:10] + total + plain[12:] + data[packet.start :]


def translated(packet: FakePacket, public: str, *, port: int | None) -> FakePacket:
    """Behind a NAT: another source address and perhaps port, and a checksum that fits them."""
    old, new = packed(packet.source), packed(public)
    body = packet.transport
    if port is not None and packet.protocol in (TCP, UDP):
        old, new = old + body[:2], new + port.to_bytes(2, "big")
        body = new[-2:] + body[2:]
    place = {TCP: 16, UDP: 6}.get(packet.protocol)
    if packet.protocol == ICMPV6:
        place = 2
    if place is not None and body[place : place + 2] != b"\0\0":
        was = int.from_bytes(body[place : place + 2], "big")
        total = (~was & 0xFFFF) + checksum(old) + (~checksum(new) & 0xFFFF)
        total = ~(total % 0xFFFF or 0xFFFF) & 0xFFFF
        body = body[:place] + total.to_bytes(2, "big") + body[place + 2 :]
    at = 12 if packet.family is _V4 else 8
    head = packet.data[:at] + packed(public) + packet.data[at + len(packed(public)) : packet.start]
    return packet._replace(data=head + body, source=public)


def untranslated(packet: FakePacket, source: str, *, port: int | None) -> bytes:
    """What a NAT makes of a quote on its way back: addresses and ports of old, and the checksum
    left as it was rewritten (RFC 5508 section 4.2 asks for no more).
    """
    at = 12 if packet.family is _V4 else 8
    raw = packed(source)
    body = packet.transport
    if port is not None and packet.protocol in (TCP, UDP):
        body = port.to_bytes(2, "big") + body[2:]
    return packet.data[:at] + raw + packet.data[at + len(raw) : packet.start] + body


def icmp_error(
    family: AddressFamily,
    kind: str,
    code: int,
    quote: bytes,
    *,
    mtu: int = 0,
    objects: bytes = b"",
) -> bytes:
    """An ICMP error, from its ICMP header on; with an extension structure where there are objects.

    Over IPv6 the checksum is left out: the kernel checks it and a raw socket need not.
    """
    rest = struct.pack("!I", mtu)
    if objects:
        units = EXTENDED_QUOTE_BYTES // (4 if family is _V4 else 8)
        quote = quote[:EXTENDED_QUOTE_BYTES].ljust(EXTENDED_QUOTE_BYTES, b"\0")
        rest = bytes((0, units)) + rest[2:] if family is _V4 else bytes((units,)) + rest[1:]
        plain = b"\x20\0\0\0" + objects
        quote += b"\x20\0" + checksum(plain).to_bytes(2, "big") + objects
    head = bytes((_TYPES[family, kind], code, 0, 0)) + rest
    if family is _V6:
        return head + quote
    return head[:2] + checksum(head + quote).to_bytes(2, "big") + head[4:] + quote


def mpls_object(stack: Sequence[LabelEntry]) -> bytes:
    """The object of RFC 4950: class 1, type 1, one word for each label."""
    words = b"".join(
        struct.pack("!I", one.label << 12 | one.traffic_class << 9 | one.bottom << 8 | one.ttl)
        for one in stack
    )
    return struct.pack("!HBB", 4 + len(words), 1, 1) + words


def echo_reply(packet: FakePacket) -> bytes | None:
    """What a host answers to an echo request; None where it is none."""
    body = packet.transport
    if packet.family is _V6:
        return bytes((129, 0, 0, 0)) + body[4:] if body[0] == 128 else None
    if body[0] != 8:
        return None
    plain = b"\0\0\0\0" + body[4:]
    return b"\0\0" + checksum(plain).to_bytes(2, "big") + body[4:]


def syn_answer(packet: FakePacket, *, open_port: bool, sequence: int) -> bytes | None:
    """SYN-ACK or RST to a SYN; None to anything else."""
    body = packet.transport
    source, there, wanted, _, _, flags = struct.unpack_from("!HHIIBB", body)
    if flags & (SYN | ACK | RST) != SYN:
        return None
    acknowledged = (wanted + 1) & 0xFFFFFFFF
    if open_port:
        return segment(packet, (there, source, sequence, acknowledged, SYN | ACK))
    return segment(packet, (there, source, 0, acknowledged, RST | ACK))


def segment(
    packet: FakePacket, fields: tuple[int, int, int, int, int], options: bytes = b""
) -> bytes:
    """A segment back to who sent `packet`: ports, sequence, acknowledgement, flags; options."""
    here, there, sequence, acknowledged, flags = fields
    offset = (20 + len(options)) // 4 << 4
    head = (here, there, sequence, acknowledged, offset, flags, 65_160)
    plain = _TCP.pack(*head, 0, 0) + options
    total = tcp_checksum(packet.destination, packet.source, plain)
    return _TCP.pack(*head, total, 0) + options
