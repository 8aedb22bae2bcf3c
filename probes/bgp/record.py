"""What one BGP speaker said of one prefix, whatever format it came in.

`RouteUpdate` is the record that feeds write and the store keeps: one per prefix and message, one
per change of a session. AS paths are texts in the usual form (``65011 65012 {64512,64513}``):
they are compared, counted and shown far more often than taken apart.
"""

from enum import StrEnum

import msgspec


class FeedKind(StrEnum):
    """How the news came."""

    SESSION = "session"
    """A BGP session of our own, through exabgp."""
    RIS_LIVE = "ris_live"
    MRT = "mrt"
    BMP = "bmp"


class UpdateKind(StrEnum):
    """What was said."""

    ANNOUNCE = "announce"
    WITHDRAW = "withdraw"
    RIB = "rib"
    """Held already when the table was dumped: a starting state, no change."""
    PEER_UP = "peer_up"
    PEER_DOWN = "peer_down"
    """Everything that the peer had said is void (RFC 4271, 8.2)."""
    END_OF_RIB = "end_of_rib"
    """The table that a session begins with is complete (RFC 4724); `detail` is the family."""


class RouteUpdate(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """One prefix in one message of one peer.

    `id` is the same whenever the same news is read again. `time_unix_ns` is what the source says,
    `arrived_unix_ns` when we had it (equal for files); the first may lie in the future by mistake.
    `prefix` is empty for news of the session, `peer_address` too for news of the feed as a whole.
    `as_path` is as received, prepends included.
    """

    id: str
    feed: str
    """Name of the feed in the configuration, or the file."""
    feed_kind: FeedKind
    peer_address: str
    peer_asn: int
    kind: UpdateKind
    time_unix_ns: int
    arrived_unix_ns: int
    prefix: str = ""
    as_path: str = ""
    origin: str = ""
    """``igp``, ``egp`` or ``incomplete`` (RFC 4271, 5.1.1)."""
    next_hop: str = ""
    local_preference: int | None = None
    med: int | None = None
    communities: tuple[str, ...] = ()
    """Standard ones as ``65000:120``, large ones as ``65000:1:2``."""
    path_id: int | None = None
    """RFC 7911, where the session has it."""
    collector: str = ""
    """Route collector that the peer speaks to, as in ``rrc00``."""
    detail: str = ""
    """Why a session ended, in its own words."""


def without_prepends(as_path: str) -> str:
    """The path with repeated neighbours once: prepending moves nobody."""
    kept: list[str] = []
    for word in as_path.split():
        if not kept or kept[-1] != word:
            kept.append(word)
    return " ".join(kept)


def origin_of(as_path: str) -> int | None:
    """AS that announced the prefix; None of an empty path or where it ends in a set (RFC 6472)."""
    last = as_path.rsplit(None, 1)[-1:] or [""]
    return int(last[0]) if last[0].isdecimal() else None
