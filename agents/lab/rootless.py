"""Labs for ordinary users: go on as root of a user namespace of one's own."""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from pathbudget.agents.lab.capability import why_not
from pathbudget.agents.lab.container import command_inside
from pathbudget.probes.errors import LabError


def reexec_in_user_namespace(arguments: Sequence[str]) -> NoReturn:
    """Start this Python program anew with `arguments`, as root of new namespaces.

    ``sys.orig_argv[1:]`` are the same once more; ``sys.argv`` does for a script of one file.

    There `os.geteuid()` is 0, `Lab` works, files belong to the same user as before, and the only
    network is the lab. The process id stays; killing it ends everything below it.
    Raises LabError when this machine does not let the user do so.
    """
    run_in_namespaces([sys.executable, *arguments])


def run_in_namespaces(command: Sequence[str]) -> NoReturn:
    """Replace this process by `command`, run as root of new namespaces.

    Raises LabError when this machine does not let the user do so.
    """
    refused = why_not()
    if refused:
        raise LabError(f"no lab can start here: {refused}")
    line = command_inside(command, with_parent=False)
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(line[0], line)  # noqa: S606
