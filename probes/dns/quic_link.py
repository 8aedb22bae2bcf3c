"""Questions over QUIC (RFC 9250): a stream for each, ended by us, the message behind its length."""

from pathbudget.probes.carriers import Moment
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import Shot
from pathbudget.probes.dns.links import LinkListener
from pathbudget.probes.dns.stream_link import FrameReader, frame
from pathbudget.probes.dns.told_link import ToldLink
from pathbudget.probes.quic.dialer import QuicDialer, QuicStreams
from pathbudget.probes.record import Failure, FailureKind, Stage

ALPN = ("doq",)


class QuicLink(ToldLink):
    """See `links.Link`; a `QuicListener` of its connection."""

    def __init__(self, watcher: ClockWatcher, listener: LinkListener) -> None:
        super().__init__(watcher, listener)
        self._streams: QuicStreams | None = None
        self._stream: int | None = None
        self._frames = FrameReader()

    def start(self, dialer: QuicDialer, shot: Shot, early: bytes) -> None:
        """Dial."""

        def write_early(streams: QuicStreams) -> None:
            self._stream = streams.open_stream(frame(early), fin=True)

        self._streams = dialer.prepare(shot, self, early=write_early if early else None)
        self._streams.begin()

    # Link

    @property
    def usable(self) -> bool:
        """See `links.Link.usable`."""
        return self._opened and self._streams is not None and self._streams.usable

    def ask(self, wire: bytes) -> None:
        """See `links.Link.ask`."""
        if self._streams is None or self._listener is None:
            return
        self._frames = FrameReader()
        self._listener.asked(Moment(self._watcher.read()))
        self._stream = self._streams.quic.get_next_available_stream_id()
        self._streams.write(self._stream, frame(wire), fin=True)

    def close(self) -> None:
        """See `links.Link.close`."""
        self._listener = None
        if self._streams is not None:
            self._streams.close()

    def abandon(self) -> None:
        """See `links.Link.abandon`."""
        self._listener = None
        if self._streams is not None:
            self._streams.abandon()

    # QuicListener

    def stream_left(self, stream: int, first: Moment, last: Moment) -> None:
        """See `QuicListener.stream_left`."""
        del first
        if stream == self._stream and self._listener is not None:
            self._listener.asked(last)

    def stream_acknowledged(self, stream: int, moment: Moment) -> None:
        """See `QuicListener.stream_acknowledged`: of no use to a question."""

    def stream_data(self, stream: int, data: bytes, fin: bool, moment: Moment) -> None:
        """See `QuicListener.stream_data`."""
        if stream != self._stream:
            return  # a server opens no streams (RFC 9250, 4.3), and an older one is of no use
        for wire in self._frames.take(data):
            if self._listener is not None:
                self._stream = None if fin else self._stream
                self._listener.answered(wire, moment)
        if fin and stream == self._stream:
            self._break("the stream has ended without an answer")

    def stream_refused(self, stream: int, code: int, moment: Moment) -> None:
        """See `QuicListener.stream_refused`."""
        del moment
        if stream == self._stream:
            self._break(f"the server has reset the stream (code {code})")

    def _break(self, why: str) -> None:
        self._stream = None
        if self._listener is not None:
            self._listener.broke(Failure(FailureKind.PROTOCOL, Stage.WAIT, why))


class QuicLinks:
    """See `links.LinkDialer`."""

    identifiers = False

    def __init__(self, quic: QuicDialer, watcher: ClockWatcher) -> None:
        self._quic = quic
        self._watcher = watcher

    def dial(self, shot: Shot, listener: LinkListener, early: bytes = b"") -> QuicLink:
        """See `links.LinkDialer.dial`."""
        link = QuicLink(self._watcher, listener)
        link.start(self._quic, shot, early)
        return link

    async def drain(self) -> None:
        """See `links.LinkDialer.drain`."""
        await self._quic.drain()

    def close(self) -> None:
        """See `links.LinkDialer.close`."""
        self._quic.close()
