"""Where records begin in a stream of MRT, also behind damage.

Collectors of old archives sometimes wrote half a header and went on with the next record. A record
counts as framed well when it can be read, or when another header follows it; else the next place
is looked for where headers follow each other and the time is near the last good one.
"""

import re

HEADER_SIZE = 12
LARGEST_RECORD = 1 << 25
"""No record is larger: whatever says so is no MRT."""

_MOST_SUBTYPE = 12
_KINDS = frozenset((*range(5, 18), 32, 33, 48, 49, 64))
_CONFIRMED_BY = 3
"""So many headers in a row are no accident."""
_NEAR_SECONDS = 1 << 16


def record_size(data: bytes | bytearray, at: int) -> int:
    """Size of the record at `at`, header included; the header must be there."""
    return HEADER_SIZE + int.from_bytes(data[at + 8 : at + 12], "big")


def looks_like_a_header(data: bytes | bytearray, at: int) -> bool:
    """Whether a record can begin at `at`."""
    kind = int.from_bytes(data[at + 4 : at + 6], "big")
    subtype = int.from_bytes(data[at + 6 : at + 8], "big")
    known = kind in _KINDS and subtype <= _MOST_SUBTYPE
    return known and record_size(data, at) <= HEADER_SIZE + LARGEST_RECORD


def next_start(
    data: bytes | bytearray, at: int, near_seconds: int, *, at_end: bool
) -> tuple[int, bool]:
    """Where the next record begins, from `at` on, and whether that is certain.

    Not certain: nothing before that place can be a record; more bytes will tell. `at_end`: no more
    bytes come, so that it is certain. What is found never depends on the pieces that bytes come in.
    """
    high = near_seconds >> 16
    words = {(high + step) & 0xFFFF for step in (-1, 0, 1)}
    begin = re.compile(b"|".join(re.escape(word.to_bytes(2, "big")) for word in words), re.DOTALL)
    for found in begin.finditer(data, at):
        start = found.start()
        if len(data) - start < HEADER_SIZE:
            return (len(data), True) if at_end else (start, False)
        time = int.from_bytes(data[start : start + 4], "big")
        if abs(time - near_seconds) > _NEAR_SECONDS:
            continue
        confirmed = _confirmed(data, start)
        if confirmed is None and not at_end:
            return start, False
        if confirmed is not False:
            return start, True
    return (len(data), True) if at_end else (max(at, len(data) - 1), False)


def _confirmed(data: bytes | bytearray, at: int) -> bool | None:
    """Whether headers follow each other from `at` on; None when the bytes end before that."""
    for _ in range(_CONFIRMED_BY):
        if at + HEADER_SIZE > len(data):
            return None
        if not looks_like_a_header(data, at):
            return False
        at += record_size(data, at)
    return True
