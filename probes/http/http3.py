"""HTTP/3 (RFC 9114) over our QUIC driver: the `carriers.HttpDialer` of this product for it.

    dialer = Http3Dialer(environment, quic_settings(options, mode=...))
    connection = dialer.dial(shot, listener, early=(request, answer))

All moments are those of datagrams: the one that carried the first byte of the request, the last,
the one in which the first byte of the answer came. Needs aioquic.
"""

from collections.abc import Mapping

from aioquic.h3.connection import H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.events import StreamDataReceived, StreamReset

from pathbudget.probes.carriers import (
    AnswerListener,
    Moment,
    Opened,
    OpeningListener,
    Phase,
    Request,
)
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.failures import closed
from pathbudget.probes.http.exchanges import decoded, protocol_error, too_much_body, too_much_head
from pathbudget.probes.http.settings import Limits
from pathbudget.probes.quic.dialer import QuicDialer, QuicSettings, QuicStreams
from pathbudget.probes.record import Failure, FailureKind, Note, Stage

ALPN = ("h3",)
METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})
HOP_HEADERS = frozenset({"host", "connection", "transfer-encoding", "content-length"})
SERVER_STREAM_BYTES = 1 << 20
"""So much a server may say beside its answers: settings, header tables, pushes that nobody asked
for.
"""
_NOTHING: Mapping[str, Note] = {}
_CODES = {
    0x101: "general protocol error",
    0x102: "internal error",
    0x107: "excessive load",
    0x10B: "request rejected",
    0x10C: "request cancelled",
    0x10D: "request incomplete",
    0x110: "version fallback",
}


class _Exchange:
    """One request and what has come of it."""

    def __init__(self, listener: AnswerListener, before: Mapping[str, Note]) -> None:
        self.listener = listener
        self.before = before
        """The connection's notes as the request was written."""
        self.began: Moment | None = None
        self.headed = False
        self.head_bytes = self.body_bytes = self.informational = 0


class Http3Connection:
    """See `carriers.HttpConnection`; a `QuicListener` of its connection."""

    def __init__(self, listener: OpeningListener, limits: Limits) -> None:
        self._opening: OpeningListener | None = listener
        self._limits = limits
        self._streams: QuicStreams | None = None
        self._http: H3Connection | None = None
        self._exchanges: dict[int, _Exchange] = {}
        self._stood = False
        self._beside_bytes = 0

    def start(
        self, dialer: QuicDialer, shot: Shot, early: tuple[Request, AnswerListener] | None
    ) -> None:
        """Dial."""

        def begin(streams: QuicStreams) -> None:
            if early is not None:
                self._ask(streams, *early)

        self._streams = dialer.prepare(shot, self, early=begin if early else None)
        self._streams.begin()

    # HttpConnection

    @property
    def usable(self) -> bool:
        """See `carriers.HttpConnection.usable`."""
        return self._stood and self._streams is not None and self._streams.usable

    def request(self, request: Request, listener: AnswerListener) -> None:
        """See `carriers.HttpConnection.request`."""
        if not self.usable or self._streams is None:
            listener.failed(closed(Stage.SEND))
            return
        self._ask(self._streams, request, listener)
        self._streams.flush()

    def close(self) -> None:
        """See `carriers.HttpConnection.close`."""
        self._opening = None
        self._exchanges.clear()
        if self._streams is not None:
            self._streams.close()

    def abandon(self) -> None:
        """See `carriers.HttpConnection.abandon`."""
        self._opening = None
        self._exchanges.clear()
        if self._streams is not None:
            self._streams.abandon()

    # QuicListener

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        self._stood = True
        if self._http is None and self._streams is not None:
            self._http = H3Connection(self._streams.quic)  # before the server's settings come
        if self._opening is not None:
            self._opening.opened(opened)

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`: before it stood to the one who opened, afterwards
        to those who wait for answers.
        """
        opening, self._opening = self._opening, None
        waiting, self._exchanges = tuple(self._exchanges.values()), {}
        if self._stood and waiting:
            for exchange in waiting:
                exchange.listener.failed(failure)
        elif opening is not None:
            opening.failed(metric, failure, done)

    def stream_left(self, stream: int, first: Moment, last: Moment) -> None:
        """See `QuicListener.stream_left`."""
        exchange = self._exchanges.get(stream)
        if exchange is not None:
            exchange.listener.left(first, last)

    def stream_acknowledged(self, stream: int, moment: Moment) -> None:
        """See `QuicListener.stream_acknowledged`. A server may take its time (RFC 9000, 13.2.1),
        and one that comes behind the answer says nothing more.
        """
        exchange = self._exchanges.get(stream)
        if exchange is not None and exchange.began is None:
            exchange.listener.acknowledged(moment)

    def stream_data(self, stream: int, data: bytes, fin: bool, moment: Moment) -> None:
        """See `QuicListener.stream_data`."""
        http, exchange = self._http, self._exchanges.get(stream)
        if http is None:
            return
        if exchange is None:
            self._beside_bytes += len(data)
        elif exchange.began is None:
            exchange.began = moment
        if exchange is not None and not exchange.headed:
            exchange.head_bytes += len(data)
        if self._too_much(stream, exchange):
            return
        try:
            events = http.handle_event(StreamDataReceived(data, fin, stream))
        except Exception as error:  # noqa: BLE001  # it parses what strangers send
            if self._streams is not None:
                self._streams.stumbled(error)
            return
        self._take_all(events, moment)
        if exchange is not None and fin and self._exchanges.get(stream) is exchange:
            self._look_at_end(stream, exchange)
        if self._streams is not None:
            self._streams.flush()  # what QPACK has to say

    def stream_refused(self, stream: int, code: int, moment: Moment) -> None:
        """See `QuicListener.stream_refused`."""
        del moment
        exchange = self._exchanges.pop(stream, None)
        if self._http is not None:
            self._http.handle_event(StreamReset(code, stream))
        if exchange is not None:
            word = _CODES.get(code, f"code {code:#x}")
            detail = f"the server has reset the stream: {word}"
            exchange.listener.failed(Failure(FailureKind.RESET, Stage.WAIT, detail=detail))

    # Steps

    def _ask(self, streams: QuicStreams, request: Request, listener: AnswerListener) -> None:
        if self._http is None:
            self._http = H3Connection(streams.quic)
        stream = streams.quic.get_next_available_stream_id()
        self._exchanges[stream] = _Exchange(listener, streams.notes())
        body = request.body
        self._http.send_headers(stream, _headers(request), end_stream=not body)
        if body:
            self._http.send_data(stream, body, end_stream=True)

    def _too_much(self, stream: int, exchange: _Exchange | None) -> bool:
        """Whether a server says more than it may before it comes to the point."""
        if exchange is not None and exchange.head_bytes > 2 * self._limits.header_bytes:
            failure = protocol_error(f"more than {self._limits.header_bytes} bytes of headers")
            self._break(stream, failure)
            return True
        if self._beside_bytes > SERVER_STREAM_BYTES and self._streams is not None:
            self._streams.fail(protocol_error(f"{self._beside_bytes} bytes beside the answers"))
            return True
        return False

    def _take_all(self, events: list[H3Event], moment: Moment) -> None:
        """All of one datagram; the pieces of a body together."""
        for stream in dict.fromkeys(
            event.stream_id
            for event in events
            if isinstance(event, HeadersReceived | DataReceived) and event.push_id is None
        ):
            pieces: list[bytes] = []
            ended = False
            for event in events:
                if isinstance(event, HeadersReceived) and event.stream_id == stream:
                    self._take_headers(stream, event, moment)
                    ended = ended or event.stream_ended
                elif isinstance(event, DataReceived) and event.stream_id == stream:
                    pieces.append(event.data)
                    ended = ended or event.stream_ended
            self._take_body(stream, b"".join(pieces), moment)
            if ended:
                self._finish(stream, moment)

    def _take_headers(self, stream: int, event: HeadersReceived, moment: Moment) -> None:
        exchange = self._exchanges.get(stream)
        if exchange is None or exchange.headed:
            return  # trailers
        too_much = too_much_head(event.headers, self._limits)
        status = next((value for name, value in event.headers if name == b":status"), b"")
        if too_much is not None:
            self._break(stream, too_much)
        elif not (status.isdigit() and len(status) == 3):
            self._break(stream, protocol_error(f"status {status[:20]!r}"))
        elif status.startswith(b"1"):
            exchange.informational += 1
            if exchange.informational > self._limits.informational:
                self._break(stream, protocol_error("too many answers of class 1xx"))
            exchange.began, exchange.head_bytes = None, 0
        else:
            exchange.headed = True
            plain = [(name, value) for name, value in event.headers if name != b":status"]
            began = exchange.began or moment
            exchange.listener.head(int(status), decoded(plain), began)

    def _take_body(self, stream: int, data: bytes, moment: Moment) -> None:
        exchange = self._exchanges.get(stream)
        if exchange is None or not data:
            return
        exchange.body_bytes += len(data)
        if exchange.body_bytes > self._limits.body_bytes:
            self._break(stream, too_much_body(self._limits))
        else:
            exchange.listener.body(data, moment)

    def _finish(self, stream: int, moment: Moment) -> None:
        exchange = self._exchanges.get(stream)
        if exchange is None:
            return
        if not exchange.headed:
            self._break(stream, protocol_error("the answer ended before its status"))
            return
        del self._exchanges[stream]
        notes: dict[str, Note] = {"protocol": "HTTP/3"}
        if exchange.informational:
            notes["informational"] = exchange.informational
        if self._streams is not None:
            notes |= _since(exchange.before, self._streams.notes())
        exchange.listener.complete(moment, notes)

    def _look_at_end(self, stream: int, exchange: _Exchange) -> None:
        """The stream has ended, and nothing came of it: cut short, or nothing at all."""
        if not exchange.headed and not exchange.head_bytes:
            self._break(stream, protocol_error("the server ended the stream without an answer"))

    def _break(self, stream: int, failure: Failure) -> None:
        exchange = self._exchanges.pop(stream, None)
        if self._streams is not None:
            self._streams.refuse(stream)
        if exchange is not None:
            exchange.listener.failed(failure)


def _headers(request: Request) -> list[tuple[bytes, bytes]]:
    given = [(name, value) for name, value in request.headers if name not in HOP_HEADERS]
    if request.body or request.method in METHODS_WITH_BODY:
        given.append(("content-length", str(len(request.body))))
    pseudo = [
        (":method", request.method),
        (":scheme", "https"),
        (":authority", request.authority),
        (":path", request.path),
    ]
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in (*pseudo, *given)]


def _since(before: Mapping[str, Note], after: Mapping[str, Note]) -> dict[str, Note]:
    """Notes at the end of an exchange; of what counts up only what it has added."""
    notes = dict(after)
    for name in ("flow_stalls", "flow_stall_ns"):
        value, old = after.get(name, 0), before.get(name, 0)
        if isinstance(value, int) and isinstance(old, int):
            added = value - old
            if added:
                notes[name] = added
            else:
                notes.pop(name, None)
    return notes


class Http3Dialer:
    """See `carriers.HttpDialer`. Raises ConfigError where a file cannot be used."""

    def __init__(
        self, environment: ProbeEnvironment, settings: QuicSettings, limits: Limits | None = None
    ) -> None:
        self._quic = QuicDialer(environment, settings)
        self._limits = limits or Limits()

    def dial(
        self,
        shot: Shot,
        listener: OpeningListener,
        early: tuple[Request, AnswerListener] | None = None,
    ) -> Http3Connection:
        """See `carriers.HttpDialer.dial`."""
        connection = Http3Connection(listener, self._limits)
        connection.start(self._quic, shot, early)
        return connection

    async def drain(self) -> None:
        """See `carriers.HttpDialer.drain`."""
        await self._quic.drain()

    def close(self) -> None:
        """See `carriers.HttpDialer.close`."""
        self._quic.close()
