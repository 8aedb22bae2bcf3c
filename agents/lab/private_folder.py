"""A folder in memory that belongs to one process and is gone with it, whatever ends it.

It is a tmpfs that is mounted nowhere: the only way to it is ``/proc/<pid>/fd/<n>``.
"""

import ctypes
import os

from pathbudget.agents.lab.namespaces import library

# Numbers of the system calls (Linux 5.2), the same on all architectures.
_FSOPEN, _FSCONFIG, _FSMOUNT = 430, 431, 432
_FSCONFIG_CMD_CREATE = 6
_CLOSE_ON_EXEC = 1


def private_folder() -> int:
    """Descriptor of a new empty folder. Raises OSError."""
    context = _call(_FSOPEN, b"tmpfs", _CLOSE_ON_EXEC)
    try:
        _call(_FSCONFIG, context, _FSCONFIG_CMD_CREATE, None, None, 0)
        return _call(_FSMOUNT, context, _CLOSE_ON_EXEC, 0)
    finally:
        os.close(context)


def path_of(descriptor: int) -> str:
    """A path to an open descriptor of this process that other processes can use."""
    return f"/proc/{os.getpid()}/fd/{descriptor}"


def _call(number: int, *arguments: int | bytes | None) -> int:
    result = int(library.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        failure = ctypes.get_errno()
        raise OSError(failure, os.strerror(failure))
    return result
