"""What the files of a lake hold, before any sample is read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pathbudget.agents.lake.envelopes import FilePair, Wanted, read_envelopes
from pathbudget.probes.errors import StoreError
from pathbudget.probes.record import Measurement

Pair = tuple[str, str]


@dataclass(frozen=True, slots=True)
class FileInventory:
    """What is wanted of one pair of files."""

    files: FilePair
    samples: dict[Pair, int]
    """By region and site, without pairs that have none."""
    envelopes: tuple[Measurement, ...]
    """One of each group."""
    first_id: str
    last_id: str
    starts: tuple[int, ...]
    """At every `STRIDE`-th measurement, how many samples stand before it; then the total."""
    measurements: int

    def spans(self, samples: int) -> Iterator[tuple[int, int]]:
        """Ranges of measurements with about so many samples each."""
        last, begun = 0, 0
        for place, before in enumerate(self.starts[:-1]):
            if before - begun >= samples:
                yield last, place * STRIDE
                last, begun = place * STRIDE, before
        if last < self.measurements:
            yield last, self.measurements


STRIDE = 64


def take_stock(task: tuple[FilePair, Wanted]) -> FileInventory:
    """Look at the envelopes of one pair of files. Raises StoreError."""
    files, wanted = task
    envelopes = read_envelopes(files.measurements, wanted)
    before = np.concatenate(([0], np.cumsum(envelopes.counts)))
    first, last = _id_range(files)
    return FileInventory(
        files=files,
        samples={pair: n for pair, n in envelopes.samples_by_pair().items() if n},
        envelopes=tuple(envelopes.present()),
        first_id=first,
        last_id=last,
        starts=(*before[:-1:STRIDE].tolist(), int(before[-1])),
        measurements=len(envelopes.counts),
    )


def _id_range(files: FilePair) -> tuple[str, str]:
    ids = _ids(files)
    if not len(ids):
        return "", ""
    return str(ids[0]), str(ids[-1])


def _ids(files: FilePair) -> Any:
    try:
        with pq.ParquetFile(files.measurements, page_checksum_verification=True) as file:
            return file.read(["id"], use_threads=False).column("id").combine_chunks()
    except (OSError, pa.ArrowException) as error:
        problem = str(error).splitlines()[0]
        raise StoreError(f"{files.measurements}: cannot be read: {problem}") from None


def repeated_measurements(stock: Sequence[FileInventory]) -> dict[int, tuple[int, ...]]:
    """By number of the file: measurements that a file before it has too (copied files).

    Ids rise within a file, so only files whose ranges overlap are looked at.
    """
    suspects = sorted(_overlapping(stock))
    seen: set[str] = set()
    found: dict[int, tuple[int, ...]] = {}
    for number in suspects:
        names = [str(name) for name in _ids(stock[number].files).to_pylist()]
        if again := tuple(i for i, name in enumerate(names) if name in seen):
            found[number] = again
        seen.update(names)
    return found


def _overlapping(stock: Sequence[FileInventory]) -> set[int]:
    order = sorted(
        (one.first_id, one.last_id, number) for number, one in enumerate(stock) if one.measurements
    )
    found: set[int] = set()
    reach, owner = "", -1
    for first, last, number in order:
        if owner >= 0 and first <= reach:
            found |= {owner, number}
        if last >= reach:
            reach, owner = last, number
    return found
