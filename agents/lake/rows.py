"""Samples of a file as columns, some hundred thousand rows at a time, whole measurements only.

What the footers of row groups settle is not read: a column that is all null, or one word all over.
Words are numbered through a `Vocabulary`, the same for all pieces of a task.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from pathbudget.agents.lake.envelopes import Envelopes, Numbers
from pathbudget.analysis.series import LOST
from pathbudget.probes.errors import StoreError
from pathbudget.probes.record import Flag

PIECE_ROWS = 300_000
"""Row groups are read together until there are as many rows."""

NEEDED = frozenset({"measurement_id", "metric", "sent_unix_ns", "seq", "value_ns"})
WORDS = ("metric", "mode", "failure_kind", "clock_source", "responder")
FLAGS = (Flag.CLOCK_STEP, Flag.LATE, Flag.SYN_RETRANSMITTED, Flag.REFUSED, Flag.LOADED)
"""Those that decide where a sample belongs; bit i of `Rows.flags` stands for the i-th."""
FLAG_BIT = {flag: 1 << i for i, flag in enumerate(FLAGS)}

Codes = npt.NDArray[np.int32]


class Vocabulary:
    """Numbers words in the order they come. Number 0 is "no word"."""

    def __init__(self) -> None:
        self.words: list[str] = [""]
        self._numbers: dict[str | None, int] = {None: 0}

    def number(self, word: str | None) -> int:
        """The number of a word, a new one if need be."""
        found = self._numbers.get(word)
        if found is None:
            found = self._numbers[word] = len(self.words)
            self.words.append(word or "")
        return found


@dataclass(frozen=True, slots=True)
class Rows:
    """Parallel arrays, one entry per sample. Words are numbers of a `Vocabulary`."""

    measurement: Numbers
    """Which envelope of the file each belongs to."""
    sent_unix_ns: Numbers
    sequence: Numbers
    values_ns: npt.NDArray[np.float64]
    """``inf`` for a failure."""
    metric: Codes
    mode: Codes
    failure_kind: Codes
    clock_source: Codes
    responder: Codes
    flags: npt.NDArray[np.uint8]

    def part(self, start: int, stop: int | None = None) -> "Rows":
        """Rows from `start` to before `stop`."""
        return Rows(*(getattr(self, one.name)[start:stop] for one in fields(self)))


def joined(parts: Sequence[Rows]) -> Rows:
    """Several as one; at least one."""
    if len(parts) == 1:
        return parts[0]
    return Rows(
        *(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(Rows))
    )


def rows_of(
    path: Path, envelopes: Envelopes, span: tuple[int, int], vocabulary: Vocabulary
) -> Iterator[Rows]:
    """The samples of the measurements from number span[0] to before span[1].

    Portions end where a measurement ends. Where none of a row group is wanted it is not read, and
    its rows are not given. Raises StoreError.
    """
    try:
        with pq.ParquetFile(
            path, read_dictionary=[*WORDS], page_checksum_verification=True
        ) as file:
            yield from _Reader(path, file, envelopes, vocabulary).rows(span)
    except (OSError, pa.ArrowException) as error:
        raise StoreError(f"{path}: cannot be read: {str(error).splitlines()[0]}") from None


class _Reader:
    """One sample file, while it is open."""

    def __init__(
        self, path: Path, file: pq.ParquetFile, envelopes: Envelopes, vocabulary: Vocabulary
    ) -> None:
        self.path, self.file, self.vocabulary = path, file, vocabulary
        self.wanted, self.ids = envelopes.wanted, envelopes.ids
        self.starts = np.concatenate(([0], np.cumsum(envelopes.counts)))
        self.metadata = file.metadata
        self.columns = {
            self.metadata.schema.column(i).path.partition(".")[0]: i
            for i in range(self.metadata.num_columns)
        }
        if missing := sorted(NEEDED - set(self.columns)):
            raise StoreError(f"{path}: no table of this product: it has no column {missing[0]}")
        if (there := self.metadata.num_rows) != self.starts[-1]:
            raise StoreError(f"{path}: damaged: {there} of {self.starts[-1]} samples are there")

    def rows(self, span: tuple[int, int]) -> Iterator[Rows]:
        """As `rows_of`."""
        first, last = int(self.starts[span[0]]), int(self.starts[span[1]])
        carried: list[Rows] = []
        for groups, start, stop in self._pieces(first, last):
            rows = self._read(groups, start)
            rows = rows.part(max(0, first - start), min(stop, last) - start)
            whole = self._whole_until(min(stop, last))
            if whole <= max(first, start):
                carried.append(rows)
                continue
            cut = whole - max(first, start)
            yield joined([*carried, rows.part(0, cut)])
            carried = [rows.part(cut)] if cut < len(rows.sent_unix_ns) else []
        if carried:
            yield joined(carried)

    def _whole_until(self, stop: int) -> int:
        """Up to which row measurements are complete, when rows up to `stop` are read."""
        return int(self.starts[np.searchsorted(self.starts, stop, side="right") - 1])

    def _pieces(self, first: int, last: int) -> Iterator[tuple[list[int], int, int]]:
        """Row groups to be read together, and which rows they are."""
        groups: list[int] = []
        start = stop = 0
        for index in range(self.metadata.num_row_groups):
            begin, stop = stop, stop + self.metadata.row_group(index).num_rows
            if stop <= first or begin >= last or not self._any_wanted(begin, stop):
                if groups:
                    yield groups, start, begin
                groups = []
                continue
            if not groups:
                start = begin
            groups.append(index)
            if stop - start >= PIECE_ROWS:
                yield groups, start, stop
                groups = []
        if groups:
            yield groups, start, stop

    def _any_wanted(self, begin: int, end: int) -> bool:
        """Whether a measurement that has one of these rows is wanted."""
        low = int(np.searchsorted(self.starts, begin, side="right")) - 1
        high = int(np.searchsorted(self.starts, end, side="left"))
        return bool(self.wanted[low:high].any())

    def _check_owners(self, groups: list[int], start: int) -> None:
        """The smallest and the largest id of each row group must be those of its measurements."""
        for index in groups:
            rows = self.metadata.row_group(index).num_rows
            first, last = np.searchsorted(self.starts, [start, start + rows - 1], side="right") - 1
            expected = str(self.ids[int(first)]), str(self.ids[int(last)])
            if rows and self._owners(index) != expected:
                raise StoreError(
                    f"{self.path}: damaged: samples of other measurements than {expected[0]} to "
                    f"{expected[1]} stand in their place"
                )
            start += rows

    def _owners(self, index: int) -> tuple[str, str]:
        statistics = (
            self.metadata.row_group(index).column(self.columns["measurement_id"]).statistics
        )
        if statistics is not None and statistics.has_min_max:
            return str(statistics.min), str(statistics.max)
        column = self.file.read_row_group(index, ["measurement_id"]).column(0)
        names = [str(name) for name in column.to_pylist()]
        return min(names), max(names)

    def _read(self, groups: list[int], start: int) -> Rows:
        self._check_owners(groups, start)
        known = {name: self._settled(groups, name) for name in (*WORDS, "flags")}
        names = ["sent_unix_ns", "seq", "value_ns", *(n for n, w in known.items() if w is None)]
        table = self.file.read_row_groups(groups, names, use_threads=False)
        n = len(table)
        first = int(np.searchsorted(self.starts, start, side="right")) - 1
        ends = self.starts[first + 1 :]
        until = int(np.searchsorted(ends, start + n, side="left")) + 1
        edges = np.clip(self.starts[first : first + until + 1], start, start + n)
        return Rows(
            measurement=np.repeat(np.arange(first, first + until), np.diff(edges)),
            sent_unix_ns=_integers(table, "sent_unix_ns"),
            sequence=_integers(table, "seq"),
            values_ns=_values(table),
            **{name: self._words(table, name, known[name]) for name in WORDS},
            flags=_flags(table) if known["flags"] is None else np.zeros(n, dtype=np.uint8),
        )

    def _settled(self, groups: list[int], name: str) -> list[str | None] | None:
        """The one word of a column in these row groups; None where it must be read to know."""
        column = self.columns.get(name)
        if column is None:
            return [None]
        found: set[str | None] = set()
        for index in groups:
            one = self.metadata.row_group(index).column(column)
            statistics: Any = one.statistics
            if statistics is None or not statistics.has_null_count:
                return None
            harmless = name == "flags" and statistics.has_min_max and _harmless(statistics)
            if harmless or statistics.null_count == one.num_values:
                found.add(None)
            elif (
                name != "flags"
                and statistics.null_count == 0
                and statistics.has_min_max
                and statistics.min == statistics.max
            ):
                found.add(str(statistics.min))
            else:
                return None
        return list(found) if len(found) == 1 else None

    def _words(self, table: pa.Table, name: str, settled: list[str | None] | None) -> Codes:
        if settled is not None:
            return np.full(len(table), self.vocabulary.number(settled[0]), dtype=np.int32)
        parts = [self._coded(chunk) for chunk in table.column(name).chunks]
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)

    def _coded(self, chunk: Any) -> Codes:
        numbers = [self.vocabulary.number(word) for word in chunk.dictionary.to_pylist()]
        table = np.array([*numbers, 0], dtype=np.int32)  # -1 is the last: no word
        indices = chunk.indices.fill_null(-1) if chunk.null_count else chunk.indices
        found: Codes = table[indices.to_numpy(zero_copy_only=False)]
        return found


def _harmless(statistics: Any) -> bool:
    """Whether all flags of a row group are one that decides nothing here."""
    return statistics.min == statistics.max and statistics.min not in FLAG_BIT


def _integers(table: pa.Table, name: str) -> Numbers:
    found: Numbers = table.column(name).to_numpy()
    return found


def _values(table: pa.Table) -> npt.NDArray[np.float64]:
    """As float64, exact up to 2^53 ns, which is 104 days."""
    values = table.column("value_ns").to_numpy()
    if values.dtype == np.int64:
        return values.astype(np.float64)
    values = np.array(values, dtype=np.float64)
    values[np.isnan(values)] = LOST
    return values


def _flags(table: pa.Table) -> npt.NDArray[np.uint8]:
    """One bit for each of `FLAGS` that a row has."""
    parts: list[npt.NDArray[np.uint8]] = []
    chunks: list[Any] = table.column("flags").chunks
    for chunk in chunks:
        marks = np.zeros(len(chunk), dtype=np.uint8)
        words = chunk.flatten().dictionary_encode()
        if len(words):
            bits = np.array(
                [FLAG_BIT.get(word, 0) for word in words.dictionary.to_pylist()], dtype=np.uint8
            )
            lengths = chunk.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
            owners = np.repeat(np.arange(len(chunk)), lengths)
            np.bitwise_or.at(marks, owners, bits[words.indices.to_numpy(zero_copy_only=False)])
        parts.append(marks)
    return np.concatenate(parts) if parts else np.zeros(0, dtype=np.uint8)
