"""Locks between processes: flock(2), given back by the kernel when a process dies."""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from pathbudget.agents.store.disk import explain_os_error
from pathbudget.probes.errors import StoreError

_LOOK_AGAIN_S = 0.05


@contextmanager
def exclusive(path: Path, *, wait_s: float | None = None, busy: str = "") -> Generator[None]:
    """Hold `path` alone; wait for others at most `wait_s`, then StoreError with `busy`."""
    descriptor = _open(path)
    try:
        _wait_for(descriptor, wait_s, busy)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def shared(path: Path) -> Generator[None]:
    """Hold `path` together with others. Where there is no lock file, nobody can be writing."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except OSError:
        yield
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether somebody alive holds `path` alone at this moment."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _open(path: Path) -> int:
    try:
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(f"{path.parent}: cannot be written: {explain_os_error(error)}") from None


def _wait_for(descriptor: int, wait_s: float | None, busy: str) -> None:
    if wait_s is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                raise StoreError(busy) from None
            time.sleep(_LOOK_AGAIN_S)
        else:
            return
