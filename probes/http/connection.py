"""One HTTP connection on a stream: what leaves and comes, told to who asked. No socket.

offsets    which bytes of the stream are which request, so that its moments are the kernel's
stalls     how long nothing of a body was under way because the other end's window was full
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from pathbudget.probes.carriers import (
    AnswerListener,
    Moment,
    Opened,
    OpeningListener,
    Phase,
    Request,
    SecureStream,
    span_between,
)
from pathbudget.probes.clock import ClockWatcher, Reading
from pathbudget.probes.http.exchanges import (
    Body,
    Broken,
    Event,
    Exchanges,
    Head,
    protocol_error,
)
from pathbudget.probes.http.requests import refused_request, wrong_request
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Failure,
    Metric,
    Note,
    Transport,
)

ONE_SEGMENT_BYTES = 1_200
"""A stamp of the last byte of so few is one of the first byte too. With one stamp for a whole send
the first byte of a longer one is known by user space alone.
"""


READ_AT_ONCE_BYTES = 8_192
"""So many can hold hundreds of frames: who is told of them may look at the time in between."""


@runtime_checkable
class Tried(Protocol):
    """A stream that says what it is tried as, before it is known what it has become."""

    @property
    def mode(self) -> ConnectionMode:
        """What it is tried as."""
        ...


@dataclass(slots=True)
class _Asked:
    """One request under way: where its bytes are on the stream, and when they left."""

    listener: AnswerListener
    writing: Reading
    """Just before the write that its first byte was part of."""
    first: int
    written: int = -1
    """Its last byte that has been written."""
    last: int | None = None
    """Its last byte, once that has been written."""
    first_left: Moment | None = None
    latest: tuple[int, Moment] | None = None
    """The last byte that is known to have left, and when."""
    told_left: bool = False
    told_acknowledged: bool = False
    headed: bool = False
    stalls: int = 0
    stall_ns: int = 0
    notes: dict[str, Note] = field(default_factory=dict[str, Note])


class StreamHttpConnection:
    """See `carriers.HttpConnection`. A `carriers.StreamListener`."""

    def __init__(
        self,
        exchanges: Exchanges,
        watcher: ClockWatcher,
        listener: OpeningListener,
        application: str,
        *,
        segments: bool = False,
    ) -> None:
        self._exchanges = exchanges
        self._watcher = watcher
        self._listener: OpeningListener | None = listener
        self._application = application
        self._segments = segments
        self._stream: SecureStream | None = None
        self._open = False
        self._over = False
        self._stamped = False
        """The kernel has stamped something that left on this connection."""
        self._written = 0
        self._asked: dict[int, _Asked] = {}
        self._latest: Moment | None = None

    @property
    def usable(self) -> bool:
        """See `carriers.HttpConnection.usable`."""
        return self._open and not self._over and self._exchanges.usable

    @property
    def mode(self) -> ConnectionMode | None:
        """What it is tried as; None where that is not known yet."""
        return self._stream.mode if isinstance(self._stream, Tried) else None

    def prepare(self, request: Request, listener: AnswerListener) -> bytes:
        """The bytes of a request that is to leave as soon as it may. Before `attach`."""
        problem = wrong_request(request)
        if problem:
            listener.failed(refused_request(problem))
            return b""
        self._asked[self._exchanges.ask(request)] = self._new(listener)
        return self._take_outgoing(self._watcher.read())

    def attach(self, stream: SecureStream) -> None:
        """What it writes to."""
        self._stream = stream
        if self._over:
            stream.abandon()
        else:
            self._flush()

    def request(self, request: Request, listener: AnswerListener) -> None:
        """See `carriers.HttpConnection.request`."""
        problem = wrong_request(request)
        if not problem and not self.usable:
            problem = "the connection cannot carry another request now"
        if problem:
            listener.failed(refused_request(problem))
            return
        self._asked[self._exchanges.ask(request)] = self._new(listener)
        self._flush()

    def close(self) -> None:
        """See `carriers.HttpConnection.close`."""
        if self._over:
            return
        goodbye = self._exchanges.goodbye() if self._open else b""
        stream = self._end()
        if stream is not None:
            if goodbye:
                stream.write(goodbye)
            stream.close()

    def abandon(self) -> None:
        """See `carriers.HttpConnection.abandon`."""
        stream = self._end()
        if stream is not None:
            stream.abandon()

    # StreamListener

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        if self._over:
            return
        problem = _wrong_application(opened, self._application)
        if problem:
            self._give_up(Metric.SETUP, protocol_error(problem), opened.phases)
            return
        self._open = True
        self._know(opened)
        if self._listener is not None:
            self._listener.opened(opened)
        self._flush()

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        self._fail(metric, failure, done)

    def sent(self, last_byte: int, moment: Moment) -> None:
        """See `carriers.StreamListener.sent`."""
        self._stamped = True
        for asked in tuple(self._asked.values()):
            if asked.told_left or last_byte < asked.first:
                continue
            if asked.first_left is None:
                near = self._segments or last_byte - asked.first < ONE_SEGMENT_BYTES
                asked.first_left = moment if near else Moment(moment.reading)
            asked.latest = (last_byte, moment)
            if asked.last is not None and last_byte >= asked.last:
                asked.told_left = True
                asked.listener.left(asked.first_left, moment)

    def acknowledged(self, last_byte: int, moment: Moment) -> None:
        """See `carriers.StreamListener.acknowledged`."""
        for asked in tuple(self._asked.values()):
            known = asked.last is not None and last_byte >= asked.last and asked.told_left
            if known and not asked.told_acknowledged:
                asked.told_acknowledged = True
                asked.listener.acknowledged(moment)

    def received(self, data: bytes, moment: Moment) -> None:
        """See `carriers.StreamListener.received`."""
        self._latest = moment
        for at in range(0, len(data), READ_AT_ONCE_BYTES):
            stalled = self._exchanges.stalled
            for event in self._exchanges.receive(data[at : at + READ_AT_ONCE_BYTES], moment):
                if self._over:
                    return
                self._take(event, moment)
            self._flush(stalled, moment)

    def ended(self) -> None:
        """See `carriers.StreamListener.ended`."""
        events = self._exchanges.ended()
        moment = self._latest or Moment(self._watcher.read())
        for event in events:
            if self._over:
                return
            self._take(event, moment)
        self._over, self._open = True, False

    # Out

    def _new(self, listener: AnswerListener) -> _Asked:
        return _Asked(listener, self._watcher.read(), self._written)

    def _flush(self, stalled: frozenset[int] = frozenset(), moment: Moment | None = None) -> None:
        """Write what may leave; `stalled` are those that waited until `moment` brought a window."""
        if not self._open or self._over or self._stream is None:
            return
        written = {key: self._asked[key].written for key in stalled if key in self._asked}
        data = self._take_outgoing(self._watcher.read())
        for key, before in written.items():
            asked = self._asked[key]
            if asked.written > before and moment is not None:
                self._count_stall(asked, before, moment)
        if data:
            self._stream.write(data)

    def _take_outgoing(self, reading: Reading) -> bytes:
        """What may leave, and where on the stream it will be."""
        parts: list[bytes] = []
        for piece in self._exchanges.outgoing():
            parts.append(piece.data)
            start = self._written
            self._written += len(piece.data)
            asked = None if piece.key is None else self._asked.get(piece.key)
            if asked is None:
                continue
            if piece.begins:
                asked.first, asked.writing = start, reading
            asked.written = self._written - 1
            if piece.ends:
                asked.last = asked.written
        return b"".join(parts)

    def _count_stall(self, asked: _Asked, before: int, moment: Moment) -> None:
        """From when the last byte that the window allowed had left; not while our own congestion
        window still held some of them back.
        """
        left = asked.latest
        if left is not None and left[0] >= before:
            since = left[1]
        elif self._stamped:
            return
        else:
            since = Moment(asked.writing)
        stalled_ns = span_between(since, moment).value_ns
        if stalled_ns > 0:
            asked.stalls += 1
            asked.stall_ns += stalled_ns

    # In

    def _take(self, event: Event, moment: Moment) -> None:
        if isinstance(event, Broken) and event.key is None:
            self._give_up("", event.failure, ())
            return
        asked = None if event.key is None else self._asked.get(event.key)
        if asked is None or event.key is None:
            return
        if isinstance(event, Head):
            self._take_head(asked, event)
        elif isinstance(event, Body):
            asked.listener.body(event.data, moment)
        elif isinstance(event, Broken):
            del self._asked[event.key]
            asked.listener.failed(event.failure)
        else:
            del self._asked[event.key]
            notes = self._notes(asked, event.protocol, event.informational)
            asked.listener.complete(moment, notes)

    def _take_head(self, asked: _Asked, event: Head) -> None:
        if not asked.told_left:
            if self._stamped or asked.last is None:
                asked.notes["answered_early"] = True
            else:
                asked.told_left = True
                asked.listener.left(Moment(asked.writing), Moment(asked.writing))
        asked.listener.head(event.status, event.headers, event.moment)

    def _notes(self, asked: _Asked, protocol: str, informational: int) -> Mapping[str, Note]:
        notes: dict[str, Note] = {"protocol": protocol}
        if self._stream is not None:
            notes |= self._stream.notes()
        notes |= asked.notes
        if informational:
            notes["informational"] = informational
        if asked.stalls:
            notes["flow_stalls"] = asked.stalls
            notes["flow_stall_ns"] = asked.stall_ns
        return notes

    # Ends

    def _know(self, opened: Opened) -> None:
        """What the opening says of this connection's stamps, and of early data's first byte."""
        shook = (*opened.phases, *opened.beside)
        for phase in shook:
            if phase.metric == Metric.TLS_HANDSHAKE:
                self._stamped = self._stamped or phase.span.source is ClockSource.KERNEL
                if opened.mode is ConnectionMode.EARLY_DATA:
                    for asked in self._asked.values():
                        asked.writing = phase.began.reading

    def _give_up(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        stream = self._stream
        self._fail(metric, failure, done)
        if stream is not None:
            stream.abandon()

    def _fail(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """The opening's listener is told first: it knows more."""
        if self._over:
            return
        listener, asked = self._listener, tuple(self._asked.values())
        self._end()
        if listener is not None:
            listener.failed(metric, failure, done)
        for one in asked:
            one.listener.failed(failure)

    def _end(self) -> SecureStream | None:
        stream, self._stream = self._stream, None
        self._over, self._open, self._listener = True, False, None
        self._asked.clear()
        return stream


def _wrong_application(opened: Opened, wanted: str) -> str:
    """What is wrong with the server's choice of protocol; one that makes none speaks HTTP/1.1."""
    chosen = opened.application
    if opened.transport is Transport.TCP or chosen == wanted:
        return ""
    if not chosen:
        return "" if wanted == "http/1.1" else f"the server does not speak {wanted}"
    return f"the server chose {chosen!r}, not {wanted}"
