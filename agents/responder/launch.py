"""Starts a responder as a process of its own, waits until it listens, ends it for sure."""

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
STOP_SECONDS = 2.0


class ResponderProcess:
    """A context manager: one responder runs while the block does, and no longer than its parent.

    `options` are those of the command, without dashes in front: ``{"tls-port": 8443}``. What the
    process says goes to ``responder.log`` in `folder`, which also holds its certificate.
    Raises ReflectorError, with what the process said, when it does not listen.
    """

    def __init__(
        self, folder: Path, binds: Sequence[str], options: Mapping[str, str | int | float | Path]
    ) -> None:
        self._folder = folder
        self._words = [word for bind in binds for word in ("--bind", bind)]
        self._words += [
            word for name, value in options.items() for word in (f"--{name}", str(value))
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """Process id while it runs."""
        return None if self._process is None else self._process.pid

    def check(self) -> None:
        """Raise ReflectorError when the responder is not running (any more)."""
        if self._process is None or self._process.poll() is not None:
            raise ReflectorError(f"the responder is not running: {self._last_words()}")

    def __enter__(self) -> Self:
        reader, writer = os.pipe()
        try:
            try:
                self._process = self._start(writer)
            finally:
                os.close(writer)
            self._wait_until_ready(reader)
        except BaseException:
            self._stop()
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
        self._stop()

    def _start(self, ready: int) -> subprocess.Popen[bytes]:
        program = [sys.executable, "-m", "pathbudget.agents.responder", "--die-with-parent"]
        fixed = ["--certificate-directory", str(self._folder), "--ready-fd", str(ready)]
        with (self._folder / "responder.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603
                [*program, *fixed, *self._words], pass_fds=[ready], stdout=log, stderr=log
            )

    def _wait_until_ready(self, reader: int) -> None:
        ready, _, _ = select.select([reader], [], [], READY_SECONDS)
        if not ready or os.read(reader, 16) != b"ready\n":
            raise ReflectorError(f"the responder does not start: {self._last_words()}")

    def _last_words(self) -> str:
        log = self._folder / "responder.log"
        text = log.read_text(errors="replace").strip() if log.exists() else ""
        return text or "it said nothing"

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
