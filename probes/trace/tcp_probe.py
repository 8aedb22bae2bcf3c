"""TCP segments of a trace: SYNs, and segments inside an established connection.

The token is the lower half of the sequence number: routers do not hash it, and a quote of 8 octets
shows it.

A SYN has part of the secret in the upper half and says both again in its timestamp, which SYN-ACKs
echo (RFC 7323). A SYN that is filled up to a size carries data; its sequence is so much smaller,
because who refuses it acknowledges the data too (RFC 9293, 3.10.7.1).

A segment inside a connection carries one octet that the other end has acknowledged long ago. Why
this and not a keep-alive without data: to the receiver it is an old duplicate, which changes
nothing and must be acknowledged at once (RFC 9293, 3.10.7.4); Linux limits its answers to empty
segments outside the window to two a second, but not to those with data; and with SACK the
answer says which octet came twice (RFC 2883), so that it names the probe. The octet lies at most
65,536 below the first one not acknowledged, where firewalls that track windows let it pass.
"""

import struct

from pathbudget.probes.record import AddressFamily
from pathbudget.probes.trace.contract import Flow
from pathbudget.probes.trace.ip_headers import TCP, closing, pseudo_sum, words_sum
from pathbudget.probes.trace.payload import pattern

FIN, SYN, RST, PUSH, ACK = 0x01, 0x02, 0x04, 0x08, 0x10
HEADER_BYTES = 20
OFFSET_AT, FLAGS_AT, CHECKSUM_AT = 12, 13, 16
SEQUENCES = 1 << 32
_HEADER = struct.Struct("!HHIIBBHHH")
_WINDOW = 64_240
_SYN_OPTIONS = struct.Struct("!HHHBBIIBBBB")
"""MSS, SACK permitted, timestamps, padding, window scale: what a common host says, in its order."""
_MSS = {AddressFamily.IPV4: 1_460, AddressFamily.IPV6: 1_440}
SHORTEST = HEADER_BYTES + _SYN_OPTIONS.size
STAMP_AT = HEADER_BYTES + 8
"""Where the timestamp of our SYNs stands."""


def syn_number(token: int, secret: bytes) -> int:
    """What the sequence of a SYN without data is, and its timestamp."""
    return int.from_bytes(secret[:2], "big") << 16 | token


def build_syn(flow: Flow, token: int, length: int, secret: bytes) -> bytes:
    """A SYN of `length` octets with its header; 0: one without data."""
    data = pattern(length - SHORTEST)
    number = syn_number(token, secret)
    sequence = (number - len(data)) % SEQUENCES
    options = _syn_options(flow.family, number)
    return _segment(flow, (sequence, 0), SYN, _WINDOW, options, data)


def syn_stamp(segment: bytes) -> int | None:
    """Timestamp of a SYN of ours, as it was quoted; None where it is not there."""
    if len(segment) < STAMP_AT + 8 or segment[STAMP_AT - 2 : STAMP_AT] != b"\x08\x0a":
        return None
    return int.from_bytes(segment[STAMP_AT : STAMP_AT + 4], "big")


def session_sequence(token: int, acknowledged: int) -> int:
    """The largest sequence below `acknowledged` whose lower half is the token."""
    below = (acknowledged - 1 - token) & 0xFFFF
    return (acknowledged - 1 - below) % SEQUENCES


def build_session(
    flow: Flow,
    token: int,
    *,
    acknowledged: int,
    expected: int,
    window: int = 512,
    options: bytes = b"",
    octet: bytes = b"\0",
) -> bytes:
    """One octet inside a connection. `acknowledged`: first sequence that the other end has not
    acknowledged; `expected`: the next one that we expect of it. `window` is the field as it stands
    on the wire. `options` in multiples of four octets, as the connection has them (timestamps).
    `octet` is what was sent at that place, where it is known: some firewalls compare.
    """
    sequence = session_sequence(token, acknowledged)
    return _segment(flow, (sequence, expected), ACK, window, options, octet)


def _segment(
    flow: Flow, numbers: tuple[int, int], flags: int, window: int, options: bytes, data: bytes
) -> bytes:
    offset = (HEADER_BYTES + len(options)) // 4 << 4
    fields = (flow.key, flow.port, *numbers, offset, flags, window)
    rest = options + data
    plain = _HEADER.pack(*fields, 0, 0) + rest
    total = pseudo_sum(flow.source, flow.destination, TCP) + len(plain) + words_sum(plain)
    return _HEADER.pack(*fields, closing(total), 0) + rest


def _syn_options(family: AddressFamily, number: int) -> bytes:
    return _SYN_OPTIONS.pack(0x0204, _MSS[family], 0x0402, 8, 10, number, 0, 1, 3, 3, 7)
