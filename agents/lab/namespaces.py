"""Network namespaces without names: they live as file descriptors and end with their last user.

`ip netns add` (and the library calls like it) leave a bind mount behind when the process is
killed; these leave nothing. Python 3.11 has no `setns`, so the system calls go through ctypes.
"""

import contextlib
import ctypes
import errno
import os
from collections.abc import Generator
from pathlib import Path

from pathbudget.probes.errors import LabError, PrivilegeError

CLONE_NEWNS = 0x00020000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

_PR_SET_PDEATHSIG = 1
_PR_SET_TIMERSLACK = 29
_SIGKILL = 9
_OWN = "/proc/thread-self/ns/net"
_REMEDY = "run as root, or inside `pathbudget lab run`"

library = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Put the calling thread into new namespaces. Raises OSError."""
    _checked(library.unshare(flags), "unshare")


def enter_descriptor(descriptor: int) -> None:
    """Move the calling thread into the network namespace behind a descriptor. Raises OSError."""
    _checked(library.setns(descriptor, CLONE_NEWNET), "setns")


def enter(path: str) -> None:
    """Move the calling thread into the network namespace at `path`, for good.

    `path` is what `Lab.namespace` gives, or any other such file (``/run/netns/blue``,
    ``/proc/1234/ns/net``). Call it in a fresh worker process before it makes sockets or threads.
    Raises LabError when there is no namespace at `path`, PrivilegeError when it may not be entered.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            enter_descriptor(descriptor)
        finally:
            os.close(descriptor)
    except PermissionError:
        raise PrivilegeError(f"entering the namespace {path}", _REMEDY) from None
    except OSError as error:
        why = "is no network namespace" if error.errno == errno.EINVAL else error.strerror
        raise LabError(f"cannot enter the namespace {path}: {why}") from None


def new_namespace() -> int:
    """A fresh network namespace as a descriptor; the caller stays where it is. Raises OSError."""
    home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        unshare(CLONE_NEWNET)
        try:
            return os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
        finally:
            enter_descriptor(home)
    finally:
        os.close(home)


@contextlib.contextmanager
def inside(descriptor: int) -> Generator[None]:
    """The calling thread is in the namespace for the length of the block.

    What it opens or starts there stays there: sockets, child processes.
    """
    home = os.open(_OWN, os.O_RDONLY | os.O_CLOEXEC)
    try:
        enter_descriptor(descriptor)
        try:
            yield
        finally:
            enter_descriptor(home)
    finally:
        os.close(home)


def set_kernel_parameter(name: str, value: str) -> None:
    """Write ``/proc/sys/...`` of the namespace the calling thread is in. Raises OSError."""
    Path("/proc/sys", name).write_text(value, encoding="ascii")


def die_with_parent() -> None:
    """Have the kernel kill this process when the thread that started it ends."""
    library.prctl(_PR_SET_PDEATHSIG, _SIGKILL, 0, 0, 0)


def precise_timers() -> None:
    """Wake from `select` at the asked time instead of up to 50 us later (timer slack)."""
    library.prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(1), 0, 0, 0)


def mount(source: bytes | None, target: bytes, kind: bytes | None, flags: int = 0) -> None:
    """mount(2). Raises OSError."""
    _checked(library.mount(source, target, kind, ctypes.c_ulong(flags), None), "mount")


def _checked(result: int, name: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), name)
    return result
