"""Bytes of a file as a stream of chunks: plain, gzip or bzip2, told apart by their first bytes.

What could be read of a cut-off or damaged file is handed on; then `DamagedError` is raised.
"""

import bz2
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

CHUNK = 64 * 1024
"""Bytes read at once, and the most that is unpacked at once: memory stays flat."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP_WINDOW = 31
_STEP = 16
_KEPT = "; what came before was read"


class DamagedError(Exception):
    """The compressed file ends early or is broken; the message says which."""


def read_chunks(path: Path, on_bytes: Callable[[int], None]) -> Iterator[bytes]:
    """Uncompressed chunks of `path`, without a byte order mark.

    `on_bytes` is told how many bytes were read from disk. Raises OSError, and `DamagedError` after
    the last good chunk.
    """
    with path.open("rb") as file:
        magic = file.peek(4)  # not read: a pipe cannot go back
        raw = _raw_chunks(file.read, on_bytes)
        if magic[:2] == b"\x1f\x8b":
            chunks = _gunzip(raw)
        elif magic[:3] == b"BZh":
            chunks = _bunzip(raw)
        else:
            chunks = raw
        yield from _without_mark(chunks)


def _raw_chunks(read: Callable[[int], bytes], on_bytes: Callable[[int], None]) -> Iterator[bytes]:
    while chunk := read(CHUNK):
        on_bytes(len(chunk))
        yield chunk


def _without_mark(chunks: Iterator[bytes]) -> Iterator[bytes]:
    first = b""
    for chunk in chunks:
        first += chunk
        if len(first) >= len(BYTE_ORDER_MARK):
            break
    if first := first.removeprefix(BYTE_ORDER_MARK):
        yield first
    yield from chunks


def _gunzip(raw: Iterator[bytes]) -> Iterator[bytes]:
    """Members one after the other (RFC 1952 section 2.2), zero padding between them skipped."""
    member = None
    for chunk in raw:
        data = chunk
        while data:
            if member is None:
                data = data.lstrip(b"\0")
                if not data:
                    break
                member = zlib.decompressobj(_GZIP_WINDOW)
            before = member.copy()
            try:
                unpacked = member.decompress(data, CHUNK)
            except zlib.error as error:
                yield from _rescued(before, data)
                raise DamagedError(f"the gzip data is damaged ({error}){_KEPT}") from error
            if unpacked:
                yield unpacked
            data = member.unused_data if member.eof else member.unconsumed_tail
            member = None if member.eof else member
    if member is not None:
        if unpacked := member.flush():
            yield unpacked
        raise DamagedError(f"the gzip file is cut off{_KEPT}")


def _rescued(member: "zlib._Decompress", data: bytes) -> Iterator[bytes]:
    """What comes out of `data` before the damage: an error hides what its own call unpacked."""
    for start in range(0, len(data), _STEP):
        try:
            yield member.decompress(data[start : start + _STEP])
        except zlib.error:
            return


def _bunzip(raw: Iterator[bytes]) -> Iterator[bytes]:
    member = bz2.BZ2Decompressor()
    begun = False
    try:
        for chunk in raw:
            data = chunk
            while data or not member.needs_input:
                begun = True
                if unpacked := member.decompress(data, CHUNK):
                    yield unpacked
                data = b""
                if member.eof:
                    data, member, begun = member.unused_data, bz2.BZ2Decompressor(), False
    except OSError as error:
        raise DamagedError(f"the bzip2 data is damaged ({error}){_KEPT}") from error
    if begun:
        raise DamagedError(f"the bzip2 file is cut off{_KEPT}")
