"""Whether an AS may announce a prefix: route origin validation (RFC 6811) from a file of VRPs.

Reads what rpki-client and Routinator write, JSON and CSV. Nothing is fetched and no signature is
checked: that is what those programs do.
"""

import csv
import io
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import msgspec

from pathbudget.probes.bgp.prefix_text import PrefixBits, prefix_bits
from pathbudget.probes.errors import ConfigError, Fault

LARGEST_FILE = 1 << 30
MOST_FAULTS = 5
_EXPECTED = "VRPs as rpki-client and Routinator write them, JSON or CSV"


class RpkiState(StrEnum):
    """What the VRPs say of a route (RFC 6811, 2)."""

    VALID = "valid"
    INVALID = "invalid"
    NOT_FOUND = "not-found"


class Vrp(NamedTuple):
    """Validated ROA payload: this AS may announce the prefix, cut as fine as `max_length`."""

    prefix: PrefixBits
    max_length: int
    asn: int


class VrpTable:
    """VRPs by prefix. `count` of them, each once."""

    def __init__(self, vrps: Iterable[Vrp] = ()) -> None:
        self.count = 0
        self._by_prefix: dict[PrefixBits, tuple[tuple[int, int], ...]] = {}
        self._lengths: dict[int, list[int]] = {}
        """Lengths of prefixes that there are, by width."""
        for vrp in vrps:
            known = self._by_prefix.get(vrp.prefix, ())
            entry = (vrp.asn, vrp.max_length)
            if entry not in known:
                self._by_prefix[vrp.prefix] = (*known, entry)
                self.count += 1
        for width in (32, 128):
            found = {prefix.bits for prefix in self._by_prefix if prefix.width == width}
            self._lengths[width] = sorted(found)

    def state(self, prefix: str, origin: int | None) -> RpkiState:
        """State of a route. `origin` None: its path ends in a set, which no VRP matches.

        Raises ValueError for what is no prefix.
        """
        route = prefix_bits(prefix)
        covered = False
        for bits in self._lengths[route.width]:
            if bits > route.bits:
                break
            for asn, max_length in self._by_prefix.get(route.cut_to(bits), ()):
                covered = True
                if asn == origin and asn != 0 and route.bits <= max_length:
                    return RpkiState.VALID
        return RpkiState.INVALID if covered else RpkiState.NOT_FOUND


def load_vrps(path: Path) -> VrpTable:
    """Read a file of VRPs. Raises ConfigError, which names the first faults."""
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ConfigError([Fault(str(path), "", "over 1 GiB", _EXPECTED)])
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        fault = Fault(str(path), "", f"cannot be read: {reason}", _EXPECTED)
        raise ConfigError([fault]) from None
    return read_vrps(content, str(path))


def read_vrps(content: bytes, name: str) -> VrpTable:
    """VRPs out of the bytes of a file. Raises ConfigError."""
    faults: list[Fault] = []
    begin = content.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    entries = _of_json(content, name) if begin == b"{" else _of_csv(content, name)
    vrps = [vrp for vrp in _checked(entries, name, faults) if vrp is not None]
    if faults:
        raise ConfigError(faults)
    if not vrps:
        raise ConfigError([Fault(name, "", "holds no VRP", _EXPECTED)])
    return VrpTable(vrps)


class _Roa(msgspec.Struct):
    prefix: str
    max_length: int = msgspec.field(name="maxLength")
    asn: int | str


class _File(msgspec.Struct):
    roas: list[_Roa]


Entry = tuple[str, str, str, str]
"""Place in the file; AS number, prefix and largest length as they stand there."""


def _of_json(content: bytes, name: str) -> Iterator[Entry]:
    try:
        file = msgspec.json.decode(content.removeprefix(b"\xef\xbb\xbf"), type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError([Fault(name, "", f"not readable: {error}", _EXPECTED)]) from None
    for number, roa in enumerate(file.roas):
        yield f"roas[{number}]", str(roa.asn), roa.prefix, str(roa.max_length)


def _of_csv(content: bytes, name: str) -> Iterator[Entry]:
    text = content.decode("utf-8-sig", errors="replace")
    rows = csv.reader(io.StringIO(text))
    try:
        for number, row in enumerate(rows, start=1):
            heading = number == 1 and row[:1] and row[0].strip().upper() in {"ASN", "URI"}
            if not row or heading:
                continue
            if len(row) < 3:
                problem = f"{len(row)} columns"
                expected = "ASN,IP Prefix,Max Length in each line"
                raise ConfigError([Fault(name, f"line {number}", problem, expected)])
            yield f"line {number}", row[0], row[1], row[2]
    except csv.Error as error:
        raise ConfigError([Fault(name, "", f"not CSV: {error}", _EXPECTED)]) from None


def _checked(entries: Iterable[Entry], name: str, faults: list[Fault]) -> Iterator[Vrp | None]:
    for place, asn, prefix, length in entries:
        if len(faults) >= MOST_FAULTS:
            return
        try:
            yield _vrp(asn, prefix, length)
        except ValueError as error:
            faults.append(Fault(name, place, str(error), "an AS number, a prefix and a length"))


def _vrp(asn: str, prefix: str, length: str) -> Vrp:
    number = asn.strip().upper().removeprefix("AS")
    if not (number.isascii() and number.isdecimal()) or len(number) > 10 or int(number) >> 32:
        raise ValueError(f"{asn[:40]!r} is no AS number")
    bits = prefix_bits(prefix.strip())
    longest = length.strip() or str(bits.bits)
    if not (longest.isascii() and longest.isdecimal()) or len(longest) > 3:
        raise ValueError(f"{length[:40]!r} is no length")
    if not bits.bits <= int(longest) <= bits.width:
        raise ValueError(f"{longest} is no length of a part of {prefix[:60]}")
    return Vrp(bits, int(longest), int(number))
