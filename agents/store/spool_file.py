"""A file that takes lines one by one, each with the kernel before `append` of its kind returns.

A line is one unbuffered write, so ``kill -9`` loses at most the line in flight; `sync` (and
`close`) makes the file safe against a power cut. The file is locked while its writer lives, which
is how `pathbudget store recover` tells a file in use from one left over.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Self

from pathbudget.agents.store.disk import explain_os_error, give_name, reserve, sync
from pathbudget.probes.errors import SpoolError

UNREADY = ".new"
"""End of the name of a file that is not ready yet."""


class SpoolFile:
    """Appends to one spool file. Not for several threads; every method may raise SpoolError."""

    FIRST_LINE: ClassVar[bytes]

    def __init__(self, path: Path, descriptor: int) -> None:
        """Use `create`."""
        self.path = path
        self._descriptor = descriptor
        self._length = 0
        self._trouble: SpoolError | None = None

    @classmethod
    def create(cls, path: Path, *, reserve_bytes: int = 0) -> Self:
        """Begin a new file; nothing may be there yet.

        `reserve_bytes` of disk are set aside at once, so that a full disk is noticed before the
        first packet leaves. The file appears under `path` locked and with its first line written.
        """
        unready = path.with_name(f".{path.name}.{os.getpid()}{UNREADY}")
        try:
            if path.exists():
                raise SpoolError(f"{path}: there is a journal of this name already")
            descriptor = os.open(unready, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        except OSError as error:
            raise SpoolError(
                f"{path}: no journal can be begun: {explain_os_error(error)}"
            ) from None
        journal = cls(path, descriptor)
        try:
            journal._prepare(unready, reserve_bytes)
        except (OSError, SpoolError) as error:
            os.close(descriptor)
            unready.unlink(missing_ok=True)
            why = explain_os_error(error) if isinstance(error, OSError) else str(error)
            raise SpoolError(f"{path}: no journal can be begun: {why}") from None
        return journal

    def _prepare(self, unready: Path, reserve_bytes: int) -> None:
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if reserve_bytes:
            reserve(self._descriptor, reserve_bytes)
        self._write(self.FIRST_LINE)
        give_name(unready, self.path)
        sync(self.path.parent)

    def flush(self) -> None:
        """Hand over what is kept back, if anything is. Cheap: no disk wait."""

    def sync(self) -> None:
        """Wait until the disk has everything: safe against a power cut. May take long."""
        self.flush()
        try:
            os.fdatasync(self._descriptor)
        except OSError as error:
            self._fail(error)

    def close(self) -> None:
        """Cut the file to its length, make it durable, give the lock back. Twice does no harm."""
        if self._descriptor < 0:
            return
        try:
            if self._trouble is None:
                self.flush()
            os.ftruncate(self._descriptor, self._length)
            os.fsync(self._descriptor)
        except OSError as error:
            self._fail(error)
        finally:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, line: bytes) -> None:
        if self._trouble is not None:
            raise self._trouble
        try:
            written = os.write(self._descriptor, line)
            while written < len(line):  # the disk took a part; the next write says why
                written += os.write(self._descriptor, line[written:])
        except OSError as error:
            self._fail(error)
        self._length += len(line)

    def _fail(self, error: OSError) -> None:
        """Stop for good: the lines up to here are whole, and nothing may follow a torn one."""
        self._trouble = SpoolError(
            f"{self.path}: the journal takes no more samples: {explain_os_error(error)}; "
            "those up to here are kept"
        )
        raise self._trouble from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
