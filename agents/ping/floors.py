"""The noise floor of each clock that numbers come from: the rows of one view may use several."""

from collections.abc import Mapping

from pathbudget.agents.ping.host_state import HostState
from pathbudget.probes.channels import Network
from pathbudget.probes.noise import PACKETS, UNTESTED_NS, span_floor_ns, stamped_enough
from pathbudget.probes.record import ClockSource, NoiseFloor

MATTERS = 0.01
"""A clock that so few samples of a row were read from is not in its percentiles."""
RESOLUTION_NS = 1_000
"""TCP_INFO counts microseconds."""

Floors = Mapping[str, int]
"""Nanoseconds by clock source. A difference below is noise."""


async def measure_floors(network: Network) -> Floors:
    """The self-test of `probes.noise`, for each clock by itself. A clock that this host lacks, or
    whose test failed, has the floor of the next worse one.
    """
    try:
        test = await network.loopback_test(PACKETS)
    except OSError:
        return dict.fromkeys(ClockSource, UNTESTED_NS)
    user = span_floor_ns(test.user_ns) if test.user_ns else UNTESTED_NS
    received = test.kernel_receive_ns
    receive = span_floor_ns(received) if stamped_enough(received, test) else user
    both = test.kernel_ns
    kernel = span_floor_ns(both) if stamped_enough(both, test) else receive
    return {
        ClockSource.KERNEL: kernel,
        ClockSource.TCP_INFO: kernel + RESOLUTION_NS,
        ClockSource.KERNEL_RECEIVE: receive,
        ClockSource.USER: user,
    }


def with_host(floors: Floors, host: NoiseFloor | None) -> Floors:
    """The same with what was seen of this host since (docs/metrics.md, The floor): how long its
    device holds packets back, and for stamps of user space how late its loop was.
    """
    if host is None:
        return floors
    held, late = host.coalescing_ns or 0, host.send_lateness_p99_ns or 0
    return {
        source: floor + held + (late if source == ClockSource.USER else 0)
        for source, floor in floors.items()
    }


def floor_of(state: HostState, floors: Floors) -> int | None:
    """The worst of the clocks that the numbers of a row come from; of all where it has none yet."""
    if not floors:
        return None
    worst = max(floors.values())
    matter = MATTERS * state.answers.n
    used = [floors.get(source, worst) for source, n in state.clocks.items() if n >= matter]
    return max(used, default=worst)
