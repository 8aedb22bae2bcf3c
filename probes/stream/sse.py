"""Server-sent events (WHATWG HTML, 9.2): bytes in, events out. No socket, no clock."""

from typing import NamedTuple

from pathbudget.probes.stream.lines import LINE_BYTES, LineSplitter, StreamFormatError

EVENT_BYTES = 4 << 20
"""The largest event that is taken, in bytes of all its data lines."""
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerEvent(NamedTuple):
    """One event as it is dispatched; `last_id` is the last one that the stream has set so far."""

    data: str
    kind: str = "message"
    last_id: str = ""


class EventParser:
    """Takes the body in pieces cut anywhere. What the stream ends in without a blank line is no
    event and is dropped, as the standard has it.
    """

    def __init__(self, *, line_bytes: int = LINE_BYTES, event_bytes: int = EVENT_BYTES) -> None:
        self._lines = LineSplitter(line_bytes)
        self._event_bytes = event_bytes
        self._head: bytes | None = b""
        """The first bytes, until it is known whether they are a byte order mark; then None."""
        self._data: list[bytes] = []
        self._size = 0
        self._kind = b""
        self._last_id = ""
        self.retry_ms: int | None = None
        """How long the server asks clients to wait before they come again."""

    def feed(self, data: bytes) -> list[ServerEvent]:
        """The events that `data` completes.

        Raises:
            StreamFormatError: a line or an event is longer than the limit.
        """
        if self._head is not None:
            data = self._without_mark(data)
        events: list[ServerEvent] = []
        for line in self._lines.feed(data):
            if line:
                self._take(line)
            elif (event := self._dispatch()) is not None:
                events.append(event)
        return events

    def _without_mark(self, data: bytes) -> bytes:
        assert self._head is not None
        data = self._head + data
        if len(data) < len(_BYTE_ORDER_MARK) and _BYTE_ORDER_MARK.startswith(data):
            self._head = data
            return b""
        self._head = None
        return data.removeprefix(_BYTE_ORDER_MARK)

    def _take(self, line: bytes) -> None:
        field, _, value = line.partition(b":")  # a comment has an empty name
        value = value.removeprefix(b" ")
        if field == b"data":
            self._size += len(value) + 1
            if self._size > self._event_bytes:
                raise StreamFormatError(f"an event larger than {self._event_bytes} bytes")
            self._data.append(value)
        elif field == b"event":
            self._kind = value
        elif field == b"id" and b"\0" not in value:
            self._last_id = _text(value)
        elif field == b"retry" and value.isdigit() and len(value) < 16:
            self.retry_ms = int(value)

    def _dispatch(self) -> ServerEvent | None:
        data, kind = self._data, self._kind
        self._data, self._size, self._kind = [], 0, b""
        if not data:
            return None
        return ServerEvent(_text(b"\n".join(data)), _text(kind) or "message", self._last_id)


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
