"""The Parquet files of BGP updates: rows in the order of their ids, so in the order of time."""

import functools
import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from pathbudget.agents.store.layout import BGP_UPDATES, Layout, date_of
from pathbudget.agents.store.table_files import parquet_writer, read_parquet, row_groups
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.bgp.update_table import UPDATE_SCHEMA, update_table, updates
from pathbudget.probes.errors import RecordError, StoreError

import pyarrow as pa  # isort: skip  (after table_files, which says what to install)
import pyarrow.compute as pc  # isort: skip
import pyarrow.parquet as pq  # isort: skip

ROW_GROUP = 65_536
BATCH = 131_072
DAY_NS = 86_400_000_000_000


@dataclass(frozen=True, slots=True)
class UpdateSelection:
    """Which updates are wanted; None is no restriction. `until_unix_ns` is excluded.

    With `prefixes`, the news of sessions still comes: without it no state can be told.
    """

    since_unix_ns: int | None = None
    until_unix_ns: int | None = None
    feed: str | None = None
    prefixes: frozenset[str] | None = None

    def takes_date(self, date: str) -> bool:
        """Whether an update of this day can be wanted."""
        since, until = self.since_unix_ns, self.until_unix_ns
        return (since is None or date >= date_of(since - DAY_NS)) and (
            until is None or date <= date_of(until + DAY_NS)
        )

    def rows(self, table: pa.Table) -> pa.Table:
        """The wanted rows."""
        wanted: list[pc.Expression] = []
        if self.since_unix_ns is not None:
            wanted.append(pc.field("time_unix_ns") >= self.since_unix_ns)
        if self.until_unix_ns is not None:
            wanted.append(pc.field("time_unix_ns") < self.until_unix_ns)
        if self.feed is not None:
            wanted.append(pc.field("feed") == self.feed)
        if self.prefixes is not None:
            wanted.append(pc.field("prefix").isin(["", *sorted(self.prefixes)]))
        return (
            table.filter(functools.reduce(lambda one, two: one & two, wanted)) if wanted else table
        )


EVERYTHING = UpdateSelection()


def filed_under(update: RouteUpdate) -> str:
    """The day of an update: that of its time, or of its arrival where the time is a day ahead."""
    ahead = update.time_unix_ns > update.arrived_unix_ns + DAY_NS
    return date_of(update.arrived_unix_ns if ahead else update.time_unix_ns)


class UpdateWriter:
    """Writes one file; the caller gives the updates in the order of their ids."""

    def __init__(self, path: Path) -> None:
        self._writer = parquet_writer(path, UPDATE_SCHEMA)

    def write(self, batch: Sequence[RouteUpdate]) -> None:
        """Append rows. Raises RecordError for what the table cannot hold."""
        self._writer.write_table(update_table(batch), row_group_size=ROW_GROUP)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._writer.close()


def update_batches(source: Iterable[RouteUpdate]) -> Iterator[list[RouteUpdate]]:
    """Portions that fit into memory."""
    batch: list[RouteUpdate] = []
    for update in source:
        batch.append(update)
        if len(batch) >= BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def updates_of(path: Path, selection: UpdateSelection = EVERYTHING) -> Iterator[RouteUpdate]:
    """The wanted updates of a file, in the order of their ids. Raises StoreError."""
    last = ""
    for table in row_groups(path):
        try:
            found = updates(selection.rows(table))
        except (RecordError, pa.ArrowException) as error:
            raise StoreError(f"{path}: {error}") from None
        for update in found:
            if update.id < last:
                raise StoreError(f"{path}: damaged: its rows are not in the order of their ids")
            last = update.id
            yield update


def merged_updates(
    layout: Layout, selection: UpdateSelection = EVERYTHING
) -> Iterator[RouteUpdate]:
    """Every wanted update once, day by day, in the order of time within a day."""
    for date in layout.dates(BGP_UPDATES):
        if selection.takes_date(date):
            yield from merged_files(layout.files(BGP_UPDATES, date), selection)


def merged_files(
    files: Sequence[Path], selection: UpdateSelection = EVERYTHING
) -> Iterator[RouteUpdate]:
    """Every update of `files` once, in the order of ids."""
    streams = [updates_of(path, selection) for path in files]
    last = ""
    for update in heapq.merge(*streams, key=lambda one: one.id):
        if update.id != last:  # copied files may hold one update twice
            yield update
        last = update.id


def ids_within(path: Path, low: str, high: str) -> set[str]:
    """Ids of a file from `low` to `high`; row groups that lie elsewhere stay unread.

    Raises StoreError.
    """
    found: set[str] = set()
    for index in read_parquet(path, functools.partial(_groups_within, low=low, high=high)):
        table = read_parquet(path, functools.partial(_ids_of_group, index=index))
        names = map(str, table.column("id").to_pylist())
        found.update(name for name in names if low <= name <= high)
    return found


def _groups_within(file: pq.ParquetFile, low: str, high: str) -> list[int]:
    found: list[int] = []
    for index in range(file.num_row_groups):
        statistics = file.metadata.row_group(index).column(0).statistics
        apart = (
            statistics is not None
            and statistics.has_min_max
            and (str(statistics.max) < low or str(statistics.min) > high)
        )
        if not apart:
            found.append(index)
    return found


def _ids_of_group(file: pq.ParquetFile, index: int) -> pa.Table:
    return file.read_row_group(index, ["id"])
