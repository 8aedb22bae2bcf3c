"""``python -m pathbudget.agents.lab.stage WORLD NODE LEDGER WEEK -- COMMAND``: a lab around one
command.

Runs inside the namespaces of `container.py`. COMMAND runs at NODE, or where that is empty at no
node: it sees loopback alone. Events of the world happen meanwhile; what did is written to the file
LEDGER, where that is not empty. WEEK: the seed of random events instead of those of the world, or
empty. The exit code is that of COMMAND.
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
from pathbudget.agents.lab.show import Show
from pathbudget.agents.lab.weeks import random_week
from pathbudget.agents.lab.world import World
from pathbudget.agents.lab.world_file import load_world
from pathbudget.probes.errors import LabError, PathbudgetError

LOOK_SECONDS = 0.5
GRACE_SECONDS = 5.0
TROUBLE = 5


def perform(
    world: World, command: Sequence[str], node: str = "", ledger: Path | None = None
) -> int:
    """Exit code of `command`, run in a lab of `world`. Raises LabError."""
    with Lab(world) as lab:
        _show_names(lab)
        if lab.world.bgp:
            lab.converged()
        show = Show(lab, ledger)
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
        with show:
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
    file, node, ledger, week, separator, *command = sys.argv[1:]
    assert separator == "--"
    try:
        world = load_world(Path(file))
        if week:
            world = random_week(world, int(week))
        code = perform(world, command, node, Path(ledger) if ledger else None)
    except PathbudgetError as error:
        sys.stderr.write(f"{error}\n")
        code = TROUBLE
    sys.exit(code)


if __name__ == "__main__":
    main()
