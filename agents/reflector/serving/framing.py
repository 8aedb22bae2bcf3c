"""Where the units of a byte stream begin and end, and when: TLS records, HTTP/2 frames. Sans-IO.

A unit can only be read when it is whole, but it began to come earlier: up to a round trip, when it
straddles two flights. Who reads a stream unit by unit knows both.
"""

from collections.abc import Callable, Iterator

from pathbudget.agents.reflector.serving.moments import Came

RECORD_HEADER = 5
"""RFC 8446 section 5.1: type, version, length."""
LARGEST_RECORD = 16_384 + 256
"""RFC 8446 section 5.2."""
FRAME_HEADER = 9
"""RFC 9113 section 4.1: length, type, flags, stream."""
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


class FramingError(Exception):
    """The bytes are not what they should be."""


def record_length(header: bytes) -> int:
    """Length of a TLS record behind its header. Raises FramingError."""
    length = int.from_bytes(header[3:5], "big")
    if not 20 <= header[0] <= 23 or header[1] != 3 or length > LARGEST_RECORD:
        raise FramingError("no TLS record")
    return length


def frame_length(header: bytes) -> int:
    """Length of an HTTP/2 frame behind its header."""
    return int.from_bytes(header[:3], "big")


class Units:
    """Cuts a stream into units. `wanted` says how much more completes the header or the unit."""

    def __init__(self, header_bytes: int, length_of: Callable[[bytes], int]) -> None:
        self._header_bytes = header_bytes
        self._length_of = length_of
        self._held = bytearray()
        self._needs = header_bytes
        self._began: Came | None = None

    @property
    def wanted(self) -> int:
        """So many bytes until there is more to know."""
        return self._needs - len(self._held)

    @property
    def within(self) -> bool:
        """Whether a unit has begun."""
        return bool(self._held)

    def feed(self, data: bytes, began: Came, ended: Came) -> Iterator[tuple[bytes, Came, Came]]:
        """Take what came; every unit that is whole, with when it began and ended.

        Raises what `length_of` raises, after the units before.
        """
        view = memoryview(data)
        while view:
            if self._began is None:
                self._began = began
            part = view[: self.wanted]
            view = view[len(part) :]
            self._held += part
            if len(self._held) == self._header_bytes:
                self._needs += self._length_of(bytes(self._held))
            if len(self._held) == self._needs:
                unit, first = bytes(self._held), self._began
                self._held.clear()
                self._needs, self._began = self._header_bytes, None
                yield unit, first, ended
