"""What limits the numbers of this host, and the command that would help."""

import os
import sys
from collections.abc import Iterator

import msgspec

from pathbudget.agents.doctor.examination import Examination
from pathbudget.agents.doctor.words import duration
from pathbudget.probes.host_device import Device
from pathbudget.probes.record import SyncState

MUCH_STEAL = 0.01
MUCH_HOLDING_NS = 10_000
LONG_SLEEP_US = 50
LATE_NS = 300_000


class Advice(msgspec.Struct, frozen=True):
    """`command` is empty where no command helps."""

    reason: str
    command: str = ""


def advice(found: Examination) -> tuple[Advice, ...]:
    """What hurts most comes first."""
    return (
        *_sockets(found),
        *_stamps(found),
        *_clock(found),
        *(one for device in found.devices for one in _device(device)),
        *_processors(found),
        *_scheduling(found),
    )


def _sockets(found: Examination) -> Iterator[Advice]:
    """Raw sockets are best: the identifier stays ours. Datagram sockets do."""
    icmp = [one for one in found.capabilities if one.name.startswith("ICMP")]
    for kind, loss in (("raw", "ICMP identifiers are the kernel's"), ("datagram", "")):
        refused = [one for one in icmp if f" {kind} " in one.name and one.remedy]
        others = [one for one in icmp if f" {kind} " not in one.name]
        if refused and not any(one.available for one in others):
            yield Advice(f"no ICMP at all: {refused[0].reason}", refused[0].remedy)
        elif refused and loss:
            yield Advice(f"no raw ICMP ({refused[0].reason}): {loss}", refused[0].remedy)


def _stamps(found: Examination) -> Iterator[Advice]:
    if not found.measured:
        yield Advice("nothing comes back from this host to itself", "sudo ip link set lo up")
    elif found.quiet.kernel_ns is None:
        yield Advice("this kernel gives no send stamps: a Linux host or virtual machine would")


def _clock(found: Examination) -> Iterator[Advice]:
    clock = found.clock
    if clock.sync_state is not SyncState.SYNCHRONISED:
        if clock.source in {"", "adjtimex"}:
            reason = "nobody keeps the clock right: no one-way delays"
            yield Advice(reason, "sudo apt-get install chrony")
        else:
            command = {"chrony": "chronyc -n sources", "ntpd": "ntpq -pn"}.get(clock.source, "")
            yield Advice(f"{clock.source} runs and is not synchronised: see its sources", command)
    elif clock.offset_bound_ns is None:
        reason = f"{clock.source} states no error of the clock: no one-way delays"
        yield Advice(reason, "sudo apt-get install chrony")
    if found.kernel_clock is not None and found.kernel_clock.leap:
        yield Advice("a leap second is near: the wall clock will be stepped or slewed")


def _device(device: Device) -> Iterator[Advice]:
    name = device.name
    if (device.coalescing_ns or 0) >= MUCH_HOLDING_NS:
        held = duration(device.coalescing_ns)
        command = f"sudo ethtool -C {name} adaptive-rx off rx-usecs 0"
        yield Advice(f"{name} holds packets back for up to {held} before it interrupts", command)
    if (device.flush_ns or 0) >= MUCH_HOLDING_NS:
        reason = f"{name} may hold packets back for {duration(device.flush_ns)} to join them"
        path = f"/sys/class/net/{name}/gro_flush_timeout"
        yield Advice(reason, f"echo 0 | sudo tee {path}")
    if device.receive_offload:
        reason = f"{name} joins segments of one TCP flow: of a burst one stamp is left"
        yield Advice(reason, f"sudo ethtool -K {name} gro off lro off")


def _processors(found: Examination) -> Iterator[Advice]:
    if found.steal_ratio > MUCH_STEAL:
        share = f"{found.steal_ratio:.0%}"
        yield Advice(f"the hypervisor took {share} of processor time: a dedicated host would help")
    if (found.scheduling.deepest_idle_us or 0) > LONG_SLEEP_US:
        reason = f"processors take {found.scheduling.deepest_idle_us} us to wake up"
        yield Advice(reason, f"sudo cpupower idle-set -D {LONG_SLEEP_US}")
    if found.scheduling.governor == "powersave":
        command = "sudo cpupower frequency-set -g performance"
        yield Advice("the frequency governor saves power", command)


def _scheduling(found: Examination) -> Iterator[Advice]:
    late = found.quiet.send_lateness_p99_ns or 0
    if late > LATE_NS and not found.realtime_allowed:
        program = os.path.realpath(sys.executable)
        command = f"sudo setcap cap_net_raw,cap_sys_nice+ep {program}"
        yield Advice(
            f"sends are up to {duration(late)} late and SCHED_FIFO is not allowed", command
        )
