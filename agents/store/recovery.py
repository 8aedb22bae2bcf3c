"""From journals to the store: a journal goes away only when all of it is in the tables."""

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pathbudget.agents.store.disk import explain_os_error, sync
from pathbudget.agents.store.journal_reader import JournalReader
from pathbudget.agents.store.locks import is_held
from pathbudget.agents.store.parquet import Receipt, Store
from pathbudget.agents.store.spool_file import UNREADY
from pathbudget.agents.store.update_journal import UPDATES_ENDING, UpdateJournalReader
from pathbudget.probes.errors import PathbudgetError, RecordError, SpoolError, StoreError


def commit_journal(journal_path: Path, store: Store) -> Receipt:
    """Write all that a journal holds into `store`, then remove it. Doing it twice does no harm.

    The journal must be closed. Raises SpoolError when it cannot be read or its writer is alive,
    StoreError when the store does not take it: it is kept then, and the message says what to do.
    """
    with _left_over(journal_path):
        reader = JournalReader(journal_path)
        try:
            receipt = store.write(reader.measurements())
        except (StoreError, RecordError) as error:
            raise StoreError(
                f"{error}\nWhat was measured is kept in {journal_path}. When there is room, run: "
                f"pathbudget store recover {store.path}"
            ) from None
        _put_away(journal_path, damaged=reader.damaged)
    return receipt + Receipt(problems=tuple(f"{journal_path}: {p}" for p in reader.problems))


def commit_updates(journal_path: Path, store: Store) -> Receipt:
    """The same for a journal of BGP updates."""
    with _left_over(journal_path):
        reader = UpdateJournalReader(journal_path)
        try:
            receipt = store.write_updates(reader.updates())
        except (StoreError, RecordError) as error:
            raise StoreError(
                f"{error}\nWhat was heard is kept in {journal_path}. When there is room, run: "
                f"pathbudget store recover {store.path}"
            ) from None
        _put_away(journal_path, damaged=reader.damaged)
    problems = tuple(f"{journal_path}: {problem}" for problem in reader.problems)
    return Receipt(files=receipt.files, problems=problems, updates=receipt.written)


def recover(store: Store) -> tuple[Receipt, list[str]]:
    """Commit every journal in the spool folder whose writer is gone.

    Returns what was written, and a sentence for every journal that was left alone and why.
    """
    store.check_writable()
    _clear_unready(store.spool)
    receipt, left_alone = Receipt(), list[str]()
    kinds = (("*.jsonl", commit_journal), (f"*{UPDATES_ENDING}", commit_updates))
    for pattern, commit in kinds:
        for path in sorted(store.spool.glob(pattern)):
            try:
                receipt += commit(path, store)
            except StoreError:
                raise
            except PathbudgetError as error:
                left_alone.append(str(error))
    return receipt, left_alone


def _clear_unready(spool: Path) -> None:
    """Remove what a process left that was killed while it began a journal: nothing is in it."""
    for path in spool.glob(f".*{UNREADY}"):
        if not is_held(path):
            path.unlink(missing_ok=True)


@contextmanager
def _left_over(path: Path) -> Generator[None]:
    """Hold the journal's lock; SpoolError when its writer is alive."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise SpoolError(f"{path}: cannot be read: {explain_os_error(error)}") from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise SpoolError(f"{path}: a running campaign is writing it; left alone") from None
    finally:
        os.close(descriptor)


def _put_away(path: Path, *, damaged: bool) -> None:
    """Remove a journal; one with unreadable lines is kept beside, for whoever wants to look."""
    if damaged:
        path.replace(path.with_name(f"{path.name}.damaged"))
    else:
        path.unlink()
    sync(path.parent)
