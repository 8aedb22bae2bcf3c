"""What the file system says, in words, and the few calls that make files durable."""

import errno
import os
from pathlib import Path

_WORDS = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota of this user is used up",
    errno.EFBIG: "the file would be larger than this process may write",
    errno.EROFS: "the file system is read-only",
    errno.EACCES: "this user may not write here",
    errno.EPERM: "this user may not write here",
    errno.ENOENT: "the folder does not exist",
    errno.ENOTDIR: "a part of the path is a file, not a folder",
    errno.EIO: "the disk reports an error",
}
_NO_LINKS = {errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS}
_NO_RESERVATION = {errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS}


def explain_os_error(error: OSError) -> str:
    """``the disk is full`` rather than ``[Errno 28] No space left on device: ...``."""
    return _WORDS.get(error.errno or 0) or error.strerror or str(error)


def reserve(descriptor: int, size: int) -> None:
    """Set `size` bytes of disk aside for an open file. Raises OSError when they are not there.

    Where the file system cannot reserve, the free space is looked at instead, which is weaker.
    """
    try:
        os.posix_fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno not in _NO_RESERVATION:
            raise
        state = os.fstatvfs(descriptor)
        if state.f_bavail * state.f_frsize < size:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)) from None


def give_name(unnamed: Path, path: Path) -> None:
    """Rename a file, never over one that came meanwhile. Raises OSError.

    A file system without hard links cannot promise the latter.
    """
    try:
        os.link(unnamed, path)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        unnamed.rename(path)
    else:
        unnamed.unlink()


def replace_file(path: Path, content: bytes) -> None:
    """Put `content` where `path` is, durably: after a power cut it is all there, or the old one."""
    temporary = path.with_name(f".{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Make a file, or the names in a folder, durable."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
