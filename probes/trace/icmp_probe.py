"""Echo requests of a trace: the token is the sequence, the payload keeps the checksum in balance.

    type, code, checksum = key | identifier, sequence = token | secret (8) token (2) balance (2)

Routers that hash the first four octets see the same ones in every probe of a flow (Augustin et al.,
IMC 2006). The identifier is constant too: part of the run's secret, or `Flow.port` where a trace
has to look like another probe. The checksum of a flow over IPv6 covers the addresses.
"""

import functools
import struct

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import Flow
from pathbudget.probes.trace.ip_headers import ICMPV6, closing, pseudo_sum, words_sum
from pathbudget.probes.trace.payload import PAYLOAD_BYTES, pattern

HEADER_BYTES = 8
SHORTEST = HEADER_BYTES + PAYLOAD_BYTES
REQUEST_V4, REPLY_V4, REQUEST_V6, REPLY_V6 = 8, 0, 128, 129
_HEADER = struct.Struct("!BBHHH")


def request_type(family: AddressFamily) -> int:
    """ICMP type of an echo request."""
    return REQUEST_V4 if family is AddressFamily.IPV4 else REQUEST_V6


def build(flow: Flow, token: int, length: int, secret: bytes) -> bytes:
    """The message, `length` octets with its header; 0: the shortest that carries the secret."""
    length = length or SHORTEST
    identifier = flow.port or int.from_bytes(secret[:2], "big")
    addresses = ("", "") if flow.family is AddressFamily.IPV4 else (flow.source, flow.destination)
    rest, tail = _constant(*addresses, flow.key + identifier, length, secret)
    balance = closing(rest + 2 * token)
    head = _HEADER.pack(request_type(flow.family), 0, flow.key, identifier, token)
    return b"".join((head, secret, token.to_bytes(2, "big"), balance.to_bytes(2, "big"), tail))


def as_request(family: AddressFamily, reply: bytes) -> bytes:
    """The request that an echo reply answers: the reply with its type and checksum put back."""
    v4 = family is AddressFamily.IPV4
    asked, answered = (REQUEST_V4, REPLY_V4) if v4 else (REQUEST_V6, REPLY_V6)
    checksum = (int.from_bytes(reply[2:4], "big") - (asked - answered) * 256) % 0xFFFF
    return bytes((asked, 0)) + checksum.to_bytes(2, "big") + reply[4:]


@functools.lru_cache(maxsize=16_384)
def _constant(
    source: str, destination: str, numbers: int, length: int, secret: bytes
) -> tuple[int, bytes]:
    """Sum of all that does not change within a flow; without addresses over IPv4."""
    tail = pattern(length - SHORTEST)
    if source:
        total = (REQUEST_V6 << 8) + pseudo_sum(source, destination, ICMPV6) + length
    else:
        total = REQUEST_V4 << 8
    return (total + numbers + words_sum(secret) + words_sum(tail)) % 0xFFFF, tail
