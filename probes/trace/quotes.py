"""ICMP errors, read: which probe they quote, who says what about it. Nothing here raises."""

from typing import NamedTuple

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace import icmp_probe, tcp_probe, udp_probe
from pathbudget.probes.trace.contract import Answer, AnswerKind, PathArrival
from pathbudget.probes.trace.extensions import read_extensions
from pathbudget.probes.trace.ip_headers import (
    ICMP,
    ICMPV6,
    TCP,
    UDP,
    Datagram,
    read_datagram,
    words_sum,
)
from pathbudget.probes.trace.payload import payload_token

HEADER_BYTES = 8
FEWEST_QUOTED = 8
"""Octets behind the quoted IP header that every router sends back (RFC 792)."""
MOST_KEPT = 64
"""Octets of a quoted transport that are kept in an answer."""
_UNREACHABLE_V4, _EXCEEDED_V4, _PARAMETER_V4 = 3, 11, 12
_UNREACHABLE_V6, _TOO_BIG_V6, _EXCEEDED_V6, _PARAMETER_V6 = 1, 2, 3, 4
_NEEDS_FRAGMENT = 4
_WITH_QUOTE = {
    AddressFamily.IPV4: frozenset((_UNREACHABLE_V4, _EXCEEDED_V4, _PARAMETER_V4)),
    AddressFamily.IPV6: frozenset((_UNREACHABLE_V6, _TOO_BIG_V6, _EXCEEDED_V6, _PARAMETER_V6)),
}


class Places(NamedTuple):
    """Where a quote shows a token. `other` is that of a second place that says otherwise."""

    token: int
    other: int | None
    key: int
    checksum: int | None


def read_error(arrival: PathArrival, family: AddressFamily) -> Answer | None:
    """What an ICMP error says of the probe that it quotes; None where it quotes none."""
    message = arrival.data
    if len(message) < HEADER_BYTES + FEWEST_QUOTED or message[0] not in _WITH_QUOTE[family]:
        return None
    if family is AddressFamily.IPV4 and words_sum(message):
        return None  # the kernel looks at the checksum of IPv6 only
    body = message[HEADER_BYTES:]
    added = read_extensions(body, _said_length(family, message))
    quoted = read_datagram(family, body[: added.quoted])
    places = None if quoted is None else _places(quoted, family)
    if quoted is None or places is None:
        return None
    return Answer(
        kind=_kind(family, message, ours=arrival.sender == quoted.destination),
        token=places.token,
        flow_key=places.key,
        responder=arrival.sender,
        icmp_type=message[0],
        icmp_code=message[1],
        ttl=arrival.ttl,
        quoted_ttl=quoted.hop_limit,
        checksum=places.checksum,
        kernel_unix_ns=arrival.kernel_unix_ns,
        stack=added.stack,
        interfaces=added.interfaces,
        mtu=_mtu(family, message),
        word=f"{message[0]}/{message[1]}",
        other=places.other,
        source=quoted.source,
        destination=quoted.destination,
        quoted=quoted.transport[:MOST_KEPT],
    )


def _said_length(family: AddressFamily, message: bytes) -> int:
    """Octets of the quote by the length attribute, which counts words of 32 or 64 bits."""
    if family is AddressFamily.IPV4:
        return message[5] * 4
    return 0 if message[0] == _TOO_BIG_V6 else message[4] * 8


def _kind(family: AddressFamily, message: bytes, *, ours: bool) -> AnswerKind:
    """`ours`: it comes from the address that the probe was sent to."""
    v4 = family is AddressFamily.IPV4
    icmp_type, code = message[0], message[1]
    if icmp_type == (_EXCEEDED_V4 if v4 else _EXCEEDED_V6) and code == 0:
        return AnswerKind.EXCEEDED
    if icmp_type == _TOO_BIG_V6 and not v4:
        return AnswerKind.TOO_BIG
    if v4 and (icmp_type, code) == (_UNREACHABLE_V4, _NEEDS_FRAGMENT):
        return AnswerKind.TOO_BIG
    # Whatever the destination itself refuses has reached it.
    return AnswerKind.ARRIVED if ours else AnswerKind.UNREACHABLE


def _mtu(family: AddressFamily, message: bytes) -> int | None:
    """MTU of the next hop; None where old routers say 0 (RFC 1191, section 4)."""
    if family is AddressFamily.IPV6:
        return int.from_bytes(message[4:8], "big") or None if message[0] == _TOO_BIG_V6 else None
    if (message[0], message[1]) != (_UNREACHABLE_V4, _NEEDS_FRAGMENT):
        return None
    return int.from_bytes(message[6:8], "big") or None


def _places(quoted: Datagram, family: AddressFamily) -> Places | None:
    if len(quoted.transport) < FEWEST_QUOTED:
        return None
    if quoted.protocol == UDP:
        return _udp_places(quoted)
    if quoted.protocol == TCP:
        return _tcp_places(quoted)
    wanted = ICMP if family is AddressFamily.IPV4 else ICMPV6
    return _icmp_places(quoted, family) if quoted.protocol == wanted else None


def _udp_places(quoted: Datagram) -> Places | None:
    """The payload knows best, then the identification: both outlive a translator."""
    transport = quoted.transport
    key, checksum = _word(transport, 0), _word(transport, 6)
    inside = payload_token(transport[udp_probe.HEADER_BYTES :])
    if inside is not None:
        return Places(inside, None, key, checksum)
    if quoted.identification is None:
        fits = checksum != 0 and _length_fits(transport, checksum)
        return Places(checksum, None, key, checksum) if fits else None
    return _agreed(checksum, quoted.identification, key, checksum, first=False)


def _length_fits(transport: bytes, token: int) -> bool:
    """Over IPv6: whether the length is one that goes with the token, if it was left to us."""
    length = _word(transport, 4)
    return length > udp_probe.LONGEST_TELLING or length == udp_probe.telling_length(token)


def _icmp_places(quoted: Datagram, family: AddressFamily) -> Places | None:
    transport = quoted.transport
    if transport[0] != icmp_probe.request_type(family) or transport[1]:
        return None
    checksum, sequence = _word(transport, 2), _word(transport, 6)
    return _agreed(sequence, quoted.identification, checksum, checksum, first=True)


def _tcp_places(quoted: Datagram) -> Places | None:
    """A timestamp of a SYN outlives firewalls that choose sequence numbers of their own."""
    transport = quoted.transport
    key = _word(transport, 0)
    whole = len(transport) > tcp_probe.FLAGS_AT and transport[tcp_probe.OFFSET_AT] != 0
    checksum = _word(transport, tcp_probe.CHECKSUM_AT) if whole and len(transport) >= 18 else None
    flags = transport[tcp_probe.FLAGS_AT] if whole else None
    stamp = tcp_probe.syn_stamp(transport) if flags == tcp_probe.SYN else None
    if stamp is not None:
        return Places(stamp & 0xFFFF, None, key, checksum) if stamp & 0xFFFF else None
    plain = _word(transport, 6)
    if flags in (tcp_probe.SYN, None) and not _same(plain, quoted.identification):
        # Segments inside a connection are far shorter than a SYN of ours.
        plain = (plain + max(0, quoted.length - tcp_probe.SHORTEST)) & 0xFFFF
    return _agreed(plain, quoted.identification, key, checksum, first=True)


def _same(token: int, identification: int | None) -> bool:
    """Some routers quote the identification with its octets swapped."""
    return identification in (token, (token & 255) << 8 | token >> 8)


def _agreed(
    token: int, identification: int | None, key: int, checksum: int | None, *, first: bool
) -> Places | None:
    """`first`: the transport is believed rather than the IP header where they disagree."""
    if not identification or _same(token, identification):
        return Places(token, None, key, checksum) if token else None
    if not token:
        return Places(identification, None, key, checksum)
    best, other = (token, identification) if first else (identification, token)
    return Places(best, other, key, checksum)


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")
