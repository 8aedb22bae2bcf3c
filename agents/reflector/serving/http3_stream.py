"""One request over HTTP/3 and its answer, on a connection of aioquic."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

from aioquic.h3.connection import ErrorCode, H3Connection
from aioquic.quic.connection import QuicConnection

from pathbudget.agents.reflector.serving.moments import Came
from pathbudget.agents.reflector.serving.pages import Exchange
from pathbudget.agents.reflector.serving.reply import Headers

Left = Callable[[int], None]


class Carrying(Protocol):
    """The connection of a request, as the request sees it."""

    quic: QuicConnection
    http: H3Connection | None

    def transmit(self) -> None:
        """Send what is to be sent."""

    def forget(self, number: int) -> None:
        """A stream is done on our side."""

    def abort(self, reason: str) -> None:
        """End the connection."""

    def stamps(self) -> bool:
        """See `reply.Reply.stamps`."""
        ...

    def when_left(self, key: int, left: Left) -> None:
        """Have `left` told the stamp of a datagram."""


@dataclass(slots=True)
class Http3Stream:
    """One request on its connection; see `reply.Reply`."""

    connection: Carrying
    number: int
    most_kept: int
    """Bytes that may wait to be sent or acknowledged before the stream is full."""
    exchange: Exchange | None = None
    asked: bool = False
    """Whether the request is whole, or the rest of it of no interest."""
    whole: bool = False
    """Whether all of it has come."""
    leaving: list[tuple[int, Left]] = field(default_factory=list[tuple[int, Left]])
    """Offsets in the stream that are to leave, and who wants to know."""

    def head(self, status: int, headers: Headers, *, end: bool) -> None:
        """See `reply.Reply.head`."""
        fields = [(name.encode(), value.encode()) for name, value in headers]
        self._http().send_headers(self.number, [(b":status", b"%d" % status), *fields], end)
        self._written(end=end)

    def body(self, data: bytes, *, end: bool, left: Left | None = None) -> None:
        """See `reply.Reply.body`."""
        self._http().send_data(self.number, data, end)
        if left is not None and (sender := self._sender()) is not None:
            self.leaving.append((int(sender._buffer_stop), left))  # noqa: SLF001
        self._written(end=end)

    def stamps(self) -> bool:
        """See `reply.Reply.stamps`."""
        return self.connection.stamps()

    def full(self) -> bool:
        """See `reply.Reply.full`."""
        sender = self._sender()
        if sender is None:
            return False
        kept = int(sender._buffer_stop - sender._buffer_start)  # noqa: SLF001
        return kept > self.most_kept

    def read_no_more(self) -> None:
        """See `reply.Reply.read_no_more`."""
        if not self.asked:
            self.asked = True
            self.connection.quic.stop_stream(self.number, ErrorCode.H3_NO_ERROR)

    def abort(self) -> None:
        """See `reply.Reply.abort`."""
        self.connection.abort("faults")

    def request_over(self, came: Came) -> None:
        """The request is whole."""
        self.whole = True
        if not self.asked:
            self.asked = True
            if self.exchange is not None:
                self.exchange.complete(came)

    def exchange_over(self) -> None:
        """Nobody wants an answer any more."""
        self.leaving.clear()
        if self.exchange is not None:
            self.exchange.cancel()
            self.exchange = None

    def note_leaving(self, key: int | None) -> None:
        """Datagrams were sent, the last with this key: what has left with them?"""
        if not self.leaving or key is None:
            return
        sender = self._sender()
        highest = int(sender.highest_offset) if sender is not None else self.leaving[-1][0]
        while self.leaving and self.leaving[0][0] <= highest:
            self.connection.when_left(key, self.leaving.pop(0)[1])

    def _written(self, *, end: bool) -> None:
        self.connection.transmit()
        if end:
            self.connection.forget(self.number)

    def _http(self) -> H3Connection:
        assert self.connection.http is not None
        return self.connection.http

    def _sender(self) -> Any:
        """The sending half of the stream in aioquic, which has no other word for how far it is."""
        stream = self.connection.quic._streams.get(self.number)  # noqa: SLF001
        return None if stream is None else stream.sender
