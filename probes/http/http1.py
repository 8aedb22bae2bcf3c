"""HTTP/1.1 (RFC 9112) by h11: one request at a time on a connection. Sans-IO."""

import h11

from pathbudget.probes.carriers import Moment, Request
from pathbudget.probes.failures import closed
from pathbudget.probes.http.exchanges import (
    Body,
    Broken,
    Event,
    Head,
    Outgoing,
    Whole,
    cut_short,
    decoded,
    protocol_error,
    too_much_body,
    too_much_head,
)
from pathbudget.probes.http.settings import Limits
from pathbudget.probes.record import Stage

METHODS_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class Http1Exchanges:
    """See `exchanges.Exchanges`."""

    stalled: frozenset[int] = frozenset()

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._connection = h11.Connection(h11.CLIENT, limits.header_bytes)
        self._key = 0
        self._busy = False
        self._spent = False
        """No other request may be sent."""
        self._outgoing: list[Outgoing] = []
        self._began: Moment | None = None
        """When the first byte of the answer that is being read came."""
        self._headed = False
        self._wire_bytes = self._body_bytes = self._informational = 0

    @property
    def usable(self) -> bool:
        """See `Exchanges.usable`."""
        return not self._busy and not self._spent

    def ask(self, request: Request) -> int:
        """See `Exchanges.ask`."""
        self._key += 1
        self._busy, self._headed, self._began = True, False, None
        self._wire_bytes = self._body_bytes = self._informational = 0
        headers = [("host", request.authority), *request.headers]
        if request.body or request.method in METHODS_WITH_BODY:
            headers.append(("content-length", str(len(request.body))))
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        head = h11.Request(method=request.method, target=request.path, headers=encoded)
        data = self._connection.send(head) or b""
        if request.body:
            data += self._connection.send(h11.Data(data=request.body)) or b""
        data += self._connection.send(h11.EndOfMessage()) or b""
        self._outgoing.append(Outgoing(data, self._key, begins=True, ends=True))
        return self._key

    def outgoing(self) -> list[Outgoing]:
        """See `Exchanges.outgoing`."""
        pieces, self._outgoing = self._outgoing, []
        return pieces

    def receive(self, data: bytes, moment: Moment) -> list[Event]:
        """See `Exchanges.receive`. What comes unasked ends the connection."""
        if not self._busy:
            self._spent = True
            return []
        if self._began is None:
            self._began = moment
        self._wire_bytes += len(data)
        events: list[Event] = []
        try:
            self._connection.receive_data(data)
            self._read(moment, events)
        except h11.ProtocolError as error:
            self._break(events, str(error))
        return events

    def ended(self) -> list[Event]:
        """See `Exchanges.ended`."""
        self._spent = True
        if not self._busy:
            return []
        events: list[Event] = []
        try:
            self._connection.receive_data(b"")
            assert self._began is not None or not self._headed
            if self._began is not None:
                self._read(self._began, events)
        except h11.ProtocolError:
            events.clear()
        if self._busy:
            self._busy = False
            failure = closed(Stage.WAIT) if self._began is None else cut_short()
            events.append(Broken(self._key, failure))
        return events

    def goodbye(self) -> bytes:
        """See `Exchanges.goodbye`."""
        return b""

    def _read(self, moment: Moment, events: list[Event]) -> None:
        pieces: list[bytes] = []
        while self._busy:
            event = self._connection.next_event()
            if isinstance(event, h11.InformationalResponse):
                self._informational += 1
                rest, _ = self._connection.trailing_data
                self._began = moment if rest else None
                if self._informational > self._limits.informational:
                    self._break(events, f"{self._informational} answers of class 1xx")
            elif isinstance(event, h11.Response):
                self._take_head(event, moment, events)
            elif isinstance(event, h11.Data):
                self._body_bytes += len(event.data)
                pieces.append(bytes(event.data))
            else:
                self._tell(pieces, events)
                if not isinstance(event, h11.EndOfMessage):
                    return  # more is to come
                self._finish(events)

    def _take_head(self, event: h11.Response, moment: Moment, events: list[Event]) -> None:
        failure = too_much_head(event.headers, self._limits)
        if failure is not None:
            self._busy, self._spent = False, True
            events.append(Broken(self._key, failure))
            return
        names = {bytes(name) for name, _ in event.headers}
        if b"transfer-encoding" in names and (
            b"content-length" in names or event.http_version < b"1.1"
        ):
            self._break(events, "transfer-encoding where the length is told otherwise")
            return
        self._headed = True
        headers = decoded(event.headers)
        events.append(Head(self._key, event.status_code, headers, self._began or moment))

    def _tell(self, pieces: list[bytes], events: list[Event]) -> None:
        """The pieces of one call are one piece, and bounded."""
        limits = self._limits
        framing = self._wire_bytes - self._body_bytes
        if self._body_bytes > limits.body_bytes or framing > limits.body_bytes:
            self._busy, self._spent = False, True
            events.append(Broken(self._key, too_much_body(limits)))
        elif pieces:
            events.append(Body(self._key, b"".join(pieces)))

    def _finish(self, events: list[Event]) -> None:
        if not self._busy:
            return
        self._busy = False
        version = (self._connection.their_http_version or b"1.1").decode("ascii", "replace")
        events.append(Whole(self._key, f"HTTP/{version}", self._informational))
        rest, _ = self._connection.trailing_data
        states = {self._connection.our_state, self._connection.their_state}
        if rest or states != {h11.DONE}:
            self._spent = True
        else:
            self._connection.start_next_cycle()

    def _break(self, events: list[Event], why: str) -> None:
        self._busy, self._spent = False, True
        events.append(Broken(self._key, protocol_error(why)))
