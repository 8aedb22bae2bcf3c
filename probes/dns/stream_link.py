"""Questions over a stream of bytes: each message behind its length (RFC 7766, RFC 7858)."""

from collections.abc import Iterator

from pathbudget.probes.carriers import (
    Moment,
    SecureStream,
    StreamDialer,
)
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import Shot
from pathbudget.probes.dns.links import LinkListener
from pathbudget.probes.dns.told_link import ToldLink
from pathbudget.probes.failures import closed
from pathbudget.probes.record import Stage

LENGTH_BYTES = 2


def frame(wire: bytes) -> bytes:
    """A message as it travels in a stream."""
    return len(wire).to_bytes(LENGTH_BYTES, "big") + wire


class FrameReader:
    """Takes a stream apart again. Holds no more than one message that is not whole yet."""

    def __init__(self) -> None:
        self._held = bytearray()

    def take(self, data: bytes) -> Iterator[bytes]:
        """The messages that are whole now."""
        held = self._held
        held += data
        at = 0
        while len(held) - at >= LENGTH_BYTES:
            end = at + LENGTH_BYTES + int.from_bytes(held[at : at + LENGTH_BYTES], "big")
            if len(held) < end:
                break
            yield bytes(held[at + LENGTH_BYTES : end])
            at = end
        del held[:at]


class StreamLink(ToldLink):
    """See `links.Link`; a `carriers.StreamListener` of its stream."""

    def __init__(self, watcher: ClockWatcher, listener: LinkListener) -> None:
        super().__init__(watcher, listener)
        self._stream: SecureStream | None = None
        self._frames = FrameReader()
        self._early_bytes = 0
        self._last_byte: int | None = None
        self._latest: tuple[int, Moment] | None = None

    def start(self, dialer: StreamDialer, shot: Shot, early: bytes) -> None:
        """Dial."""
        if early:
            early = frame(early)
            self._early_bytes = len(early)
            self._last_byte = len(early) - 1
        self._stream = dialer.dial(shot, self, early=early)

    # Link

    @property
    def usable(self) -> bool:
        """See `links.Link.usable`."""
        return self._opened and self._listener is not None

    def ask(self, wire: bytes) -> None:
        """See `links.Link.ask`."""
        if self._stream is None or self._listener is None:
            return
        self._latest = None
        self._listener.asked(Moment(self._watcher.read()))
        self._last_byte = self._stream.write(frame(wire))
        self._told_early()

    def _told_early(self) -> None:
        """The stamp may have been there before the call of `write` returned."""
        if self._latest is not None:
            self.sent(*self._latest)

    def close(self) -> None:
        """See `links.Link.close`."""
        self._listener = None
        if self._stream is not None:
            self._stream.close()

    def abandon(self) -> None:
        """See `links.Link.abandon`."""
        self._listener = None
        if self._stream is not None:
            self._stream.abandon()

    # StreamListener

    def sent(self, last_byte: int, moment: Moment) -> None:
        """See `carriers.StreamListener.sent`."""
        self._latest = (last_byte, moment)
        if last_byte == self._last_byte and self._listener is not None:
            self._last_byte = None
            self._listener.asked(moment)

    def acknowledged(self, last_byte: int, moment: Moment) -> None:
        """See `carriers.StreamListener.acknowledged`: of no use to a question."""

    def received(self, data: bytes, moment: Moment) -> None:
        """See `carriers.StreamListener.received`."""
        for wire in self._frames.take(data):
            self._deliver(wire, moment)

    def _deliver(self, wire: bytes, moment: Moment) -> None:
        if self._listener is not None:
            self._listener.answered(wire, moment)

    def ended(self) -> None:
        """See `carriers.StreamListener.ended`."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.broke(closed(Stage.WAIT))
        if self._stream is not None:
            self._stream.close()


class StreamLinks:
    """See `links.LinkDialer`: over any stream."""

    identifiers = True

    def __init__(self, streams: StreamDialer, watcher: ClockWatcher) -> None:
        self._streams = streams
        self._watcher = watcher

    def dial(self, shot: Shot, listener: LinkListener, early: bytes = b"") -> StreamLink:
        """See `links.LinkDialer.dial`."""
        link = StreamLink(self._watcher, listener)
        link.start(self._streams, shot, early)
        return link

    async def drain(self) -> None:
        """See `links.LinkDialer.drain`."""
        await self._streams.drain()

    def close(self) -> None:
        """See `links.LinkDialer.close`."""
        self._streams.close()
