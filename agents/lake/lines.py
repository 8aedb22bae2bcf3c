"""All budget lines of a lake: samples by the hundred million, in files of the store's layout.

Two rounds of tasks on any runner (`runners`). The first reads every file once and sorts its rows
to scratch files by region and site; the second takes all rows of a few pairs at a time and makes
their lines. No task holds more than its portion, so memory does not grow with the lake, and every
line is exact: it is made of all samples of its pair, as `evaluate` would make it.
"""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathbudget.agents.lake.envelopes import FilePair, Wanted
from pathbudget.agents.lake.gather import Share
from pathbudget.agents.lake.inventory import FileInventory, repeated_measurements, take_stock
from pathbudget.agents.lake.pairs import PairLines, PartTask, Question, lines_of_part
from pathbudget.agents.lake.runners import InThisProcess, Runner
from pathbudget.agents.lake.split import Pair, Split, SplitTask, split
from pathbudget.analysis.results import BudgetLine
from pathbudget.probes.record import Measurement

PART_SAMPLES = 2_500_000
"""Pairs are put together into parts of about so many samples, unless one pair has more."""

TASK_SAMPLES = 4_000_000
"""A file with more is read by several tasks."""

WHOLE_RECORDS = frozenset({"upload"})
"""Probes whose records are always read whole: even their failures count as uploads."""


@dataclass(frozen=True, slots=True)
class LakeLines:
    """What a lake says."""

    pairs: tuple[PairLines, ...]
    """By region and site."""
    envelopes: tuple[Measurement, ...]
    """One of each group of measurements: all places, without samples."""
    samples: int
    """How many samples there are, whether or not they count."""
    unresolved: frozenset[Pair]
    """Pairs with samples that had no address to be sent to."""

    @property
    def lines(self) -> Iterator[BudgetLine]:
        """All lines, pair by pair."""
        for one in self.pairs:
            yield from one.lines


def lake_lines(
    files: Iterable[FilePair],
    question: Question,
    *,
    runner: Runner | None = None,
    wanted: Wanted | None = None,
    scratch: Path | None = None,
) -> LakeLines:
    """The lines of every pair of region and site in `files`.

    `scratch` is a folder with room for 16 bytes per sample that all workers can reach; default: the
    system's folder for temporary files. What is written there is removed at the end. Raises
    StoreError for a damaged file, OSError where the scratch folder does not take the rows.
    """
    work = runner or InThisProcess()
    sources = list(files)
    wish = wanted or Wanted()
    stock = list(work(take_stock, [(one, wish) for one in sources]))
    repeated = repeated_measurements(stock)
    folder = Path(tempfile.mkdtemp(prefix="pathbudget-lake-", dir=scratch))
    try:
        parts = _parts(stock, work.workers)
        tasks = list(_split_tasks(stock, repeated, parts, wish, folder))
        splits = list(work(split, tasks))
        jobs = list(_part_tasks(splits, stock, repeated, question, wish))
        found = [pair for pairs in work(lines_of_part, jobs) for pair in pairs]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return LakeLines(
        pairs=tuple(sorted(found, key=lambda one: one.pair)),
        envelopes=tuple(envelope for one in stock for envelope in one.envelopes),
        samples=sum(one.samples for one in splits),
        unresolved=frozenset(
            (region, site) for one in splits for region, site, _ in one.unresolved
        ),
    )


def _parts(stock: Sequence[FileInventory], workers: int) -> dict[Pair, int]:
    """Which part each pair is in: the largest pairs first, each to the smallest part so far."""
    totals: Counter[Pair] = Counter()
    for one in stock:
        totals.update(one.samples)
    number = max(workers, -(-totals.total() // PART_SAMPLES))
    sizes = [0] * number
    parts: dict[Pair, int] = {}
    for pair, count in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        part = sizes.index(min(sizes))
        sizes[part] += count
        parts[pair] = part
    return parts


def _split_tasks(
    stock: Sequence[FileInventory],
    repeated: Mapping[int, tuple[int, ...]],
    parts: Mapping[Pair, int],
    wanted: Wanted,
    folder: Path,
) -> Iterator[SplitTask]:
    for number, one in enumerate(stock):
        if not one.samples:
            continue
        for first, last in one.spans(TASK_SAMPLES):
            yield SplitTask(
                name=f"{number}-{first}",
                files=one.files,
                span=(first, last),
                wanted=wanted,
                repeated=repeated.get(number, ()),
                parts={pair: parts[pair] for pair in one.samples},
                folder=folder,
            )


def _part_tasks(
    splits: Sequence[Split],
    stock: Sequence[FileInventory],
    repeated: Mapping[int, tuple[int, ...]],
    question: Question,
    wanted: Wanted,
) -> Iterator[PartTask]:
    """The largest parts first, so that the last task to end is a short one."""
    vantages = tuple(sorted({envelope.vantage.name for one in stock for envelope in one.envelopes}))
    probes = WHOLE_RECORDS.union(*(one.record_probes for one in splits))
    sources = tuple(
        (one.files, repeated.get(number, ()))
        for number, one in enumerate(stock)
        if any(envelope.probe in probes for envelope in one.envelopes)
    )
    shares: dict[int, list[Share]] = {}
    sizes: Counter[int] = Counter()
    for one in splits:
        for part, file in one.files.items():
            members = {
                number: (one.members[number], one.floors_ns[number])
                for block in file.blocks
                for number in block.members.tolist()
            }
            shares.setdefault(part, []).append(Share(file, members))
            sizes[part] += sum(int(block.counts.sum()) for block in file.blocks)
    for part, _ in sizes.most_common():
        yield PartTask(
            shares=tuple(shares[part]),
            vantages=vantages,
            question=question,
            sources=sources,
            record_probes=frozenset(probes) if sources else frozenset(),
            wanted=wanted,
        )
