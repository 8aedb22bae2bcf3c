"""Lines out of bytes that come in pieces of any size, with bounded memory. No socket."""

import re

LINE_BYTES = 1 << 20
"""The longest line that is taken, in bytes. Real events of services are some kilobytes at most."""
_ANY_END = re.compile(rb"\r\n|\n|\r")


class StreamFormatError(ValueError):
    """What the other side sends is no stream of the form that was asked for, or has no bounds."""


class LineSplitter:
    r"""Splits at LF, CRLF or a lone CR, each of which ends a line (WHATWG HTML, 9.2.6).

    A CR ends its line at once, so that an event is never held back until the next one comes; an LF
    right behind it belongs to it.
    """

    def __init__(self, limit: int = LINE_BYTES) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._after_return = False

    @property
    def pending(self) -> int:
        """Bytes held of a line that has not ended."""
        return len(self._pending)

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that end in `data`, without their ends.

        Raises:
            StreamFormatError: a line is longer than the limit.
        """
        if self._after_return and data:
            data = data.removeprefix(b"\n")
            self._after_return = False
        if not data:
            return []
        self._after_return = data.endswith(b"\r")
        lines = _ANY_END.split(data)
        if len(self._pending) + len(lines[0]) > self._limit or max(map(len, lines)) > self._limit:
            raise StreamFormatError(f"a line longer than {self._limit} bytes")
        if len(lines) == 1:
            self._pending += data
            return []
        lines[0] = bytes(self._pending) + lines[0]
        self._pending = bytearray(lines.pop())
        return lines
