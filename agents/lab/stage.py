"""``python -m pathbudget.agents.lab.stage WORLD NODE -- COMMAND``: a lab around one command.

Runs inside the namespaces of `container.py`. COMMAND runs at NODE, or where that is empty at no
node: it sees loopback alone. The exit code is that of COMMAND.
"""

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from pathbudget.agents.lab.container import NOT_FOUND
from pathbudget.agents.lab.host_names import show_names
from pathbudget.agents.lab.running import Lab
from pathbudget.agents.lab.session import VARIABLE
from pathbudget.agents.lab.world_file import load_world
from pathbudget.probes.errors import LabError, PathbudgetError

LOOK_SECONDS = 0.5
GRACE_SECONDS = 5.0
TROUBLE = 5


def perform(world: Path, command: Sequence[str], node: str = "") -> int:
    """Exit code of `command`, run in a lab of `world`. Raises ConfigError, LabError."""
    with Lab(load_world(world)) as lab:
        _show_names(lab)
        if lab.world.bgp:
            lab.converged()
        # Ctrl-C goes to the whole group; the command decides what it means.
        signal.signal(signal.SIGINT, _leave_it)
        try:
            with lab.inside(node) if node else contextlib.nullcontext():
                process = subprocess.Popen(  # noqa: S603
                    command, env={**os.environ, VARIABLE: lab.session_path}
                )
        except OSError as error:
            sys.stderr.write(f"{command[0]}: {error.strerror}\n")
            return NOT_FOUND
        signal.signal(signal.SIGTERM, lambda _number, _frame: process.terminate())
        code = _watch(lab, process)
    sys.stderr.write(textwrap.fill(lab.report().sentence(), 80) + "\n")
    return code if code >= 0 else 128 - code


def _show_names(lab: Lab) -> None:
    try:
        show_names(lab.session())
    except OSError as error:
        sys.stderr.write(f"names such as NODE.lab are unknown to programs here: {error}\n")


def _watch(lab: Lab, process: "subprocess.Popen[bytes]") -> int:
    """Wait for the command; end it when the lab dies under it."""
    while True:
        try:
            return process.wait(LOOK_SECONDS)
        except subprocess.TimeoutExpired:
            try:
                lab.check()
            except LabError:
                _end(process)
                raise


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _leave_it(number: int, frame: FrameType | None) -> None:
    """A signal handler that does nothing."""


def main() -> None:
    """Read the command line; exit."""
    world, node, separator, *command = sys.argv[1:]
    assert separator == "--"
    try:
        code = perform(Path(world), command, node)
    except PathbudgetError as error:
        sys.stderr.write(f"{error}\n")
        code = TROUBLE
    sys.exit(code)


if __name__ == "__main__":
    main()
