"""Where things stand in a store, and whether a folder is one.

pathbudget-store.json                      says that this folder is a store, and which layout
measurements/date=YYYY-MM-DD/*.parquet     one row per measurement
samples/date=YYYY-MM-DD/*.parquet          one row per sample; file names as in measurements
bgp_updates/date=YYYY-MM-DD/*.parquet      one row per BGP update; there since the first one
spool/*.jsonl                              journals of campaigns that run or were killed
spool/*.updates                            journals of BGP feeds likewise
.staging/                                  files on their way into the tables
.writer.lock, .reader.lock
"""

import functools
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from pathbudget.agents.store.disk import explain_os_error, reserve, sync
from pathbudget.probes.errors import StoreError

LAYOUT_VERSION = 1
MARKER = "pathbudget-store.json"
MEASUREMENTS = "measurements"
SAMPLES = "samples"
BGP_UPDATES = "bgp_updates"
TABLES = (SAMPLES, MEASUREMENTS, BGP_UPDATES)
"""In the order in which they are published: a measurement that is there has its samples."""

_FROM_THE_START = (SAMPLES, MEASUREMENTS)
_OWN = {MARKER, f"{MARKER}.new", *TABLES, "spool", ".staging"}
_TRIAL_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of the store at `root`."""

    root: Path

    @property
    def staging(self) -> Path:
        """Files on their way in; never read by anyone who reads the tables."""
        return self.root / ".staging"

    @property
    def spool(self) -> Path:
        """Journals."""
        return self.root / "spool"

    @property
    def writer_lock(self) -> Path:
        """Held by whoever changes the tables."""
        return self.root / ".writer.lock"

    @property
    def reader_lock(self) -> Path:
        """Shared by readers; held alone while files are replaced by others."""
        return self.root / ".reader.lock"

    def table(self, name: str) -> Path:
        """Folder of a table."""
        return self.root / name

    def dates(self, table: str = MEASUREMENTS) -> list[str]:
        """Dates of all rows of a table, in order; of one that is not there, none."""
        found = self.table(table).glob("date=*")
        return sorted(folder.name.removeprefix("date=") for folder in found)

    def folder(self, table: str, date: str) -> Path:
        """Folder of one date in a table."""
        return self.table(table) / f"date={date}"

    def files(self, table: str, date: str) -> list[Path]:
        """Parquet files of one date, in order of name."""
        return sorted(self.folder(table, date).glob("*.parquet"))

    def sample_file(self, measurement_file: Path) -> Path:
        """Samples of the measurements of a file.

        After a crash between the two tables they may still stand in the staging folder.
        """
        date, name = measurement_file.parent.name, measurement_file.name
        path = self.table(SAMPLES) / date / name
        if path.exists():
            return path
        return next(self.staging.glob(f"ready-*/{SAMPLES}/{date}/{name}"), path)

    def require(self) -> None:
        """Raise StoreError, saying what stands there instead, when this is no store."""
        if not self.root.exists():
            raise StoreError(f"{self.root}: there is no store here; a campaign creates one")
        if not self.root.is_dir():
            raise StoreError(f"{self.root}: this is a file; a store is a folder")
        marker = self.root / MARKER
        try:
            text = marker.read_text()
        except FileNotFoundError:
            raise StoreError(
                f"{self.root}: this folder is no store ({MARKER} is missing)"
            ) from None
        except OSError as error:
            raise StoreError(f"{marker}: cannot be read: {explain_os_error(error)}") from None
        _check_layout(marker, text)

    def create(self) -> None:
        """Make the folders that are missing. Raises StoreError when that cannot be.

        A folder with other things in it is refused, so that a mistyped path stays as it is.
        """
        if (self.root / MARKER).exists() or self.root.is_file():
            self.require()
        elif foreign := sorted(self._foreign()):
            raise StoreError(
                f"{self.root}: this folder is no store and not empty ({foreign[0]} ...); "
                "name a new or an empty folder"
            )
        try:
            self._make()
        except OSError as error:
            raise StoreError(f"{self.root}: cannot be written: {explain_os_error(error)}") from None

    def create_table(self, name: str) -> None:
        """Make the folder of a table that a store need not have. Raises StoreError."""
        folder = self.table(name)
        if folder.is_dir():
            return
        try:
            folder.mkdir(exist_ok=True)
            sync(self.root)
        except OSError as error:
            raise StoreError(f"{folder}: cannot be written: {explain_os_error(error)}") from None

    def _foreign(self) -> Iterator[str]:
        if self.root.is_dir():
            yield from (entry.name for entry in self.root.iterdir() if entry.name not in _OWN)

    def _make(self) -> None:
        self.root.mkdir(parents=True, exist_ok=True)
        tables = (self.table(name) for name in _FROM_THE_START)
        for folder in (self.staging, self.spool, *tables):
            folder.mkdir(exist_ok=True)
        for lock in (self.writer_lock, self.reader_lock):
            lock.touch()
        marker = self.root / MARKER
        if not marker.exists():
            new = marker.with_name(f"{MARKER}.new")
            new.write_text(json.dumps({"pathbudget_store_layout": LAYOUT_VERSION}) + "\n")
            new.replace(marker)
            sync(self.root)

    def check_writable(self) -> None:
        """Make the folders that are missing, and write a trial file. Raises StoreError."""
        self.create()
        try:
            self.try_to_write()
        except OSError as error:
            raise StoreError(f"{self.root}: cannot be written: {explain_os_error(error)}") from None

    def try_to_write(self) -> None:
        """Write a trial file of one megabyte and remove it. Raises OSError."""
        trial = self.staging / f"trial-{os.getpid()}"
        descriptor = os.open(trial, os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            reserve(descriptor, _TRIAL_BYTES)
        finally:
            os.close(descriptor)
            trial.unlink(missing_ok=True)


def date_of(unix_ns: int) -> str:
    """The UTC day that a measurement is filed under: ``2026-03-01``."""
    return _date_of_day(unix_ns // 86_400_000_000_000)


@functools.lru_cache(maxsize=1024)
def _date_of_day(day: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=day)).isoformat()


def _check_layout(marker: Path, text: str) -> None:
    try:
        version = json.loads(text)["pathbudget_store_layout"]
    except (ValueError, KeyError, TypeError):
        raise StoreError(f"{marker}: damaged; it should name the layout version") from None
    if version != LAYOUT_VERSION:
        raise StoreError(
            f"{marker.parent}: written by a newer pathbudget; layout {version}, "
            f"this one reads layout {LAYOUT_VERSION}"
        )
