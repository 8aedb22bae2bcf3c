"""nats-server as a child process: the official program, found on PATH."""

import os
import re
import shutil
import subprocess
from pathlib import Path

from pathbudget.agents.fleet.children import Child
from pathbudget.agents.fleet.files import fault, write
from pathbudget.agents.fleet.folder import Folder
from pathbudget.agents.fleet.reload import CONFIGURATION
from pathbudget.agents.fleet.server_config import LOG_FILE, Listener, server_text
from pathbudget.probes.errors import BusError

PROGRAM = "nats-server"
SEARCH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))
"""Debian keeps daemons where only root looks."""
OLDEST = (2, 9)
"""The first that gives the last value of one key to whoever may read that one alone."""


def find_server() -> str:
    """Where the program is. Raises BusError, with what to install, where it is not."""
    found = shutil.which(PROGRAM, path=SEARCH)
    if found is None:
        raise BusError(
            f"{PROGRAM} is not installed: apt-get install {PROGRAM} (Debian, Ubuntu), or put the "
            "official program on PATH (https://nats.io/download)"
        )
    said = _run([found, "--version"]).stdout.strip()
    numbers = re.search(r"v?(\d+)\.(\d+)\.", said)
    if numbers is None or tuple(map(int, numbers.groups())) < OLDEST:
        needed = ".".join(map(str, OLDEST))
        raise BusError(f"{found} is {said or 'of no known version'}; {needed} or newer is needed")
    return found


def check_configuration(program: str, path: Path) -> None:
    """Raises BusError with what nats-server says against it."""
    done = _run([program, "-t", "-c", str(path)])
    if done.returncode:
        raise BusError(f"{path}: {(done.stderr or done.stdout).strip()}")


def server_child(folder: Folder) -> Child:
    """The server of a folder, its configuration written anew and checked; not started.

    Raises BusError or ConfigError.
    """
    program, settings = find_server(), folder.settings()
    place = folder.nats.resolve()
    try:
        place.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise fault(place, f"cannot be made: {error.strerror}", "a folder") from None
    tls = folder.authority.folder.resolve()
    listener = Listener(
        name="pathbudget",
        host=settings.host,
        port=settings.port,
        folder=str(place),
        users=f"../{folder.users.name}",
        certificate=str(tls / "server.pem"),
        key=str(tls / "server.key"),
    )
    path = place / CONFIGURATION
    write(path, server_text(listener, settings.results_octets).encode())
    check_configuration(program, path)
    return Child(PROGRAM, (program, "-c", str(path)), place / LOG_FILE)


def _run(words: list[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(words, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError as error:
        raise BusError(f"{words[0]} cannot be run: {error.strerror}") from None
