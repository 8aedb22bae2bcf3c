"""The spool file of BGP feeds: what a peer said survives the agent before the tables have it."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import msgspec

from pathbudget.agents.store.disk import explain_os_error
from pathbudget.agents.store.spool_file import SpoolFile
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.errors import RecordError, SpoolError

UPDATES_ENDING = ".updates"
VERSION = 1


class UpdateJournal(SpoolFile):
    """Appends updates to one spool file. Every method may raise SpoolError."""

    FIRST_LINE: ClassVar[bytes] = b'{"updates":%d}\n' % VERSION

    @classmethod
    def begin(cls, spool: Path, unix_ns: int) -> "UpdateJournal":
        """A new file of this process in the spool folder."""
        return cls.create(spool / f"bgp-{unix_ns:019d}-{os.getpid()}{UPDATES_ENDING}")

    def append(self, update: RouteUpdate) -> None:
        """Write one update. It survives the end of this process from here on."""
        self._write(msgspec.json.encode(update) + b"\n")


class _Head(msgspec.Struct):
    updates: int


class UpdateJournalReader:
    """Reads a file back, one update at a time; lines that are cut off or damaged are named."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.problems: list[str] = []
        self.damaged = False

    def updates(self) -> Iterator[RouteUpdate]:
        """Raises SpoolError when the file cannot be read, RecordError for a newer version."""
        decoder = msgspec.json.Decoder(RouteUpdate)
        try:
            with self.path.open("rb") as file:
                self._check_version(file.readline())
                for number, line in enumerate(file, start=2):
                    if line.strip(b"\0\n"):  # reserved space that was never used is zero bytes
                        try:
                            yield decoder.decode(line)
                        except (msgspec.DecodeError, UnicodeDecodeError):
                            self._problem(number, line)
        except OSError as error:
            raise SpoolError(f"{self.path}: cannot be read: {explain_os_error(error)}") from None

    def _check_version(self, line: bytes) -> None:
        try:
            version = msgspec.json.decode(line, type=_Head).updates
        except (msgspec.DecodeError, UnicodeDecodeError):
            self._problem(1, line)
            return
        if version > VERSION:
            raise RecordError(
                f"{self.path}: written by a newer pathbudget; journal version {version}, "
                f"this one reads up to {VERSION}"
            )

    def _problem(self, number: int, line: bytes) -> None:
        cut = not line.endswith(b"\n")
        self.damaged = self.damaged or not cut
        words = "cut off" if cut else "no update"
        self.problems.append(f"line {number}: {words}; passed over")
