"""UDP datagrams of a trace: the token is the checksum, two octets of the payload make it so.

    source port, destination port | length, checksum = token | secret (8) token (2) balance (2) ...

Ports never change within a flow. Over IPv4 the token is also the identification, so that a
translator which rewrites the checksum neither hides the probe nor goes unnoticed (Dublin
traceroute). Over IPv6 the payload itself is the second place, since errors quote all of it (RFC
4443, 2.4 c); should one quote less, the length of the datagram tells five bits of the token.
"""

import functools
import struct

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import Flow
from pathbudget.probes.trace.ip_headers import UDP, closing, pseudo_sum, words_sum
from pathbudget.probes.trace.payload import PAYLOAD_BYTES, pattern

HEADER_BYTES = 8
LENGTHS = 32
"""So many lengths tell tokens apart over IPv6, two octets from one to the next."""
SHORTEST = HEADER_BYTES + PAYLOAD_BYTES
LONGEST_TELLING = SHORTEST + 2 * (LENGTHS - 1)
_HEADER = struct.Struct("!HHHH")


def telling_length(token: int) -> int:
    """Length over IPv6 of a datagram that was asked to have no particular one."""
    return SHORTEST + 2 * (token % LENGTHS)


def build(flow: Flow, token: int, length: int, secret: bytes) -> bytes:
    """The datagram, `length` octets with its header; 0: the shortest that shows the token."""
    if not length:
        v4 = flow.family is AddressFamily.IPV4
        length = SHORTEST if v4 else telling_length(token)
    rest, tail = _constant(flow.source, flow.destination, flow.key + flow.port, length, secret)
    balance = closing(rest + 2 * token)
    head = _HEADER.pack(flow.key, flow.port, length, token)
    return b"".join((head, secret, token.to_bytes(2, "big"), balance.to_bytes(2, "big"), tail))


@functools.lru_cache(maxsize=16_384)
def _constant(
    source: str, destination: str, ports: int, length: int, secret: bytes
) -> tuple[int, bytes]:
    # Not by Flow: the hash of its words is slow, and this is done for every packet.
    tail = pattern(length - SHORTEST)
    total = pseudo_sum(source, destination, UDP) + 2 * length + ports
    return (total + words_sum(secret) + words_sum(tail)) % 0xFFFF, tail
