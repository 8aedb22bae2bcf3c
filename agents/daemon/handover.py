"""From closed journals to the spool: a journal goes when all of it is in the spool, on the disk.

A disk that is full takes no entry, and a journal that is on it already is better kept than counted
as dropped: it stays, and is tried again.
"""

import asyncio
import contextlib
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
RETRY_S = 2.0
"""Until a disk that took no entry is tried again."""


class Handover:
    """Moves journals one after the other, in the order in which they were closed."""

    def __init__(self, folder: Path, spool: Spool) -> None:
        self.problems: list[str] = []
        """What was damaged, in words."""
        self._folder = folder
        self._spool = spool
        self._waiting: asyncio.Queue[Path] = asyncio.Queue()
        self._moving: Path | None = None
        for path in self._left_over():
            self._waiting.put_nowait(path)

    def add(self, path: Path) -> None:
        """A journal that has been closed."""
        self._waiting.put_nowait(path)

    async def run(self) -> None:
        """Move what there is and what comes, for ever."""
        while True:
            path = self._moving or await self._waiting.get()
            self._moving = path
            if await self._move_kept(path):
                self._moving = None
            else:
                await asyncio.sleep(RETRY_S)

    async def finish(self) -> None:
        """Move what still waits; `run` must not be under way. What the disk does not take now stays
        for the next life.
        """
        if self._moving is not None and not await self._move_kept(self._moving):
            return
        while not self._waiting.empty():
            if not await self._move_kept(self._waiting.get_nowait()):
                return

    async def _move_kept(self, path: Path) -> bool:
        """One that cannot be read stays where it is. False: the disk takes nothing."""
        try:
            return await self._move(path)
        except (PathbudgetError, OSError) as error:
            self.problems.append(f"{path}: {error}")
            return True

    async def _move(self, path: Path) -> bool:
        reader = await asyncio.to_thread(JournalReader, path)
        known = frozenset(self._spool.names())
        for measurement in reader.measurements():
            if not self._append(measurement, known):
                with contextlib.suppress(OSError):  # what is settled goes, which makes room
                    await asyncio.to_thread(self._spool.unsynced())
                return False
            await asyncio.sleep(PAUSE_S)
        await asyncio.to_thread(self._spool.unsynced())
        self.problems += [f"{path.name}: {problem}" for problem in reader.problems]
        await asyncio.to_thread(_put_away, path, damaged=reader.damaged)
        return True

    def _append(self, measurement: Measurement, known: frozenset[str]) -> bool:
        """False: the disk does not take it. (What a bound keeps out is counted by the spool.)"""
        torn = self._spool.was_torn(measurement.id)
        if measurement.id in known and not torn:
            return True  # the crash came between the spool and the end of the journal
        if not measurement.samples and not measurement.counters.keys() - {INCOMPLETE}:
            return True  # a piece in which nothing was due
        line = encode_line(measurement)
        samples = len(measurement.samples)
        entry = self._spool.append(measurement.id, line, samples, again=torn, kept=True)
        return entry is not None or not self._spool.trouble

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
