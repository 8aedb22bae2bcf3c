"""Telling a running nats-server to read its users anew: SIGHUP, to it and to nobody else."""

import contextlib
import os
import signal
from pathlib import Path

PID_FILE = "nats-server.pid"
CONFIGURATION = "nats-server.conf"


def reload_servers(folder: Path) -> bool:
    """Whether there was one that runs with the configuration in this folder."""
    pid = running_pid(folder)
    if pid is None:
        return False
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGHUP)
        return True
    return False


def running_pid(folder: Path) -> int | None:
    """Of the server whose pid file is in `folder`. A number that now belongs to another program is
    none of ours: the configuration must be among the words of its command line.
    """
    try:
        pid = int((folder / PID_FILE).read_text(encoding="ascii"))
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except (OSError, ValueError):
        return None
    return pid if os.fsencode((folder / CONFIGURATION).resolve()) in words else None
