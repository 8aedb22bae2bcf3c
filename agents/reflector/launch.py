"""Starts a reflector as a process of its own, waits until it listens, ends it for sure.

with ReflectorProcess(folder, ["127.0.0.1"], {"https-port": 8621}) as running:
    ...  # clients trust folder / "ca.pem"
"""

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


class ReflectorProcess:
    """A context manager: one reflector runs while the block does.

    `options` are those of the command, without dashes in front; True is a word without a value.
    What the process says goes to ``reflector.log`` in `folder`, which also holds its certificate.
    Raises ReflectorError, with what the process said, when it does not listen.
    """

    def __init__(
        self,
        folder: Path,
        addresses: Sequence[str],
        options: Mapping[str, str | int | float | Path | bool] | None = None,
    ) -> None:
        self._folder = folder
        self._words = [word for address in addresses for word in ("--listen", address)]
        if "certificate" not in (options or {}):
            self._words += ["--certificate-directory", str(folder)]
        for name, value in (options or {}).items():
            self._words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
        self.process: subprocess.Popen[bytes] | None = None

    @property
    def authority(self) -> Path:
        """The file that clients trust."""
        return self._folder / "ca.pem"

    @property
    def log(self) -> str:
        """What it has said until now; the last line comes when it has ended."""
        return (self._folder / "reflector.log").read_text(errors="replace")

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

    def _wait_until_ready(self, reader: int) -> None:
        ready, _, _ = select.select([reader], [], [], READY_SECONDS)
        if not ready or os.read(reader, 16) != b"ready\n":
            self.stop()
            raise ReflectorError(f"the reflector does not start: {self.log.strip()}")

    def _start(self, ready: int) -> "subprocess.Popen[bytes]":
        program = [sys.executable, "-m", "pathbudget.agents.reflector", "--ready-fd", str(ready)]
        with (self._folder / "reflector.log").open("wb") as log:
            return subprocess.Popen(  # noqa: S603
                [*program, *self._words], pass_fds=[ready], stdout=log, stderr=log
            )
