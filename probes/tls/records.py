"""Which plain byte an encrypted byte carries: TLS records as seen from outside (RFC 8446, 5).

The kernel stamps and counts what leaves the socket; a request counts plain bytes.
"""

from bisect import bisect_right
from collections import deque
from typing import NamedTuple

from pathbudget.probes.clock import Reading
from pathbudget.probes.tls.server_hello import RECORD_HEADER_BYTES

APPLICATION_DATA = 23
RECORD_TAIL_BYTES = 17
"""Inner content type, and the tag of every cipher of TLS 1.3 that is in use."""
RECORDS_KEPT = 8_192
"""128 MiB of plain bytes in full records."""


class Piece(NamedTuple):
    """A run of plain bytes, and where on the wire it begins."""

    wire_start: int
    plain_start: int
    length: int
    reading: Reading
    """Just before the send call."""


def plain_lengths(data: bytes) -> list[tuple[int, int]]:
    """(offset of the payload, plain length) of each record of application data in `data`."""
    found: list[tuple[int, int]] = []
    at = 0
    while at + RECORD_HEADER_BYTES <= len(data):
        length = int.from_bytes(data[at + 3 : at + 5], "big")
        if data[at] == APPLICATION_DATA and length >= RECORD_TAIL_BYTES:
            found.append((at + RECORD_HEADER_BYTES, length - RECORD_TAIL_BYTES))
        at += RECORD_HEADER_BYTES + length
    return found


class Offsets:
    """What was written, by its place on the wire; the oldest is forgotten."""

    def __init__(self) -> None:
        self._pieces: deque[Piece] = deque(maxlen=RECORDS_KEPT)
        self.plain_bytes = 0

    def wrote_clear(self, data: bytes, wire_start: int, reading: Reading) -> None:
        """Bytes that went to the wire as they are."""
        self._pieces.append(Piece(wire_start, self.plain_bytes, len(data), reading))
        self.plain_bytes += len(data)

    def wrote(self, data: bytes, count: int, wire_start: int, reading: Reading) -> None:
        """`data` went to the wire from `wire_start` on, and carries `count` plain bytes.

        What comes before them in it (an answer to a key update) carries none.
        """
        records = plain_lengths(data)
        surplus = sum(length for _, length in records) - count
        for at, length in records:
            if surplus > 0:
                surplus -= length
            elif length:
                self._pieces.append(Piece(wire_start + at, self.plain_bytes, length, reading))
                self.plain_bytes += length

    def at(self, wire_offset: int) -> tuple[int, Reading] | None:
        """The last plain byte up to a place on the wire, and when it was handed to the kernel."""
        place = bisect_right(self._pieces, wire_offset, key=lambda piece: piece.wire_start)
        if not place:
            return None
        piece = self._pieces[place - 1]
        into = min(wire_offset - piece.wire_start, piece.length - 1)
        return piece.plain_start + into, piece.reading
