"""Everything that is known of this host's measuring, as one record."""

import asyncio
import contextlib
import os
import platform
import threading

import msgspec

from pathbudget.agents.doctor.measuring import Figures, measure
from pathbudget.agents.version import software_name
from pathbudget.probes.capabilities import Capability, report
from pathbudget.probes.channels import Network
from pathbudget.probes.clock import Clock
from pathbudget.probes.clock_quality import KernelTime, read_adjtimex, survey_clock
from pathbudget.probes.host_cpu import (
    Scheduling,
    read_scheduling,
    read_ticks,
    steal_ratio,
    virtual_machine,
)
from pathbudget.probes.host_device import Device, read_devices
from pathbudget.probes.record import ClockQuality


class Examination(msgspec.Struct, frozen=True):
    """The findings, without a judgement. `quiet` and `busy` are the two phases of measuring."""

    software: str
    kernel: str
    virtual: str
    seconds: float
    quiet: Figures
    busy: Figures
    steal_ratio: float
    scheduling: Scheduling
    realtime_allowed: bool
    devices: tuple[Device, ...]
    clock: ClockQuality
    kernel_clock: KernelTime | None
    capabilities: tuple[Capability, ...]

    @property
    def measured(self) -> bool:
        """Whether there is any number at all."""
        return self.quiet.user_ns is not None or self.quiet.tcp_info_ns is not None

    @property
    def hold_ns(self) -> int:
        """Longest time that a device on the way out may hold a packet back."""
        return max((device.hold_ns or 0 for device in self.devices), default=0)


async def examine(network: Network, clock: Clock, seconds: float) -> Examination:
    """Look at everything; measures for `seconds`, half of them with a busy event loop."""
    quality = await asyncio.to_thread(survey_clock)
    before = read_ticks()
    quiet = await measure(network, clock, seconds / 2, busy=False)
    busy = await measure(network, clock, seconds / 2, busy=True)
    return Examination(
        software=software_name(),
        kernel=platform.release(),
        virtual=virtual_machine(),
        seconds=seconds,
        quiet=quiet,
        busy=busy,
        steal_ratio=steal_ratio(before, read_ticks()),
        scheduling=read_scheduling(),
        realtime_allowed=realtime_allowed(),
        devices=read_devices(),
        clock=quality,
        kernel_clock=read_adjtimex(),
        capabilities=report(),
    )


def realtime_allowed() -> bool:
    """Whether SCHED_FIFO may be taken, tried in a thread that ends at once."""
    allowed: list[bool] = []

    def try_it() -> None:
        with contextlib.suppress(OSError):
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
            allowed.append(True)

    thread = threading.Thread(target=try_it)
    thread.start()
    thread.join()
    return bool(allowed)
