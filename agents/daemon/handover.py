"""From closed journals to the spool: a journal goes when all of it is in the spool, on the disk."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

from pathbudget.agents.daemon.pieces import ENDING
from pathbudget.agents.spool.spool import Spool
from pathbudget.agents.store.journal_reader import INCOMPLETE, JournalReader
from pathbudget.agents.store.locks import is_held
from pathbudget.agents.store.spool_file import UNREADY
from pathbudget.probes.codec import encode_line
from pathbudget.probes.errors import PathbudgetError
from pathbudget.probes.record import Measurement

DAMAGED = ".damaged"
PAUSE_S = 0.0
"""Between two entries other things have their turn: probes are sent from the same loop."""


class Handover:
    """Moves journals one after the other, in the order in which they were closed."""

    def __init__(self, folder: Path, spool: Spool) -> None:
        self.problems: list[str] = []
        """What was damaged, in words."""
        self._folder = folder
        self._spool = spool
        self._waiting: asyncio.Queue[Path] = asyncio.Queue()
        for path in self._left_over():
            self._waiting.put_nowait(path)

    def add(self, path: Path) -> None:
        """A journal that has been closed."""
        self._waiting.put_nowait(path)

    async def run(self) -> None:
        """Move what there is and what comes, for ever."""
        while True:
            await self._move_kept(await self._waiting.get())
            self._waiting.task_done()

    async def finish(self) -> None:
        """Move what still waits; `run` must not be under way."""
        while not self._waiting.empty():
            await self._move_kept(self._waiting.get_nowait())

    async def _move_kept(self, path: Path) -> None:
        """One that cannot be read stays where it is, under a name that says so."""
        try:
            await self._move(path)
        except (PathbudgetError, OSError) as error:
            self.problems.append(f"{path}: {error}")

    async def _move(self, path: Path) -> None:
        reader = await asyncio.to_thread(JournalReader, path)
        known = frozenset(self._spool.names())
        for measurement in reader.measurements():
            self._append(measurement, known)
            await asyncio.sleep(PAUSE_S)
        await asyncio.to_thread(self._spool.unsynced())
        self.problems += [f"{path.name}: {problem}" for problem in reader.problems]
        await asyncio.to_thread(_put_away, path, damaged=reader.damaged)

    def _append(self, measurement: Measurement, known: frozenset[str]) -> None:
        torn = self._spool.was_torn(measurement.id)
        if measurement.id in known and not torn:
            return  # the crash came between the spool and the end of the journal
        if not measurement.samples and not measurement.counters.keys() - {INCOMPLETE}:
            return  # a piece in which nothing was due
        line = encode_line(measurement)
        self._spool.append(measurement.id, line, len(measurement.samples), again=torn)

    def _left_over(self) -> Iterator[Path]:
        """Journals of a process that is gone, oldest first: names are in the order of time."""
        for path in self._folder.glob(f".*{UNREADY}"):
            if not is_held(path):
                path.unlink(missing_ok=True)
        yield from (one for one in sorted(self._folder.glob(f"*{ENDING}")) if not is_held(one))


def _put_away(path: Path, *, damaged: bool) -> None:
    if damaged:
        path.replace(path.with_name(path.name + DAMAGED))
    else:
        path.unlink()
