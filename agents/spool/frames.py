"""The frame: one entry as bytes of a segment, and the way from bytes back to whole frames.

header (72 bytes) | id | payload

The state is one byte that is changed in place, which needs no room on a disk that is full and
cannot be torn; so it is outside of the checksum. `written_before` counts the samples of all frames
before: whoever finds the next whole frame behind damage knows how many samples were in between.
"""

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from pathbudget.probes.errors import SpoolError

MAGIC = b"pbF\x01"
_HEADER = struct.Struct("<4sIcxHIQQIIQqQQ")
"""Magic, checksum of what follows the state, state, lengths of the id and of the payload, number,
samples before, samples, checksum of id and payload, clock of the spool, wall clock, two spare."""
HEADER_BYTES = _HEADER.size
STATE_AT = 8
_CHECKED_FROM = STATE_AT + 1
LONGEST_ID = 512
LARGEST_PAYLOAD = 1 << 30

WAITING, ACKNOWLEDGED, AGED = b"w", b"a", b"o"


class Frame(NamedTuple):
    """What a header says, and where it stands."""

    offset: int
    state: bytes
    number: int
    id_length: int
    payload_length: int
    written_before: int
    samples: int
    checksum: int
    spool_ns: int
    unix_ns: int

    @property
    def length(self) -> int:
        """Bytes of the whole."""
        return HEADER_BYTES + self.id_length + self.payload_length


def encode_frame(
    number: int,
    name: bytes,
    payload: bytes,
    *,
    samples: int,
    written_before: int,
    spool_ns: int,
    unix_ns: int,
) -> bytes:
    """The bytes of a frame that waits. Raises SpoolError for what no frame can hold."""
    if len(name) > LONGEST_ID or len(payload) > LARGEST_PAYLOAD:
        raise SpoolError(f"an entry of {len(payload)} bytes is too large for a spool")
    checksum = zlib.crc32(payload, zlib.crc32(name))
    header = bytearray(
        _HEADER.pack(
            MAGIC,
            0,
            WAITING,
            len(name),
            len(payload),
            number,
            written_before,
            samples,
            checksum,
            spool_ns,
            unix_ns,
            0,
            0,
        )
    )
    header[4:8] = zlib.crc32(header[_CHECKED_FROM:]).to_bytes(4, "little")
    return bytes(header) + name + payload


def header_at(data: bytes, offset: int) -> Frame | None:
    """The header that begins there, if one does and it is whole."""
    view = memoryview(data)[offset : offset + HEADER_BYTES]
    if len(view) < HEADER_BYTES or bytes(view[:4]) != MAGIC:
        return None
    values = _HEADER.unpack(view)
    if zlib.crc32(view[_CHECKED_FROM:]) != values[1]:
        return None
    _, _, state, id_length, payload_length, number, before, samples, checksum = values[:9]
    return Frame(
        offset,
        state,
        number,
        id_length,
        payload_length,
        before,
        samples,
        checksum,
        values[9],
        values[10],
    )


def is_whole(data: bytes, frame: Frame) -> bool:
    """Whether id and payload are there as they were written."""
    body = memoryview(data)[frame.offset + HEADER_BYTES : frame.offset + frame.length]
    return len(body) == frame.length - HEADER_BYTES and zlib.crc32(body) == frame.checksum


def next_whole(data: bytes, offset: int, above: int) -> Frame | None:
    """The first whole frame from `offset` on whose number is higher than `above`."""
    while (offset := data.find(MAGIC, offset)) >= 0:
        frame = header_at(data, offset)
        if frame is not None and frame.number > above and is_whole(data, frame):
            return frame
        offset += 1
    return None


class Gap(NamedTuple):
    """Bytes that are no whole frame; `torn` is the header of what stood there, where it is."""

    begin: int
    end: int
    torn: Frame | None


def walk(data: bytes, offset: int, above: int) -> Iterator[Frame | Gap]:
    """Every whole frame in order, and what lies between them. Numbers rise, or it is damage."""
    while offset < len(data):
        frame = header_at(data, offset)
        if frame is not None and frame.number > above and is_whole(data, frame):
            yield frame
            above, offset = frame.number, offset + frame.length
            continue
        following = next_whole(data, offset + 1, above)
        end = len(data) if following is None else following.offset
        known = frame is not None and frame.number > above
        yield Gap(offset, end, frame if known else None)
        offset = end
