"""Flows of documentation addresses, and ICMP errors as routers make them."""

import struct

from hypothesis import strategies as st

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import Flow, PathArrival, TraceProtocol
from pathbudget.probes.trace.ip_headers import ICMP, ICMPV6, closing, pseudo_sum, words_sum

HERE = {AddressFamily.IPV4: "192.0.2.1", AddressFamily.IPV6: "2001:db8::1"}
THERE = {AddressFamily.IPV4: "198.51.100.7", AddressFamily.IPV6: "2001:db8:1::7"}
ROUTER = {AddressFamily.IPV4: "203.0.113.9", AddressFamily.IPV6: "2001:db8:2::9"}
SECRET = b"\x9a\x12seCret"
EXCEEDED = {AddressFamily.IPV4: 11, AddressFamily.IPV6: 3}
UNREACHABLE = {AddressFamily.IPV4: 3, AddressFamily.IPV6: 1}
FAMILIES = tuple(AddressFamily)
PLAIN_PROTOCOLS = (TraceProtocol.UDP, TraceProtocol.ICMP, TraceProtocol.TCP)


def flow_of(
    protocol: TraceProtocol = TraceProtocol.UDP,
    family: AddressFamily = AddressFamily.IPV4,
    key: int = 33_434,
) -> Flow:
    port = 0 if protocol is TraceProtocol.ICMP else 443
    label = 0x12345 if family is AddressFamily.IPV6 else 0
    return Flow(protocol, family, HERE[family], THERE[family], key, port, label)


flows = st.builds(
    flow_of, st.sampled_from(PLAIN_PROTOCOLS), st.sampled_from(FAMILIES), st.integers(1, 0xFFFE)
)
tokens = st.integers(1, 0xFFFE)


def header_bytes(family: AddressFamily) -> int:
    return 20 if family is AddressFamily.IPV4 else 40


def icmp_error(
    family: AddressFamily,
    icmp_type: int,
    code: int,
    quote: bytes,
    *,
    middle: bytes = bytes(4),
    sender: str = "",
) -> PathArrival:
    """`middle`: the four octets before the quote (length attribute, MTU)."""
    sender = sender or ROUTER[family]
    plain = struct.pack("!BBH", icmp_type, code, 0) + middle + quote
    total = words_sum(plain)
    if family is AddressFamily.IPV6:
        total += pseudo_sum(sender, HERE[family], ICMPV6) + len(plain)
    data = plain[:2] + closing(total).to_bytes(2, "big") + plain[4:]
    protocol = ICMP if family is AddressFamily.IPV4 else ICMPV6
    return PathArrival(protocol, data, sender, 250, 1_790_000_000 * 10**9)


def exceeded(packet: bytes, octets: int | None = None, *, ttl: int = 1) -> PathArrival:
    """What a router says that quotes so many octets behind the IP header (None: all)."""
    family = AddressFamily.IPV4 if packet[0] >> 4 == 4 else AddressFamily.IPV6
    quote = with_hop_limit(packet, ttl)
    if octets is not None:
        quote = quote[: header_bytes(family) + octets]
    return icmp_error(family, EXCEEDED[family], 0, quote)


def with_hop_limit(packet: bytes, ttl: int) -> bytes:
    at = 8 if packet[0] >> 4 == 4 else 7
    return packet[:at] + bytes((ttl,)) + packet[at + 1 :]


def patched(data: bytes, at: int, new: bytes) -> bytes:
    return data[:at] + new + data[at + len(new) :]
