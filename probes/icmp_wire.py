"""ICMP echo on the wire, IPv4 (RFC 792) and IPv6 (RFC 4443). Bytes in, values out; no I/O.

The payload of every request begins with the run's secret token and the number of the probe, and
goes on with a fixed pattern. Two bytes before the number balance the checksum, so that it is the
same for all packets of a flow (see `icmp_flight`):

    type code checksum identifier sequence | token (8) | balance (2) number (6) | pattern ...

Parsers return None for what they cannot read; they never raise.
"""

import socket
import struct
from collections.abc import Callable
from typing import NamedTuple

from pathbudget.probes.record import AddressFamily

ECHO_REPLY_V4, ECHO_REQUEST_V4 = 0, 8
ECHO_REQUEST_V6, ECHO_REPLY_V6 = 128, 129
ICMP_PROTOCOL, ICMPV6_PROTOCOL = 1, 58
HEADER_BYTES = 8
REPEATED = 4
"""From this byte on a reply is equal to its request: identifier, sequence and data (RFC 792)."""
SECRET_BYTES = 16

_HEADER = struct.Struct("!BBHHH")
_SECRET = struct.Struct("!QQ")
_REQUEST = struct.Struct("!BBHHH8sHHI")
_REPLY = struct.Struct("!HH14xHI")
_PATTERN = bytes(range(256)) * 256
NUMBER_MASK = (1 << 48) - 1


class Echo(NamedTuple):
    """An echo request or reply."""

    identifier: int
    sequence: int
    payload: bytes


class Secret(NamedTuple):
    """What makes an answer ours: the run's token and the number of the probe."""

    token: int
    number: int


class QuotedEcho(NamedTuple):
    """Our request as an ICMP error quotes it; at least the first 8 bytes of it (RFC 792).

    `destination` is empty where the message does not carry the IP header.
    """

    icmp_type: int
    icmp_code: int
    destination: str
    echo: Echo
    checksum: int | None = None


def checksum(data: bytes) -> int:
    """Internet checksum (RFC 1071)."""
    if len(data) % 2:
        data += b"\0"
    # 2**16 = 1 modulo 65535, so one big remainder is the folded one's complement sum.
    total = int.from_bytes(data, "big")
    folded = total % 0xFFFF
    if folded == 0 and total:
        folded = 0xFFFF
    return ~folded & 0xFFFF


def build_payload(secret: Secret, size: int) -> bytes:
    """`size` bytes, 16 at least: secret, then pattern."""
    return _SECRET.pack(*secret) + _PATTERN[: size - SECRET_BYTES]


def read_secret(payload: bytes) -> Secret | None:
    """The secret at the head of a payload, whosever it is."""
    if len(payload) < SECRET_BYTES:
        return None
    token, word = _SECRET.unpack_from(payload)
    return Secret(token, word & NUMBER_MASK)


def balance_of(payload: bytes) -> int:
    """The two bytes that balance the checksum, in a payload of 16 bytes or more."""
    return int.from_bytes(payload[8:10], "big")


def build_request(family: AddressFamily, echo: Echo) -> bytes:
    """An echo request. The kernel fills in the checksum of IPv6, which needs both addresses."""
    kind = ECHO_REQUEST_V4 if family is AddressFamily.IPV4 else ECHO_REQUEST_V6
    header = _HEADER.pack(kind, 0, 0, echo.identifier, echo.sequence)
    message = header + echo.payload
    if family is AddressFamily.IPV6:
        return message
    return message[:2] + checksum(message).to_bytes(2, "big") + message[4:]


class RequestTemplate:
    """Builds the requests of one run; all with the same identifier and checksum are one flow."""

    def __init__(self, family: AddressFamily, token: int, payload_bytes: int) -> None:
        v4 = family is AddressFamily.IPV4
        self._v4 = v4
        self._kind = ECHO_REQUEST_V4 if v4 else ECHO_REQUEST_V6
        self.token = token.to_bytes(8, "big")
        self.pattern = _PATTERN[: payload_bytes - SECRET_BYTES]
        even = self.pattern + b"\0" * (payload_bytes % 2)
        # 2**16 = 1 modulo 65535: a number is as good as the sum of its 16-bit words.
        self._rest = ((self._kind << 8) + token + int.from_bytes(even, "big")) % 0xFFFF

    def build(self, identifier: int, checksum_: int, number: int) -> bytes:
        """The request. `checksum_` is 1 to 65534. Over IPv6 the kernel fills in another one, which
        covers the addresses as well, and is as constant.
        """
        sequence = number & 0xFFFF
        balance = -(self._rest + identifier + sequence + number + checksum_) % 0xFFFF
        shown = checksum_ if self._v4 else 0
        head = _REQUEST.pack(
            self._kind,
            0,
            shown,
            identifier,
            sequence,
            self.token,
            balance,
            number >> 32,
            number & 0xFFFFFFFF,
        )
        return head + self.pattern


def reply_checksum(checksum_: int) -> int:
    """The checksum over IPv4 of the reply to a request with that one: type 8 becomes 0."""
    return (checksum_ + (ECHO_REQUEST_V4 << 8)) % 0xFFFF


ReplyFields = tuple[int, int, int, int]
reply_fields: Callable[[bytes], ReplyFields] = _REPLY.unpack_from
"""Of 24 bytes or more: type and code, checksum, upper 16 and lower 32 bits of the number."""


def checksum_holds(message: bytes) -> bool:
    """Whether an ICMP message over IPv4 is undamaged."""
    return checksum(message) == 0


def message_type(message: bytes) -> int | None:
    """The ICMP type; None where there is no header."""
    return message[0] if len(message) >= HEADER_BYTES else None


def parse_reply(family: AddressFamily, message: bytes) -> Echo | None:
    """An echo reply; None for everything else."""
    wanted = ECHO_REPLY_V4 if family is AddressFamily.IPV4 else ECHO_REPLY_V6
    if message_type(message) != wanted or message[1] != 0:
        return None
    return _echo(message)


def parse_error(family: AddressFamily, message: bytes) -> QuotedEcho | None:
    """An ICMP error that quotes an echo request; None for everything else."""
    if len(message) < 2 * HEADER_BYTES:
        return None
    quoted = message[HEADER_BYTES:]
    found = _inside_v4(quoted) if family is AddressFamily.IPV4 else _inside_v6(quoted)
    if found is None:
        return None
    destination, inner = found
    echo = parse_request(family, inner)
    if echo is None:
        return None
    quoted_checksum = int.from_bytes(inner[2:4], "big")
    return QuotedEcho(message[0], message[1], destination, echo, quoted_checksum)


def parse_request(family: AddressFamily, message: bytes) -> Echo | None:
    """An echo request; None for everything else."""
    wanted = ECHO_REQUEST_V4 if family is AddressFamily.IPV4 else ECHO_REQUEST_V6
    return _echo(message) if message_type(message) == wanted else None


def strip_ipv4(packet: bytes) -> tuple[bytes, int] | None:
    """Message and TTL of an IPv4 packet, as a raw socket delivers it."""
    start = _ipv4_header_bytes(packet)
    return None if start is None else (packet[start:], packet[8])


def _echo(message: bytes) -> Echo:
    _, _, _, identifier, sequence = _HEADER.unpack_from(message)
    return Echo(identifier, sequence, message[HEADER_BYTES:])


def _ipv4_header_bytes(packet: bytes) -> int | None:
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    size = (packet[0] & 15) * 4
    return size if 20 <= size <= len(packet) else None


def _inside_v4(quoted: bytes) -> tuple[str, bytes] | None:
    start = _ipv4_header_bytes(quoted)
    if start is None or quoted[9] != ICMP_PROTOCOL:
        return None
    return socket.inet_ntop(socket.AF_INET, quoted[16:20]), quoted[start:]


def _inside_v6(quoted: bytes) -> tuple[str, bytes] | None:
    # Our requests carry no extension headers, so the quoted one has none either.
    if len(quoted) < 40 or quoted[0] >> 4 != 6 or quoted[6] != ICMPV6_PROTOCOL:
        return None
    return socket.inet_ntop(socket.AF_INET6, quoted[24:40]), quoted[40:]
