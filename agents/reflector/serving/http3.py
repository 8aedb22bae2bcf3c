"""HTTP/3 (RFC 9114) on one QUIC connection, by aioquic, driven without its sockets.

What aioquic keeps for a connection is bounded here: it makes room for everything up to the highest
offset that was announced, and holds headers and unknown frames until they are whole.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from aioquic.h3.connection import ErrorCode, H3Connection
from aioquic.h3.events import DataReceived, H3Event, HeadersReceived
from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    ConnectionIdIssued,
    ConnectionIdRetired,
    ConnectionTerminated,
    HandshakeCompleted,
    ProtocolNegotiated,
    QuicEvent,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)

from pathbudget.agents.reflector.serving.http3_stream import Http3Stream, Left
from pathbudget.agents.reflector.serving.limits import Patience
from pathbudget.agents.reflector.serving.moments import Came
from pathbudget.agents.reflector.serving.pages import Asked, Pages
from pathbudget.agents.reflector.serving.wire import ANSWER, BODY, IDLE, SECOND_NS, overdue

SIDE_STREAMS_BYTES = 1 << 20
"""On streams that carry no request, all together: settings, header compression."""
MOST_REFUSED = 1_024
"""Requests that were answered before they were whole, and still are not."""


class Endpoint(Protocol):
    """The socket below, shared by all connections."""

    def send(self, payload: bytes, address: tuple[str, int], local: str) -> int | None:
        """Send one datagram; the key of its stamp."""
        ...

    def when_left(self, key: int, left: Left) -> None:
        """Have `left` told the stamp of a datagram."""

    def stamps(self) -> bool:
        """See `reply.Reply.stamps`."""
        ...

    def known_as(self, connection: "Http3", cid: bytes) -> None:
        """Datagrams for this connection id are for it."""

    def forget(self, cid: bytes) -> None:
        """No longer so."""

    def gone(self, connection: "Http3", reason: str) -> None:
        """It is no more."""


@dataclass(slots=True)
class Holding:
    """What all connections together have made aioquic keep, in bytes."""

    most: int
    now: int = 0


class Http3:
    """One connection. `transmit` after every call; `timer_at` says when to call `tick`."""

    def __init__(
        self,
        pages: Pages,
        quic: QuicConnection,
        endpoint: Endpoint,
        holding: Holding,
        address: str,
    ) -> None:
        self.pages = pages
        self.quic = quic
        self.endpoint = endpoint
        self.address = address
        self.local = ""
        self.cids: set[bytes] = set()
        self.complete = False
        """Whether the handshake is: what is asked before is early data."""
        self.open = True
        self.http: H3Connection | None = None
        self.phase = IDLE
        self._holding = holding
        self._held = 0
        self._delivered = 0
        self._received = 0
        self._side_bytes = 0
        self._requests = 0
        self._streams: dict[int, Http3Stream] = {}
        self._refused: set[int] = set()
        self._began_ns = self.since_ns = pages.clock.monotonic_ns()
        self._patience = Patience(self._began_ns, most=1_000, per_second=200)

    def receive(self, payload: bytes, sender: tuple[str, int], came: Came) -> None:
        """One datagram."""
        self._received += len(payload)
        if self._received > self.pages.limits.connection_bytes:
            self.abort("over_bytes")
            return
        self.quic.receive_datagram(payload, sender, came.monotonic_ns / SECOND_NS)
        told = self._read_events(came)
        idle = self.phase == IDLE and not told and self.complete
        if idle and self._patience.ends_with(1, came.monotonic_ns):
            self.abort("over_patience")
            return
        self._measure()
        self.transmit()

    def tick(self) -> None:
        """Time has passed."""
        now_ns = self.pages.clock.monotonic_ns()
        self.quic.handle_timer(now_ns / SECOND_NS)
        self._read_events(Came(now_ns, self.pages.clock.unix_ns(), kernel=False))
        self.transmit()

    @property
    def timer_at(self) -> float | None:
        """When `tick` is due, monotonic seconds."""
        return self.quic.get_timer() if self.open else None

    def transmit(self) -> None:
        """Send what is to be sent."""
        if not self.open:
            return
        now = self.pages.clock.monotonic_ns() / SECOND_NS
        key = None
        for payload, address in self.quic.datagrams_to_send(now):
            sent = self.endpoint.send(payload, (address[0], address[1]), self.local)
            key = sent if sent is not None else key
        for stream in list(self._streams.values()):
            stream.note_leaving(key)

    def abort(self, reason: str) -> None:
        """End it now. One datagram says so, to who has shown to be there: for a stranger it could
        be more than three times what he sent.
        """
        if not self.open:
            return
        if self.complete:
            self.quic.close(error_code=ErrorCode.H3_EXCESSIVE_LOAD)
            self.transmit()
        self._over(reason)

    def expired(self, now_ns: int) -> str:
        """Which of its times is up, as a counter's name; nothing while it may go on."""
        phase = self.phase if self.complete else ""
        return overdue(self.pages.limits, now_ns, self._began_ns, phase, self.since_ns)

    def forget(self, number: int) -> None:
        """A stream is done on our side; the rest of its request may still come."""
        stream = self._streams.pop(number, None)
        if stream is not None:
            stream.exchange = None
        if stream is not None and not stream.whole:
            self._refused.add(number)
            if len(self._refused) > MOST_REFUSED:
                self.abort("over_patience")
                return
        self.settle()

    def stamps(self) -> bool:
        """See `reply.Reply.stamps`."""
        return self.endpoint.stamps()

    def when_left(self, key: int, left: Left) -> None:
        """See `http3_stream.Carrying.when_left`."""
        self.endpoint.when_left(key, left)

    def settle(self) -> None:
        """Say what is waited for."""
        reading = any(not stream.asked for stream in self._streams.values())
        phase = BODY if reading else ANSWER if self._streams else IDLE
        if phase != self.phase:
            self.phase = phase
            self.since_ns = self.pages.clock.monotonic_ns()

    def _read_events(self, came: Came) -> bool:
        told = False
        while self.open and (event := self.quic.next_event()) is not None:
            told = True
            self._take(event, came)
        return told

    def _take(self, event: QuicEvent, came: Came) -> None:
        if isinstance(event, ConnectionTerminated):
            self._over("closed")
            return
        if isinstance(event, ProtocolNegotiated):
            self.http = H3Connection(self.quic)
        elif isinstance(event, HandshakeCompleted):
            self._shaken(event)
        elif isinstance(event, ConnectionIdIssued):
            self.endpoint.known_as(self, event.connection_id)
        elif isinstance(event, ConnectionIdRetired):
            self.endpoint.forget(event.connection_id)
        elif isinstance(event, StreamReset | StopSendingReceived):
            self._cancel(event.stream_id)
        if isinstance(event, StreamDataReceived):
            self._delivered += len(event.data)
            self._count_side_bytes(event)
        if self.http is not None and self.open:
            self._read_http(self.http.handle_event(event), event, came)

    def _shaken(self, event: HandshakeCompleted) -> None:
        self.complete = True
        counts = self.pages.counts
        counts["quic_resumed" if event.session_resumed else "quic_full"] += 1
        if self._requests:
            counts["quic_early_data"] += 1

    def _read_http(self, events: Iterable[H3Event], cause: QuicEvent, came: Came) -> None:
        silent = isinstance(cause, StreamDataReceived)
        for event in events:
            silent = False
            if isinstance(event, HeadersReceived):
                self._ask(event, came)
            elif isinstance(event, DataReceived):
                self._body(event, came)
        if silent and isinstance(cause, StreamDataReceived):
            stream = self._streams.get(cause.stream_id)
            if stream is not None and not cause.data and cause.end_stream:
                stream.request_over(came)

    def _count_side_bytes(self, event: StreamDataReceived) -> None:
        """Bytes that no request is made of yet: aioquic keeps them until there is one."""
        if event.stream_id in self._refused:
            if event.end_stream:
                self._refused.discard(event.stream_id)
            return
        if event.stream_id in self._streams:
            return
        self._side_bytes += len(event.data)
        if self._side_bytes > SIDE_STREAMS_BYTES:
            self.abort("over_header_bytes")

    def _ask(self, event: HeadersReceived, came: Came) -> None:
        number = event.stream_id
        if number in self._streams:  # trailers
            if event.stream_ended:
                self._streams[number].request_over(came)
            return
        self._requests += 1
        if self._requests > self.pages.limits.requests:
            self.abort("over_requests")
            return
        if len(self._streams) >= self.pages.limits.concurrent:
            self.quic.reset_stream(number, ErrorCode.H3_REQUEST_REJECTED)
            self.pages.counts["over_concurrent"] += 1
            return
        fields = [(_text(name), _text(value)) for name, value in event.headers]
        pseudo = dict(fields)
        asked = Asked(
            pseudo.get(":method", ""),
            pseudo.get(":path", ""),
            tuple(pair for pair in fields if not pair[0].startswith(":")),
            early=not self.complete,
        )
        stream = self._streams[number] = Http3Stream(self, number, self.pages.limits.backlog_bytes)
        self.since_ns = came.monotonic_ns
        stream.exchange = self.pages.ask(asked, stream, came)
        if event.stream_ended:
            stream.request_over(came)
        self.settle()

    def _body(self, event: DataReceived, came: Came) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is None:
            return
        if event.data and stream.exchange is not None:
            stream.exchange.body(len(event.data), came, came)
        if event.stream_ended:
            stream.request_over(came)
            self.settle()

    def _cancel(self, number: int) -> None:
        self._refused.discard(number)
        stream = self._streams.pop(number, None)
        if stream is not None:
            stream.exchange_over()
            self.quic.reset_stream(number, ErrorCode.H3_REQUEST_CANCELLED)
            self.settle()

    def _measure(self) -> None:
        """What aioquic keeps for what has not come in order; all connections share one bound."""
        if not self.open:
            return
        used = int(self.quic._local_max_data.used)  # noqa: SLF001
        held = max(0, used - self._delivered)
        self._holding.now += held - self._held
        self._held = held
        if self._holding.now > self._holding.most:
            self.abort("over_memory")

    def _over(self, reason: str) -> None:
        self.open = False
        self._holding.now -= self._held
        self._held = 0
        for stream in self._streams.values():
            stream.exchange_over()
        self._streams.clear()
        self.endpoint.gone(self, reason if self.complete else f"{reason}_in_handshake")


def _text(octets: bytes) -> str:
    return octets.decode("latin-1")
