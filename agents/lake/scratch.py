"""Sorted rows on their way from files to pairs: appended to one file for each part of the work.

A part is some pairs of a region and a site that fit into memory together. Each task writes files of
its own, so nobody waits for anybody; a block is three arrays, one behind the other.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from pathbudget.agents.lake.envelopes import Numbers
from pathbudget.agents.lake.sorting import Sorted

LARGEST = np.iinfo(np.uint32).max
"""Stands for a loss where values have 32 bits, which are enough for 4.29 s."""


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
        self._folder, self._name = folder, name
        self._open: dict[int, BinaryIO] = {}
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
        file = self._file(part)
        values, sequence = _narrow_values(rows.values_ns[mine]), _narrow(rows.sequence[mine])
        block = Block(
            file.tell(),
            rows.members[members],
            rows.counts[members],
            values.dtype.str,
            sequence.dtype.str,
        )
        file.write(rows.sent_unix_ns[mine].data)
        file.write(values.data)
        file.write(sequence.data)
        self.files[part].blocks.append(block)

    def _file(self, part: int) -> BinaryIO:
        if part not in self._open:
            path = self._folder / f"{part}-{self._name}.rows"
            self._open[part] = path.open("wb", buffering=0)
            self.files[part] = ScratchFile(path)
        return self._open[part]

    def close(self) -> None:
        """End all files. Raises OSError."""
        for file in self._open.values():
            file.close()
        self._open.clear()


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
    with file.path.open("rb") as source:
        for block in file.blocks:
            n = int(block.counts.sum())
            source.seek(block.offset)
            sent = np.fromfile(source, dtype=np.int64, count=n)
            stored: Any = np.fromfile(source, dtype=block.values, count=n)
            sequence: Any = np.fromfile(source, dtype=block.sequence, count=n)
            if len(sequence) < n:
                raise OSError(0, "the scratch file is shorter than what was written", file.path)
            values = stored.astype(np.float64)
            if block.values != values.dtype.str:
                values[stored == LARGEST] = np.inf
            yield Sorted(block.members, block.counts, sent, sequence, values)
