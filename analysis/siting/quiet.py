"""HiGHS prints a line here and there whatever it is told, where results of a command go: not so."""

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Iterator

STANDARD_OUTPUT = 1
_alone = threading.Lock()


@contextlib.contextmanager
def silent_solver() -> Iterator[None]:
    """What the solver's own code prints is dropped.

    Standard output is one for the whole process: what other threads print meanwhile is dropped too.
    """
    with _alone:
        with contextlib.suppress(AttributeError, ValueError, OSError):
            sys.stdout.flush()
        try:
            kept = os.dup(STANDARD_OUTPUT)
        except OSError:  # closed: nothing that is printed gets anywhere
            yield
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, STANDARD_OUTPUT)
        os.close(nowhere)
        try:
            yield
        finally:
            ctypes.CDLL(None).fflush(None)  # what C holds back would come out later
            os.dup2(kept, STANDARD_OUTPUT)
            os.close(kept)
