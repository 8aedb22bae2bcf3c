"""Exit codes of the command, and how an exception becomes one sentence on stderr."""

import errno
import functools
import os
import sys
from collections.abc import Callable
from enum import IntEnum
from typing import ParamSpec, TypeVar

import typer

from pathbudget.agents.cli.wording import fitted
from pathbudget.probes.errors import (
    ConfigError,
    NotOnThisHostError,
    PathbudgetError,
    PrivilegeError,
)

P = ParamSpec("P")
R = TypeVar("R")


class ExitCode(IntEnum):
    """What a script can rely on."""

    OK = 0
    OBJECTIVE_NOT_MET = 1
    """A budget line fails (or is undecided, where the user asked for that)."""
    USAGE = 2
    """The command line or a file of the user's is wrong; nothing was sent."""
    NOT_PERMITTED = 3
    """The kernel does not allow it to this user; nothing was sent."""
    NOTHING_MEASURED = 4
    """It ran and there is no single number."""
    TROUBLE = 5
    """A store, a spool or a lab failed; the message says what is kept and where."""
    MEASURE_MORE = 6
    """Of budget check: no line fails, and some cannot be decided until more is measured."""
    BUG = 70
    """A fault of this program; the traceback is what a report of it needs."""
    INTERRUPTED = 130
    """Ctrl-C; what was measured is stored."""
    OUTPUT_CLOSED = 141
    """Whoever read the output has seen enough (``| head``): what a shell calls SIGPIPE."""


NOWHERE_TO_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EFBIG, errno.EBADF)
"""What the kernel says when standard output cannot take a line (then no file is named)."""
COMMAND_LINE = "command line"
"""Stands for the file in faults of what was typed; `parse_host` and others say it."""


def fail(message: str, code: ExitCode) -> typer.Exit:
    """Print `message` on stderr; raise what is returned: ``raise fail("...", ExitCode.USAGE)``."""
    tell(message)
    return typer.Exit(int(code))


def tell(message: str) -> None:
    """Print a message on stderr, whatever words of users or of the network are in it."""
    if sys.stderr is not None:
        sys.stderr.write(fitted(message.rstrip()) + "\n")


def reports_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Turn the product's own exceptions, and what the system refuses, into a message and an exit
    code. Others are bugs.
    """

    @functools.wraps(command)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return _flushed(command(*args, **kwargs))
        except ConfigError as error:
            raise fail(_with_count(error), ExitCode.USAGE) from None
        except NotOnThisHostError as error:
            raise fail(str(error), ExitCode.USAGE) from None
        except PrivilegeError as error:
            raise fail(str(error), ExitCode.NOT_PERMITTED) from None
        except PathbudgetError as error:
            raise fail(str(error), ExitCode.TROUBLE) from None
        except BrokenPipeError:
            raise _output_closed() from None
        except SystemExit as error:  # how rich ends a program at a broken pipe: with code 1
            if isinstance(error.__context__, BrokenPipeError):
                raise _output_closed() from None
            raise
        except OSError as error:
            if error.errno is None:  # no word of the kernel's
                raise
            raise fail(_refused(error), ExitCode.TROUBLE) from None

    return wrapper


def _with_count(error: ConfigError) -> str:
    """The faults, and how many; of what was typed everybody sees that."""
    if all(fault.file == COMMAND_LINE for fault in error.faults):
        return str(error)
    many = f"{len(error.faults)} faults" if len(error.faults) > 1 else "1 fault"
    return f"{error}\n{many}; nothing was loaded."


def _refused(error: OSError) -> str:
    """``/srv/x: Permission denied``; where no file is named, it may be the output itself."""
    why = error.strerror or str(error)
    if error.filename is not None:
        return f"{os.fsdecode(error.filename)}: {why}"
    if error.errno in NOWHERE_TO_WRITE:
        _silence_standard_output()
        return f"the output cannot be written: {why}"
    return f"the system refuses: {why}"


def _flushed(result: R) -> R:
    """Write what is still in the buffer, here, where a full disk can be told."""
    if sys.stdout is not None:
        sys.stdout.flush()
    return result


def _output_closed() -> typer.Exit:
    _silence_standard_output()
    return typer.Exit(int(ExitCode.OUTPUT_CLOSED))


def _silence_standard_output() -> None:
    """What is left in its buffer goes nowhere, instead of failing again at the very end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
