"""Whose an address is: longest match in a table of announced prefixes.

    table = load_prefix_table(Path("routeviews-rv2.pfx2as.gz"))
    table.look_up("192.0.2.1")    # Origin(prefix="192.0.2.0/24", asns=(64500,), name="")
    table.look_up_all(addresses)  # the same of many, through numpy where it is there

The table is a sorted row of disjoint ranges, each with the most specific prefix that covers it: one
binary search finds the longest match (docs/adr/0182-prefix-table.md).
"""

import ipaddress
import socket
from array import array
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

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
        tables: dict[int, dict[tuple[int, int], int]] = {4: {}, 6: {}}
        numbers: dict[tuple[tuple[int, ...], str], int] = {}
        for prefix in prefixes:
            owner = (prefix.asns, prefix.name)
            number = numbers.get(owner)
            if number is None:
                number = numbers[owner] = len(self._owners)
                self._owners.append(owner)
            tables[prefix.family][prefix.network, prefix.bits] = number
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
        places: dict[int, list[int]] = {4: [], 16: []}
        packed = list(map(packed_address, addresses))
        for place, key in enumerate(packed):
            if key is not None:
                places[len(key)].append(place)
        for size, ranges in ((4, self._four), (16, self._six)):
            rows = ranges.find_all([packed[place] or b"" for place in places[size]])
            known = {row: self._origin(ranges, row) for row in set(rows)}
            for place, row in zip(places[size], rows, strict=True):
                found[place] = known[row]
        return found

    def _origin(self, ranges: "_Ranges", row: int) -> Origin | None:
        if row == NOBODY:
            return None
        text, owner = ranges.prefix(row)
        if owner == NOBODY:
            return None
        asns, name = self._owners[owner]
        return Origin(text, asns, name)


class _Ranges:
    """The prefixes of one family, flattened into disjoint ranges."""

    def __init__(self, width: int, table: dict[tuple[int, int], int]) -> None:
        self.prefixes = len(table)
        self._width = width
        if table:
            for reserved in map(ipaddress.ip_network, RESERVED):
                if reserved.max_prefixlen == width:
                    key = (int(reserved.network_address), reserved.prefixlen)
                    table.setdefault(key, NOBODY)
        rows = sorted(table)
        self._networks = [network for network, _ in rows] if width > 32 else array("I")
        if isinstance(self._networks, array):
            self._networks.extend(network for network, _ in rows)
        self._bits = array("B", (bits for _, bits in rows))
        self._owners = array("i", (table[row] for row in rows))
        starts: list[int] = []
        found = array("i")
        for start, row in _flattened(rows, width):
            starts.append(start)
            found.append(row)
        self._found = found
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
        order = np.argsort(keys, kind="stable")  # neighbours find their ranges in the cache
        places = np.empty(len(keys), dtype=np.int64)
        places[order] = np.searchsorted(starts, keys[order], side="right") - 1
        rows: list[int] = np.frombuffer(self._found, dtype=np.int32)[places].tolist()
        return rows

    def prefix(self, row: int) -> tuple[str, int]:
        """Text and owner of a row."""
        network, bits = self._networks[row], self._bits[row]
        address: ipaddress.IPv4Address | ipaddress.IPv6Address = (
            ipaddress.IPv4Address(network) if self._width == 32 else ipaddress.IPv6Address(network)
        )
        return f"{address}/{bits}", self._owners[row]


def _flattened(rows: Sequence[tuple[int, int]], width: int) -> Iterator[tuple[int, int]]:
    """(start, row) of disjoint ranges from 0 on, of prefixes in order of network and length.

    Prefixes are nested or disjoint, never crossed: a stack of those that are open is enough.
    """
    open_until: list[tuple[int, int]] = []
    start, row = 0, NOBODY
    for number, (network, bits) in enumerate(rows):
        while open_until and open_until[-1][0] <= network:
            end, _ = open_until.pop()
            if end > start:
                yield start, row
                start = end
            row = open_until[-1][1] if open_until else NOBODY
        if network > start:
            yield start, row
            start = network
        open_until.append((network + (1 << (width - bits)), number))
        row = number
    while open_until:
        end, _ = open_until.pop()
        if end > start:
            yield start, row
            start = end
        row = open_until[-1][1] if open_until else NOBODY
    if start < 1 << width:
        yield start, row


def packed_address(address: str) -> bytes | None:
    """The address in network order; IPv4 inside IPv6 is what it stands for. None of no address."""
    try:
        if ":" not in address:
            return socket.inet_pton(socket.AF_INET, address)
        packed = socket.inet_pton(socket.AF_INET6, address)
    except (OSError, ValueError):
        return None
    return packed[12:] if packed.startswith(_MAPPED) else packed


_MAPPED = bytes(10) + b"\xff\xff"
