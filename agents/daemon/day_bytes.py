"""What an agent has put on the wire today, so that the bytes of a day hold over plans and restarts.

A day is one of UTC. The sum is kept in a small file beside the spool. A clock that is set back does
not begin the day anew; one that is set forward over midnight does, as midnight itself.
"""

import contextlib
from pathlib import Path

import msgspec

from pathbudget.probes.clock import Clock

FILE = "bytes.json"
DAY_NS = 86_400_000_000_000


class _Kept(msgspec.Struct, frozen=True):
    day: int
    octets: int


class DayBytes:
    """Counts what is said to be sent; by the cost of the probes, both directions, without loss."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._day, self._octets = _read(path)
        self._saved = self._octets

    def add(self, octets: int) -> None:
        """So many more."""
        self._turn()
        self._octets += octets

    def spent(self) -> int:
        """Bytes of today up to now."""
        self._turn()
        return self._octets

    def save(self) -> None:
        """Keep the sum; a disk that does not take it keeps the old one."""
        if self._octets == self._saved:
            return
        temporary = self._path.with_name(f".{self._path.name}.tmp")
        with contextlib.suppress(OSError):
            temporary.write_bytes(msgspec.json.encode(_Kept(self._day, self._octets)))
            temporary.replace(self._path)
            self._saved = self._octets

    def _turn(self) -> None:
        today = self._clock.unix_ns() // DAY_NS
        if today > self._day:
            self._octets = 0
        self._day = today


def _read(path: Path) -> tuple[int, int]:
    """Nothing where there is no such file, or a damaged one: it is a bound, not a record."""
    with contextlib.suppress(OSError, msgspec.DecodeError):
        kept = msgspec.json.decode(path.read_bytes(), type=_Kept)
        return kept.day, kept.octets
    return 0, 0
