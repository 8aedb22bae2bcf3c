"""Runs a command as (mapped) root in namespaces of its own: ``python -m ... container -- COMMAND``.

Three processes, so that nothing outlives the first of them, however it ends:

    this process   new user (when not root), process, mount and network namespaces for its child
    init           first of the process namespace: fresh /proc, reaps, passes signals on
    COMMAND        may make network namespaces and everything else that a lab needs

The kernel kills init with this process, and everything in the process namespace with init. The
network namespace of COMMAND has loopback and nothing else: no packet leaves the machine.
"""

import fcntl
import os
import select
import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Sequence
from types import FrameType
from typing import NoReturn

from pathbudget.agents.lab.namespaces import (
    CLONE_NEWNET,
    CLONE_NEWNS,
    CLONE_NEWPID,
    CLONE_NEWUSER,
    die_with_parent,
    mount,
    unshare,
)

MODULE = "pathbudget.agents.lab.container"
NOT_FOUND = 127
_MS_PRIVATE_RECURSIVE = 0x40000 | 0x4000
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_PASSED_ON = (signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def command_inside(command: Sequence[str], *, with_parent: bool) -> list[str]:
    """The command line that runs `command` in namespaces of its own.

    `with_parent`: end when the process (thread) that starts it does.
    """
    option = ["--die-with-parent"] if with_parent else []
    return [sys.executable, "-m", MODULE, *option, "--", *command]


def new_namespaces() -> None:
    """Put this process into new namespaces, as root of them. Its next child is the init."""
    user, group = os.getuid(), os.getgid()
    unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET | (CLONE_NEWUSER if os.geteuid() else 0))
    if user:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"0 {user} 1"),
            ("gid_map", f"0 {group} 1"),
        ):
            with open(f"/proc/self/{name}", "w", encoding="ascii") as file:  # noqa: PTH123
                file.write(text)


def loopback_up() -> None:
    """Bring up `lo` of the namespace of this thread."""
    with socket.socket() as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", _IFF_UP))


def own_proc() -> None:
    """A /proc of the new process namespace; mounts from here on are nobody else's business."""
    mount(None, b"/", None, _MS_PRIVATE_RECURSIVE)
    mount(b"proc", b"/proc", b"proc")


def _leave_it(number: int, frame: FrameType | None) -> None:
    """A signal handler that does nothing."""


def main() -> NoReturn:
    """The first process."""
    options, command = _arguments(sys.argv[1:])
    parent = os.getppid()
    try:
        new_namespaces()
    except OSError as error:
        sys.exit(f"no namespaces of its own for this user: {error}")
    # Only now: becoming root of a user namespace clears the request.
    if "--die-with-parent" in options:
        die_with_parent()
        if os.getppid() != parent:
            sys.exit("the parent is gone")
    alive, held = os.pipe()
    init = os.fork()
    if init == 0:
        os.close(held)
        os._exit(_init(command, alive))
    os.close(alive)
    os._exit(_wait_for(init))


def _init(command: Sequence[str], alive: int) -> int:
    """The second process: a minimal init."""
    die_with_parent()
    if select.select([alive], [], [], 0)[0]:
        return 1  # the first process ended before the request was in force
    os.close(alive)
    try:
        own_proc()
        loopback_up()
        child = subprocess.Popen(command).pid  # noqa: S603
    except OSError as error:
        sys.stderr.write(f"{error.filename or command[0]}: {error.strerror}\n")
        return NOT_FOUND if isinstance(error, FileNotFoundError) else 1
    return _wait_for(child, reap=True)


def _wait_for(child: int, *, reap: bool = False) -> int:
    """Exit code of `child`, as a shell would give it; signals to us go to it."""
    for number in _PASSED_ON:
        signal.signal(number, lambda number, _frame: os.kill(child, number))
    # Ctrl-C reaches the command by itself; it decides what that means. No SIG_IGN: it is inherited.
    signal.signal(signal.SIGINT, _leave_it)
    while True:
        ended, status = os.waitpid(-1 if reap else child, 0)
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code


def _arguments(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    split = list(words).index("--")
    return words[:split], words[split + 1 :]


if __name__ == "__main__":
    main()
