"""Many small files of a date become one pair, in one step (`transaction`, kind ``replace``)."""

from dataclasses import dataclass

from pathbudget.agents.store.layout import MEASUREMENTS, SAMPLES, Layout
from pathbudget.agents.store.reading import Selection, merged
from pathbudget.agents.store.table_files import PairWriter, batches
from pathbudget.agents.store.transaction import AtStep, Transaction, transaction
from pathbudget.probes.errors import StoreError


@dataclass(frozen=True, slots=True)
class CompactReceipt:
    """What was done. `problems` says which dates were left as they are, and why."""

    dates: tuple[str, ...] = ()
    files_before: int = 0
    files_after: int = 0
    problems: tuple[str, ...] = ()


class _DamagedError(Exception):
    """A file of this date cannot be read."""


def compact(layout: Layout, at_step: AtStep) -> CompactReceipt:
    """Every date with more than one file. Raises StoreError when the disk does not take it."""
    done: list[str] = []
    problems: list[str] = []
    before = 0
    for date in layout.dates():
        try:
            count = _compact_date(layout, date, at_step)
        except _DamagedError as error:
            problems.append(f"date {date} is left as it is: {error}")
        else:
            before += count
            done += [date] * bool(count)
    return CompactReceipt(tuple(done), before, len(done), tuple(problems))


def _compact_date(layout: Layout, date: str, at_step: AtStep) -> int:
    """How many files became one; 0 when there was nothing to do."""
    with transaction(layout, "replace", at_step) as work:
        files = layout.files(MEASUREMENTS, date)
        if len(files) < 2:
            return 0
        _merge_into(work, layout, date)
        work.commit(at_step)
        return len(files)


def _merge_into(work: Transaction, layout: Layout, date: str) -> None:
    files = layout.files(MEASUREMENTS, date)
    with PairWriter(work.file(MEASUREMENTS, date), work.file(SAMPLES, date)) as writer:
        try:
            for batch in batches(merged(layout, files, Selection())):
                writer.write(batch)
        except StoreError as error:
            raise _DamagedError(str(error)) from None
