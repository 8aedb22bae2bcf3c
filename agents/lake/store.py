"""Lines of a whole store at once, as a lake."""

from collections.abc import Iterator
from pathlib import Path

from pathbudget.agents.lake.envelopes import FilePair, Wanted
from pathbudget.agents.lake.lines import LakeLines, lake_lines
from pathbudget.agents.lake.pairs import Question
from pathbudget.agents.lake.runners import Runner
from pathbudget.agents.store.layout import MEASUREMENTS, Layout
from pathbudget.agents.store.locks import shared
from pathbudget.agents.store.parquet import Store


def store_lines(
    store: Store,
    question: Question,
    *,
    runner: Runner | None = None,
    wanted: Wanted | None = None,
    scratch: Path | None = None,
) -> LakeLines:
    """The lines of every pair that a store has samples of; like `lake_lines`.

    Nobody replaces files of the store meanwhile. Raises StoreError where there is none.
    """
    store.layout.require()
    store.settle_if_possible()
    with shared(store.layout.reader_lock):
        files = list(file_pairs(store.layout))
        return lake_lines(files, question, runner=runner, wanted=wanted, scratch=scratch)


def file_pairs(layout: Layout) -> Iterator[FilePair]:
    """All files of measurements with those of their samples, day by day."""
    for date in layout.dates():
        for path in layout.files(MEASUREMENTS, date):
            yield FilePair(path, layout.sample_file(path))
