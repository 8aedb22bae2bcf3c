"""Two folders change places in one step: renameat2(2) with RENAME_EXCHANGE."""

import ctypes
import errno
import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_NOT_SUPPORTED = {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP}


def exchange(one: Path, other: Path) -> None:
    """Swap two existing paths of one file system. Raises OSError.

    Where the file system cannot (NFS), `other` is moved aside first: whoever looks in between
    finds nothing at its name for an instant, which `finish_exchange` mends after a crash.
    """
    library = ctypes.CDLL(None, use_errno=True)
    paths = (os.fsencode(one), os.fsencode(other))
    if library.renameat2(_AT_FDCWD, paths[0], _AT_FDCWD, paths[1], _RENAME_EXCHANGE) == 0:
        return
    code = ctypes.get_errno()
    if code not in _NOT_SUPPORTED:
        raise OSError(code, os.strerror(code), str(other))
    other.rename(_aside(one))
    finish_exchange(one, other)


def finish_exchange(one: Path, other: Path) -> None:
    """Complete an exchange in steps that was interrupted after its first one."""
    one.rename(other)
    if _aside(one).exists():
        _aside(one).rename(one)


def _aside(path: Path) -> Path:
    return path.with_name(f".aside-{path.name}")
