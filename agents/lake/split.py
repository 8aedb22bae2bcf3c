"""First half of the work: one piece of a lake, its rows to the parts that they belong to."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pathbudget.agents.lake.envelopes import FilePair, Wanted, read_envelopes
from pathbudget.agents.lake.rows import Vocabulary, rows_of
from pathbudget.agents.lake.scratch import ScratchFile, ScratchWriter
from pathbudget.agents.lake.sorting import Member, Sorter

Pair = tuple[str, str]
"""Region and site."""


@dataclass(frozen=True, slots=True)
class SplitTask:
    """Some measurements of one pair of files."""

    name: str
    files: FilePair
    span: tuple[int, int]
    """From which measurement of the file to before which."""
    wanted: Wanted
    repeated: tuple[int, ...]
    """Measurements of the file that another file has too."""
    parts: Mapping[Pair, int]
    folder: Path


@dataclass(frozen=True, slots=True)
class Split:
    """What a task found."""

    files: dict[int, ScratchFile]
    members: list[Member]
    floors_ns: list[int]
    unresolved: Counter[tuple[str, str, str]]
    record_probes: set[str]
    samples: int
    """How many wanted samples the task read, whether or not they count."""


def split(task: SplitTask) -> Split:
    """Read the rows of a task and write them to scratch files. Raises StoreError, OSError."""
    envelopes = read_envelopes(task.files.measurements, task.wanted, task.repeated)
    vocabulary = Vocabulary()
    sorter = Sorter(envelopes, vocabulary, task.parts)
    writer = ScratchWriter(task.folder, task.name)
    try:
        for rows in rows_of(task.files.samples, envelopes, task.span, vocabulary):
            writer.write(sorter.sort(rows), sorter.part_of)
    finally:
        writer.close()
    return Split(
        files=writer.files,
        members=sorter.members,
        floors_ns=sorter.floors_ns,
        unresolved=sorter.unresolved,
        record_probes=sorter.record_probes,
        samples=int(np.where(envelopes.wanted, envelopes.counts, 0)[slice(*task.span)].sum()),
    )
