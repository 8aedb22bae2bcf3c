"""Prefixes and who announces them, out of MRT dumps of routing tables (RFC 6396).

Every peer of a collector says whose a prefix is; origins are in order of how many peers say so, and
all of them are kept (MOAS).

A full table has a million prefixes and tens of peers. Of a record as nearly all are (TABLE_DUMP_V2,
unicast, one sequence of AS numbers) only the last AS number is read; every other record goes to
`probes.bgp.mrt`, which reads everything and takes fifty times as long.
"""

from collections.abc import Iterable, Iterator

from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.mrt import MrtReader
from pathbudget.probes.bgp.mrt_framing import HEADER_SIZE, looks_like_a_header, record_size
from pathbudget.probes.bgp.record import FeedKind, RouteUpdate, UpdateKind
from pathbudget.sites.prefix_table import Prefix, packed_address

TABLE_DUMP, TABLE_DUMP_V2, BGP4MP, BGP4MP_ET = 12, 13, 16, 17
_WIDTHS = {2: 32, 4: 128}
"""Subtypes of TABLE_DUMP_V2 that are read here: unicast, without path identifiers."""
_PLAIN_ORIGIN = b"\x40\x01\x01"
_PLAIN_PATH, _LONG_PATH = b"\x40\x02", b"\x50\x02"
_SEQUENCE = 2
_SHORTEST = 13
"""Bytes of ORIGIN and an AS_PATH with one number."""
_ANY_TIME = 2**62
"""Archives carry their own times; the time of reading bounds them."""

Votes = dict[bytes | tuple[int, ...], int]
"""Peers by what they say is the origin: the bytes of one AS number, or the numbers of a set."""


def is_table(head: bytes) -> bool:
    """Whether a file begins like a dump of a table."""
    return len(head) >= HEADER_SIZE and head[4:6] in (b"\0\x0c", b"\0\x0d")


def is_updates(head: bytes) -> bool:
    """Whether a file begins like recorded updates: what changed, not what there is."""
    return len(head) >= HEADER_SIZE and head[4:6] in (b"\0\x10", b"\0\x11") and not head[6]


class RibReader:
    """Takes the bytes of one dump."""

    def __init__(self, name: str) -> None:
        self._mrt = MrtReader(Channel(name, FeedKind.MRT))
        self._votes: dict[tuple[int, int, int], Votes] = {}
        self._framed = True
        self.routes = 0
        """Entries of peers that were taken."""

    def feed(self, chunks: Iterable[bytes]) -> None:
        """Read a whole file, in pieces of any size."""
        waiting = b""
        for chunk in chunks:
            waiting = self._records(waiting + chunk)
        self._carefully(self._records(waiting, at_end=True))
        for update in self._mrt.end(_ANY_TIME):
            self._take(update)

    def prefixes(self) -> Iterator[Prefix]:
        """Each prefix once."""
        for (family, network, bits), votes in self._votes.items():
            yield Prefix(family, network, bits, _ranked(votes))

    def unreadable(self) -> str:
        """What was set aside, in words; empty when everything was read."""
        count = self._mrt.quarantine.count
        if not count:
            return ""
        reason, _ = self._mrt.quarantine.reasons.most_common(1)[0]
        return f"{count:,} records could not be read, most of them: {reason}"

    def _records(self, data: bytes, *, at_end: bool = False) -> bytes:
        """Read what is whole; what is left of `data`.

        From where a record is not followed by another one, the other reader has everything: it
        knows how to find the next.
        """
        at = 0
        while self._framed and len(data) - at >= HEADER_SIZE:
            following = at + record_size(data, at)
            missing = following + HEADER_SIZE - len(data)
            if looks_like_a_header(data, at) and missing > 0 and not at_end:
                return data[at:]
            self._framed = looks_like_a_header(data, at) and (
                following == len(data) or (missing <= 0 and looks_like_a_header(data, following))
            )
            if self._framed:
                self._record(data, at, following)
                at = following
        return data[at:] if self._framed else self._carefully(data[at:])

    def _record(self, data: bytes, at: int, end: int) -> None:
        width = _WIDTHS.get(data[at + 7]) if data[at + 4 : at + 7] == b"\0\x0d\0" else None
        if width is None or not self._quickly(data, at + HEADER_SIZE, end, width):
            self._carefully(data[at:end])

    def _carefully(self, data: bytes) -> bytes:
        for update in self._mrt.feed(data, _ANY_TIME):
            self._take(update)
        return b""

    def _quickly(self, data: bytes, at: int, end: int, width: int) -> bool:
        """Take a record that is as nearly all are; False, and nothing taken, of any other."""
        if end - at < 7:
            return False
        bits = data[at + 4]
        at += 5 + (bits + 7) // 8
        if bits > width or at + 2 > end:
            return False
        network = data[at - (bits + 7) // 8 : at].ljust(width // 8, b"\0")
        number = int.from_bytes(network, "big") >> (width - bits) << (width - bits)
        count = int.from_bytes(data[at : at + 2], "big")
        votes = _origins(data, at + 2, end, count)
        if not votes:
            return False
        self.routes += count
        key = (4 if width == 32 else 6, number, bits)
        known = self._votes.get(key)
        if known is None:
            self._votes[key] = votes
        else:
            for origin, peers in votes.items():
                known[origin] = known.get(origin, 0) + peers
        return True

    def _take(self, update: RouteUpdate) -> None:
        if update.kind is not UpdateKind.RIB:
            return
        origins = origins_of(update.as_path)
        address, _, bits = update.prefix.partition("/")
        packed = packed_address(address)
        if packed is None or not origins:
            return
        self.routes += 1
        key = (4 if len(packed) == 4 else 6, int.from_bytes(packed, "big"), int(bits))
        votes = self._votes.setdefault(key, {})
        origin = origins[0].to_bytes(4, "big") if len(origins) == 1 else origins
        votes[origin] = votes.get(origin, 0) + 1


def _origins(data: bytes, at: int, end: int, count: int) -> Votes | None:
    """Last AS number of each entry, where ORIGIN and a plain AS_PATH lead; None where they do not.

    An entry: peer (2), time (4), length of attributes (2), attributes.
    """
    votes: Votes = {}
    for _ in range(count):
        start = at + 8
        at = start + (data[at + 6] << 8 | data[at + 7]) if start <= end else end + 1
        if at > end or at - start < _SHORTEST or data[start : start + 3] != _PLAIN_ORIGIN:
            return None
        kind = data[start + 4 : start + 6]
        if kind == _PLAIN_PATH:
            path, size = start + 7, data[start + 6]
        elif kind == _LONG_PATH:
            path, size = start + 8, data[start + 6] << 8 | data[start + 7]
        else:
            return None
        if (
            path + size > at
            or size < 6
            or data[path] != _SEQUENCE
            or size != 2 + 4 * data[path + 1]
        ):
            return None
        origin = data[path + size - 4 : path + size]
        votes[origin] = votes.get(origin, 0) + 1
    return votes if at == end else None


def origins_of(as_path: str) -> tuple[int, ...]:
    """The last AS, or all of the set that a path ends in; none of an empty path."""
    last = as_path.rsplit(None, 1)[-1:]
    words = last[0].strip("{}()[]").split(",") if last else []
    return tuple(int(word) for word in words if word.isdecimal())


def _ranked(votes: Votes) -> tuple[int, ...]:
    counted = {_numbers(origin): count for origin, count in votes.items()}
    ranked = sorted(counted, key=lambda origins: (-counted[origins], origins))
    return tuple(dict.fromkeys(asn for origins in ranked for asn in origins))


def _numbers(origin: bytes | tuple[int, ...]) -> tuple[int, ...]:
    return (int.from_bytes(origin, "big"),) if isinstance(origin, bytes) else origin
