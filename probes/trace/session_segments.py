"""The numbers of one connection of ours, learned from what the other end sends, and probes in it.

Sans-IO. The kernel's own socket keeps the connection; nothing that leaves here changes its state or
the other end's (docs/adr/0165-probes-in-a-connection-are-old-octets.md).
"""

import socket

from pathbudget.probes.trace.contract import Flow, FlowPacket, PathArrival
from pathbudget.probes.trace.ip_headers import TCP, packed
from pathbudget.probes.trace.tcp_probe import ACK, FIN, HEADER_BYTES, RST, SEQUENCES, SYN
from pathbudget.probes.trace.wire import build_session

_END, _PADDING, _SACK_PERMITTED, _TIMESTAMPS = 0, 1, 4, 8
_TICK_NS = 1_000_000
"""Linux counts its TCP timestamps in milliseconds."""
_HALF = SEQUENCES >> 1


class SessionSegments:
    """What a probe in the connection of `flow` has to say. Feed it all that arrives: `see`."""

    def __init__(self, flow: Flow) -> None:
        self.flow = flow
        self.ready = False
        """The SYN-ACK has been seen: `build` can be called."""
        self.exact = False
        """The other end speaks SACK, so its acknowledgements say which octet came twice (RFC 2883).
        Where it does not, have one probe under way at a time: answers do not name theirs.
        """
        self.ended = False
        """The other end has closed or reset it."""
        self.acknowledged = 0
        self.expected = 0
        self.round_trip_ns = 0
        """That of the handshake, where it is known: our own timestamps are counted from it."""
        self._there = _text(flow.destination)
        self._our_stamp: int | None = None
        self._their_stamp = 0
        self._seen_ns = 0

    def see(self, arrival: PathArrival, now_ns: int) -> bool:
        """Learn from a segment; whether it belongs to this connection. Never raises."""
        data = arrival.data
        if arrival.protocol != TCP or arrival.sender.partition("%")[0] != self._there:
            return False
        start = (data[12] >> 4) * 4 if len(data) >= HEADER_BYTES else 0
        ports = (self.flow.port << 16 | self.flow.key).to_bytes(4, "big")
        if not HEADER_BYTES <= start <= len(data) or data[:4] != ports:
            return False
        flags = data[13]
        sequence, acknowledged = _long(data, 4), _long(data, 8)
        if flags & (SYN | ACK | RST) == SYN | ACK:
            self._open(sequence, acknowledged, data[HEADER_BYTES:start], now_ns)
        elif self.ready and flags & RST:
            self.ended = True
        elif self.ready and flags & ACK:
            self.ended |= bool(flags & FIN)
            self.acknowledged = _later(self.acknowledged, acknowledged)
            end = sequence + len(data) - start + bool(flags & FIN)
            self.expected = _later(self.expected, end % SEQUENCES)
            self._read_stamps(data[HEADER_BYTES:start])
        return True

    def build(self, hop_limit: int, token: int, now_ns: int, *, dscp: int = 0) -> FlowPacket:
        """One probe in the connection; only once it is `ready`. Raises ValueError as `wire.build`.

        `now_ns` is of the clock that `see` gets.
        """
        if not self.ready:
            raise ValueError("the connection is not open yet")
        return build_session(
            self.flow,
            hop_limit,
            token,
            acknowledged=self.acknowledged,
            expected=self.expected,
            options=self._options(now_ns),
            dscp=dscp,
        )

    def _open(self, sequence: int, acknowledged: int, options: bytes, now_ns: int) -> None:
        if self.ready:  # said once more, because our acknowledgement got lost
            return
        self.acknowledged = acknowledged
        self.expected = (sequence + 1) % SEQUENCES
        self._seen_ns = now_ns
        said = dict(_options_of(options))
        self.exact = _SACK_PERMITTED in said
        if _TIMESTAMPS in said and len(said[_TIMESTAMPS]) == 8:
            self._our_stamp = _long(said[_TIMESTAMPS], 4)
            self._their_stamp = _long(said[_TIMESTAMPS], 0)
        self.ready = True

    def _read_stamps(self, options: bytes) -> None:
        if self._our_stamp is None:
            return
        stamp = dict(_options_of(options)).get(_TIMESTAMPS, b"")
        if len(stamp) == 8:
            self._their_stamp = _later(self._their_stamp, _long(stamp, 0))

    def _options(self, now_ns: int) -> bytes:
        """Timestamps, where they were agreed on: segments without are to be dropped (RFC 7323
        section 3.2). Ours never runs ahead of the kernel's, which would spoil its next segment.
        """
        if self._our_stamp is None:
            return b""
        elapsed = max(0, now_ns - self._seen_ns + self.round_trip_ns - _TICK_NS) // _TICK_NS
        ours = (self._our_stamp + elapsed) % SEQUENCES
        head = bytes((_PADDING, _PADDING, _TIMESTAMPS, 10))
        return head + ours.to_bytes(4, "big") + self._their_stamp.to_bytes(4, "big")


def _text(address: str) -> str:
    """As the kernel writes it, without a zone."""
    raw = packed(address)
    return socket.inet_ntop(socket.AF_INET if len(raw) == 4 else socket.AF_INET6, raw)


def _options_of(options: bytes) -> list[tuple[int, bytes]]:
    """(kind, content) of TCP options, up to where they cannot be read."""
    found: list[tuple[int, bytes]] = []
    at = 0
    while at < len(options) and options[at] != _END:
        if options[at] == _PADDING:
            at += 1
            continue
        length = options[at + 1] if at + 1 < len(options) else 0
        if length < 2 or at + length > len(options):
            break
        found.append((options[at], options[at + 2 : at + length]))
        at += length
    return found


def _later(one: int, other: int) -> int:
    """The later of two sequence numbers (RFC 9293 section 3.4)."""
    return other if 0 < (other - one) % SEQUENCES < _HALF else one


def _long(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "big")
