"""Measurements as messages: deflated, for a minute of samples has the same words all over.

The reader bounds what comes out, so that a message of some kilobytes cannot fill a memory.
"""

import zlib
from collections.abc import Mapping

LARGEST = 64 << 20
"""Octets of one measurement, unpacked."""
ENCODING, DEFLATE = "Content-Encoding", "deflate"
LEVEL = 1
"""The quickest: it takes an eighth of what comes, and better ones little more of it."""


class PackingError(ValueError):
    """What is in a message is not what its headers say."""


def packed(payload: bytes) -> bytes:
    """In the format of zlib (RFC 1950), as HTTP calls ``deflate``."""
    return zlib.compress(payload, LEVEL)


def unpacked(data: bytes, headers: Mapping[str, str] | None) -> bytes:
    """Raises PackingError: damaged, too large, or of an encoding that is not known."""
    encoding = (headers or {}).get(ENCODING, "")
    if not encoding:
        return data
    if encoding != DEFLATE:
        raise PackingError(f"encoding {encoding[:40]!r} is not known")
    unpacker = zlib.decompressobj()
    try:
        found = unpacker.decompress(data, LARGEST + 1)
    except zlib.error as error:
        raise PackingError(f"damaged: {error}") from None
    if len(found) > LARGEST:
        raise PackingError(f"more than {LARGEST:,} octets")
    if not unpacker.eof or unpacker.unused_data:
        raise PackingError("damaged: cut off, or followed by something else")
    return found
