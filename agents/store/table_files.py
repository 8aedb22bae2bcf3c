"""The Parquet files: writing a pair of them, and reading them back a row group at a time."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeVar

from pathbudget.probes import arrow_schema
from pathbudget.probes.columns import MEASUREMENT_ID, SAMPLE_COLUMNS
from pathbudget.probes.errors import RecordError, StoreError
from pathbudget.probes.record import Measurement

import pyarrow as pa  # isort: skip  (after arrow_schema, which says what to install)
import pyarrow.parquet as pq  # isort: skip

Item = TypeVar("Item")
Result = TypeVar("Result")

_SAMPLE_ROWS = 65_536
_MEASUREMENT_ROWS = 8_192
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
        self._measurements = _writer(measurement_path, arrow_schema.MEASUREMENT_SCHEMA)
        self._samples = _writer(sample_path, arrow_schema.SAMPLE_SCHEMA)

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
    return _writer(file, arrow_schema.SAMPLE_SCHEMA)


def write_samples(writer: pq.ParquetWriter, measurements: Iterable[Measurement]) -> int:
    """Write the samples of all; returns how many."""
    rows = 0
    for batch in batches(measurements):
        table = arrow_schema.sample_table(batch)
        writer.write_table(table, row_group_size=_SAMPLE_ROWS)
        rows += len(table)
    return rows


def _writer(path: Path | BinaryIO, schema: pa.Schema) -> pq.ParquetWriter:
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
    for index in range(_read(path, lambda file: file.num_row_groups)):
        yield _read(path, functools.partial(_row_group, index=index, columns=columns))


def first_id(path: Path) -> str | None:
    """The smallest id of a measurement file; None when it has no rows. Raises StoreError."""
    for table in row_groups(path, ["id"]):
        if len(table):
            return str(table.column("id")[0])
    return None


def ids(path: Path) -> set[str]:
    """All ids of a measurement file. Raises StoreError."""
    return {str(name) for table in row_groups(path, ["id"]) for name in table.column("id")}


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
    """The rows of a sample file, taken from the front. Row groups that are skipped are not read."""

    def __init__(self, path: Path, columns: Sequence[str] | None = _OWN_COLUMNS) -> None:
        self._path = path
        self._columns = columns
        self._sizes: list[int] | None = None
        self._group = 0
        self._used = 0
        """Rows of the present group that are behind us."""
        self._to_skip = 0
        self._table: pa.Table | None = None

    def skip(self, count: int) -> None:
        """Pass over the next `count` rows."""
        self._to_skip += count

    def take(self, count: int) -> pa.Table:
        """The next `count` rows, fewer at the end of the file. Raises StoreError."""
        if self._sizes is None:
            self._sizes = _read(self._path, _group_sizes)
        parts: list[pa.Table] = []
        while count > 0 and self._group < len(self._sizes):
            part = self._part(self._sizes[self._group], count)
            if part is not None:
                parts.append(part)
                count -= len(part)
        return pa.concat_tables(parts) if parts else arrow_schema.SAMPLE_SCHEMA.empty_table()

    def _part(self, size: int, count: int) -> pa.Table | None:
        """Rows of the present group; None, moving on to the next, when nothing of it is left."""
        skipped = min(self._to_skip, size - self._used)
        self._used += skipped
        self._to_skip -= skipped
        if self._used == size:
            self._group, self._used, self._table = self._group + 1, 0, None
            return None
        if self._table is None:
            self._table = _read(self._path, self._load)
        part = self._table.slice(self._used, count)
        self._used += len(part)
        return part

    def _load(self, file: pq.ParquetFile) -> pa.Table:
        return _row_group(file, index=self._group, columns=self._columns)


def whole(path: Path, envelope: Measurement, count: int, rows: pa.Table) -> Measurement:
    """The measurement with its samples. Raises StoreError when `rows` are not they."""
    try:
        return arrow_schema.with_samples(envelope, count, rows)
    except RecordError as error:
        raise StoreError(f"{path}: damaged: {error}") from None


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


def _read(path: Path, read: Callable[[pq.ParquetFile], Result]) -> Result:
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            return read(file)
    except (OSError, pa.ArrowException) as error:
        problem = str(error).splitlines()[0]
        raise StoreError(f"{path}: cannot be read: {problem}") from None
