"""Plays the events of a world beside a command: a thread that ends with it."""

import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

from pathbudget.agents.lab.playing import Play
from pathbudget.agents.lab.running import Lab
from pathbudget.probes.errors import LabError


class Show:
    """A context manager: events happen within the block. At its end the ledger is written."""

    def __init__(self, lab: Lab, ledger: Path | None) -> None:
        self._lab = lab
        self._file = ledger
        self._play = Play(lab) if lab.world.events or ledger else None
        self._thread = threading.Thread(target=self._run, name="events")
        self._trouble: LabError | None = None

    def __enter__(self) -> Self:
        if self._play:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._play:
            return
        self._play.stop()
        self._thread.join()
        if self._file:
            self._write(self._file, self._play)
        if self._trouble and error is None:
            raise self._trouble

    def _run(self) -> None:
        assert self._play
        try:
            self._play.run()
        except LabError as error:
            self._trouble = error

    def _write(self, file: Path, play: Play) -> None:
        try:
            file.write_bytes(play.ledger().encode())
        except OSError as error:
            sys.stderr.write(f"no ledger: {file}: {error.strerror}\n")
