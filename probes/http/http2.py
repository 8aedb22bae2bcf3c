"""HTTP/2 (RFC 9113) by h2: requests side by side on one connection. Sans-IO.

h2 takes GOAWAY for the end of everything, though requests under way are still answered (section
6.8): those frames are read here, and the others by h2.
"""

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
)
from h2.events import Event as H2Event
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings

from pathbudget.probes.carriers import Moment, Request
from pathbudget.probes.failures import closed
from pathbudget.probes.http import http2_frames as frames
from pathbudget.probes.http.exchanges import (
    Body,
    Broken,
    Event,
    Head,
    Outgoing,
    Whole,
    cut_short,
    decoded,
    printable,
    protocol_error,
    too_much_body,
    too_much_head,
)
from pathbudget.probes.http.settings import Limits
from pathbudget.probes.record import Failure, FailureKind, Stage

RECEIVE_WINDOW_BYTES = 1 << 24
"""That a download never waits for us: 16 MiB is 400 ms at 330 Mbit/s, and nothing is kept of it."""
FIRST_WINDOW_BYTES = 65_535
IDLE_FRAMES = 10_000
"""How many frames that carry nothing (PING, SETTINGS, empty DATA ...) may come between one request
and the next: we answer some of them, to somebody who may never read that.
"""


class _Stream:
    """One request under way."""

    def __init__(self) -> None:
        self.headed = False
        self.received = 0
        self.informational = 0
        self.began: Moment | None = None


class Http2Exchanges:
    """See `exchanges.Exchanges`. The key of a request is the number of its stream."""

    def __init__(self, limits: Limits, scheme: str) -> None:
        self._limits = limits
        self._scheme = scheme
        self._connection = _connection(limits)
        self._cutter = frames.FrameCutter()
        self._streams: dict[int, _Stream] = {}
        self._sending: dict[int, memoryview] = {}
        self._stalled: set[int] = set()
        self._pieces: list[Outgoing] = []
        self._going = False
        """No other request may be sent."""
        self._broken = False
        self._idle_frames = 0

    @property
    def usable(self) -> bool:
        """See `Exchanges.usable`."""
        connection = self._connection
        allowed = connection.remote_settings.max_concurrent_streams
        return not self._going and connection.open_outbound_streams < allowed

    @property
    def stalled(self) -> frozenset[int]:
        """See `Exchanges.stalled`."""
        return frozenset(self._stalled)

    def ask(self, request: Request) -> int:
        """See `Exchanges.ask`."""
        self._take_pieces()
        self._idle_frames = 0
        connection = self._connection
        key = connection.get_next_available_stream_id()
        headers = [
            (":method", request.method),
            (":scheme", self._scheme),
            (":authority", request.authority),
            (":path", request.path),
            *request.headers,
        ]
        if request.body:
            headers.append(("content-length", str(len(request.body))))
        encoded = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        connection.send_headers(key, encoded, end_stream=not request.body)
        self._streams[key] = _Stream()
        self._take_pieces(key, begins=True, ends=not request.body)
        if request.body:
            self._sending[key] = memoryview(request.body)
        return key

    def outgoing(self) -> list[Outgoing]:
        """See `Exchanges.outgoing`."""
        self._take_pieces()
        for key in tuple(self._sending):
            self._send_body(key)
        pieces, self._pieces = self._pieces, []
        return pieces

    def receive(self, data: bytes, moment: Moment) -> list[Event]:
        """See `Exchanges.receive`."""
        events: list[Event] = []
        if self._broken:
            return events
        try:
            for frame in self._cutter.feed(data, moment):
                self._take_frame(frame, events)
        except (H2Error, frames.FrameError) as error:
            self._break_all(events, protocol_error(str(error) or type(error).__name__))
        return _joined(events)

    def ended(self) -> list[Event]:
        """See `Exchanges.ended`."""
        self._going = self._broken = True
        events: list[Event] = []
        for key, stream in tuple(self._streams.items()):
            self._drop(key)
            failure = closed(Stage.WAIT) if stream.began is None else cut_short()
            events.append(Broken(key, failure))
        return events

    def goodbye(self) -> bytes:
        """See `Exchanges.goodbye`."""
        try:
            self._connection.close_connection()
        except H2Error:
            return b""
        return self._connection.data_to_send()

    # Out

    def _take_pieces(
        self, key: int | None = None, *, begins: bool = False, ends: bool = False
    ) -> None:
        data = self._connection.data_to_send()
        if data:
            self._pieces.append(Outgoing(data, key, begins, ends))

    def _send_body(self, key: int) -> None:
        """As much as the other end's window lets go."""
        connection, rest = self._connection, self._sending[key]
        self._stalled.discard(key)
        while rest:
            window = connection.local_flow_control_window(key)
            count = min(window, connection.max_outbound_frame_size, len(rest))
            if count <= 0:
                self._stalled.add(key)
                self._sending[key] = rest
                return
            last = count == len(rest)
            connection.send_data(key, bytes(rest[:count]), end_stream=last)
            self._take_pieces(key, ends=last)
            rest = rest[count:]
        del self._sending[key]

    # In

    def _take_frame(self, frame: frames.Frame, events: list[Event]) -> None:
        if frame.kind == frames.GOAWAY:
            self._take_goaway(frame, events)
            return
        stream = self._streams.get(frame.stream)
        if frame.kind == frames.HEADERS and stream is not None and not stream.headed:
            stream.began = frame.began
        if frame.kind != frames.HEADERS and (
            frame.kind != frames.DATA or len(frame.data) <= frames.FRAME_HEADER_BYTES
        ):
            self._idle_frames += frame.kind != frames.WINDOW_UPDATE or not self._sending
            if self._idle_frames > IDLE_FRAMES:
                raise frames.FrameError("too many frames that carry nothing")
        for event in self._connection.receive_data(frame.data):
            self._take_event(event, frame.began, events)

    def _take_event(self, event: H2Event, moment: Moment, events: list[Event]) -> None:
        key = getattr(event, "stream_id", None)
        stream = None if key is None else self._streams.get(key)
        if key is None or stream is None:
            return
        if isinstance(event, InformationalResponseReceived):
            stream.informational += 1
            if stream.informational > self._limits.informational:
                raise frames.FrameError(f"{stream.informational} answers of class 1xx")
        elif isinstance(event, ResponseReceived):
            self._take_head(key, stream, event, moment, events)
        elif isinstance(event, DataReceived):
            self._take_data(key, stream, event, events)
        elif isinstance(event, StreamEnded):
            self._drop(key)
            events.append(Whole(key, "HTTP/2", stream.informational))
        elif isinstance(event, StreamReset):
            self._drop(key)
            detail = f"the server reset the stream: {_name(event.error_code)}"
            events.append(Broken(key, Failure(FailureKind.RESET, Stage.WAIT, detail=detail)))

    def _take_head(
        self,
        key: int,
        stream: _Stream,
        event: ResponseReceived,
        moment: Moment,
        events: list[Event],
    ) -> None:
        raw = [(bytes(name), bytes(value)) for name, value in event.headers or ()]
        failure = too_much_head(raw, self._limits)
        headers = decoded(raw)
        status = dict(headers).get(":status", "")
        if failure is None and not (len(status) == 3 and status.isascii() and status.isdigit()):
            failure = protocol_error(f"status {status!r}")
        if failure is not None:
            self._break_all(events, failure)
            return
        stream.headed = True
        plain = tuple(pair for pair in headers if not pair[0].startswith(":"))
        events.append(Head(key, int(status), plain, stream.began or moment))

    def _take_data(
        self, key: int, stream: _Stream, event: DataReceived, events: list[Event]
    ) -> None:
        counted = event.flow_controlled_length or 0
        stream.received += counted
        if stream.received > self._limits.body_bytes:
            self._break_all(events, too_much_body(self._limits))
            return
        self._connection.acknowledge_received_data(counted, key)
        if event.data:
            events.append(Body(key, bytes(event.data)))

    def _take_goaway(self, frame: frames.Frame, events: list[Event]) -> None:
        """Those that came after the last one that the server has looked at get no answer."""
        payload = frame.data[frames.FRAME_HEADER_BYTES :]
        if frame.stream or len(payload) < frames.GOAWAY_BYTES:
            raise frames.FrameError("a GOAWAY that is none")
        self._going = True
        self._idle_frames += 1
        last = int.from_bytes(payload[:4], "big") & 0x7FFFFFFF
        code = int.from_bytes(payload[4:8], "big")
        why = f"the server goes away: {_name(code)}"
        if len(payload) > frames.GOAWAY_BYTES:
            why += f", {payload[frames.GOAWAY_BYTES :].decode('latin-1')}"
        failure = Failure(FailureKind.CLOSED, Stage.WAIT, detail=printable(why))
        for key in tuple(self._streams):
            if key > last:
                self._drop(key)
                events.append(Broken(key, failure))

    def _drop(self, key: int) -> None:
        self._streams.pop(key, None)
        self._sending.pop(key, None)
        self._stalled.discard(key)

    def _break_all(self, events: list[Event], failure: Failure) -> None:
        self._going = self._broken = True
        for key in tuple(self._streams):
            self._drop(key)
        events.append(Broken(None, failure))


def _connection(limits: Limits) -> H2Connection:
    """A client whose first words are ready to be sent."""
    connection = H2Connection(H2Configuration(client_side=True, header_encoding=None))
    connection.local_settings = Settings(
        client=True,
        initial_values={
            SettingCodes.ENABLE_PUSH: 0,
            SettingCodes.INITIAL_WINDOW_SIZE: RECEIVE_WINDOW_BYTES,
            SettingCodes.MAX_HEADER_LIST_SIZE: limits.header_bytes,
        },
    )
    connection.decoder.max_header_list_size = limits.header_bytes
    connection.initiate_connection()
    connection.increment_flow_control_window(RECEIVE_WINDOW_BYTES - FIRST_WINDOW_BYTES)
    return connection


def _joined(events: list[Event]) -> list[Event]:
    """Neighbouring pieces of one body as one: they came in one packet."""
    joined: list[Event] = []
    for event in events:
        before = joined[-1] if joined else None
        if isinstance(event, Body) and isinstance(before, Body) and before.key == event.key:
            joined[-1] = Body(event.key, before.data + event.data)
        else:
            joined.append(event)
    return joined


def _name(code: int | None) -> str:
    if code is None:
        return "no reason"
    try:
        return ErrorCodes(code).name
    except ValueError:
        return f"error {code}"
