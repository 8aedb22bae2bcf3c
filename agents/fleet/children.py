"""Programs that run beside us: started, started again when they die, ended when we end."""

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pathbudget.probes.errors import BusError

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 60.0
STEADY_S = 60.0
"""One that ran so long is started again at once, whatever was before."""
STOP_S = 20.0
LAST_WORDS = 2000
_PR_SET_PDEATHSIG = 1


@dataclass(slots=True)
class Child:
    """One program. What it says goes to `log`; a name for people says which it is."""

    name: str
    words: Sequence[str]
    log: Path
    process: asyncio.subprocess.Process | None = field(default=None, init=False)

    async def start(self) -> None:
        """Raises BusError where the system does not."""
        try:
            with self.log.open("ab") as log:
                os.fchmod(log.fileno(), 0o600)
                self.process = await asyncio.create_subprocess_exec(
                    *self.words,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,  # Ctrl-C is for us, and we end them in order
                    preexec_fn=_end_with_parent,
                )
        except OSError as error:
            raise BusError(f"{self.name} cannot be started: {error.strerror}") from None

    @property
    def has_ended(self) -> bool:
        """Whether it does not run any more."""
        return self.process is not None and self.process.returncode is not None

    async def keep(self, say: Callable[[str], None]) -> None:
        """Start it again, with longer and longer pauses, until cancelled; then end it."""
        pause, loop = FIRST_PAUSE_S, asyncio.get_running_loop()
        try:
            while True:
                began = loop.time()
                code = await self._ended()
                if loop.time() - began >= STEADY_S:
                    pause = FIRST_PAUSE_S
                said = self.last_words()
                say(f"{self.name} has ended ({_how(code)}), again in {pause:.0f} s: {said}")
                await asyncio.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                try:
                    await self.start()
                except BusError as error:
                    say(str(error))
        finally:
            await self.stop()

    async def stop(self) -> None:
        """In good order, then for sure."""
        process = self.process
        if process is None or process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            async with asyncio.timeout(STOP_S):
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()

    def last_words(self) -> str:
        """The last line of its log."""
        try:
            with self.log.open("rb") as file:
                file.seek(max(0, self.log.stat().st_size - LAST_WORDS))
                lines = file.read().decode(errors="replace").strip().splitlines()
        except OSError:
            return "it said nothing"
        return lines[-1].strip() if lines else "it said nothing"

    async def _ended(self) -> int:
        return -1 if self.process is None else await self.process.wait()


def _how(code: int) -> str:
    with contextlib.suppress(ValueError):
        return signal.Signals(-code).name
    return f"exit code {code}"


def _end_with_parent() -> None:
    """In the child: SIGTERM when the parent is gone, whatever ended it."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
