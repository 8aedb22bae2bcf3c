"""Whole records of a lake, of the few probes whose lines need more than single numbers."""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pathbudget.agents.lake.envelopes import FilePair, Wanted, read_envelopes
from pathbudget.probes.arrow_schema import envelopes, with_samples
from pathbudget.probes.columns import MEASUREMENT_ID, SAMPLE_COLUMNS
from pathbudget.probes.errors import RecordError, StoreError
from pathbudget.probes.record import Measurement

COLUMNS = (MEASUREMENT_ID.name, *(column.name for column in SAMPLE_COLUMNS))


def records(
    files: FilePair,
    wanted: Wanted,
    repeated: Sequence[int],
    picked: Callable[[Measurement], bool],
) -> Iterator[Measurement]:
    """The wanted measurements whose group is picked, with their samples. Raises StoreError."""
    known = read_envelopes(files.measurements, wanted, repeated)
    groups = np.array([picked(group) for group in known.groups], dtype=np.bool_)
    chosen = np.flatnonzero(known.wanted & groups[known.group])
    if not len(chosen):
        return
    starts = np.concatenate(([0], np.cumsum(known.counts)))
    try:
        table = pq.read_table(files.measurements).take(chosen)
        with pq.ParquetFile(files.samples, page_checksum_verification=True) as file:
            slices = _Slices(file)
            for number, (envelope, count, _) in zip(chosen.tolist(), envelopes(table), strict=True):
                yield with_samples(envelope, count, slices.rows(int(starts[number]), count))
    except RecordError as error:
        raise StoreError(f"{files.samples}: damaged: {error}") from None
    except (OSError, pa.ArrowException) as error:
        problem = str(error).splitlines()[0]
        raise StoreError(f"{files.samples}: cannot be read: {problem}") from None


class _Slices:
    """Rows of a file by number; the row group read last is kept."""

    def __init__(self, file: pq.ParquetFile) -> None:
        self._file = file
        sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        self._starts = np.concatenate(([0], np.cumsum(sizes)))
        names = set(file.schema_arrow.names)
        self._columns = [name for name in COLUMNS if name in names]
        self._kept: tuple[int, pa.Table] | None = None

    def rows(self, start: int, count: int) -> pa.Table:
        """Rows from `start` on; fewer where the file ends."""
        first = int(np.searchsorted(self._starts, start, side="right")) - 1
        parts: list[pa.Table] = []
        while count > 0 and first < len(self._starts) - 1:
            offset = start - int(self._starts[first])
            part = self._group(first).slice(offset, count)
            parts.append(part)
            start, count, first = start + len(part), count - len(part), first + 1
        return pa.concat_tables(parts) if parts else self._group(0).slice(0, 0)

    def _group(self, index: int) -> pa.Table:
        if self._kept is None or self._kept[0] != index:
            self._kept = index, self._file.read_row_group(index, self._columns)
        return self._kept[1]
