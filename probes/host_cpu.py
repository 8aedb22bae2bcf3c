"""What the kernel says of the processors and of this process's place on them. Reads only."""

import ctypes
import resource
from pathlib import Path
from typing import NamedTuple

import msgspec

STAT = Path("/proc/stat")
PROC = Path("/proc")
SYS = Path("/sys")
PR_GET_TIMERSLACK = 30
_STAT_BYTES = 512
"""The first line of /proc/stat, which is all that is read of it."""


class CpuTicks(NamedTuple):
    """Ticks of all processors together since the machine started (proc_stat(5))."""

    total: int
    stolen: int


def read_ticks(stat: Path = STAT) -> CpuTicks | None:
    """All ticks and stolen ticks; None where the kernel does not say."""
    try:
        with stat.open("rb", buffering=0) as file:
            line = file.read(_STAT_BYTES).split(b"\n", 1)[0]
        fields = [int(word) for word in line.split()[1:9]]
    except (OSError, ValueError):
        return None
    return CpuTicks(sum(fields), fields[7]) if len(fields) == 8 else None


def steal_ratio(before: CpuTicks | None, after: CpuTicks | None) -> float:
    """Share of processor time that the hypervisor took between two looks, 0 to 1.

    Of the machine's whole life where no tick passed in between.
    """
    if before is None or after is None:
        return 0.0
    total, stolen = after.total - before.total, after.stolen - before.stolen
    if total <= 0 or stolen < 0:
        total, stolen = after
    return min(1.0, stolen / total) if total > 0 else 0.0


class Scheduling(msgspec.Struct, frozen=True):
    """How soon the kernel lets this process run; None where it does not say."""

    timer_slack_ns: int | None
    """How much later than asked the kernel may wake this thread (prctl(2), PR_GET_TIMERSLACK)."""
    realtime_limit: int
    """Highest SCHED_FIFO priority that this user may take without CAP_SYS_NICE (RLIMIT_RTPRIO)."""
    realtime_share: float | None
    """Share of each period that real-time tasks may use (sched_rt_runtime_us); 1 is all of it."""
    governor: str
    """Frequency governor of the first processor; empty where there is none to see."""
    deepest_idle_us: int | None
    """Time to wake up from the deepest idle state that is switched on (cpuidle)."""


def read_scheduling(proc: Path = PROC, sys: Path = SYS) -> Scheduling:
    """Look once. Never raises."""
    return Scheduling(
        timer_slack_ns=timer_slack_ns(),
        realtime_limit=_realtime_limit(),
        realtime_share=_realtime_share(proc / "sys" / "kernel"),
        governor=read_word(sys / "devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        deepest_idle_us=_deepest_idle_us(sys / "devices/system/cpu/cpu0/cpuidle"),
    )


def timer_slack_ns() -> int | None:
    """Timer slack of this thread; 50 us where nobody has changed it. timerfd ignores it."""
    try:
        slack = int(ctypes.CDLL(None).prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0))
    except (AttributeError, OSError):
        return None
    return slack if slack >= 0 else None


def read_word(path: Path) -> str:
    """The text of a small file of /proc or /sys; empty where it cannot be read."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""


def read_number(path: Path) -> int | None:
    """The number in a small file of /proc or /sys; None where there is none."""
    try:
        return int(read_word(path))
    except ValueError:
        return None


def virtual_machine(proc: Path = PROC, sys: Path = SYS) -> str:
    """A hint at what this host really is: ``container``, the maker of a virtual machine, or empty.

    Only hints: a hypervisor may hide itself.
    """
    if _in_container(proc):
        return "container"
    if " hypervisor" not in read_word(proc / "cpuinfo"):
        return ""
    return read_word(sys / "class/dmi/id/sys_vendor") or "virtual machine"


def _in_container(proc: Path) -> bool:
    init = read_word(proc / "1" / "cgroup")
    words = ("docker", "kubepods", "containerd", "lxc", "libpod")
    return any(word in init for word in words) or Path("/.dockerenv").exists()


def _realtime_limit() -> int:
    limit = resource.getrlimit(resource.RLIMIT_RTPRIO)[0]
    return 99 if limit == resource.RLIM_INFINITY else limit


def _realtime_share(kernel: Path) -> float | None:
    runtime = read_number(kernel / "sched_rt_runtime_us")
    period = read_number(kernel / "sched_rt_period_us")
    if runtime is None or not period:
        return None
    return 1.0 if runtime < 0 else min(1.0, runtime / period)


def _deepest_idle_us(folder: Path) -> int | None:
    states = [
        read_number(state / "latency") or 0
        for state in sorted(folder.glob("state*"))
        if read_number(state / "disable") != 1
    ]
    return max(states, default=None)
