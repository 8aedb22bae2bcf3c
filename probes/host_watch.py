"""How far to trust this host, from the first packet of a run to the last.

watch = HostWatch(network, clock)
await watch.begin()                  once, before the first packet: the self-test
watch.note_send_lateness(ns)         for each probe that left
watch.note_receive_lag(ns)           for each answer that the kernel had stamped
watch.look()                         every few seconds: what was so since the look before
watch.floor()                        at any time: what was so since the beginning
"""

from pathlib import Path

import msgspec

from pathbudget.probes.channels import Network
from pathbudget.probes.clock import Clock
from pathbudget.probes.host_cpu import STAT, read_ticks, steal_ratio
from pathbudget.probes.host_device import Device, read_devices
from pathbudget.probes.host_histogram import DelayHistogram, together
from pathbudget.probes.noise import measure_noise_floor
from pathbudget.probes.record import ClockSource, NoiseFloor

TAIL = 0.99


class HostWatch:
    """Watches the host for one event loop; costs nothing where nothing is sent.

    `devices` are those that the probes leave through; those of the default routes where not given.
    """

    def __init__(
        self,
        network: Network,
        clock: Clock,
        *,
        devices: tuple[Device, ...] | None = None,
        stat: Path = STAT,
    ) -> None:
        self._network = network
        self._clock = clock
        self._devices = devices
        self._stat = stat
        self._self_test: NoiseFloor | None = None
        self._first_ticks = self._last_ticks = read_ticks(stat)
        self._sent, self._sent_before = DelayHistogram(), DelayHistogram()
        self._read, self._read_before = DelayHistogram(), DelayHistogram()
        # The histogram's own methods, without a call in between: they run once per packet.
        self.note_send_lateness = self._sent.note
        """Count how long after its due time a probe left, in nanoseconds."""
        self.note_receive_lag = self._read.note
        """Count how long after the kernel's receive stamp an answer was read, in nanoseconds."""

    async def begin(self) -> NoiseFloor:
        """Measure the measuring, in under half a second, and begin to count."""
        self._self_test = await measure_noise_floor(self._network, self._clock, self._stat)
        if self._devices is None:
            self._devices = read_devices()
        self._first_ticks = self._last_ticks = read_ticks(self._stat)
        return self._judge(self._self_test.steal_ratio, self._sent, self._read)

    def look(self) -> NoiseFloor:
        """What was so since the look before (or the beginning). Takes under half a millisecond."""
        before, self._last_ticks = self._last_ticks, read_ticks(self._stat)
        seen = self._judge(steal_ratio(before, self._last_ticks), self._sent, self._read)
        self._sent_before.add(self._sent)
        self._read_before.add(self._read)
        self._sent.clear()
        self._read.clear()
        return seen

    def floor(self) -> NoiseFloor:
        """What was so since the beginning. May be asked any number of times."""
        stolen = steal_ratio(self._first_ticks, read_ticks(self._stat))
        sent = together(self._sent, self._sent_before)
        return self._judge(stolen, sent, together(self._read, self._read_before))

    def _judge(self, stolen: float, sent: DelayHistogram, read: DelayHistogram) -> NoiseFloor:
        if self._self_test is None:
            raise RuntimeError("HostWatch.begin() was not awaited")
        return judge(self._self_test, self._devices or (), stolen, sent, read)


def judge(
    self_test: NoiseFloor,
    devices: tuple[Device, ...],
    stolen: float,
    sent: DelayHistogram,
    read: DelayHistogram,
) -> NoiseFloor:
    """The self-test together with what was seen since (docs/metrics.md, The floor).

    Kernel stamps: the self-test's floor and the longest time that a device may hold a packet back
    before the kernel can stamp it. Stamps of user space: also the 99th percentile of how late
    this host's loop was, because a loop that sends late reads late.
    """
    held = [device.hold_ns for device in devices if device.hold_ns is not None]
    joined = [device.receive_offload for device in devices if device.receive_offload is not None]
    late = sent.quantile(TAIL)
    floor_ns = self_test.floor_ns + max(held, default=0)
    if self_test.stamp_mode is ClockSource.USER:
        floor_ns += late or 0
    return msgspec.structs.replace(
        self_test,
        floor_ns=floor_ns,
        steal_ratio=stolen,
        send_lateness_p99_ns=late,
        receive_lag_p99_ns=read.quantile(TAIL),
        coalescing_ns=max(held, default=None),
        receive_offload=any(joined) if joined else None,
    )
