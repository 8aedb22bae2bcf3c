"""Changing the tables as one step, so that a crash at any point loses and repeats nothing.

Files are written and made durable under ``.staging/building-X``. Renaming that folder to
``.staging/ready-X`` is the decision: before it nothing has happened, after it whoever next takes
the writer's lock finishes the work (`settle`). Publishing moves the files of an ``append`` into
the tables, and lets the folders of a ``replace`` change places with the old ones.
"""

import secrets
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from pathbudget.agents.store.disk import explain_os_error, sync
from pathbudget.agents.store.exchange import exchange, finish_exchange
from pathbudget.agents.store.layout import TABLES, Layout
from pathbudget.agents.store.locks import exclusive
from pathbudget.probes.errors import StoreError

AtStep = Callable[[str], None]
"""Called with the name of each step just done; tests kill the process there."""


def no_step(_step: str) -> None:
    """Do nothing: what `AtStep` is outside tests."""


_BUILDING, _READY = "building-", "ready-"
_READER_WAIT_S = 10.0


class Transaction:
    """Files on their way into the store. `name` becomes the name of every file in it."""

    def __init__(self, layout: Layout, kind: str) -> None:
        self.name = secrets.token_hex(8)
        self._layout = layout
        self._unique = f"{kind}-{self.name}"
        self.folder = layout.staging / f"{_BUILDING}{self._unique}"

    def file(self, table: str, date: str) -> Path:
        """Where to write the file of `table` and `date`; its folder is made."""
        folder = self.folder / table / f"date={date}"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / f"{self.name}.parquet"

    def commit(self, at_step: AtStep) -> list[Path]:
        """Make everything durable, decide, publish. Returns the files as they now stand."""
        for path in sorted(self.folder.rglob("*"), reverse=True):
            sync(path)
        sync(self.folder)
        at_step("staged")
        ready = self._layout.staging / f"{_READY}{self._unique}"
        self.folder.rename(ready)
        sync(self._layout.staging)
        at_step("decided")
        return publish(self._layout, ready, at_step)

    def discard(self) -> None:
        """Forget what was not committed."""
        shutil.rmtree(self.folder, ignore_errors=True)


@contextmanager
def transaction(layout: Layout, kind: str, at_step: AtStep) -> Generator[Transaction]:
    """A transaction under the writer's lock, after finishing what a dead writer left.

    What goes wrong on the disk becomes StoreError, and the tables are as they were.
    """
    with exclusive(layout.writer_lock):
        work = Transaction(layout, kind)
        try:
            settle(layout, at_step)
            yield work
        except OSError as error:
            why = explain_os_error(error)
            raise StoreError(f"{layout.root}: cannot be written: {why}") from error
        finally:
            work.discard()


def settle(layout: Layout, at_step: AtStep) -> None:
    """Finish or undo what dead writers left. The caller holds the writer's lock."""
    for folder in unsettled(layout):
        if folder.name.startswith(_READY):
            publish(layout, folder, at_step)
        else:
            shutil.rmtree(folder)
    for trial in layout.staging.glob("trial-*"):
        trial.unlink(missing_ok=True)


def unsettled(layout: Layout) -> list[Path]:
    """Transactions that are under way or were left by a dead writer."""
    return sorted(
        path
        for path in layout.staging.glob("*")
        if path.is_dir() and path.name.startswith((_READY, _BUILDING))
    )


def half_exchanged(layout: Layout) -> Path | None:
    """A folder of a table that is missing because an exchange in two steps was cut in half."""
    for staged in layout.staging.glob(f"{_READY}replace-*/*/date=*"):
        folder = layout.table(staged.parent.name) / staged.name
        if not folder.exists():
            return folder
    return None


def publish(layout: Layout, ready: Path, at_step: AtStep) -> list[Path]:
    """Bring a decided transaction into the tables; continues where an earlier try stopped."""
    if ready.name.startswith(f"{_READY}replace-"):
        busy = f"{layout.root}: somebody is reading this store; try again later"
        with exclusive(layout.reader_lock, wait_s=_READER_WAIT_S, busy=busy):
            return _publish(layout, ready, _swap_in, at_step)
    return _publish(layout, ready, _move_in, at_step)


def _publish(
    layout: Layout,
    ready: Path,
    bring_in: Callable[[Path, Path, str], list[Path]],
    at_step: AtStep,
) -> list[Path]:
    published: list[Path] = []
    name = ready.name.rpartition("-")[2] + ".parquet"
    for table in TABLES:
        for folder in sorted((ready / table).glob("date=*")):
            published += bring_in(folder, layout.table(table) / folder.name, name)
            sync(layout.table(table))
            at_step(f"published {table}")
    shutil.rmtree(ready)
    at_step("cleaned")
    return published


def _move_in(staged: Path, folder: Path, name: str) -> list[Path]:
    folder.mkdir(exist_ok=True)
    if not (staged / name).exists():
        return []
    (staged / name).rename(folder / name)
    sync(folder)
    return [folder / name]


def _swap_in(staged: Path, folder: Path, name: str) -> list[Path]:
    if not folder.exists():
        finish_exchange(staged, folder)
    elif not (folder / name).exists():
        exchange(staged, folder)
    return [folder / name]
