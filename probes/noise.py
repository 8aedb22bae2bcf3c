"""How fine this host can measure: what it reads where there is nothing to measure."""

from pathlib import Path

from pathbudget.probes.channels import LoopbackTest, Network
from pathbudget.probes.clock import Clock
from pathbudget.probes.record import ClockSource, NoiseFloor

PACKETS = 50
ALARMS = 50
ALARM_GAP_NS = 2_000_000
ENOUGH_STAMPED = 0.9
STAT = Path("/proc/stat")


async def measure_noise_floor(network: Network, clock: Clock, stat: Path = STAT) -> NoiseFloor:
    """Measure the measuring, in under half a second.

    `floor_ns` is twice the 99th percentile (there and back) of a packet's span from one local
    socket to another, by the best clock that nearly all packets had. `steal_ratio` is of the
    machine's whole life so far where these few hundred milliseconds saw no tick.
    """
    before = _cpu_ticks(stat)
    stamp_mode, spans = _best(await network.loopback_test(PACKETS))
    lateness = await _timer_lateness(network, clock)
    return NoiseFloor(
        floor_ns=2 * _quantile(spans, 0.99),
        stamp_mode=stamp_mode,
        timer_lateness_p50_ns=_quantile(lateness, 0.5),
        timer_lateness_p99_ns=_quantile(lateness, 0.99),
        steal_ratio=_steal_ratio(before, _cpu_ticks(stat)),
    )


def _best(test: LoopbackTest) -> tuple[ClockSource, tuple[int, ...]]:
    enough = ENOUGH_STAMPED * len(test.user_ns)
    if test.kernel_ns and len(test.kernel_ns) >= enough:
        return ClockSource.KERNEL, test.kernel_ns
    if test.kernel_receive_ns and len(test.kernel_receive_ns) >= enough:
        return ClockSource.KERNEL_RECEIVE, test.kernel_receive_ns
    return ClockSource.USER, test.user_ns


async def _timer_lateness(network: Network, clock: Clock) -> tuple[int, ...]:
    due = clock.monotonic_ns()
    lateness: list[int] = []
    for _ in range(ALARMS):
        due = max(due, clock.monotonic_ns()) + ALARM_GAP_NS
        await network.wait_until(due)
        lateness.append(clock.monotonic_ns() - due)
    return tuple(lateness)


def _quantile(values: tuple[int, ...], share: float) -> int:
    """Smallest value with at least `share` of all at or below it (RFC 2330, 11.3)."""
    if not values:
        return 0
    ordered = sorted(values)
    rank = -(-len(ordered) * share // 1)
    return ordered[min(len(ordered), max(1, int(rank))) - 1]


def _cpu_ticks(stat: Path) -> tuple[int, int] | None:
    """All ticks and stolen ticks of all processors (proc_stat(5)); None where it is not said."""
    try:
        fields = [int(word) for word in stat.read_text().split("\n", 1)[0].split()[1:9]]
    except (OSError, ValueError):
        return None
    return (sum(fields), fields[7]) if len(fields) == 8 else None


def _steal_ratio(before: tuple[int, int] | None, after: tuple[int, int] | None) -> float:
    if before is None or after is None:
        return 0.0
    total, stolen = after[0] - before[0], after[1] - before[1]
    if total <= 0 or stolen < 0:
        total, stolen = after
    return min(1.0, stolen / total) if total > 0 else 0.0
