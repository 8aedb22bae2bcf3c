"""Whether an answer is about a probe of ours, and what it shows of translators on the way."""

from enum import StrEnum
from typing import NamedTuple

from pathbudget.probes.trace import tcp_probe
from pathbudget.probes.trace.contract import Answer, FlowPacket
from pathbudget.probes.trace.ip_headers import TCP, UDP, V4_BYTES, V6_BYTES, packed, words_sum
from pathbudget.probes.trace.payload import quoted_secret

INITIAL_HOP_LIMITS = (32, 64, 128, 255)
_PAYLOAD_AT = 8
_ENOUGH_SECRET = 4
"""Octets of the secret that settle it."""


class Match(StrEnum):
    """Whether an answer is about a probe."""

    FOREIGN = "foreign"
    PLAIN = "plain"
    TRANSLATED = "translated"
    """It is, and shows that addresses, ports or numbers were rewritten on the way there."""


class _Sent(NamedTuple):
    source: bytes
    destination: bytes
    protocol: int
    transport: bytes


def match(packet: FlowPacket, answer: Answer) -> Match:
    """Whether `answer` is about `packet`, and whether it was rewritten on the way.

    The secret decides where it was quoted. Otherwise ports and numbers have to be right, and so
    has the address that it was sent to.
    """
    sent = _sent(packet.data)
    unnamed = not answer.token and not answer.destination
    if not unnamed and packet.token not in (answer.token, answer.other):
        return Match.FOREIGN
    if not (
        _is_segment(sent, answer, packet.token)
        if sent.protocol == TCP
        else _is_message(sent, answer)
    ):
        return Match.FOREIGN
    return Match.TRANSLATED if _rewritten(sent, answer) else Match.PLAIN


def return_hops(hop_limit: int | None) -> int | None:
    """How many hops the answer has come, guessed: whoever sent it began with 32, 64, 128 or 255.

    Counted as the hop limits of a trace are: the router next to us is 1. None without a hop limit.
    """
    if hop_limit is None or not 1 <= hop_limit <= 255:
        return None
    return next(one for one in INITIAL_HOP_LIMITS if one >= hop_limit) - hop_limit + 1


def _sent(data: bytes) -> _Sent:
    if data[0] >> 4 == 4:
        return _Sent(data[12:16], data[16:20], data[9], data[V4_BYTES:])
    return _Sent(data[8:24], data[24:40], data[6], data[V6_BYTES:])


def _is_message(sent: _Sent, answer: Answer) -> bool:
    """UDP and ICMP."""
    quoted = answer.quoted
    secret = quoted_secret(quoted[_PAYLOAD_AT:])
    if len(secret) >= _ENOUGH_SECRET:
        return sent.transport[_PAYLOAD_AT:].startswith(secret)
    part = slice(2, 4) if sent.protocol == UDP else slice(4, 8)
    return _address_fits(sent, answer) and quoted[part] == sent.transport[part]


def _is_segment(sent: _Sent, answer: Answer, token: int) -> bool:
    quoted, segment = answer.quoted, sent.transport
    if not _address_fits(sent, answer) or quoted[2:4] != segment[2:4]:
        return False
    if not answer.token:
        return quoted[:2] == segment[:2]
    stamp = tcp_probe.syn_stamp(quoted)
    if stamp is not None:
        return stamp == tcp_probe.syn_stamp(segment)
    return quoted[4:8] in _sequences(segment) or answer.other == token


def _sequences(segment: bytes) -> tuple[bytes, bytes]:
    """As sent, and as it is acknowledged by who counts the data of a SYN."""
    data = len(segment) - (segment[tcp_probe.OFFSET_AT] >> 4) * 4
    number = (int.from_bytes(segment[4:8], "big") + data) % tcp_probe.SEQUENCES
    return segment[4:8], number.to_bytes(4, "big")


def _address_fits(sent: _Sent, answer: Answer) -> bool:
    there = answer.destination or answer.responder
    return packed(there) == sent.destination


def _rewritten(sent: _Sent, answer: Answer) -> bool:
    if not answer.destination:
        return False  # whatever was rewritten there was put back for the way here
    if packed(answer.source) != sent.source or packed(answer.destination) != sent.destination:
        return True
    quoted, transport = answer.quoted, sent.transport
    if sent.protocol == TCP:
        return quoted[:8] != transport[:8] or _addresses_changed(quoted, transport)
    if sent.protocol == UDP:
        return quoted[:4] != transport[:4] or answer.checksum not in (0, _word(transport, 6))
    return quoted[4:6] != transport[4:6] or answer.checksum not in (0, _word(transport, 2))


def _addresses_changed(quoted: bytes, segment: bytes) -> bool:
    """Whether the checksum differs by more than the header does: who clamps the MSS changes
    both and translates nothing. Can be told only where the whole header was quoted.
    """
    size = (segment[tcp_probe.OFFSET_AT] >> 4) * 4
    if len(quoted) < size or not _word(quoted, tcp_probe.CHECKSUM_AT):
        return False
    if size > tcp_probe.HEADER_BYTES and quoted[size - 4 : size] != segment[size - 4 : size]:
        return False  # a short quote, filled up with zeros
    return words_sum(quoted[:size]) != words_sum(segment[:size])


def _word(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 2], "big")
