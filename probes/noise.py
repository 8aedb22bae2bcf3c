"""How fine this host can measure: what it reads where there is nothing to measure."""

from pathlib import Path

from pathbudget.probes.channels import LoopbackTest, Network
from pathbudget.probes.clock import Clock
from pathbudget.probes.host_cpu import STAT, read_ticks, steal_ratio
from pathbudget.probes.record import HOST_BUSY_NS, ClockSource, NoiseFloor

PACKETS = 50
ALARMS = 50
ALARM_GAP_NS = 2_000_000
ENOUGH_STAMPED = 0.9
UNTESTED_NS = HOST_BUSY_NS
"""Floor of a host that could not be tested."""


async def measure_noise_floor(network: Network, clock: Clock, stat: Path = STAT) -> NoiseFloor:
    """Measure the measuring, in under half a second. The rest is for `host_watch.HostWatch`.

    `floor_ns` is twice the 99th percentile (there and back) of a packet's span from one local
    socket to another, by the best clock that nearly all packets had; `UNTESTED_NS` where no packet
    came back (loopback is down), because a host that cannot be tested is no perfect one.
    `steal_ratio` is of the machine's whole life so far where these few hundred milliseconds saw no
    tick.
    """
    before = read_ticks(stat)
    stamp_mode, spans = _best(await _loopback_test(network))
    lateness = await timer_lateness(network, clock)
    return NoiseFloor(
        floor_ns=span_floor_ns(spans) if spans else UNTESTED_NS,
        stamp_mode=stamp_mode,
        timer_lateness_p50_ns=quantile(lateness, 0.5),
        timer_lateness_p99_ns=quantile(lateness, 0.99),
        steal_ratio=steal_ratio(before, read_ticks(stat)),
    )


async def _loopback_test(network: Network) -> LoopbackTest:
    try:
        return await network.loopback_test(PACKETS)
    except OSError:
        return LoopbackTest((), (), ())


def span_floor_ns(spans: tuple[int, ...]) -> int:
    """Twice the 99th percentile: a round trip has two spans, and a p99 leaves outliers to p99s."""
    return 2 * quantile(spans, 0.99)


def _best(test: LoopbackTest) -> tuple[ClockSource, tuple[int, ...]]:
    if stamped_enough(test.kernel_ns, test):
        return ClockSource.KERNEL, test.kernel_ns
    if stamped_enough(test.kernel_receive_ns, test):
        return ClockSource.KERNEL_RECEIVE, test.kernel_receive_ns
    return ClockSource.USER, test.user_ns


def stamped_enough(spans: tuple[int, ...], test: LoopbackTest) -> bool:
    """Whether nearly all packets of the self-test had this kind of stamp."""
    return bool(spans) and len(spans) >= ENOUGH_STAMPED * len(test.user_ns)


async def timer_lateness(network: Network, clock: Clock, alarms: int = ALARMS) -> tuple[int, ...]:
    """How late each of `alarms` alarms rang, two milliseconds apart."""
    due = clock.monotonic_ns()
    lateness: list[int] = []
    for _ in range(alarms):
        due = max(due, clock.monotonic_ns()) + ALARM_GAP_NS
        await network.wait_until(due)
        lateness.append(clock.monotonic_ns() - due)
    return tuple(lateness)


def quantile(values: tuple[int, ...], share: float) -> int:
    """Smallest value with at least `share` of all at or below it (RFC 2330, 11.3)."""
    if not values:
        return 0
    ordered = sorted(values)
    rank = -(-len(ordered) * share // 1)
    return ordered[min(len(ordered), max(1, int(rank))) - 1]
