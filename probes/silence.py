"""Libraries of C print a line here and there, whatever they are told, among results of a command.

HiGHS does so, and no option of it helps.
"""

import contextlib
import ctypes
import os
import sys
import threading
from collections.abc import Generator

STANDARD_OUTPUT = 1
_alone = threading.Lock()


@contextlib.contextmanager
def nothing_printed() -> Generator[None]:
    """What is printed meanwhile is dropped.

    Standard output is one for the whole process, so that goes for what other threads print too.
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
