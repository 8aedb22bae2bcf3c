"""Whether a lab can start here, found out by trying each step in a throw-away process."""

import errno
import functools
import os
import subprocess
import sys
from collections.abc import Callable

from pathbudget.agents.lab.container import loopback_up, new_namespaces, own_proc
from pathbudget.agents.lab.namespaces import CLONE_NEWNET, set_kernel_parameter, unshare
from pathbudget.agents.lab.private_folder import private_folder
from pathbudget.agents.lab.rtnetlink import RoutingSocket

SECONDS = 20.0

_ROOT = "run as root with all capabilities (in Docker: --privileged)"
_USER = {
    errno.ENOSPC: "raise the limit: sysctl -w user.max_user_namespaces=10000",
    errno.EPERM: "allow user namespaces (sysctl -w kernel.unprivileged_userns_clone=1, "
    "in Docker: --privileged), or run as root",
}
_APPARMOR = "run as root, or allow it: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0"
_CONTAINER = "run outside of the container, or with --privileged"
_KERNEL = "use a kernel that has it"


@functools.cache
def why_not() -> str | None:
    """One sentence: the step that fails and what would help. None: a lab can start here."""
    if not sys.platform.startswith("linux"):
        return "the lab needs Linux; run it in a Linux machine or container"
    command = [sys.executable, "-m", "pathbudget.agents.lab.capability"]
    try:
        tried = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"trying it failed ({error}); try again on a quieter machine"
    if tried.returncode == 0:
        return None
    lines = (tried.stdout or tried.stderr).strip().splitlines()
    return lines[-1] if lines else f"trying it ended with code {tried.returncode}"


def first_refusal() -> str | None:
    """Go through the steps in this process, which is changed for good by it."""
    as_root = os.geteuid() == 0
    refused = _try("making namespaces", new_namespaces, lambda error: _user(error, as_root))
    if refused:
        return refused
    child = os.fork()  # the first process of the new process namespace
    if child == 0:
        sentence = _steps_inside(as_root)
        if sentence:
            os.write(1, sentence.encode())
        os._exit(1 if sentence else 0)
    _, status = os.waitpid(child, 0)
    return "" if status else None


def _steps_inside(as_root: bool) -> str | None:
    net = _ROOT if as_root else _APPARMOR
    steps: tuple[tuple[str, Callable[[], object], str], ...] = (
        ("bringing up lo in a new network namespace", loopback_up, net),
        ("a second network namespace", lambda: unshare(CLONE_NEWNET), net),
        ("a pair of virtual interfaces (veth)", _veth_pair, _KERNEL),
        ("a packet socket with a ring", _ring, net),
        ("mounting a fresh /proc", own_proc, _CONTAINER),
        ("writing kernel parameters", _parameters, _CONTAINER),
        ("a folder in memory", private_folder, "use Linux 5.2 or newer"),
    )
    for name, attempt, remedy in steps:
        refused = _try(name, attempt, functools.partial(_always, remedy))
        if refused:
            return refused
    return None


def _try(step: str, attempt: Callable[[], object], remedy: Callable[[OSError], str]) -> str | None:
    try:
        attempt()
    except OSError as error:
        return f"{step} is refused ({error.strerror}); {remedy(error)}"
    return None


def _always(remedy: str, _error: OSError) -> str:
    return remedy


def _user(error: OSError, as_root: bool) -> str:
    return _ROOT if as_root else _USER.get(error.errno or 0, _USER[errno.EPERM])


def _ring() -> None:
    from pathbudget.agents.lab.ring import Ring

    Ring()


def _parameters() -> None:
    set_kernel_parameter("net/ipv4/ip_forward", "1")


def _veth_pair() -> None:
    own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    kernel = RoutingSocket()
    kernel.veth("try0", 1000, bytes((2, 0, 0, 0, 0, 1)), "try1", 1001, own)
    kernel.flush()


def main() -> None:
    """Say the sentence and exit with 1, or exit with 0."""
    refused = first_refusal()
    if refused:
        sys.stdout.write(refused)
    sys.exit(0 if refused is None else 1)


if __name__ == "__main__":
    main()
