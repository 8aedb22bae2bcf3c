"""HTTP/1.1 (RFC 9112) by h11, and the upgrade to WebSocket (RFC 6455 section 4)."""

from collections.abc import Callable

import h11

from pathbudget.agents.reflector.serving.moments import Came
from pathbudget.agents.reflector.serving.pages import Asked, Exchange, Pages
from pathbudget.agents.reflector.serving.reply import Headers
from pathbudget.agents.reflector.serving.websocket import WebSocket, accepted, rejects
from pathbudget.agents.reflector.serving.wire import ANSWER, BODY, HEAD, IDLE, Wire

REASONS = {
    200: b"OK",
    204: b"No Content",
    400: b"Bad Request",
    401: b"Unauthorized",
    404: b"Not Found",
    405: b"Method Not Allowed",
    413: b"Content Too Large",
    431: b"Request Header Fields Too Large",
    501: b"Not Implemented",
    505: b"HTTP Version Not Supported",
}
SERVER = ("server", "pathbudget-reflector")


class Http1:
    """One connection; see `wire.Version`. Also the `reply.Reply` of its request under way."""

    def __init__(self, pages: Pages, wire: Wire) -> None:
        self._pages = pages
        self._wire = wire
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=pages.limits.header_bytes)
        self._exchange: Exchange | None = None
        self._socket: WebSocket | None = None
        self._asked: Asked | None = None
        self._over = False
        self._requests = 0
        self.phase = IDLE
        self.since_ns = wire.now_ns()

    def receive(self, data: bytes, began: Came, ended: Came) -> None:
        """See `wire.Version.receive`."""
        if self._socket is not None:
            self._socket.receive(data)
            return
        if self._over:
            return
        if self.phase == IDLE:
            self._now_in(HEAD)
        self._http.receive_data(data)
        self._read_events(began, ended)

    def closed(self) -> None:
        """See `wire.Version.closed`."""
        self._over = True
        if self._exchange is not None:
            self._exchange.cancel()
            self._exchange = None
        self._socket = None

    def head(self, status: int, headers: Headers, *, end: bool) -> None:
        """See `reply.Reply.head`."""
        if self._asked is not None and self._asked.websocket and status == 200:
            self._upgrade(headers)
            return
        named = [(name.encode(), value.encode()) for name, value in (*headers, SERVER)]
        self._say(h11.Response(status_code=status, headers=named, reason=REASONS.get(status, b"")))
        if end:
            self._end()

    def body(self, data: bytes, *, end: bool, left: Callable[[int], None] | None = None) -> None:
        """See `reply.Reply.body`."""
        if self._socket is not None:
            self._socket.send(data, end=end, left=left)
            if end:
                self._now_in(IDLE)
            return
        self._say(h11.Data(data=data), left)
        if end:
            self._end()

    def stamps(self) -> bool:
        """See `reply.Reply.stamps`."""
        return self._wire.stamps()

    def full(self) -> bool:
        """See `reply.Reply.full`."""
        return self._wire.full()

    def read_no_more(self) -> None:
        """See `reply.Reply.read_no_more`: the connection ends, for the rest cannot be skipped."""
        if self._http.their_state is not h11.DONE:
            self._over = True
            self._wire.finish()

    def abort(self) -> None:
        """See `reply.Reply.abort`."""
        self._wire.abort("faults")

    def _now_in(self, phase: str) -> None:
        self.phase = phase
        self.since_ns = self._wire.now_ns()

    def _read_events(self, began: Came, ended: Came) -> None:
        try:
            while not self._over and self._socket is None:
                event = self._http.next_event()
                if event is h11.NEED_DATA or event is h11.PAUSED:
                    return
                self._take(event, began, ended)
        except h11.RemoteProtocolError as error:
            self._complain(error.error_status_hint)

    def _take(self, event: object, began: Came, ended: Came) -> None:
        if isinstance(event, h11.Request):
            self._ask(event, ended)
        elif isinstance(event, h11.Data) and self._exchange is not None:
            self._exchange.body(len(event.data), began, ended)
        elif isinstance(event, h11.EndOfMessage) and self._exchange is not None:
            if self.phase == BODY:
                self._now_in(ANSWER)
            self._exchange.complete(ended)
            self._start_next()
        elif isinstance(event, h11.ConnectionClosed):
            self.closed()

    def _ask(self, request: h11.Request, came: Came) -> None:
        headers = tuple((name.decode("ascii"), _text(value)) for name, value in request.headers)
        upgrade = any(
            name == "upgrade" and value.strip().lower() == "websocket" for name, value in headers
        )
        asked = Asked(
            request.method.decode("ascii"),
            _text(request.target),
            headers,
            websocket=upgrade,
            early=self._wire.early,
        )
        self._asked = asked
        self._requests += 1
        self._now_in(BODY)
        if upgrade and (why := rejects(asked)):
            self._pages.counts[why] += 1
            self._complain(400)
            return
        self._exchange = self._pages.ask(asked, self, came)
        if self._http.they_are_waiting_for_100_continue and self._exchange.wants_body:
            self._say(h11.InformationalResponse(status_code=100, headers=[], reason=b"Continue"))

    def _say(self, event: h11.Event, left: Callable[[int], None] | None = None) -> None:
        if self._over and self._http.our_state is not h11.SEND_BODY:
            return
        data = self._http.send(event)
        if data:
            self._wire.write(data, left)

    def _end(self) -> None:
        self._say(h11.EndOfMessage())
        if not self._over:
            self._start_next()

    def _start_next(self) -> None:
        """Both sides are done: another request, or goodbye."""
        if self._http.our_state is h11.MUST_CLOSE or self._requests >= self._pages.limits.requests:
            if self._http.our_state in (h11.MUST_CLOSE, h11.DONE):
                self._over = True
                self._wire.finish()
        elif self._http.our_state is h11.DONE and self._http.their_state is h11.DONE:
            self._exchange = None
            self._http.start_next_cycle()
            self._now_in(HEAD if self._http.trailing_data[0] else IDLE)

    def _complain(self, status: int) -> None:
        """What came is no request: say so where that is still possible, and end."""
        self._pages.counts["bad_requests"] += 1
        if self._exchange is not None:
            self._exchange.cancel()
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [(b"content-length", b"0"), (b"connection", b"close")]
            reason = REASONS.get(status, b"")
            response = h11.Response(status_code=status, headers=headers, reason=reason)
            self._say(response)
            self._say(h11.EndOfMessage())
        self._over = True
        self._wire.finish()

    def _upgrade(self, headers: Headers) -> None:
        assert self._asked is not None
        self._socket = WebSocket(self._pages, self._wire)
        self._wire.write(accepted(self._asked, (*headers, SERVER)))
        self._now_in(ANSWER)
        data, _ = self._http.trailing_data
        if data:
            self._socket.receive(data)


def _text(value: bytes) -> str:
    return value.decode("latin-1")
