"""Names of updates: the same whenever the same news is read again, and in the order of time.

An id is ``TIME-ORDINAL-INDEX-DIGEST`` in hexadecimal. The ordinal counts the messages that one peer
sent within one tick of the source's clock (a second in most MRT files), so that announce, withdraw,
announce within it stay three and stay in order; the index counts the routes of one message.
"""

import hashlib
from collections import OrderedDict

_MOST = 4096


def digest_of(*parts: bytes) -> str:
    """Short fingerprint of a message and of what tells it from an equal one elsewhere."""
    fingerprint = hashlib.blake2b(digest_size=6)
    for part in parts:
        fingerprint.update(len(part).to_bytes(4, "big"))
        fingerprint.update(part)
    return fingerprint.hexdigest()


def update_id(time_unix_ns: int, ordinal: int, index: int, digest: str) -> str:
    """The id; sorts by time, ordinal, index."""
    return f"{max(time_unix_ns, 0):016x}-{ordinal:06x}-{index:05x}-{digest}"


class Ordinals:
    """Counts messages per tick and peer. Forgets the ticks that were longest ago."""

    def __init__(self) -> None:
        self._next: OrderedDict[tuple[int, str], int] = OrderedDict()

    def take(self, time_unix_ns: int, peer: str) -> int:
        """Number of this message among those of `peer` at this time, from 0."""
        key = (time_unix_ns, peer)
        number = self._next.pop(key, 0)
        self._next[key] = number + 1
        if len(self._next) > _MOST:
            self._next.popitem(last=False)
        return number
