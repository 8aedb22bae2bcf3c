"""Frames of HTTP/2 (RFC 9113, section 4), cut from a stream of bytes, each with when it began."""

from collections.abc import Iterator
from typing import NamedTuple

from pathbudget.probes.carriers import Moment

FRAME_HEADER_BYTES = 9
LARGEST_FRAME_BYTES = 16_384
"""We never allow more (SETTINGS_MAX_FRAME_SIZE)."""

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS = 0, 1, 2, 3, 4
PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = 5, 6, 7, 8, 9
GOAWAY_BYTES = 8


class Frame(NamedTuple):
    """One frame; `data` is all of it, its header too."""

    kind: int
    stream: int
    data: bytes
    began: Moment
    """When the packet with its first byte came."""


class FrameError(Exception):
    """What comes is no HTTP/2."""


class FrameCutter:
    """Bytes in, whole frames out; never holds more than one frame that is not whole."""

    def __init__(self) -> None:
        self._rest = b""
        self._began: Moment | None = None
        self._first = True

    def feed(self, data: bytes, moment: Moment) -> Iterator[Frame]:
        """Take bytes. Raises FrameError; nothing can be read after that."""
        began = moment if self._began is None or not self._rest else self._began
        data = self._rest + data if self._rest else data
        at = 0
        while len(data) - at >= FRAME_HEADER_BYTES:
            length = int.from_bytes(data[at : at + 3], "big")
            kind = data[at + 3]
            self._check(data, at, length, kind)
            end = at + FRAME_HEADER_BYTES + length
            if end > len(data):
                break
            stream = int.from_bytes(data[at + 5 : at + 9], "big") & 0x7FFFFFFF
            yield Frame(kind, stream, data[at:end], began)
            at, began = end, moment
        self._rest, self._began = data[at:], began

    def _check(self, data: bytes, at: int, length: int, kind: int) -> None:
        if self._first:
            if data[at:].startswith(b"HTTP/1"):
                raise FrameError("the server answers in HTTP/1")
            if kind != SETTINGS:
                raise FrameError("the server does not begin with its settings")
            self._first = False
        if length > LARGEST_FRAME_BYTES:
            raise FrameError(f"a frame of {length} bytes")
