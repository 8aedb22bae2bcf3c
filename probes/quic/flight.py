"""How a handshake went, by its datagrams: round trips too many, and why. Sans-IO."""

from pathbudget.probes.carriers import Moment
from pathbudget.probes.quic.packets import PacketHead, PacketKind
from pathbudget.probes.record import Flag, Note

AMPLIFICATION = 3
"""A server sends so many times what it has received, until it knows the address (RFC 9000, 8.1)."""


class Flight:
    """Counts what goes and comes until the handshake is complete."""

    def __init__(self) -> None:
        self.sent = self.sent_bytes = self.received = self.received_bytes = 0
        self.repeated = 0
        """Datagrams that left because of a timer: something was lost, or is slow."""
        self.heard: Moment | None = None
        """When the latest datagram came."""
        self._token = b""
        self._version = 0
        self._flags: dict[str, None] = {}
        self._negotiated = False
        self._first_sent: Moment | None = None
        self._latest: Moment | None = None
        self._trip_ns: int | None = None
        self._budget = 0
        """What the server may send before it hears from us again."""
        self._spent = 0

    @property
    def flags(self) -> tuple[str, ...]:
        """What cost more than the one round trip."""
        return tuple(self._flags) + ((Flag.RETRIED,) if self.repeated else ())

    def left(
        self, heads: list[PacketHead], size: int, moment: Moment, *, timer: bool = False
    ) -> bool:
        """A datagram of ours left; `timer` where a timer had run out, and no packet had come. True
        where with it the handshake began anew, because the server wished so.
        """
        began = self._first_sent
        self.sent += 1
        self.sent_bytes += size
        for head in heads:
            if head.kind is PacketKind.INITIAL:
                self._look_at_initial(head, moment)
        if timer and any(head.kind in _HANDSHAKES for head in heads):
            self.repeated += 1
        if self._latest is None:
            self._budget += AMPLIFICATION * size
        return began is not None and self._first_sent is not began

    def _look_at_initial(self, head: PacketHead, moment: Moment) -> None:
        if self._first_sent is None:
            self._token, self._version, self._first_sent = head.token, head.version, moment
        if head.token != self._token:
            # A token that it did not have at first can only be that of a Retry packet.
            self._flags[Flag.RETRY] = None
            self._begin_again(head, moment)
        elif head.version != self._version and self._negotiated:
            self._flags[Flag.VERSION_NEGOTIATION] = None
            self._begin_again(head, moment)

    def _begin_again(self, head: PacketHead, moment: Moment) -> None:
        self._token, self._version, self._first_sent = head.token, head.version, moment
        self._latest = self._trip_ns = None
        self._budget = self._spent = 0
        self._negotiated = False

    def came(self, heads: list[PacketHead], size: int, moment: Moment) -> None:
        """A datagram came."""
        self.received += 1
        self.received_bytes += size
        self.heard = moment
        if any(head.kind is PacketKind.VERSION_NEGOTIATION for head in heads):
            self._negotiated = True
            return
        if not any(head.kind in _FLIGHT for head in heads) or self._first_sent is None:
            return
        if self._latest is None:
            self._trip_ns = moment.unix_ns - self._first_sent.unix_ns
        elif self._stalled(size, moment.unix_ns - self._latest.unix_ns):
            self._flags[Flag.AMPLIFICATION_STALL] = None
        self._latest = moment
        self._spent += size

    def _stalled(self, size: int, pause_ns: int) -> bool:
        """Whether the server has waited for us before this one.

        It had to, when what it had sent and this datagram exceed its allowance, unless it knows our
        address (from a token, or from an answer of ours that overtook it). A pause of half a round
        trip or more at that very point says that it did.
        """
        if self._trip_ns is None:
            return False
        crosses = self._spent <= self._budget < self._spent + size
        return crosses and pause_ns * 2 >= self._trip_ns

    def notes(self) -> dict[str, Note]:
        """What is worth keeping."""
        notes: dict[str, Note] = {
            "datagrams_sent": self.sent,
            "datagrams_received": self.received,
            "sent_bytes": self.sent_bytes,
            "received_bytes": self.received_bytes,
        }
        if self.repeated:
            notes["repeated"] = self.repeated
        return notes


_HANDSHAKES = frozenset({PacketKind.INITIAL, PacketKind.HANDSHAKE})
_FLIGHT = frozenset({PacketKind.INITIAL, PacketKind.HANDSHAKE, PacketKind.ONE_RTT})
