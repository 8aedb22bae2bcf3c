"""Many small files of a date become one, in one step (`transaction`, kind ``replace``).

A pair where they are measurements with their samples.
"""

from collections.abc import Callable
from dataclasses import dataclass

from pathbudget.agents.store.layout import BGP_UPDATES, MEASUREMENTS, SAMPLES, Layout
from pathbudget.agents.store.reading import Selection, merged
from pathbudget.agents.store.table_files import PairWriter, batches
from pathbudget.agents.store.transaction import AtStep, Transaction, transaction
from pathbudget.agents.store.update_files import UpdateWriter, merged_files, update_batches
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
    for table, merge_into in ((MEASUREMENTS, _merge_pairs), (BGP_UPDATES, _merge_updates)):
        for date in layout.dates(table):
            try:
                count = _compact_date(layout, table, date, merge_into, at_step)
            except _DamagedError as error:
                problems.append(f"date {date} is left as it is: {error}")
            else:
                before += count
                done += [date] * bool(count)
    return CompactReceipt(tuple(done), before, len(done), tuple(problems))


def _compact_date(
    layout: Layout,
    table: str,
    date: str,
    merge_into: Callable[[Transaction, Layout, str], None],
    at_step: AtStep,
) -> int:
    """How many files became one; 0 when there was nothing to do."""
    with transaction(layout, "replace", at_step) as work:
        files = layout.files(table, date)
        if len(files) < 2:
            return 0
        try:
            merge_into(work, layout, date)
        except StoreError as error:
            raise _DamagedError(str(error)) from None
        work.commit(at_step)
        return len(files)


def _merge_pairs(work: Transaction, layout: Layout, date: str) -> None:
    files = layout.files(MEASUREMENTS, date)
    with PairWriter(work.file(MEASUREMENTS, date), work.file(SAMPLES, date)) as writer:
        for batch in batches(merged(layout, files, Selection())):
            writer.write(batch)


def _merge_updates(work: Transaction, layout: Layout, date: str) -> None:
    with UpdateWriter(work.file(BGP_UPDATES, date)) as writer:
        for batch in update_batches(merged_files(layout.files(BGP_UPDATES, date))):
            writer.write(batch)
