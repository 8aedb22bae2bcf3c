"""How soon the kernel lets this process run when a packet is due: SCHED_FIFO and timer slack.

SCHED_FIFO is what keeps sends on time when other programs want the same processor; on a host with
nothing else to do it changes little. Its price is that the others wait. Two fences bound it:

- The lowest priority (1) and not inherited: threads and processes that we start are ordinary.
- RLIMIT_RTTIME: whoever computes for `SPIN_NS` without once waiting for anything is no longer
  pacing packets but hogging a processor. The kernel then signals, and the process becomes ordinary
  for good (`Scheduling.given_up`). That is long before the kernel's own fence (95 % of each second,
  sched(7)), which would stop us for up to 50 ms at a time.

To be called in the main thread, which is the one that hears signals.
"""

import contextlib
import ctypes
import os
import resource
import signal
from enum import StrEnum
from types import FrameType

from pathbudget.probes.errors import PrivilegeError

PRIORITY = 1
SPIN_NS = 200_000_000
SLACK_NS = 1
_PR_SET_TIMERSLACK = 29


class RealTime(StrEnum):
    """What the user wants. `auto` takes it where it is allowed and harms nobody here."""

    AUTO = "auto"
    OFF = "off"
    ON = "on"


class Scheduling:
    """How this process is scheduled: ``realtime fifo 1``, or empty for the usual way."""

    def __init__(self, text: str = "") -> None:
        self.text = text
        self.given_up = False
        """It was real-time, and computed too long without a pause."""


GIVEN_UP = (
    "real-time scheduling was given up: 200 ms of computing without a pause.\n"
    "This host is too slow for the plan; probes may have left late (lateness says)."
)


def remedy() -> str:
    """What a person can do where the kernel gives no real-time priority."""
    return (
        "run as root,\n"
        f"or give the process CAP_SYS_NICE, or allow it: `ulimit -r {PRIORITY}`\n"
        "(rtprio in /etc/security/limits.conf)"
    )


def schedule_this_process(wish: RealTime, *, alone: bool) -> Scheduling:
    """Take what `wish` says; `alone` is whether a processor is left for everybody else.

    Raises PrivilegeError when real time is wanted (`on`) and not allowed.
    """
    least_timer_slack()
    if wish is RealTime.OFF or (wish is RealTime.AUTO and not alone):
        return Scheduling()
    scheduling = Scheduling(f"realtime fifo {PRIORITY}")
    before = signal.getsignal(signal.SIGXCPU)
    try:
        _fence(scheduling)
        policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK
        os.sched_setscheduler(0, policy, os.sched_param(PRIORITY))
    except (AttributeError, OSError, ValueError) as error:  # not Linux, not allowed
        signal.signal(signal.SIGXCPU, before)
        if wish is RealTime.ON:
            raise PrivilegeError("real-time scheduling (SCHED_FIFO)", remedy()) from error
        return Scheduling()
    return scheduling


def processors() -> int:
    """How many this process may run on."""
    return len(os.sched_getaffinity(0))


def be_ordinary() -> None:
    """Back to the usual scheduling. Never raises."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def least_timer_slack() -> None:
    """Let the kernel wake us when asked, not up to 50 us later (prctl(2)). timerfd needs no such
    thing; select and epoll with a timeout do. Never raises.
    """
    with contextlib.suppress(AttributeError, OSError):
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, ctypes.c_ulong(SLACK_NS), 0, 0, 0)


def _fence(scheduling: Scheduling) -> None:
    """Have the kernel signal SIGXCPU to a real-time process that does not pause."""

    def give_up(number: int, frame: FrameType | None) -> None:
        del number, frame
        be_ordinary()
        scheduling.given_up = True

    signal.signal(signal.SIGXCPU, give_up)
    _, hard = resource.getrlimit(resource.RLIMIT_RTTIME)
    soft = SPIN_NS // 1000
    if hard != resource.RLIM_INFINITY:
        soft = min(soft, hard)
    resource.setrlimit(resource.RLIMIT_RTTIME, (soft, hard))
