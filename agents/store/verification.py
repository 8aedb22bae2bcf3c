"""Reading a store from end to end to find what is wrong with it. Changes nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pathbudget.agents.store.layout import (
    BGP_UPDATES,
    MEASUREMENTS,
    SAMPLES,
    TABLES,
    Layout,
    date_of,
)
from pathbudget.agents.store.locks import is_held
from pathbudget.agents.store.table_files import SampleRows, envelope_counts, whole
from pathbudget.agents.store.transaction import unsettled
from pathbudget.agents.store.update_files import filed_under, updates_of
from pathbudget.agents.store.update_journal import UPDATES_ENDING
from pathbudget.probes.arrow_schema import failures
from pathbudget.probes.errors import StoreError


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong, and with which file."""

    path: Path
    what: str

    def __str__(self) -> str:
        return f"{self.path}: {self.what}"


def find_problems(layout: Layout) -> Iterator[Problem]:
    """Every problem, in the order of the folders."""
    yield from _leftovers(layout)
    yield from _strangers(layout)
    yield from _widows(layout)
    for date in layout.dates():
        seen: set[str] = set()
        for path in layout.files(MEASUREMENTS, date):
            yield from _of_pair(layout, path, date, seen)
    for date in layout.dates(BGP_UPDATES):
        told: set[str] = set()
        for path in layout.files(BGP_UPDATES, date):
            yield from _of_updates(path, date, told)


def _leftovers(layout: Layout) -> Iterator[Problem]:
    advice = f"`pathbudget store recover {layout.root}` finishes it"
    if not (layout.writer_lock.exists() and is_held(layout.writer_lock)):
        for path in unsettled(layout):
            yield Problem(path, f"left by a writer that was killed; {advice}")
    for path in sorted((*layout.spool.glob("*.jsonl"), *layout.spool.glob(f"*{UPDATES_ENDING}"))):
        if not is_held(path):
            yield Problem(path, f"journal that is not in the tables yet; {advice}")
    for path in sorted(layout.spool.glob("*.damaged")):
        yield Problem(path, "journal with unreadable lines; the readable ones are in the tables")


def _strangers(layout: Layout) -> Iterator[Problem]:
    for table in TABLES:
        for path in sorted(layout.table(table).rglob("*")):
            expected = path.parent.name.startswith("date=") and path.suffix == ".parquet"
            if path.is_file() and not expected:
                yield Problem(path, "does not belong here; readers of the folder may stumble on it")


def _widows(layout: Layout) -> Iterator[Problem]:
    """Sample files whose measurement file is missing."""
    for path in sorted(layout.table(SAMPLES).glob("date=*/*.parquet")):
        other = layout.table(MEASUREMENTS) / path.parent.name / path.name
        waiting = layout.staging.glob(f"ready-*/{MEASUREMENTS}/{path.parent.name}/{path.name}")
        if not other.exists() and not any(waiting):
            yield Problem(path, "samples without their measurements")


def _of_pair(layout: Layout, path: Path, date: str, seen: set[str]) -> Iterator[Problem]:
    sample_path = layout.sample_file(path)
    rows = SampleRows(sample_path, columns=None)
    try:
        for envelope, count, failed in envelope_counts(path):
            measurement = whole(sample_path, envelope, count, rows)
            if envelope.id in seen:
                yield Problem(path, f"measurement {envelope.id} is there twice")
            seen.add(envelope.id)
            if failures(measurement) != failed:
                yield Problem(path, f"measurement {envelope.id}: number of failures differs")
            if date_of(envelope.started_unix_ns) != date:
                yield Problem(path, f"measurement {envelope.id} is filed under a wrong date")
        if rows.take(1)[1]:
            yield Problem(sample_path, "samples without their measurements at the end")
    except StoreError as error:
        yield _problem_of(error, path)


def _of_updates(path: Path, date: str, seen: set[str]) -> Iterator[Problem]:
    try:
        for update in updates_of(path):
            if update.id in seen:
                yield Problem(path, f"update {update.id} is there twice")
            seen.add(update.id)
            if filed_under(update) != date:
                yield Problem(path, f"update {update.id} is filed under a wrong date")
    except StoreError as error:
        yield _problem_of(error, path)


def _problem_of(error: StoreError, path: Path) -> Problem:
    """A StoreError of a file says its path in front, and so does a Problem."""
    place, _, what = str(error).partition(": ")
    return Problem(Path(place), what) if what else Problem(path, place)
