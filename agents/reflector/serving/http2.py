"""HTTP/2 (RFC 9113) by h2. Frames are cut here first, so that a body's first byte has its time."""

from collections import deque
from collections.abc import Callable

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    DataReceived,
    Event,
    PingReceived,
    PriorityUpdated,
    RemoteSettingsChanged,
    RequestReceived,
    SettingsAcknowledged,
    StreamEnded,
    StreamReset,
    UnknownFrameReceived,
    WindowUpdated,
)
from h2.exceptions import H2Error
from h2.settings import SettingCodes, Settings

from pathbudget.agents.reflector.serving.framing import (
    FRAME_HEADER,
    PREFACE,
    FramingError,
    Units,
    frame_length,
)
from pathbudget.agents.reflector.serving.limits import Patience
from pathbudget.agents.reflector.serving.moments import Came
from pathbudget.agents.reflector.serving.pages import Asked, Exchange, Pages
from pathbudget.agents.reflector.serving.reply import Headers
from pathbudget.agents.reflector.serving.wire import ANSWER, BODY, IDLE, Wire

LARGEST_FRAME = 16_384
DEFAULT_WINDOW = 65_535
IMPATIENT = (
    PingReceived,
    PriorityUpdated,
    RemoteSettingsChanged,
    SettingsAcknowledged,
    StreamReset,
    UnknownFrameReceived,
)
"""What costs us and asks for nothing (CVE-2019-9512 to 9518, CVE-2023-44487)."""
EMPTY_FRAME_COST = 1


def bounded_length(header: bytes) -> int:
    """Length of a frame. Raises FramingError where it is longer than we allow."""
    length = frame_length(header)
    if length > LARGEST_FRAME:
        raise FramingError("frame too large")
    return length


class Http2:
    """One connection; see `wire.Version`."""

    def __init__(self, pages: Pages, wire: Wire) -> None:
        self.pages = pages
        self.wire = wire
        limits = pages.limits
        self.http = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        # Only initial values are sent with the first frame, and count from the first request on.
        self.http.local_settings = Settings(
            client=False,
            initial_values={
                SettingCodes.INITIAL_WINDOW_SIZE: limits.window_bytes,
                SettingCodes.MAX_CONCURRENT_STREAMS: limits.concurrent,
                SettingCodes.MAX_HEADER_LIST_SIZE: limits.header_bytes,
            },
        )
        self.http.initiate_connection()
        self.http.increment_flow_control_window(limits.window_bytes - DEFAULT_WINDOW)
        self._streams: dict[int, Http2Stream] = {}
        self._units = Units(FRAME_HEADER, bounded_length)
        self._preface = len(PREFACE)
        self._patience = Patience(wire.now_ns())
        self._requests = 0
        self._over = False
        self.phase = IDLE
        self.since_ns = wire.now_ns()
        self.flush()

    def receive(self, data: bytes, began: Came, ended: Came) -> None:
        """See `wire.Version.receive`."""
        if self._over:
            return
        if self._preface:
            greeting, data = data[: self._preface], data[self._preface :]
            self._preface -= len(greeting)
            self._hand_over(greeting, began, ended)
        try:
            for frame, first, last in self._units.feed(data, began, ended):
                if not self._over:
                    self._hand_over(frame, first, last)
        except FramingError:
            self._end(ErrorCodes.FRAME_SIZE_ERROR)

    def closed(self) -> None:
        """See `wire.Version.closed`."""
        self._over = True
        for stream in self._streams.values():
            stream.exchange_over()
        self._streams.clear()

    def flush(self, left: Callable[[int], None] | None = None) -> None:
        """Send what h2 has made."""
        self.wire.write(self.http.data_to_send(), left)

    def forget(self, number: int) -> None:
        """A stream is done on our side."""
        if (stream := self._streams.pop(number, None)) is not None:
            stream.exchange = None  # no circle of references stays behind
        self._settle()

    def _hand_over(self, frame: bytes, began: Came, ended: Came) -> None:
        try:
            events = self.http.receive_data(frame)
        except H2Error:
            self.pages.counts["bad_requests"] += 1
            self._part()
            return
        now_ns = self.wire.now_ns()
        for event in events:
            if self._patience.ends_with(_cost(event), now_ns):
                self.pages.counts["over_patience"] += 1
                self._end(ErrorCodes.ENHANCE_YOUR_CALM)
                return
            self._take(event, began, ended)
        self.flush()

    def _take(self, event: Event, began: Came, ended: Came) -> None:
        if isinstance(event, RequestReceived):
            self._ask(event, ended)
        elif isinstance(event, DataReceived):
            self._body(event, began, ended)
        elif isinstance(event, StreamEnded):
            if (stream := self._streams.get(event.stream_id)) is not None:
                stream.request_over(ended)
                self._settle()
        elif isinstance(event, StreamReset):
            self._cancel(event.stream_id)
        elif isinstance(event, WindowUpdated | RemoteSettingsChanged):
            for stream in list(self._streams.values()):
                stream.send_waiting()

    def _ask(self, event: RequestReceived, came: Came) -> None:
        fields = [(str(name), str(value)) for name, value in event.headers]
        pseudo = dict(fields[:8])
        self._requests += 1
        asked = Asked(
            pseudo.get(":method", ""),
            pseudo.get(":path", ""),
            tuple(pair for pair in fields if not pair[0].startswith(":")),
            early=self.wire.early,
        )
        stream = self._streams[event.stream_id] = Http2Stream(self, event.stream_id)
        stream.exchange = self.pages.ask(asked, stream, came)
        self.since_ns = self.wire.now_ns()
        self._settle()
        if self._requests >= self.pages.limits.requests:
            self._end(ErrorCodes.NO_ERROR)

    def _body(self, event: DataReceived, began: Came, ended: Came) -> None:
        stream = self._streams.get(event.stream_id)
        if stream is not None and stream.exchange is not None:
            stream.exchange.body(len(event.data), began, ended)
        if event.flow_controlled_length:
            self.http.acknowledge_received_data(event.flow_controlled_length, event.stream_id)

    def _cancel(self, number: int) -> None:
        if (stream := self._streams.pop(number, None)) is not None:
            stream.exchange_over()
            self._settle()

    def _settle(self) -> None:
        """Say what is waited for."""
        reading = any(not stream.asked for stream in self._streams.values())
        phase = BODY if reading else ANSWER if self._streams else IDLE
        if phase != self.phase:
            self.phase = phase
            self.since_ns = self.wire.now_ns()

    def _end(self, code: ErrorCodes) -> None:
        if not self._over:
            self.http.close_connection(error_code=code)
        self._part()

    def _part(self) -> None:
        self.flush()
        self.closed()
        self.wire.finish()


def _cost(event: Event) -> int:
    if isinstance(event, DataReceived):
        return 0 if event.data or event.stream_ended else EMPTY_FRAME_COST
    return 1 if isinstance(event, IMPATIENT) else 0


class Http2Stream:
    """One request on its connection; see `reply.Reply`."""

    def __init__(self, connection: Http2, number: int) -> None:
        self._connection = connection
        self._http = connection.http
        self._number = number
        self._waiting: deque[tuple[bytes, bool, Callable[[int], None] | None]] = deque()
        self.exchange: Exchange | None = None
        self.asked = False
        """Whether the request is whole."""

    def head(self, status: int, headers: Headers, *, end: bool) -> None:
        """See `reply.Reply.head`."""
        self._http.send_headers(self._number, [(":status", str(status)), *headers], end_stream=end)
        self._connection.flush()
        if end:
            self._connection.forget(self._number)

    def body(self, data: bytes, *, end: bool, left: Callable[[int], None] | None = None) -> None:
        """See `reply.Reply.body`. What flow control holds back is sent when it may be."""
        self._waiting.append((data, end, left))
        self.send_waiting()

    def stamps(self) -> bool:
        """See `reply.Reply.stamps`."""
        return self._connection.wire.stamps()

    def full(self) -> bool:
        """See `reply.Reply.full`."""
        return bool(self._waiting) or self._connection.wire.full()

    def read_no_more(self) -> None:
        """See `reply.Reply.read_no_more`."""
        self.asked = True

    def abort(self) -> None:
        """See `reply.Reply.abort`."""
        self._connection.wire.abort("faults")

    def request_over(self, came: Came) -> None:
        """The request is whole."""
        self.asked = True
        if self.exchange is not None:
            self.exchange.complete(came)

    def exchange_over(self) -> None:
        """Nobody wants an answer any more."""
        self._waiting.clear()
        if self.exchange is not None:
            self.exchange.cancel()
            self.exchange = None

    def send_waiting(self) -> None:
        """Send as much as flow control allows."""
        while self._waiting:
            data, end, left = self._waiting[0]
            room = min(
                self._http.local_flow_control_window(self._number),
                self._http.max_outbound_frame_size,
            )
            if len(data) <= room:
                self._waiting.popleft()
                self._http.send_data(self._number, data, end_stream=end)
                self._connection.flush(left)
                if end:
                    self._connection.forget(self._number)
                continue
            if room <= 0:
                return
            self._http.send_data(self._number, data[:room])
            self._connection.flush()
            self._waiting[0] = (data[room:], end, left)
