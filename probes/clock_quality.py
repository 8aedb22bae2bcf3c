"""How right the wall clock is, as those say who keep it right.

`read_clock_quality` asks the kernel alone (adjtimex(2)): microseconds, no daemon, any loop.
`survey_clock` asks, in this order, chronyd, ntpd, ptp4l and the kernel, and takes the first that
says *synchronised*; it may take 0.2 s. An event loop has `clock_survey.ClockSurvey` do it.
"""

import ctypes
from collections.abc import Callable, Mapping

import msgspec

from pathbudget.probes.clock import ClockWatcher
from pathbudget.probes.clock_statement import ClockStatement
from pathbudget.probes.record import ClockQuality, SyncState
from pathbudget.probes.time_daemons import Deadline, ask_chrony, ask_ntpd, ask_ptp

TIME_ERROR = 5
LEAP_STATES = {1: "insert", 2: "delete", 3: "insert", 4: ""}
"""States of adjtimex(2) around a leap second; 4 is the second after one."""
STA_UNSYNC = 0x40
FREQUENCY_UNIT = 1 << 16
SOURCE = "adjtimex"

Ask = Callable[[Deadline], ClockStatement | None]
DAEMONS: Mapping[str, Ask] = {"chrony": ask_chrony, "ntpd": ask_ntpd, "ptp4l": ask_ptp}
"""Who is asked, in this order."""
NEEDS_THE_KERNEL = frozenset({"ptp4l"})
"""Daemons that may be right about a clock that nobody carries over to the wall clock."""


class KernelTime(msgspec.Struct, frozen=True):
    """The return value of adjtimex(2) and the fields that matter."""

    state: int
    status: int
    maxerror_us: int
    esterror_us: int = 0
    frequency_ppm: float = 0.0
    tai_offset: int = 0
    """TAI minus UTC in seconds; 0 where nobody has told the kernel."""

    @property
    def synchronised(self) -> bool:
        """Whether somebody disciplines the clock."""
        return self.state != TIME_ERROR and not self.status & STA_UNSYNC

    @property
    def leap(self) -> str:
        """``insert`` or ``delete`` where a leap second is due today or under way."""
        return LEAP_STATES.get(self.state, "")


class _Timex(ctypes.Structure):
    """struct timex of <sys/timex.h>; the tail is padded by libc."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("constant", ctypes.c_long),
        ("precision", ctypes.c_long),
        ("tolerance", ctypes.c_long),
        ("time", ctypes.c_long * 2),
        ("tick", ctypes.c_long),
        ("pps_frequency", ctypes.c_long),
        ("pps_jitter", ctypes.c_long),
        ("pps_shift", ctypes.c_int),
        ("pps_rest", ctypes.c_long * 5),
        ("tai", ctypes.c_int),
        ("rest", ctypes.c_char * 128),
    )


def read_adjtimex() -> KernelTime | None:
    """Ask the kernel, changing nothing; None where it does not answer."""
    timex = _Timex()
    try:
        state = ctypes.CDLL(None, use_errno=True).adjtimex(ctypes.byref(timex))
    except (AttributeError, OSError):
        return None
    if state < 0:
        return None
    return KernelTime(
        state=state,
        status=timex.status,
        maxerror_us=timex.maxerror,
        esterror_us=timex.esterror,
        frequency_ppm=timex.freq / FREQUENCY_UNIT,
        tai_offset=timex.tai,
    )


def read_clock_quality(
    watcher: ClockWatcher | None = None,
    ask: Callable[[], KernelTime | None] = read_adjtimex,
) -> ClockQuality:
    """What the kernel says now, with the steps that `watcher` has seen. Never fails.

    The kernel's bound counts only where the daemon that disciplines it has told it an error as well
    (0 < esterror <= maxerror): systemd-timesyncd, ptp4l and phc2sys set the bound to 0 at every
    update, without knowing any.
    """
    answer = ask()
    if answer is None:
        return with_steps(ClockQuality(), watcher)
    stated = answer.synchronised and 0 < answer.esterror_us <= answer.maxerror_us
    quality = ClockQuality(
        sync_state=SyncState.SYNCHRONISED if answer.synchronised else SyncState.UNSYNCHRONISED,
        source=SOURCE,
        offset_bound_ns=answer.maxerror_us * 1_000 if stated else None,
        estimated_error_ns=answer.esterror_us * 1_000 if stated else None,
    )
    return with_steps(quality, watcher)


def survey_clock(
    watcher: ClockWatcher | None = None,
    ask: Callable[[], KernelTime | None] = read_adjtimex,
    daemons: Mapping[str, Ask] = DAEMONS,
) -> ClockQuality:
    """Ask everybody in turn until one says *synchronised*; at worst 0.2 s. Never fails.

    Where nobody does, the first daemon that answered at all is believed, then the kernel.
    """
    kernel = read_clock_quality(watcher, ask)
    deadline = Deadline()
    unsynchronised: ClockQuality | None = None
    for name, question in daemons.items():
        statement = question(deadline)
        if statement is None:
            continue
        if not statement.synchronised:
            unsynchronised = unsynchronised or _quality(name, statement)
        elif name not in NEEDS_THE_KERNEL or kernel.sync_state is not SyncState.UNSYNCHRONISED:
            return with_steps(_quality(name, statement), watcher)
    if kernel.sync_state is SyncState.SYNCHRONISED or unsynchronised is None:
        return kernel
    return with_steps(unsynchronised, watcher)


def _quality(source: str, statement: ClockStatement) -> ClockQuality:
    synchronised = statement.synchronised
    return ClockQuality(
        sync_state=SyncState.SYNCHRONISED if synchronised else SyncState.UNSYNCHRONISED,
        source=source,
        offset_bound_ns=statement.bound_ns,
        estimated_error_ns=statement.estimated_ns,
        skew_ppm=statement.skew_ppm,
    )


def with_steps(quality: ClockQuality, watcher: ClockWatcher | None) -> ClockQuality:
    """The same with the clock steps that `watcher` has seen so far."""
    if watcher is None:
        return quality
    return msgspec.structs.replace(
        quality, steps=watcher.steps, largest_step_ns=watcher.largest_step_ns
    )
