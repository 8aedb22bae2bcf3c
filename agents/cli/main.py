"""The command `pathbudget`: begins at once and loads the rest, so that Ctrl-C is heard meanwhile.

application.py puts the commands of this folder together.
"""

import contextlib
import os
import signal
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathbudget.agents.cli.application import application

__all__ = ["COMMANDS", "application", "run"]

BUG, INTERRUPTED = 70, 130
"""As in `exits.ExitCode`, which may not be loaded yet."""
COMMANDS: tuple[str, ...] = (
    "check",
    "ping",
    "trace",
    "run",
    "demo",
    "import_results",
    "report",
    "routes",
    "compare",
    "budget",
    "sites",
    "telemetry",
    "catalogue",
    "bgp",
    "store",
    "plan",
    "agent",
    "alerts",
    "status",
    "fleet",
    "collector",
    "lab",
    "reflector",
    "responder",
    "completions",
    "doctor",
    "capabilities",
)
"""Modules of this folder in the order of the help; each has ``register(application)``."""


def __getattr__(name: str) -> object:
    """`application`, made when it is asked for."""
    if name == "application":
        from pathbudget.agents.cli import application as made

        return made.application
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def run() -> None:
    """Entry point of the console script."""
    try:
        _open_what_is_closed()
        from pathbudget.agents.cli.application import application

        application()
    except KeyboardInterrupt:
        _end(INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - exit code 1 would mean a budget line that fails
        if _is_interrupt(error):
            _end(INTERRUPTED)
        sys.excepthook(type(error), error, error.__traceback__)
        _end(BUG)


def _is_interrupt(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind it: a library that is being loaded may call it an ImportError."""
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False


def _end(code: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second Ctrl-C has nothing left to stop
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Give every standard stream that the caller closed (``>&-``) a place that takes all.

    Otherwise the next file that is opened, a journal perhaps, becomes standard output.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            with contextlib.suppress(OSError):
                os.fstat(number)
                continue
            os.open(os.devnull, os.O_RDWR)  # the kernel hands out the lowest free number
            file = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
            setattr(sys, name, file)


if __name__ == "__main__":
    run()
