"""The Parquet files: writing a pair of them, and reading them back a row group at a time."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar

import msgspec

from pathbudget.probes import arrow_schema
from pathbudget.probes.columns import MEASUREMENT_ID, SAMPLE_COLUMNS
from pathbudget.probes.errors import RecordError, StoreError
from pathbudget.probes.record import Measurement, Sample

import pyarrow as pa  # isort: skip  (after arrow_schema, which says what to install)
import pyarrow.parquet as pq  # isort: skip

Item = TypeVar("Item")
Result = TypeVar("Result")

_SAMPLE_ROWS = 65_536
_MEASUREMENT_ROWS = 8_192
_BLOCK_ROWS = 4_096
_BATCH_SAMPLES = 100_000
_BATCH_MEASUREMENTS = 10_000
_OWN_COLUMNS = (MEASUREMENT_ID.name, *(column.name for column in SAMPLE_COLUMNS))


def batches(measurements: Iterable[Measurement]) -> Iterator[list[Measurement]]:
    """Portions that fit into memory.

    When the source fails in the middle of a portion, what it gave before still comes out, and the
    failure after it: a stream that breaks off loses nothing that was in it.
    """
    source = iter(measurements)
    trouble: BaseException | None = None
    full = True
    while full and trouble is None:
        batch: list[Measurement] = []
        full, trouble = _fill(batch, source)
        if batch:
            yield batch
    if trouble is not None:
        raise trouble


def _fill(
    batch: list[Measurement], source: Iterator[Measurement]
) -> tuple[bool, BaseException | None]:
    """Whether the batch is full (else the source has ended), and what went wrong meanwhile."""
    samples = 0
    try:
        for measurement in source:
            batch.append(measurement)
            samples += len(measurement.samples)
            if samples >= _BATCH_SAMPLES or len(batch) >= _BATCH_MEASUREMENTS:
                return True, None
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - raised again by the caller
        return False, error
    return False, None


class PairWriter:
    """Writes measurements to a pair of files; the caller gives them in the order of their ids."""

    def __init__(self, measurement_path: Path, sample_path: Path) -> None:
        self._measurements = parquet_writer(measurement_path, arrow_schema.MEASUREMENT_SCHEMA)
        self._samples = parquet_writer(sample_path, arrow_schema.SAMPLE_SCHEMA)

    def write(self, measurements: Sequence[Measurement]) -> None:
        """Append rows to both. Raises RecordError for what a table cannot hold."""
        envelopes = arrow_schema.measurement_table(measurements)
        self._measurements.write_table(envelopes, row_group_size=_MEASUREMENT_ROWS)
        samples = arrow_schema.sample_table(measurements)
        self._samples.write_table(samples, row_group_size=_SAMPLE_ROWS)

    def close(self) -> None:
        """Write the footers."""
        self._measurements.close()
        self._samples.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def sample_writer(file: BinaryIO) -> pq.ParquetWriter:
    """A writer of the sample table to an open file."""
    return parquet_writer(file, arrow_schema.SAMPLE_SCHEMA)


def write_samples(writer: pq.ParquetWriter, measurements: Iterable[Measurement]) -> int:
    """Write the samples of all; returns how many."""
    rows = 0
    for batch in batches(measurements):
        table = arrow_schema.sample_table(batch)
        writer.write_table(table, row_group_size=_SAMPLE_ROWS)
        rows += len(table)
    return rows


def parquet_writer(path: Path | BinaryIO, schema: pa.Schema) -> pq.ParquetWriter:
    """A writer as all files of a store are written."""
    return pq.ParquetWriter(
        path,
        schema,
        compression="zstd",
        version="2.6",
        write_page_checksum=True,
    )


def row_groups(path: Path, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
    """The tables of a file one by one; columns that it lacks are left out. Raises StoreError.

    The file is open only while a row group is read: a store may have more files than a process
    may hold open.
    """
    for index in range(read_parquet(path, lambda file: file.num_row_groups)):
        yield read_parquet(path, functools.partial(_row_group, index=index, columns=columns))


def first_id(path: Path) -> str | None:
    """The smallest id of a measurement file; None when it has no rows. Raises StoreError."""
    for table in row_groups(path, ["id"]):
        if len(table):
            return _names(path, table, "id")[0]
    return None


def ids(path: Path) -> set[str]:
    """All ids of a measurement file. Raises StoreError."""
    return {name for table in row_groups(path, ["id"]) for name in _names(path, table, "id")}


def _names(path: Path, table: pa.Table, column: str) -> list[str]:
    """The ids in `column`. A file that has none was not written by this product: StoreError."""
    if column not in table.column_names:
        raise StoreError(f"{path}: no table of this product: it has no column {column}")
    return [str(name) for name in table.column(column).to_pylist()]


def envelope_counts(path: Path) -> Iterator[tuple[Measurement, int, int]]:
    """Measurements of a file without their samples, in the order of their ids.

    With each: how many samples it has, and how many of these are failures. Raises StoreError.
    """
    last = ""
    for table in row_groups(path):
        for envelope, count, failures in _naming(path, arrow_schema.envelopes(table)):
            if envelope.id < last:
                raise StoreError(f"{path}: damaged: its rows are not in the order of their ids")
            last = envelope.id
            yield envelope, count, failures


class SampleRows:
    """The samples of a file, taken from the front a block at a time; skipped blocks stay unread."""

    def __init__(self, path: Path, columns: Sequence[str] | None = _OWN_COLUMNS) -> None:
        self._path = path
        self._columns = columns
        self._blocks: Iterator[_Block] | None = None
        self._block: _Block | None = None
        self._used = 0
        """Rows of the present block that are behind us."""
        self._to_skip = 0

    def skip(self, count: int) -> None:
        """Pass over the next `count` rows."""
        self._to_skip += count

    def take(self, count: int) -> tuple[set[str], list[Sample]]:
        """The next `count` samples, fewer at the end of the file, and whose they are.

        Raises StoreError.
        """
        names: set[str] = set()
        found: list[Sample] = []
        while len(found) < count and (block := self._present()):
            until = min(block.size, self._used + count - len(found))
            names.update(block.names[self._used : until])
            found += block.samples[self._used : until]
            self._used = until
        return names, found

    def _present(self) -> "_Block | None":
        """The block that holds the next row; None at the end of the file."""
        if self._blocks is None:
            self._blocks = _blocks(self._path, self._columns)
            self._block = next(self._blocks, None)
        while self._block is not None:
            skipped = min(self._to_skip, self._block.size - self._used)
            self._used += skipped
            self._to_skip -= skipped
            if self._used < self._block.size:
                break
            self._block, self._used = next(self._blocks, None), 0
        return self._block


class _Block:
    """Some rows of a row group, turned into samples when somebody wants them."""

    def __init__(self, group: "_Group", start: int, size: int) -> None:
        self.size = size
        self._group = group
        self._start = start

    @functools.cached_property
    def _rows(self) -> pa.Table:
        return self._group.table.slice(self._start, self.size)

    @functools.cached_property
    def names(self) -> list[str]:
        """The measurement of each row."""
        return _names(self._group.path, self._rows, MEASUREMENT_ID.name)

    @functools.cached_property
    def samples(self) -> list[Sample]:
        """The sample of each row."""
        try:
            return arrow_schema.samples(self._rows)
        except RecordError as error:
            raise StoreError(f"{self._group.path}: {error}") from None


class _Group:
    """One row group, read when somebody wants a row of it."""

    def __init__(self, path: Path, index: int, columns: Sequence[str] | None) -> None:
        self.path = path
        self._index = index
        self._columns = columns

    @functools.cached_property
    def table(self) -> pa.Table:
        """All its rows."""
        load = functools.partial(_row_group, index=self._index, columns=self._columns)
        return read_parquet(self.path, load)


def _blocks(path: Path, columns: Sequence[str] | None) -> Iterator[_Block]:
    for index, rows in enumerate(read_parquet(path, _group_sizes)):
        group = _Group(path, index, columns)
        for start in range(0, rows, _BLOCK_ROWS):
            yield _Block(group, start, min(_BLOCK_ROWS, rows - start))


def whole(path: Path, envelope: Measurement, count: int, rows: SampleRows) -> Measurement:
    """The measurement with the next `count` rows as its samples. Raises StoreError."""
    names, samples = rows.take(count)
    if len(samples) != count or not names <= {envelope.id}:
        found = f"measurement {envelope.id}: {len(samples)} of {count} samples are there"
        raise StoreError(f"{path}: damaged: {found}")
    return msgspec.structs.replace(envelope, samples=tuple(samples))


def _naming(path: Path, items: Iterable[Item]) -> Iterator[Item]:
    """The same items; a RecordError on the way gets the name of the file."""
    try:
        yield from items
    except RecordError as error:
        raise StoreError(f"{path}: {error}") from None


def _group_sizes(file: pq.ParquetFile) -> list[int]:
    groups = range(file.num_row_groups)
    return [file.metadata.row_group(index).num_rows for index in groups]


def _row_group(file: pq.ParquetFile, index: int, columns: Sequence[str] | None) -> pa.Table:
    known = set(file.schema_arrow.names)
    return file.read_row_group(index, [c for c in columns if c in known] if columns else None)


def read_parquet(path: Path, read: Callable[[pq.ParquetFile], Result]) -> Result:
    """What `read` makes of an open file. Raises StoreError."""
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return read(file)
    except (OSError, pa.ArrowException) as error:
        problem = str(error).splitlines()[0]
        raise StoreError(f"{path}: cannot be read: {problem}") from None
