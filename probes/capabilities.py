"""What this host lets us measure with, why not, and what a person can do about it."""

import errno
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.clock_quality import survey_clock
from pathbudget.probes.network import try_icmp, try_udp
from pathbudget.probes.record import AddressFamily, ClockQuality, SyncState
from pathbudget.probes.timer import timerfd_works

PING_GROUP_RANGE = Path("/proc/sys/net/ipv4/ping_group_range")
IF_INET6 = Path("/proc/net/if_inet6")

_NAMES = {AddressFamily.IPV4: "IPv4", AddressFamily.IPV6: "IPv6"}
_NO_FAMILY = frozenset({errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT})


@dataclass(frozen=True, slots=True)
class Capability:
    """One thing that is there or not. `remedy` is a command to run, empty where none is needed."""

    name: str
    available: bool
    reason: str
    remedy: str = ""


def report() -> tuple[Capability, ...]:
    """Try everything out, here and now, and change nothing. Never raises."""
    icmp = (
        _icmp(family, privileged=privileged) for privileged in (True, False) for family in _NAMES
    )
    return (
        *icmp,
        _stamps("kernel send stamps", stamps.DATAGRAM_STAMPS),
        _stamps("kernel receive stamps", stamps.RX_SOFTWARE | stamps.SOFTWARE),
        ipv6(),
        clock_discipline(),
        _precise_timers(),
    )


def ipv6(interfaces: Path = IF_INET6) -> Capability:
    """Whether this host has an IPv6 address of its own, beyond loopback and link-local."""
    name = "IPv6"
    try:
        lines = interfaces.read_text().splitlines()
    except OSError:
        return Capability(name, available=False, reason="this kernel runs without IPv6")
    addresses = [line.split()[0] for line in lines if line.split()]
    wide = [one for one in addresses if not _is_local(one)]
    if wide:
        return Capability(name, available=True, reason=f"{len(wide)} address(es) beyond this link")
    return Capability(name, available=False, reason="no address beyond this link")


def clock_discipline(ask: Callable[[], ClockQuality] = survey_clock) -> Capability:
    """Whether somebody keeps the wall clock right. Round trips do not need it."""
    name = "clock discipline"
    quality = ask()
    if quality.sync_state is SyncState.SYNCHRONISED:
        return Capability(name, available=True, reason=f"synchronised{_within(quality)}")
    if quality.sync_state is SyncState.UNKNOWN:
        return Capability(name, available=False, reason="the kernel does not say")
    return Capability(
        name,
        available=False,
        reason="undisciplined; round trips do not need it",
        remedy="sudo apt-get install chrony",
    )


def _within(quality: ClockQuality) -> str:
    if quality.offset_bound_ns is None:
        return f"; {quality.source} states no error"
    bound_us = quality.offset_bound_ns / 1e3
    return (
        f" to within {bound_us:.1f} us" if bound_us < 1e3 else f" to within {bound_us / 1e3:.1f} ms"
    )


def _icmp(family: AddressFamily, *, privileged: bool) -> Capability:
    kind = "raw" if privileged else "datagram"
    name = f"ICMP {kind} {_NAMES[family]}"
    try:
        try_icmp(family, privileged=privileged).close()
    except OSError as error:
        if error.errno in _NO_FAMILY:
            reason = f"this kernel runs without {_NAMES[family]}"
            return Capability(name, available=False, reason=reason)
        reason, remedy = _raw_refused() if privileged else _datagram_refused()
        return Capability(name, available=False, reason=reason, remedy=remedy)
    reason = "may be opened" if privileged else "this group is in ping_group_range"
    return Capability(name, available=True, reason=reason)


def _raw_refused() -> tuple[str, str]:
    program = os.path.realpath(sys.executable)
    return "needs CAP_NET_RAW", f"sudo setcap cap_net_raw+ep {program}"


def _datagram_refused() -> tuple[str, str]:
    try:
        allowed = " ".join(PING_GROUP_RANGE.read_text().split())
    except OSError:
        allowed = "unknown"
    reason = f"ping_group_range is {allowed!r}, this group is {os.getegid()}"
    return reason, "sudo sysctl -w net.ipv4.ping_group_range='0 2147483647'"


def _stamps(name: str, flags: int) -> Capability:
    with try_udp() as sock:
        if stamps.switch_on(sock, flags):
            return Capability(name, available=True, reason="the kernel takes the option")
    reason = "the kernel refuses SO_TIMESTAMPING; the user clock is used"
    return Capability(name, available=False, reason=reason)


def _precise_timers() -> Capability:
    if timerfd_works():
        return Capability("precise timers", available=True, reason="timerfd")
    reason = "no timerfd; sends are up to 1 ms late"
    return Capability("precise timers", available=False, reason=reason)


def _is_local(address: str) -> bool:
    """Loopback or link-local, as /proc/net/if_inet6 writes it (32 hexadecimal digits)."""
    return address == "0" * 31 + "1" or address.lower().startswith(("fe8", "fe9", "fea", "feb"))
