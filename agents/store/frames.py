"""A store, or any folder in its layout, as a data frame of samples: read when asked, what is asked.

Columns that are not wanted are not read, nor days and row groups whose times lie outside.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds

from pathbudget.analysis.frame_columns import FrameError
from pathbudget.analysis.frame_intake import DTYPES
from pathbudget.probes.arrow_schema import SAMPLE_SCHEMA
from pathbudget.probes.errors import StoreError

USUAL = (
    *("region", "vantage", "site", "target", "address", "family", "probe", "transport"),
    *("metric", "mode", "sent_unix_ns", "seq", "value_ns", "failure_kind", "failure_stage"),
    *("clock_source", "flags", "measurement_id"),
)
"""What `measurements_of` makes the same series of as the store itself."""


@dataclass(frozen=True, slots=True)
class StoredSamples:
    """Samples that have not been read yet."""

    folder: Path
    columns: tuple[str, ...]
    since_unix_ns: int | None
    until_unix_ns: int | None
    words: dict[str, tuple[str, ...]]

    def frame(self) -> pd.DataFrame:
        """All of them as one frame. Raises StoreError."""
        return _pandas(self._read(_to_table))

    def count(self) -> int:
        """How many there are. Raises StoreError."""
        found: int = self._read(_count)
        return found

    def batches(self, rows: int = 1_000_000) -> Iterator[pd.DataFrame]:
        """Portions of at most so many rows, one in memory at a time. Raises StoreError."""
        batches = self._read(_to_batches, rows)
        try:
            for batch in batches:
                if batch.num_rows:
                    yield _pandas(pa.Table.from_batches([batch]))
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(self.folder, error) from None

    def _read(self, use: Any, rows: int = 1_000_000) -> Any:
        try:
            dataset = ds.dataset(
                self.folder, schema=_schema(), format="parquet",
                partitioning=ds.partitioning(pa.schema([("date", pa.string())]), flavor="hive"),
            )  # fmt: skip
            return use(
                dataset.scanner(
                    columns=list(self.columns), filter=self._filter(), batch_size=rows,
                    use_threads=False,
                )
            )  # fmt: skip
        except (OSError, pa.ArrowException) as error:
            raise _unreadable(self.folder, error) from None

    def _filter(self) -> Any:
        wishes: list[Any] = [ds.field(name).isin(list(words)) for name, words in self.words.items()]
        if self.since_unix_ns is not None:
            wishes.append(ds.field("sent_unix_ns") >= self.since_unix_ns)
        if self.until_unix_ns is not None:
            wishes.append(ds.field("sent_unix_ns") < self.until_unix_ns)
            last = datetime.fromtimestamp(self.until_unix_ns / 1e9 + 1, UTC).date()
            wishes.append(ds.field("date") <= last.isoformat())
        found = None
        for wish in wishes:
            found = wish if found is None else found & wish
        return found


def stored_samples(
    store: Path | str,
    *,
    columns: Sequence[str] = USUAL,
    since: datetime | None = None,
    until: datetime | None = None,
    **words: str | Sequence[str],
) -> StoredSamples:
    """Samples of a store that were sent in [since, until), and whose columns hold these words.

    ``stored_samples("lake", site=["a", "b"], metric="rtt").frame()``. Nothing is read before the
    frame is asked for. Raises StoreError where there is no store, FrameError for a column that no
    store has, and for a time without a zone.
    """
    folder = Path(store) / "samples"
    if not folder.is_dir():
        raise StoreError(f"{store}: there is no store here; it would have a folder samples")
    for name in (*columns, *words):
        if name not in SAMPLE_SCHEMA.names:
            raise FrameError(f"{name}: no column of a store; docs/record-schema.md has all")
    return StoredSamples(
        folder=folder,
        columns=tuple(columns),
        since_unix_ns=_nanoseconds("since", since),
        until_unix_ns=_nanoseconds("until", until),
        words={name: (word,) if isinstance(word, str) else tuple(word)
               for name, word in words.items()},
    )  # fmt: skip


def _to_table(scanner: Any) -> pa.Table:
    found: pa.Table = scanner.to_table()
    return found


def _to_batches(scanner: Any) -> Any:
    return scanner.to_batches()


def _count(scanner: Any) -> int:
    found: int = scanner.count_rows()
    return found


def _nanoseconds(name: str, moment: datetime | None) -> int | None:
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise FrameError(f"{name}: has no time zone; datetime(..., tzinfo=UTC) has one")
    return int(pd.Timestamp(moment).tz_convert("UTC").as_unit("ns").value)


def _schema() -> pa.Schema:
    return pa.schema([*SAMPLE_SCHEMA, pa.field("date", pa.string())])


def _pandas(table: pa.Table) -> pd.DataFrame:
    found: pd.DataFrame = table.to_pandas(types_mapper=DTYPES.get)
    return found


def _unreadable(folder: Path, error: Exception) -> StoreError:
    return StoreError(f"{folder}: cannot be read: {str(error).splitlines()[0]}")
