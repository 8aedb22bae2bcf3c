"""The examination as text of 80 columns, in words alone."""

import textwrap
from collections.abc import Iterator

from pathbudget.agents.doctor.advice import Advice
from pathbudget.agents.doctor.claims import Claim
from pathbudget.agents.doctor.examination import Examination
from pathbudget.agents.doctor.words import duration
from pathbudget.probes.host_device import Device
from pathbudget.probes.record import SyncState

WIDTH = 80
NAME = 32
FIGURES = (
    ("floor by kernel stamps", "kernel_ns"),
    ("floor by TCP_INFO", "tcp_info_ns"),
    ("floor by kernel receive stamps", "kernel_receive_ns"),
    ("floor by the user clock", "user_ns"),
    ("send lateness p50", "send_lateness_p50_ns"),
    ("send lateness p99", "send_lateness_p99_ns"),
    ("receive lag p99", "receive_lag_p99_ns"),
)


def as_text(found: Examination, claimed: tuple[Claim, ...], advised: tuple[Advice, ...]) -> str:
    """Claims first, then what they rest on, then what would help."""
    lines = [
        _title(found),
        "",
        "What this host can claim:",
        *(line for claim in claimed for line in _row(claim.number, claim.text)),
        "",
        *_row(f"Measured in {found.seconds:g} s:", f"{'quiet':>10}{'busy loop':>14}", indent=""),
        *(line for name, field in FIGURES for line in _figure(found, name, field)),
        "",
        "This host:",
        *(line for name, text in _host(found) for line in _row(name, text)),
    ]
    if advised:
        lines += ["", "What would help:", *(line for one in advised for line in _advice(one))]
    return "\n".join(lines)


def _title(found: Examination) -> str:
    where = f", {found.virtual}" if found.virtual else ""
    return textwrap.shorten(f"{found.software} on Linux {found.kernel}{where}", WIDTH)


def _row(name: str, text: str, indent: str = "  ") -> Iterator[str]:
    """A name and what is so, wrapped in its own column."""
    parts = textwrap.wrap(text, WIDTH - NAME, drop_whitespace=False) or ["-"]
    yield f"{indent}{name}".ljust(NAME) + parts[0].rstrip()
    for part in parts[1:]:
        yield " " * NAME + part.strip()


def _figure(found: Examination, name: str, field: str) -> Iterator[str]:
    quiet, busy = getattr(found.quiet, field), getattr(found.busy, field)
    yield from _row(name, f"{duration(quiet):>10}{duration(busy):>14}")


def _host(found: Examination) -> Iterator[tuple[str, str]]:
    for one in found.capabilities:
        if one.name != "clock discipline":
            yield one.name, f"{'yes' if one.available else 'no'}: {one.reason}"
    yield "clock", _clock(found)
    yield "steal time", f"{found.steal_ratio:.1%} of processor time"
    for device in found.devices:
        yield f"device {device.name}", _device(device)
    yield "SCHED_FIFO", _realtime(found)
    yield "timer slack", f"{duration(found.scheduling.timer_slack_ns)} (precise timers ignore it)"
    if found.scheduling.deepest_idle_us is not None:
        yield "wake-up from deepest idle", duration(found.scheduling.deepest_idle_us * 1_000)
    if found.scheduling.governor:
        yield "frequency governor", found.scheduling.governor


def _clock(found: Examination) -> str:
    clock, kernel = found.clock, found.kernel_clock
    parts = [f"{clock.sync_state} ({clock.source or 'nobody says'})"]
    if clock.sync_state is SyncState.SYNCHRONISED:
        parts.append(f"error at most {duration(clock.offset_bound_ns)}")
        parts.append(f"expected {duration(clock.estimated_error_ns)}")
    if kernel is not None and kernel.tai_offset:
        parts.append(f"TAI - UTC {kernel.tai_offset} s")
    if kernel is not None and kernel.leap:
        parts.append(f"leap second: {kernel.leap}")
    return ", ".join(parts)


def _device(device: Device) -> str:
    words = {None: "unknown", True: "on", False: "off"}
    stamps = {None: "unknown", True: "yes", False: "no"}
    return (
        f"coalescing {duration(device.coalescing_ns)}, "
        f"GRO or LRO {words[device.receive_offload]}, "
        f"hardware stamps {stamps[device.hardware_stamps]}"
    )


def _realtime(found: Examination) -> str:
    if not found.realtime_allowed:
        return "not allowed"
    share = found.scheduling.realtime_share
    return "allowed" if share is None else f"allowed, for up to {share:.0%} of each period"


def _advice(one: Advice) -> Iterator[str]:
    yield from textwrap.wrap(one.reason, WIDTH, initial_indent="  ", subsequent_indent="    ")
    if one.command:
        yield f"      {one.command}"
