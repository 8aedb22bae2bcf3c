"""Whose an address is: longest match in a table of announced prefixes.

    table = load_prefix_table(Path("routeviews-rv2.pfx2as.gz"))
    table.look_up("192.0.2.1")    # Origin(prefix="192.0.2.0/24", asns=(64500,), name="")
    table.look_up_all(addresses)  # the same of many, through numpy where it is there

The table is a sorted row of disjoint ranges, each with the most specific prefix that covers it: one
binary search finds the longest match (docs/adr/0182-prefix-table.md).
"""

import ipaddress
import itertools
import socket
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, cast

_BITS, _LENGTH = 8, 0xFF
"""Length of a prefix within its key."""
NOBODY = -1
"""Index of "no prefix" among prefixes."""

RESERVED = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.0.2.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24",
    "203.0.113.0/24", "224.0.0.0/3", "::/8", "100::/64", "2001:db8::/32", "fc00::/7", "fe80::/10",
    "ff00::/8",
)  # fmt: skip
"""Addresses that nobody announces (RFC 6890 and its registry): a wider prefix says nothing of them,
only one inside them that the user's own table has."""


class Origin(NamedTuple):
    """Who announces the most specific prefix around an address.

    `asns` has several numbers where several announce it (MOAS) or the path ends in a set, and none
    where the prefix is known to be nobody's own, as the network of an exchange. `name` is what the
    table calls it.
    """

    prefix: str
    asns: tuple[int, ...]
    name: str = ""

    @property
    def text(self) -> str:
        """``AS64500``, ``AS64500_AS64501 name``; the name alone where there is no AS."""
        return " ".join(filter(None, ["_".join(f"AS{asn}" for asn in self.asns), self.name]))


class Origins(Protocol):
    """Anything that knows whose an address is."""

    def look_up(self, address: str) -> Origin | None:
        """None where nobody knows, and of what is no address."""
        ...


class Prefix(NamedTuple):
    """One line of a table: `network` as a number, `bits` its length."""

    family: int
    """4 or 6."""
    network: int
    bits: int
    asns: tuple[int, ...]
    name: str = ""


class PrefixTable:
    """Longest match over prefixes of both families. Of one prefix given twice the last counts."""

    def __init__(self, prefixes: Iterable[Prefix], cautions: Sequence[str] = ()) -> None:
        """`cautions` may grow while `prefixes` are read."""
        self._owners: list[tuple[tuple[int, ...], str]] = []
        tables: dict[int, dict[int, int]] = {4: {}, 6: {}}
        numbers: dict[tuple[tuple[int, ...], str], int] = {}
        for family, network, bits, asns, name in prefixes:
            owner = (asns, name)
            number = numbers.get(owner)
            if number is None:
                number = numbers[owner] = len(self._owners)
                self._owners.append(owner)
            tables[family][network << _BITS | bits] = number
        self._asns = [asns for asns, _ in self._owners]
        self._asns.append(())  # NOBODY is the last one
        self.cautions = tuple(cautions)
        """What could not be read of the files."""
        self._four, self._six = _Ranges(32, tables[4]), _Ranges(128, tables[6])

    def __len__(self) -> int:
        return self._four.prefixes + self._six.prefixes

    def look_up(self, address: str) -> Origin | None:
        """The origin of the longest prefix around `address`; None of none, and of no address."""
        packed = packed_address(address)
        if packed is None:
            return None
        ranges = self._four if len(packed) == 4 else self._six
        return self._origin(ranges, ranges.find(packed))

    def look_up_all(self, addresses: Sequence[str]) -> list[Origin | None]:
        """`look_up` of each of them, in their order; equal origins are one object."""
        found: list[Origin | None] = [None] * len(addresses)
        for ranges, places, rows in self._found(addresses):
            known = {row: self._origin(ranges, row) for row in set(rows)}
            for at, row in zip(places, rows, strict=True):
                found[at] = known[row]
        return found

    def asns_of_all(self, addresses: Sequence[str]) -> list[tuple[int, ...]]:
        """The AS numbers alone, empty where nobody is known: the quickest for a great many."""
        found: list[tuple[int, ...]] = [()] * len(addresses)
        for ranges, places, rows in self._found(addresses):
            asns = _by_owner(self._asns, ranges.owners, rows)
            if len(asns) == len(found):
                return asns
            for at, numbers in zip(places, asns, strict=True):
                found[at] = numbers
        return found

    def _found(
        self, addresses: Sequence[str]
    ) -> Iterator[tuple["_Ranges", Sequence[int], list[int]]]:
        """By family: which of the addresses are of it, and their rows."""
        packed = _packed(addresses)
        for ranges, size in ((self._four, 4), (self._six, 16)):
            keys = [key for key in packed if key is not None and len(key) == size]
            if len(keys) == len(packed):
                yield ranges, range(len(keys)), ranges.find_all(keys)
                return
            if keys:
                places = [at for at, key in enumerate(packed) if key and len(key) == size]
                yield ranges, places, ranges.find_all(keys)

    def _origin(self, ranges: "_Ranges", row: int) -> Origin | None:
        if row == NOBODY:
            return None
        text, owner = ranges.prefix(row)
        if owner == NOBODY:
            return None
        asns, name = self._owners[owner]
        return Origin(text, asns, name)


class _Ranges:
    """The prefixes of one family, flattened into disjoint ranges. A key is network and length."""

    def __init__(self, width: int, table: dict[int, int]) -> None:
        self.prefixes = len(table)
        self._width = width
        if table:
            for reserved in map(ipaddress.ip_network, RESERVED):
                if reserved.max_prefixlen == width:
                    key = int(reserved.network_address) << _BITS | reserved.prefixlen
                    table.setdefault(key, NOBODY)
        keys = sorted(table)
        self._keys: array[int] | list[int] = array("Q", keys) if width == 32 else keys
        self.owners = array("i", map(table.__getitem__, keys))
        self.owners.append(NOBODY)  # the row of nobody is the last one
        starts, found = _flattened(keys, width)
        self._found = array("i", found)
        self._starts: array[int] | list[bytes] = (
            array("I", starts) if width == 32 else [one.to_bytes(16, "big") for one in starts]
        )

    def find(self, packed: bytes) -> int:
        """Row of the longest prefix around an address in network order; `NOBODY` of none."""
        starts = self._starts
        if isinstance(starts, array):
            return self._found[bisect_right(starts, int.from_bytes(packed, "big")) - 1]
        return self._found[bisect_right(starts, packed) - 1]

    def find_all(self, packed: Sequence[bytes]) -> list[int]:
        """`find` of each."""
        if not packed:
            return []
        try:
            import numpy as np
        except ImportError:  # the analysis extra brings it; without it this is slower, no more
            return [self.find(one) for one in packed]
        if isinstance(self._starts, array):
            starts = np.frombuffer(self._starts, dtype=np.uint32)
            keys = np.frombuffer(b"".join(packed), dtype=">u4").astype(np.uint32)
        else:
            starts = np.array(self._starts, dtype="S16")
            keys = np.frombuffer(b"".join(packed), dtype="S16")
        order = np.argsort(keys)  # neighbours find their ranges in the cache
        places = np.empty(len(keys), dtype=np.int64)
        places[order] = np.searchsorted(starts, keys[order], side="right") - 1
        rows: list[int] = np.frombuffer(self._found, dtype=np.int32)[places].tolist()
        return rows

    def prefix(self, row: int) -> tuple[str, int]:
        """Text and owner of a row."""
        key = self._keys[row]
        network = (key >> _BITS).to_bytes(self._width // 8, "big")
        family = socket.AF_INET if self._width == 32 else socket.AF_INET6
        return f"{socket.inet_ntop(family, network)}/{key & _LENGTH}", self.owners[row]


def _flattened(keys: Sequence[int], width: int) -> tuple[list[int], list[int]]:
    """Starts of disjoint ranges from 0 on, and the rows that they are of; keys in their order.

    Prefixes are nested or disjoint, never crossed: a stack of those that are open is enough.
    """
    sizes = [1 << (width - bits) for bits in range(width + 1)]
    starts, found = [0], [NOBODY]
    ends, rows = [1 << width], [NOBODY]
    """Of the prefixes that are open, the innermost last."""
    for row, key in enumerate(keys):
        network = key >> _BITS
        while ends[-1] <= network:
            _begin(starts, found, ends.pop(), rows)
        ends.append(network + sizes[key & _LENGTH])
        rows.append(row)
        if starts[-1] == network:
            found[-1] = row
        else:
            starts.append(network)
            found.append(row)
    while len(ends) > 1:
        _begin(starts, found, ends.pop(), rows)
    if starts[-1] == 1 << width:
        starts.pop()
        found.pop()
    return starts, found


def _begin(starts: list[int], found: list[int], end: int, rows: list[int]) -> None:
    """Behind a prefix that ends here, what is around it goes on."""
    rows.pop()
    if starts[-1] == end:
        found[-1] = rows[-1]
    else:
        starts.append(end)
        found.append(rows[-1])


def packed_address(address: str) -> bytes | None:
    """The address in network order; IPv4 inside IPv6 is what it stands for. None of no address."""
    try:
        if ":" not in address:
            return socket.inet_pton(socket.AF_INET, address)
        packed = socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError):
        return None
    return packed[12:] if packed.startswith(_MAPPED) else packed


def _by_owner(
    asns: list[tuple[int, ...]], owners: "array[int]", rows: list[int]
) -> list[tuple[int, ...]]:
    """The AS numbers of the owner of each row."""
    try:
        import numpy as np
    except ImportError:
        return [asns[owners[row]] for row in rows]
    picked = np.fromiter(asns, dtype=object)[np.frombuffer(owners, dtype=np.int32)[rows]]
    return cast("list[tuple[int, ...]]", picked.tolist())


def _packed(addresses: Sequence[str]) -> list[bytes | None]:
    """`packed_address` of each; where all of them are IPv4, as mostly, no line of ours for each."""
    try:
        return list(map(socket.inet_pton, itertools.repeat(socket.AF_INET), addresses))
    except (OSError, ValueError):
        return list(map(packed_address, addresses))


_MAPPED = bytes(10) + b"\xff\xff"
