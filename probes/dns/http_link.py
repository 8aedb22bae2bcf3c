"""Questions over HTTPS (RFC 8484): each the body of a POST, so that no HTTP cache answers it."""

from collections.abc import Mapping

from pathbudget.probes.carriers import (
    HttpConnection,
    HttpDialer,
    Moment,
    Request,
)
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import Shot
from pathbudget.probes.dns.links import LinkListener
from pathbudget.probes.dns.told_link import ToldLink
from pathbudget.probes.record import Failure, FailureKind, Note, Stage

MEDIA_TYPE = "application/dns-message"
LONGEST_MESSAGE = 65_535
OK_FIRST, OK_LAST = 200, 299


class HttpLink(ToldLink):
    """See `links.Link`; an `OpeningListener` of its connection, one `_Exchange` per question."""

    def __init__(self, watcher: ClockWatcher, listener: LinkListener, path: str) -> None:
        super().__init__(watcher, listener)
        self._path = path
        self._authority = ""
        self._connection: HttpConnection | None = None
        self._exchange: _Exchange | None = None

    def start(self, dialer: HttpDialer, shot: Shot, port: int) -> None:
        """Dial."""
        self._authority = authority_of(shot, port)
        self._connection = dialer.dial(shot, self)

    # Link

    @property
    def usable(self) -> bool:
        """See `links.Link.usable`."""
        return self._opened and self._connection is not None and self._connection.usable

    def ask(self, wire: bytes) -> None:
        """See `links.Link.ask`."""
        if self._connection is None or self._listener is None:
            return
        headers = (("accept", MEDIA_TYPE), ("content-type", MEDIA_TYPE))
        request = Request("POST", self._authority, self._path, headers, wire)
        self._listener.asked(Moment(self._watcher.read()))
        self._exchange = _Exchange(self)
        self._connection.request(request, self._exchange)

    def close(self) -> None:
        """See `links.Link.close`."""
        self._listener = None
        if self._connection is not None:
            self._connection.close()

    def abandon(self) -> None:
        """See `links.Link.abandon`."""
        self._listener = None
        if self._connection is not None:
            self._connection.abandon()

    # OpeningListener

    # What an exchange tells.

    def left(self, exchange: "_Exchange", moment: Moment) -> None:
        """The question has left."""
        if exchange is self._exchange and self._listener is not None:
            self._listener.asked(moment)

    def complete(self, exchange: "_Exchange", body: bytes, moment: Moment) -> None:
        """The answer is whole."""
        if exchange is self._exchange and self._listener is not None:
            self._listener.answered(body, moment)

    def broke(self, exchange: "_Exchange", failure: Failure) -> None:
        """There will be no answer."""
        if exchange is self._exchange and self._listener is not None:
            self._listener.broke(failure)


class _Exchange:
    """One question and its answer. A `carriers.AnswerListener`."""

    def __init__(self, link: HttpLink) -> None:
        self._link = link
        self._status = 0
        self._media_type = ""
        self._body = bytearray()

    def left(self, first: Moment, last: Moment) -> None:
        """See `carriers.AnswerListener.left`."""
        del first
        self._link.left(self, last)

    def acknowledged(self, moment: Moment) -> None:
        """See `carriers.AnswerListener.acknowledged`: of no use to a question."""

    def head(self, status: int, headers: tuple[tuple[str, str], ...], moment: Moment) -> None:
        """See `carriers.AnswerListener.head`."""
        del moment
        self._status = status
        kind = next((value for name, value in headers if name == "content-type"), "")
        self._media_type = kind.partition(";")[0].strip().lower()

    def body(self, data: bytes, moment: Moment) -> None:
        """See `carriers.AnswerListener.body`."""
        del moment
        self._body += data
        if len(self._body) > LONGEST_MESSAGE:
            self._body.clear()
            self.failed(Failure(FailureKind.PROTOCOL, Stage.PARSE, "an answer over 65,535 octets"))

    def complete(self, moment: Moment, notes: Mapping[str, Note]) -> None:
        """See `carriers.AnswerListener.complete`."""
        del notes  # of the connection, not of the question
        if not OK_FIRST <= self._status <= OK_LAST:
            detail = f"HTTP status {self._status}"
            self.failed(Failure(FailureKind.STATUS, Stage.WAIT, detail))
        elif self._media_type != MEDIA_TYPE:
            detail = f"an answer of type {self._media_type[:60] or 'none'}"
            self.failed(Failure(FailureKind.PROTOCOL, Stage.PARSE, detail))
        else:
            self._link.complete(self, bytes(self._body), moment)

    def failed(self, failure: Failure) -> None:
        """See `carriers.AnswerListener.failed`."""
        self._link.broke(self, failure)


class HttpLinks:
    """See `links.LinkDialer`."""

    identifiers = False

    def __init__(self, http: HttpDialer, watcher: ClockWatcher, path: str, port: int) -> None:
        self._http = http
        self._watcher = watcher
        self._path = path
        self._port = port

    def dial(self, shot: Shot, listener: LinkListener, early: bytes = b"") -> HttpLink:
        """See `links.LinkDialer.dial`."""
        assert not early  # a POST may not (RFC 8470)
        link = HttpLink(self._watcher, listener, self._path)
        link.start(self._http, shot, self._port)
        return link

    async def drain(self) -> None:
        """See `links.LinkDialer.drain`."""
        await self._http.drain()

    def close(self) -> None:
        """See `links.LinkDialer.close`."""
        self._http.close()


def authority_of(shot: Shot, default_port: int) -> str:
    """Host and port as a request names them (RFC 9110, 7.2)."""
    host = shot.target.server_name or shot.target.host
    if ":" in host:
        host = f"[{host}]"
    port = shot.target.port or default_port
    return host if port == default_port else f"{host}:{port}"
