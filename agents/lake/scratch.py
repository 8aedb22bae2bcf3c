"""Sorted rows on their way from files to pairs: each task writes a file, block by block.

A block has rows of one part, which is some pairs of a region and a site that fit into memory
together: three arrays, one behind the other. Nobody waits for anybody, and who needs a part reads
its blocks out of the files of all tasks.
"""

import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pathbudget.agents.lake.envelopes import Numbers
from pathbudget.agents.lake.sorting import Sorted

LARGEST = np.iinfo(np.uint32).max
"""Stands for a loss where values have 32 bits, which are enough for 4.29 s."""
ALIGNED = 8
"""Blocks begin at multiples of so many bytes, or reading would copy them once more."""
BUFFERED = 1 << 20
"""Bytes that are written at a time."""


@dataclass(frozen=True, slots=True)
class Block:
    """Where some rows stand in a scratch file, and whose they are."""

    offset: int
    members: Numbers
    counts: Numbers
    values: str
    """Type of the values: 32 bits where all fit, else float64."""
    sequence: str
    """Type of the sequence numbers."""


@dataclass(slots=True)
class ScratchFile:
    """What one task has for one part."""

    path: Path
    blocks: list[Block] = field(default_factory=list[Block])


class ScratchWriter:
    """Writes the rows of one task; `part_of` says which part each member belongs to."""

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / f"{name}.rows"
        self._file = self._path.open("wb", buffering=BUFFERED)
        self.files: dict[int, ScratchFile] = {}
        """By part."""

    def write(self, rows: Sorted, part_of: Sequence[int]) -> None:
        """Append a portion of rows. Raises OSError."""
        parts = np.array(part_of, dtype=np.int64)[rows.members]
        ends = np.concatenate(([0], np.cumsum(rows.counts)))
        borders = [0, *(np.flatnonzero(np.diff(parts)) + 1).tolist(), len(parts)]
        for first, last in itertools.pairwise(borders):
            if last > first:
                mine = slice(int(ends[first]), int(ends[last]))
                self._append(int(parts[first]), rows, slice(first, last), mine)

    def _append(self, part: int, rows: Sorted, members: slice, mine: slice) -> None:
        values, sequence = _narrow_values(rows.values_ns[mine]), _narrow(rows.sequence[mine])
        block = Block(
            self._file.tell(),
            rows.members[members],
            rows.counts[members],
            values.dtype.str,
            sequence.dtype.str,
        )
        length = 0
        for column in (rows.sent_unix_ns[mine], values, sequence):
            self._file.write(column.data)
            length += column.nbytes
        self._file.write(bytes(-length % ALIGNED))
        self.files.setdefault(part, ScratchFile(self._path)).blocks.append(block)

    def close(self) -> None:
        """End the file. Raises OSError."""
        self._file.close()


def _narrow_values(values: npt.NDArray[np.float64]) -> npt.NDArray[Any]:
    """Whole numbers and losses in 32 bits, if they fit. No value is below zero."""
    beyond = np.count_nonzero(values >= LARGEST)
    if beyond and np.count_nonzero(np.isinf(values)) < beyond:
        return values
    return np.minimum(values, LARGEST).astype(np.uint32)


def _narrow(sequence: Numbers) -> npt.NDArray[Any]:
    low, high = int(sequence.min()), int(sequence.max())
    for kind in (np.uint16, np.int32):
        limits = np.iinfo(kind)
        if limits.min <= low and high <= limits.max:
            return sequence.astype(kind)
    return sequence


def read_blocks(file: ScratchFile) -> Iterator[Sorted]:
    """The portions of a scratch file as they were written. Raises OSError."""
    with file.path.open("rb", buffering=0) as source:
        for block in file.blocks:
            kinds = [np.dtype(np.int64), np.dtype(block.values), np.dtype(block.sequence)]
            n = int(block.counts.sum())
            length = n * sum(kind.itemsize for kind in kinds)
            content = os.pread(source.fileno(), length, block.offset)
            if len(content) < length:
                raise OSError(0, "the scratch file is shorter than what was written", file.path)
            place, columns = 0, list[npt.NDArray[Any]]()
            for kind in kinds:
                columns.append(np.frombuffer(content, kind, n, place))
                place += n * kind.itemsize
            yield _widened(block, *columns)


def _widened(block: Block, sent: Numbers, stored: npt.NDArray[Any], sequence: Numbers) -> Sorted:
    values = stored.astype(np.float64)
    if stored.dtype != values.dtype:
        values[stored == LARGEST] = np.inf
    return Sorted(block.members, block.counts, sent, sequence, values)
