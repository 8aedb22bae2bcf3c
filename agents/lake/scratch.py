"""Sorted rows on their way from files to pairs: appended to one file for each part of the work.

A part is some pairs of a region and a site that fit into memory together. Each task writes files of
its own, so nobody waits for anybody; a block is three arrays, one behind the other.
"""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pathbudget.agents.lake.envelopes import Numbers
from pathbudget.agents.lake.sorting import Sorted

_NARROW = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True)
class Block:
    """Where some rows stand in a scratch file, and whose they are."""

    offset: int
    members: Numbers
    counts: Numbers
    is_wide: bool
    """Sequence numbers of 64 bits rather than 32."""


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
        sequence = rows.sequence[mine]
        is_wide = bool(sequence.min() < _NARROW.min or sequence.max() > _NARROW.max)
        block = Block(file.tell(), rows.members[members], rows.counts[members], is_wide)
        file.write(rows.sent_unix_ns[mine].data)
        file.write(rows.values_ns[mine].data)
        file.write(sequence.astype(np.int64 if is_wide else np.int32).data)
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


def read_blocks(file: ScratchFile) -> Iterator[Sorted]:
    """The portions of a scratch file as they were written. Raises OSError."""
    with file.path.open("rb") as source:
        for block in file.blocks:
            n = int(block.counts.sum())
            source.seek(block.offset)
            sent = np.fromfile(source, dtype=np.int64, count=n)
            values = np.fromfile(source, dtype=np.float64, count=n)
            kind = np.int64 if block.is_wide else np.int32
            sequence = np.fromfile(source, dtype=kind, count=n).astype(np.int64)
            if len(sequence) < n:
                raise OSError(0, "the scratch file is shorter than what was written", file.path)
            yield Sorted(block.members, block.counts, sent, sequence, values)
