"""What may be said of numbers that are measured on this host."""

import msgspec

from pathbudget.agents.doctor.examination import Examination
from pathbudget.agents.doctor.words import duration
from pathbudget.probes.record import ClockSource, SyncState

ROUND_TRIPS = "round trips"
NAMES = {
    ClockSource.KERNEL: "by kernel stamps",
    ClockSource.KERNEL_RECEIVE: "by kernel receive stamps",
    ClockSource.USER: "by the user clock",
}


class Claim(msgspec.Struct, frozen=True):
    """One kind of number: whether it can be claimed here, and how exactly.

    `noise_ns` is the difference below which it is noise, or the stated error of a one-way delay.
    """

    number: str
    holds: bool
    text: str
    noise_ns: int | None = None


def claims(found: Examination) -> tuple[Claim, ...]:
    """All of them, the best first. The worse of the two phases counts: agents are busy."""
    return (
        _round_trips(found),
        _noise("TCP connects (TCP_INFO)", found.quiet.tcp_info_ns, found.busy.tcp_info_ns, found),
        _send_times(found),
        _variation(found),
        _one_way(found),
    )


def best_source(found: Examination) -> ClockSource:
    """The best clock that ICMP and UDP probes have here."""
    if found.quiet.kernel_ns is not None:
        return ClockSource.KERNEL
    if found.quiet.kernel_receive_ns is not None:
        return ClockSource.KERNEL_RECEIVE
    return ClockSource.USER


def _round_trips(found: Examination) -> Claim:
    source = best_source(found)
    field = f"{source}_ns"
    quiet, busy = getattr(found.quiet, field), getattr(found.busy, field)
    return _noise(f"{ROUND_TRIPS} {NAMES[source]}", quiet, busy, found)


def _noise(number: str, quiet: int | None, busy: int | None, found: Examination) -> Claim:
    if quiet is None:
        return Claim(number, holds=False, text="not measured here")
    noise_ns = max(quiet, busy or 0) + found.hold_ns
    text = f"differences under {duration(noise_ns)} are noise here"
    return Claim(number, holds=True, text=text, noise_ns=noise_ns)


def _send_times(found: Examination) -> Claim:
    late = found.quiet.send_lateness_p99_ns
    if late is None:
        return Claim("send times", holds=False, text="not measured here")
    busy = found.busy.send_lateness_p99_ns or late
    text = f"99 % within {duration(late)} (busy loop: {duration(busy)})"
    return Claim("send times", holds=True, text=text, noise_ns=late)


def _variation(found: Examination) -> Claim:
    """Constant offsets cancel (RFC 3393); the rate is removed by the analysis."""
    holds = best_source(found) is ClockSource.KERNEL
    text = "yes, without synchronised clocks" if holds else "blurred: no kernel send stamps"
    return Claim("variation per direction", holds=holds, text=text)


def _one_way(found: Examination) -> Claim:
    clock, number = found.clock, "one-way delays"
    if clock.sync_state is not SyncState.SYNCHRONISED:
        return Claim(number, holds=False, text="no: nobody keeps this clock right")
    if clock.offset_bound_ns is None:
        return Claim(number, holds=False, text=f"no: {clock.source} states no error of the clock")
    error = duration(clock.offset_bound_ns)
    text = f"to {error} ({clock.source}), and the other end's error"
    return Claim(number, holds=True, text=text, noise_ns=clock.offset_bound_ns)
