"""Which datagram carried what of a stream first, and when that left. Sans-IO.

The kernel's stamp of a datagram comes some time after it was sent, so everything here refers to
`SentDatagram`, whose moment becomes better when its stamp comes.
"""

from collections.abc import Iterable

from pathbudget.probes.carriers import Moment
from pathbudget.probes.clock import Reading
from pathbudget.probes.quic.inside import StreamPiece

UNSTAMPED_KEPT = 4_096
"""So many datagrams wait for their stamps; where none ever comes, older ones go without."""


class SentDatagram:
    """One datagram that was sent. `early` is that nothing had come back by then."""

    __slots__ = ("early", "kernel_unix_ns", "reading")

    def __init__(self, reading: Reading, *, early: bool) -> None:
        self.reading = reading
        self.kernel_unix_ns: int | None = None
        self.early = early

    @property
    def moment(self) -> Moment:
        """When it left, as far as is known by now."""
        return Moment(self.reading, self.kernel_unix_ns)


class Outflow:
    """What was written to one stream: `first` and `last` carried its first and its last byte.

    `stop` is the offset behind the last byte that has been sent.
    """

    def __init__(self, piece: StreamPiece) -> None:
        self.stream = piece.stream
        self.sender = piece.sender
        self.first: SentDatagram | None = None
        self.last: SentDatagram | None = None
        self.stop = 0

    @property
    def stamped(self) -> bool:
        """Whether the kernel has said when both left."""
        ends = (self.first, self.last)
        return all(one is not None and one.kernel_unix_ns is not None for one in ends)

    def carried(self, piece: StreamPiece, datagram: SentDatagram) -> None:
        """A datagram carries a piece of it; of what is sent again the first time counts."""
        if self.first is None:
            self.first = datagram
        if piece.fin and self.last is None:
            self.last = datagram
        self.stop = max(self.stop, piece.stop)


class Outflows:
    """All streams that were written to, and the datagrams whose stamps are still to come."""

    def __init__(self) -> None:
        self._unstamped: dict[int, SentDatagram] = {}
        self._flows: dict[int, Outflow] = {}
        self._untold: dict[int, Outflow] = {}
        """Have left whole, and their listener does not know."""

    def sent(
        self, key: int, datagram: SentDatagram, pieces: Iterable[Iterable[StreamPiece]]
    ) -> None:
        """A datagram was handed to the kernel under this key."""
        if len(self._unstamped) >= UNSTAMPED_KEPT:
            del self._unstamped[next(iter(self._unstamped))]
        self._unstamped[key] = datagram
        for packet in pieces:
            for piece in packet:
                flow = self._flows.get(piece.stream)
                if flow is None:
                    flow = self._flows[piece.stream] = Outflow(piece)
                whole = flow.last is not None
                flow.carried(piece, datagram)
                if flow.last is not None and not whole:
                    self._untold[piece.stream] = flow

    def stamp(self, stamps: Iterable[tuple[int, int]]) -> None:
        """The kernel says when datagrams left."""
        for key, unix_ns in stamps:
            datagram = self._unstamped.pop(key, None)
            if datagram is not None:
                datagram.kernel_unix_ns = unix_ns

    def left(self, *, unstamped: bool = False) -> list[Outflow]:
        """Streams that have left whole, each once; those without stamps only where asked for."""
        if not self._untold:
            return []
        found = [flow for flow in self._untold.values() if unstamped or flow.stamped]
        for flow in found:
            del self._untold[flow.stream]
        return found

    def of(self, stream: int) -> Outflow | None:
        """What was sent of a stream; None where nothing was."""
        return self._flows.get(stream)

    def forget(self, stream: int) -> None:
        """The stream is done with."""
        self._flows.pop(stream, None)
        self._untold.pop(stream, None)
