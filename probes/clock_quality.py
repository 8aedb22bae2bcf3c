"""What the kernel says of the wall clock's discipline: adjtimex(2), which everybody may read.

Chrony, ntpd and systemd-timesyncd all tell the kernel, so no daemon has to be asked.
"""

import ctypes
from collections.abc import Callable
from typing import NamedTuple

from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.record import ClockQuality, SyncState

TIME_ERROR = 5
STA_UNSYNC = 0x40
SOURCE = "adjtimex"


class KernelTime(NamedTuple):
    """The return value of adjtimex(2) and the two fields that matter."""

    state: int
    status: int
    maxerror_us: int


class _Timex(ctypes.Structure):
    """struct timex of <sys/timex.h>; the tail is padded by libc."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 256),
    )


def read_adjtimex() -> KernelTime | None:
    """Ask the kernel, changing nothing; None where it does not answer."""
    timex = _Timex()
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (AttributeError, OSError):
        return None
    return None if state < 0 else KernelTime(state, timex.status, timex.maxerror)


def read_clock_quality(
    watcher: ClockWatcher | None = None,
    ask: Callable[[], KernelTime | None] = read_adjtimex,
) -> ClockQuality:
    """The state of the wall clock now, with the steps that `watcher` has seen. Never fails."""
    steps = 0 if watcher is None else watcher.steps
    largest = 0 if watcher is None else watcher.largest_step_ns
    answer = ask()
    if answer is None:
        return ClockQuality(steps=steps, largest_step_ns=largest)
    synchronised = answer.state != TIME_ERROR and not answer.status & STA_UNSYNC
    return ClockQuality(
        sync_state=SyncState.SYNCHRONISED if synchronised else SyncState.UNSYNCHRONISED,
        source=SOURCE,
        # Of a clock that nobody disciplines the kernel's bound says nothing.
        offset_bound_ns=answer.maxerror_us * 1_000 if synchronised else None,
        steps=steps,
        largest_step_ns=largest,
    )
