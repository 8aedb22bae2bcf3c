"""Prefix tables as files: MRT dumps of routing tables, CAIDA pfx2as, plain CSV.

    table = load_prefix_table(Path("rib.20260101.0000.bz2"))

Which of them a file is shows in its content; plain, gzip and bzip2 are told apart by their first
bytes. A text with a line that cannot be read is refused with the line named: half a table would say
"unknown" of addresses that it knows.
"""

import bz2
import csv
import gzip
import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, cast

from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.prefix_table import Prefix, PrefixTable, packed_address
from pathbudget.sites.rib_origins import RibReader, is_table, is_updates

CHUNK = 1 << 20
MOST_FAULTS = 10
EXPECTED = "lines of prefix,asn[,name], a pfx2as file, or an MRT dump of a table"
LARGEST_ASN = 2**32 - 1


def load_prefix_table(*paths: Path) -> PrefixTable:
    """The table of these files; where two have the same prefix, the later one counts.

    Raises ConfigError for a file that cannot be read, and names up to ten of its faults.
    """
    cautions: list[str] = []
    return PrefixTable(
        itertools.chain.from_iterable(read_prefixes(path, cautions) for path in paths), cautions
    )


def read_prefixes(path: Path, cautions: list[str]) -> Iterator[Prefix]:
    """Prefixes of one file. What could not be read of an MRT dump goes into `cautions`.

    Raises ConfigError.
    """
    try:
        with _opened(path) as file:
            head = file.read(12)
            rest = itertools.chain([head], iter(lambda: file.read(CHUNK), b""))
            if is_table(head):
                yield from _of_dump(path, rest, cautions)
            elif is_updates(head):
                problem = "recorded updates of BGP: what changed, not what there is"
                raise ConfigError([Fault(str(path), "", problem, "a dump of a table (RIB)")])
            else:
                yield from _of_text(path, rest)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ConfigError(
            [Fault(str(path), "", f"is cut off or damaged ({error})", "a whole file")]
        ) from error
    except OSError as error:
        problem = error.strerror or str(error)
        raise ConfigError([Fault(str(path), "", problem, "a readable file")]) from error


def _opened(path: Path) -> BinaryIO:
    with path.open("rb") as file:
        magic = file.read(3)
    if magic[:2] == b"\x1f\x8b":
        return cast("BinaryIO", gzip.open(path, "rb"))
    if magic == b"BZh":
        return cast("BinaryIO", bz2.open(path, "rb"))
    return path.open("rb")


def _of_dump(path: Path, chunks: Iterable[bytes], cautions: list[str]) -> Iterator[Prefix]:
    reader = RibReader(path.name)
    reader.feed(chunks)
    if unreadable := reader.unreadable():
        cautions.append(f"{path.name}: {unreadable}")
    if not reader.routes:
        problem = f"no route in it ({unreadable})" if unreadable else "no route in it"
        raise ConfigError([Fault(str(path), "", problem, "a dump of a table (RIB)")])
    yield from reader.prefixes()


def _of_text(path: Path, chunks: Iterable[bytes]) -> Iterator[Prefix]:
    faults: list[Fault] = []
    found = 0
    for number, line in enumerate(_lines(chunks), 1):
        if not line or line.startswith("#"):
            continue
        try:
            prefix = _of_line(line)
        except ValueError as error:
            if found == 0 and not faults and _is_header(line):
                continue
            faults.append(Fault(str(path), f"line {number}", str(error), EXPECTED))
            if len(faults) >= MOST_FAULTS:
                break
            continue
        found += 1
        yield prefix
    if not found and not faults:
        faults.append(Fault(str(path), "", "no prefix in it", EXPECTED))
    if faults:
        raise ConfigError(faults)


def _lines(chunks: Iterable[bytes]) -> Iterator[str]:
    """Lines as text; bytes that are none stay visible in the message."""
    waiting = b""
    for chunk in chunks:
        *whole, waiting = (waiting + chunk).split(b"\n")
        for line in whole:
            yield line.decode("utf-8-sig", "backslashreplace").strip()
    if waiting:
        yield waiting.decode("utf-8-sig", "backslashreplace").strip()


def _of_line(line: str) -> Prefix:
    """One line of pfx2as (``192.0.2.0 24 64500_64501``) or of CSV. Raises ValueError."""
    if "/" not in line and len(words := line.split()) == 3 and words[1].isdecimal():
        return _prefix(words[0], words[1], asns_of(words[2]))
    try:
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=_delimiter(line)))]
    except csv.Error:
        raise ValueError(f"{_shown(line)} is no line of a table") from None
    network, slash, bits = cells[0].partition("/")
    if not slash:
        raise ValueError(f"{_shown(cells[0])} is no prefix")
    asns = asns_of(cells[1]) if len(cells) > 1 and cells[1] else ()
    return _prefix(network, bits, asns, ", ".join(cells[2:]).strip())


def _delimiter(line: str) -> str:
    return max(",;\t", key=line.count)


def _prefix(network: str, bits: str, asns: tuple[int, ...], name: str = "") -> Prefix:
    packed = packed_address(network)
    if packed is None:
        raise ValueError(f"{_shown(network)} is no address")
    width = 8 * len(packed)
    if not bits.isdecimal() or not bits.isascii() or int(bits) > width:
        raise ValueError(f"/{_shown(bits)} is no length of a prefix")
    number, length = int.from_bytes(packed, "big"), int(bits)
    if number & ((1 << (width - length)) - 1):
        raise ValueError(f"{network}/{length} has bits behind its length")
    return Prefix(4 if width == 32 else 6, number, length, asns, name)


def asns_of(text: str) -> tuple[int, ...]:
    """AS numbers: ``64500``, ``AS64500``, MOAS ``64500_64501``, sets ``64500,64501``.

    Raises ValueError.
    """
    words = text.replace("_", ",").replace(" ", ",").strip("{}").split(",")
    numbers = [word.upper().removeprefix("AS") for word in words if word]
    if not numbers or not all(number.isdecimal() and number.isascii() for number in numbers):
        raise ValueError(f"{_shown(text)} is no AS number")
    asns = tuple(dict.fromkeys(map(int, numbers)))
    if max(asns) > LARGEST_ASN:
        raise ValueError(f"{_shown(text)} is no AS number")
    return asns


def _is_header(line: str) -> bool:
    """A first line with names of columns, without a number in it."""
    return not any(letter.isdigit() for letter in line) and len(line) < 200


def _shown(text: str) -> str:
    return repr(text if len(text) <= 40 else text[:37] + "...")


def texts(table: PrefixTable, addresses: Sequence[str]) -> dict[str, str]:
    """What is known of addresses in words: ``AS64500``, ``AS64500 carrier-b``; only known ones."""
    found = dict(zip(addresses, table.look_up_all(addresses), strict=True))
    return {address: origin.text for address, origin in found.items() if origin is not None}
