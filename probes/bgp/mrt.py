"""MRT files record by record (RFC 6396, 8050): bytes in, updates out; no file, no clock.

TABLE_DUMP and TABLE_DUMP_V2 give the starting state, BGP4MP and BGP4MP_ET messages and changes of
sessions, with add-path where the record says so. The deprecated types that old archives and
OpenBGPD hold (BGP, BGP4MP_ENTRY) are read as well.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pathbudget.probes.bgp.cursor import Cursor
from pathbudget.probes.bgp.identity import Ordinals
from pathbudget.probes.bgp.messages import Channel
from pathbudget.probes.bgp.mrt_framing import (
    HEADER_SIZE,
    looks_like_a_header,
    next_start,
    record_size,
)
from pathbudget.probes.bgp.mrt_messages import MessageReader
from pathbudget.probes.bgp.mrt_tables import TableReader
from pathbudget.probes.bgp.quarantine import MalformedError, Quarantine
from pathbudget.probes.bgp.record import RouteUpdate

TABLE_DUMP, TABLE_DUMP_V2, BGP, BGP4MP, BGP4MP_ET = 12, 13, 5, 16, 17
_SECOND = 1_000_000_000


class MrtHeader(NamedTuple):
    """Header of a record, microseconds of an ``_ET`` record included."""

    time_unix_ns: int
    kind: int
    subtype: int


class MrtReader:
    """Reads one file, in pieces of any size. Not for several files: peers are numbered per file.

    `now_unix_ns` of `feed` is when the bytes were had: it is the arrival of what is followed live,
    and bounds that of an archive, whose own times count.
    """

    def __init__(self, channel: Channel, *, live: bool = False) -> None:
        self.quarantine = Quarantine()
        self.records = 0
        """Records that were read, or set aside one by one."""
        self.skipped_bytes = 0
        """Of damaged stretches between records."""
        self.broken = ""
        """Why nothing is read at all: this is no MRT."""
        self._live = live
        self._waiting = bytearray()
        self._lost = False
        """Whether the place where the next record begins is not known."""
        self._near_seconds: int | None = None
        self._unreadable = ""
        """Why the record that waits first has no updates, where what follows is not there yet."""
        ordinals = Ordinals()
        self._tables = TableReader(channel, self.quarantine, ordinals)
        self._messages = MessageReader(channel, self.quarantine, ordinals)

    def feed(self, data: bytes, now_unix_ns: int) -> Iterator[RouteUpdate]:
        """Updates of every record that is whole now. Never raises because of what is in it.

        The iterator must be used up before the next call.
        """
        if not self.broken:
            self._waiting += data
            yield from self._advance(now_unix_ns, at_end=False)

    def end(self, now_unix_ns: int) -> Iterator[RouteUpdate]:
        """Nothing more comes: the last records, and a note of one that is cut off."""
        yield from self._advance(now_unix_ns, at_end=True)
        if self._lost:
            self.skipped_bytes += len(self._waiting)
        elif self._waiting:
            self.quarantine.add("a last record that is cut off", bytes(self._waiting))
        self._waiting.clear()

    def _advance(self, now_unix_ns: int, *, at_end: bool) -> Iterator[RouteUpdate]:
        waiting, at = self._waiting, 0
        while not self.broken and len(waiting) - at >= HEADER_SIZE:
            if self._lost:
                start, certain = next_start(waiting, at, self._near_seconds or 0, at_end=at_end)
                self.skipped_bytes += start - at
                at, self._lost = start, not certain or start >= len(waiting)
                if self._lost:
                    break
                continue
            size = record_size(waiting, at)
            if not looks_like_a_header(waiting, at):
                self._lose(bytes(waiting[at : at + HEADER_SIZE]))  # what follows may not be there
                continue
            record = bytes(waiting[at : at + size])
            if len(record) < size and not (at_end and self._goes_on_after(at)):
                break
            found, problem = self._once(record, now_unix_ns)
            if problem:
                follows = self._next_looks_well(at + size, at_end=at_end)
                if follows is None:
                    self._unreadable = problem
                    break
                if not follows:
                    self._lose(record)
                    at += 1
                    self.skipped_bytes += 1
                    continue
                self.quarantine.add(problem, record)
            self.records += 1
            yield from found
            at += size
        del waiting[:at]

    def _goes_on_after(self, at: int) -> bool:
        """Whether a record that is longer than the file only says so, and others follow."""
        near = self._near_seconds
        if near is None:
            return False
        start, _ = next_start(self._waiting, at + 1, near, at_end=True)
        return start < len(self._waiting)

    def _next_looks_well(self, at: int, *, at_end: bool) -> bool | None:
        """Whether a header follows at `at`, or nothing; None when that is not known yet."""
        if at + HEADER_SIZE <= len(self._waiting):
            return looks_like_a_header(self._waiting, at)
        return at == len(self._waiting) if at_end else None

    def _lose(self, data: bytes) -> None:
        """The stream makes no sense here; look for the next record, where there was one before."""
        self._lost = True
        if self._near_seconds is None:
            self.broken = "no MRT file"
        self.quarantine.add(self.broken or "a damaged stretch without a readable record", data)
        if self.broken:
            self._waiting.clear()

    def _once(self, record: bytes, now_unix_ns: int) -> tuple[list[RouteUpdate], str]:
        """The same as `_record`, which counts and numbers what it reads: so nothing is read twice
        because the bytes behind it come in another piece.
        """
        known, self._unreadable = self._unreadable, ""
        return ([], known) if known else self._record(record, now_unix_ns)

    def _record(self, record: bytes, now_unix_ns: int) -> tuple[list[RouteUpdate], str]:
        """Its updates, and why there are none."""
        if len(record) < HEADER_SIZE or len(record) < record_size(record, 0):
            return [], "a record that is cut off"
        try:
            header, body = _split(record)
            arrived = now_unix_ns if self._live else min(header.time_unix_ns, now_unix_ns)
            found = list(self._read(header, body, arrived))
        except MalformedError as error:
            return [], str(error)
        self._near_seconds = header.time_unix_ns // _SECOND
        return found, ""

    def _read(self, header: MrtHeader, body: Cursor, arrived: int) -> Iterator[RouteUpdate]:
        time = header.time_unix_ns
        if header.kind == TABLE_DUMP_V2:
            return self._tables.read_v2(header.subtype, body, time, arrived)
        if header.kind == TABLE_DUMP:
            return self._tables.read_v1(header.subtype, body, time, arrived)
        if header.kind in {BGP4MP, BGP4MP_ET}:
            return self._messages.read(header.subtype, body, time, arrived)
        if header.kind == BGP:
            return self._messages.read_old(header.subtype, body, time, arrived)
        self.quarantine.ignore(f"MRT type {header.kind}" if header.kind < 64 else "MRT type")
        return iter(())


def _split(record: bytes) -> tuple[MrtHeader, Cursor]:
    body = Cursor(record)
    time = body.number(4) * _SECOND
    kind, subtype, _size = body.number(2), body.number(2), body.number(4)
    if kind == BGP4MP_ET:
        micros = body.number(4)
        if micros > 999_999:
            raise MalformedError("more microseconds than a second has")
        time += micros * 1_000
    return MrtHeader(time, kind, subtype), body
