"""A WebSocket as a carrier of streamed answers: messages come as lines of a body.

So whoever reads a chunked stream reads this one too. One connection carries one stream.
"""

from pathbudget.probes.carriers import (
    AnswerListener,
    Moment,
    Opened,
    OpeningListener,
    Phase,
    Request,
    SecureStream,
    StreamDialer,
)
from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import closed
from pathbudget.probes.record import Failure, FailureKind, Stage
from pathbudget.probes.stream.lines import StreamFormatError
from pathbudget.probes.stream.websocket import Heard, WebSocketClient

OK = 200


class WebSocketConnection:
    """See `carriers.HttpConnection`. A `carriers.StreamListener`."""

    def __init__(self, watcher: ClockWatcher, listener: OpeningListener) -> None:
        self._watcher = watcher
        self._opening: OpeningListener | None = listener
        self._answer: AnswerListener | None = None
        self._client: WebSocketClient | None = None
        self.stream: SecureStream | None = None
        self._stood = False
        self._accepted = False
        self._began: Moment | None = None
        self._request_end = -1

    # HttpConnection

    @property
    def usable(self) -> bool:
        """See `carriers.HttpConnection.usable`: only for the first request."""
        return self._stood and self._client is None

    def request(self, request: Request, listener: AnswerListener) -> None:
        """See `carriers.HttpConnection.request`."""
        assert self.stream is not None
        self._answer = listener
        self._client = WebSocketClient(request.authority, request.path, request.headers)
        wire = self._client.start()
        self._began = Moment(self._watcher.read())
        self._request_end = self.stream.write(wire)

    def close(self) -> None:
        """See `carriers.HttpConnection.close`."""
        self._answer = self._opening = None
        if self.stream is not None:
            if self._client is not None and self._accepted:
                self._write(self._client.goodbye())
            self.stream.close()

    def abandon(self) -> None:
        """See `carriers.HttpConnection.abandon`."""
        self._answer = self._opening = None
        if self.stream is not None:
            self.stream.abandon()

    # StreamListener

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        self._stood = True
        if self._opening is not None:
            self._opening.opened(opened)

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        if self._answer is not None:
            self._fail(failure)
        elif self._opening is not None:
            self._opening.failed(metric, failure, done)

    def sent(self, last_byte: int, moment: Moment) -> None:
        """See `carriers.StreamListener.sent`."""
        began = self._began
        if began is not None and self._answer is not None and last_byte >= self._request_end:
            self._began = None
            last = Moment(began.reading, moment.kernel_unix_ns)
            self._answer.left(last, last)

    def acknowledged(self, last_byte: int, moment: Moment) -> None:
        """See `carriers.StreamListener.acknowledged`."""

    def received(self, data: bytes, moment: Moment) -> None:
        """See `carriers.StreamListener.received`."""
        if self._client is None or self._answer is None:
            return
        try:
            heard = self._client.receive(data)
        except StreamFormatError as error:
            self._fail(Failure(FailureKind.PROTOCOL, Stage.PARSE, detail=str(error)))
            return
        self._write(heard.answer)
        self._tell(heard, moment)

    def ended(self) -> None:
        """See `carriers.StreamListener.ended`."""
        self._fail(closed(Stage.WAIT))

    # Steps

    def _tell(self, heard: Heard, moment: Moment) -> None:
        answer = self._answer
        if answer is None:
            return
        if heard.status is not None:
            # What the refusal says in its body is of no interest: the status is.
            self._fail(Failure(FailureKind.STATUS, Stage.WAIT, detail=f"status {heard.status}"))
            return
        if heard.accepted:
            self._accepted = True
            answer.head(OK, (), moment)
        if heard.messages:
            answer.body(b"".join(message + b"\n" for message in heard.messages), moment)
        if heard.closed and self._answer is answer:
            self._answer = None
            answer.complete(moment, {} if self.stream is None else self.stream.notes())

    def _fail(self, failure: Failure) -> None:
        answer, self._answer = self._answer, None
        if answer is not None:
            answer.failed(failure)

    def _write(self, data: bytes) -> None:
        if data and self.stream is not None:
            self.stream.write(data)


class WebSocketDialer:
    """See `carriers.HttpDialer`; the request leaves after the handshake, `early` or not."""

    def __init__(self, streams: StreamDialer, watcher: ClockWatcher) -> None:
        self._streams = streams
        self._watcher = watcher

    def dial(
        self,
        shot: Shot,
        listener: OpeningListener,
        early: tuple[Request, AnswerListener] | None = None,
    ) -> WebSocketConnection:
        """See `carriers.HttpDialer.dial`. Early data is not used."""
        del early
        connection = WebSocketConnection(self._watcher, listener)
        connection.stream = self._streams.dial(shot, connection)
        return connection

    async def drain(self) -> None:
        """See `carriers.HttpDialer.drain`."""
        await self._streams.drain()

    def close(self) -> None:
        """See `carriers.HttpDialer.close`."""
        self._streams.close()
