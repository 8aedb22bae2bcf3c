"""Values out of JSON that somebody else wrote: of the right type, or a MalformedError."""

import functools
import math
import socket
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from pathbudget.probes.bgp.quarantine import MalformedError
from pathbudget.probes.bgp.update_wire import IPV4, IPV6, address_text, parse_prefix

LARGEST_LINE = 1 << 24
_LATEST_SECONDS = 1 << 33
"""Year 2242: what is later is no time in seconds."""


def decode(line: bytes | str) -> dict[str, Any]:
    """One JSON object."""
    if len(line) > LARGEST_LINE:
        raise MalformedError("a line that is too long")
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise MalformedError("no JSON") from None
    return table(value, "the line")


def table(value: object, name: str) -> dict[str, Any]:
    """A JSON object."""
    if not isinstance(value, dict):
        raise MalformedError(f"{name} is no object")
    return value


def items(value: object, name: str) -> list[Any]:
    """A JSON array; an absent one is empty."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise MalformedError(f"{name} is no list")
    return value


def text(values: Mapping[str, Any], key: str, default: str | None = None) -> str:
    """Text; `default` None means that it must be there."""
    value = values.get(key, default)
    if not isinstance(value, str):
        raise MalformedError(f"{key} is no text" if key in values else f"{key} is missing")
    return value


def as_number(value: object, name: str) -> int:
    """An AS number, as a number or as text (RFC 5396: asdot as well)."""
    if isinstance(value, str) and value.isascii():
        high, dot, low = value.partition(".")
        if dot and high.isdecimal() and low.isdecimal() and int(low) <= 0xFFFF:
            value = (int(high) << 16) + int(low)
        elif value.isdecimal() and len(value) <= 10:
            value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 0xFFFF_FFFF:
        raise MalformedError(f"{name} is no AS number")
    return value


def whole(value: object, most: int) -> int | None:
    """A whole number from 0 to `most`; None for everything else."""
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most
    return value if good else None  # type: ignore[return-value]


def time_unix_ns(values: Mapping[str, Any], key: str) -> int:
    """Seconds since 1970 as nanoseconds; microseconds survive the way through a float."""
    value = values.get(key)
    if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
        raise MalformedError(f"{key} is no time")
    if not 0 <= value < _LATEST_SECONDS:
        raise MalformedError(f"{key} is no time in seconds")
    return round(value * 1_000_000) * 1_000


@functools.lru_cache(maxsize=4096)
def address(value: str) -> str:
    """An address in the form that the wire codecs give it."""
    return address_text(_octets(value))


@functools.lru_cache(maxsize=65536)
def prefix(value: str) -> str:
    """A prefix likewise; bits beyond its length mean nothing."""
    place, slash, length = value.partition("/")
    octets = _octets(place)
    bits = int(length) if _is_number(length) else 8 * len(octets)
    if (slash and not _is_number(length)) or bits > 8 * len(octets):
        raise MalformedError("a prefix that is none")
    nlri = bytes((bits,)) + octets[: (bits + 7) // 8]
    return parse_prefix(nlri, 0, IPV4 if len(octets) == 4 else IPV6)[0]


def _octets(value: str) -> bytes:
    try:
        return socket.inet_pton(socket.AF_INET6 if ":" in value else socket.AF_INET, value)
    except (OSError, ValueError):
        raise MalformedError("an address that is none") from None


def numbers_text(value: object, size: int) -> str | None:
    """``65000:120`` of ``[65000, 120]`` (or of that text itself); None for anything else."""
    parts: Sequence[object] = value.split(":") if isinstance(value, str) else ()
    if isinstance(value, list):
        parts = value
    words = [str(part) for part in parts if not isinstance(part, bool)]
    good = len(words) == len(parts) == size
    return ":".join(words) if good and all(map(_is_number, words)) else None


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdecimal() and len(word) <= 10
