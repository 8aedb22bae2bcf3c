"""Results into a store on this machine: the smallest fleet has one agent and no collector.

Tables are written by a process of their own (`store_writer`), which begins with the first results
that wait and ends when none have come for a while. The library that writes Parquet takes over
100 MB, which an agent does not hold on to for months for a second's work in every minute.
"""

import asyncio
import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

from pathbudget.agents.spool.entry import Entry
from pathbudget.probes.errors import StoreError

WRITER = "pathbudget.agents.daemon.store_writer"
LONGEST_S = 120.0
"""For one delivery; a writer that takes longer hangs (a disk that is gone), and is ended."""
IDLE_S = 3.0
"""A writer that gets nothing for so long is sent away."""
DONE = "done"


class StoreUplink:
    """An `Uplink`. What the store has already is not written twice: ids decide."""

    octets_at_once = 8 << 20
    """One file of the store for a minute, not ten."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._writer: subprocess.Popen[bytes] | None = None
        self._idle: asyncio.TimerHandle | None = None

    async def send(self, entries: Sequence[Entry]) -> Sequence[int]:
        """Into tables, on the disk. Raises StoreError."""
        if self._idle is not None:
            self._idle.cancel()
        delivery = asyncio.create_task(asyncio.to_thread(self._deliver, entries))
        try:
            await asyncio.shield(delivery)
        except asyncio.CancelledError:
            self._kill()  # or the thread would keep the process from ending
            await asyncio.gather(delivery, return_exceptions=True)
            raise
        self._idle = asyncio.get_running_loop().call_later(IDLE_S, self.close)
        return [entry.number for entry in entries]

    def close(self) -> None:
        """Send the writer away. Twice does no harm."""
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None
        writer, self._writer = self._writer, None
        if writer is not None:  # it ends with its input
            _dismiss(writer)

    def _deliver(self, entries: Sequence[Entry]) -> None:
        hangs = threading.Timer(LONGEST_S, self._kill)
        hangs.daemon = True
        hangs.start()
        try:
            answer = self._ask(entries)
        except OSError as error:
            answer = f"{self._store}: the writer of tables cannot be reached: {error.strerror}"
        finally:
            hangs.cancel()
        if answer != DONE:
            self._kill()
            raise StoreError(answer or f"{self._store}: the writer of tables has ended")

    def _ask(self, entries: Sequence[Entry]) -> str:
        writer = self._writer
        if writer is None or writer.poll() is not None:
            writer = self._writer = subprocess.Popen(  # noqa: S603
                [sys.executable, "-P", "-m", WRITER, str(self._store)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # a bundle is on no usual path
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        assert writer.stdin is not None
        assert writer.stdout is not None
        for entry in entries:
            writer.stdin.write(entry.payload.rstrip(b"\n") + b"\n")
        writer.stdin.write(b"\n")
        writer.stdin.flush()
        return writer.stdout.readline().decode(errors="replace").rstrip("\n")

    def _kill(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.kill()
            _dismiss(writer)


def _dismiss(writer: subprocess.Popen[bytes]) -> None:
    """Close what leads to it and have a thread wait for its end."""
    assert writer.stdin is not None
    with contextlib.suppress(OSError):
        writer.stdin.close()
    threading.Thread(target=_await, args=(writer,)).start()


def _await(writer: subprocess.Popen[bytes]) -> None:
    writer.wait()
    assert writer.stdout is not None
    with contextlib.suppress(OSError):
        writer.stdout.close()
