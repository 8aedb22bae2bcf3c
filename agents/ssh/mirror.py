"""The copy here of a journal that grows on another host: byte for byte, so each sample once.

While it is not whole its name ends in `PARTIAL`, which `pathbudget store recover` leaves alone: the
store takes a measurement once, so it must not get half of one.
"""

import os
from pathlib import Path

from pathbudget.agents.store.disk import explain_os_error, sync
from pathbudget.probes.errors import SpoolError

PARTIAL = ".partial"


class Mirror:
    """Goes on where an earlier one stopped. Every method may raise SpoolError."""

    def __init__(self, path: Path) -> None:
        """`path` is the name of the whole journal."""
        self.path = path
        self._partial = path.with_name(path.name + PARTIAL)
        try:
            self._descriptor = os.open(self._partial, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            self.size = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise self._trouble(error) from None

    def append(self, offset: int, data: bytes) -> None:
        """Write the bytes from `offset` on, which must be the next ones."""
        if offset != self.size:
            raise SpoolError(f"{self._partial}: byte {offset} came after byte {self.size}")
        try:
            while data:
                written = os.write(self._descriptor, data)
                self.size += written
                data = data[written:]
        except OSError as error:
            raise self._trouble(error) from None

    def finish(self) -> None:
        """All of it is here: make it safe against a power cut, under its name."""
        try:
            os.fsync(self._descriptor)
            self._partial.rename(self.path)
            sync(self.path.parent)
        except OSError as error:
            raise self._trouble(error) from None

    def close(self) -> None:
        """What is here stays."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def discard(self) -> None:
        """Nothing was measured."""
        self.close()
        self._partial.unlink(missing_ok=True)

    def _trouble(self, error: OSError) -> SpoolError:
        why = explain_os_error(error)
        return SpoolError(f"{self._partial}: cannot be written: {why}; the host keeps its samples")
