"""A server as a process of its own: started, waited for until it listens, ended for sure."""

import os
import select
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from pathbudget.probes.errors import ReflectorError

READY_SECONDS = 30.0
STOP_SECONDS = 5.0


def as_words(options: Mapping[str, str | int | float | Path | bool]) -> list[str]:
    """Options of a command; True is a word without a value."""
    words: list[str] = []
    for name, value in options.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    return words


class ListeningProcess:
    """A context manager: the server runs while the block does.

    `module` is run with `words` and ``--ready-fd``, to which it writes ``ready`` when it listens.
    What it says goes to ``NAME.log`` in `folder`. Raises ReflectorError, with what the process
    said, when it does not listen.
    """

    def __init__(self, name: str, module: str, folder: Path, words: Sequence[str]) -> None:
        self._name = name
        self._program = [sys.executable, "-m", module, *words]
        self._log = folder / f"{name}.log"
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> str:
        """What it has said until now; the last line comes when it has ended."""
        return self._log.read_text(errors="replace") if self._log.exists() else ""

    @property
    def last_words(self) -> str:
        """The same for a message about it."""
        return self.log.strip() or "it said nothing"

    def stop(self) -> None:
        """End it in good order. Twice does no harm."""
        process, self.process = self.process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def __enter__(self) -> Self:
        reader, writer = os.pipe()
        try:
            try:
                self.process = self._start(writer)
            finally:
                os.close(writer)
            self._wait_until_ready(reader)
        except BaseException:
            self.stop()
            raise
        finally:
            os.close(reader)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def _start(self, ready: int) -> "subprocess.Popen[bytes]":
        with self._log.open("wb") as log:
            return subprocess.Popen(  # noqa: S603
                [*self._program, "--ready-fd", str(ready)],
                pass_fds=[ready],
                stdout=log,
                stderr=log,
            )

    def _wait_until_ready(self, reader: int) -> None:
        ready, _, _ = select.select([reader], [], [], READY_SECONDS)
        if not ready or os.read(reader, 16) != b"ready\n":
            self.stop()  # what it has to say comes with its end
            raise ReflectorError(f"the {self._name} does not start: {self.last_words}")
