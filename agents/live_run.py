"""Runs that somebody watches: what `ping` and `trace` have in common to begin, end and stop."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Callable, Coroutine, Sequence
from types import FrameType
from typing import Protocol

from pathbudget.agents.campaign.vantage_run import VantageRun
from pathbudget.agents.ping.line_writer import LineWriter

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAME_SIGNAL_S = 0.5


class Stoppable(Protocol):
    """Something that runs until it is told to end."""

    def stop(self) -> None:
        """Be told so."""


class LiveRun:
    """One run of probes in this process. Whoever inherits makes `_vantage`."""

    _vantage: VantageRun

    def __init__(self) -> None:
        self.interrupted = False
        self._preparing: asyncio.Task[None] | None = None

    @property
    def problems(self) -> Sequence[str]:
        """What could not be measured at all."""
        return self._vantage.progress.problems

    @property
    def trouble(self) -> str:
        """Why the run stopped itself, if it did."""
        return self._vantage.trouble

    def stop(self) -> None:
        """End the run; it was asked for from outside."""
        self.interrupted = True
        if self._preparing is not None:
            self._preparing.cancel()
        self._vantage.stop()

    async def _or_stop(self, work: Coroutine[None, None, None]) -> None:
        """Where nobody sees the results any more (a closed pipe), nothing more is sent."""
        try:
            await work
        except Exception:
            self.stop()
            raise

    async def _prepare(self) -> bool:
        """Look the names up, which may take its time; false where somebody ended that."""
        self._preparing = asyncio.create_task(self._vantage.prepare())
        try:
            await self._preparing
        except asyncio.CancelledError:
            if not self.interrupted:
                raise
            return False
        finally:
            self._preparing = None
        return True


def end_at_signals(run: Stoppable) -> None:
    """Have signals end the run. To be called in its event loop."""
    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.add_signal_handler(number, end, run)


def end(run: Stoppable) -> None:
    """End the run. A second signal ends the process at once, whatever it waits for; one that comes
    with the first (from the terminal and from a parent, say) is the same one.
    """
    run.stop()
    asked_s = time.monotonic()

    def at_once(number: int, frame: FrameType | None) -> None:
        del frame
        if time.monotonic() - asked_s > SAME_SIGNAL_S:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

    loop = asyncio.get_running_loop()
    for number in SIGNALS:
        loop.remove_signal_handler(number)
        signal.signal(number, at_once)


def writer_to_stdout(made: Sequence[Stoppable], missing: Callable[[int], bytes]) -> LineWriter:
    """To standard output; one who reads no more ends the runs that have been made by then.

    `missing` says that so many lines were left out because their reader stood still.
    """
    loop = asyncio.get_running_loop()

    def broken() -> None:
        for one in made:
            loop.call_soon_threadsafe(one.stop)

    sys.stdout.flush()
    return LineWriter(sys.stdout.buffer, broken, missing)


def ended_by_somebody(made: Sequence[LiveRun]) -> bool:
    """Whether the end has been asked for."""
    return any(one.interrupted for one in made)
