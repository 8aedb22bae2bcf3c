"""The host, watched through a run: quantiles in constant memory, steal, and what the floor is."""

import errno
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.probes.channels import LoopbackTest
from pathbudget.probes.clock import SystemClock
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.host_cpu import CpuTicks, read_scheduling, read_ticks, steal_ratio
from pathbudget.probes.host_device import Device
from pathbudget.probes.host_histogram import BUCKETS, LONGEST_NS, DelayHistogram, together
from pathbudget.probes.host_watch import HostWatch
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.noise import UNTESTED_NS
from pathbudget.probes.record import ClockSource

PLAIN = (Device("eth0", coalescing_ns=0, flush_ns=0, receive_offload=False),)
STAT = "cpu {} 0 0 0 0 0 0 {} 0 0\ncpu0 1 2\n"


@settings(max_examples=60)
@given(st.lists(st.integers(0, LONGEST_NS - 1), min_size=1, max_size=80), st.floats(0.01, 1))
def test_a_quantile_is_never_too_small_and_too_large_by_a_sixteenth(
    values: list[int], share: float
) -> None:
    histogram = DelayHistogram()
    for value in values:
        histogram.note(value)
    exact = sorted(values)[max(1, -int(-len(values) * share // 1)) - 1]
    found = histogram.quantile(share)
    assert found is not None
    assert exact <= found <= exact + exact // 16


@settings(max_examples=30)
@given(st.lists(st.integers(0, 10**12)), st.lists(st.integers(0, 10**12)))
def test_histograms_together_are_the_histogram_of_all(one: list[int], other: list[int]) -> None:
    parts = [DelayHistogram(), DelayHistogram(), DelayHistogram()]
    for histogram, values in zip(parts, (one, other, one + other), strict=True):
        for value in values:
            histogram.note(value)
    assert together(parts[0], parts[1]).counts == parts[2].counts
    assert parts[2].total == len(one) + len(other)


def test_memory_does_not_grow_with_samples() -> None:
    histogram = DelayHistogram()
    for value in range(0, 10**6, 7):
        histogram.note(value)
    assert len(histogram.counts) == BUCKETS < 1_000


def test_pitfall_15_negative_and_absurd_delays_neither_count_as_zero_nor_break() -> None:
    """Clocks that were stepped, hosts that were suspended (icmplib#29, libudx#198)."""
    histogram = DelayHistogram()
    for value in (-1, -(2**70)):
        histogram.note(value)
    assert histogram.quantile(0.5) is None
    histogram.note(2**80)
    assert histogram.quantile(0.5) == LONGEST_NS - 1
    histogram.clear()
    assert histogram.total == 0


def watch(
    folder: Path,
    devices: tuple[Device, ...] = PLAIN,
    *,
    send_stamps: bool = True,
    receive_stamps: bool = True,
) -> HostWatch:
    clock = FakeClock(jumps=True)
    network = FakeNetwork(clock, send_stamps=send_stamps, receive_stamps=receive_stamps)
    (folder / "stat").write_text(STAT.format(1000, 0))
    return HostWatch(network, clock, devices=devices, stat=folder / "stat")


async def test_a_look_is_of_the_time_since_the_look_before(tmp_path: Path) -> None:
    host = watch(tmp_path)
    began = await host.begin()
    assert (began.send_lateness_p99_ns, began.receive_lag_p99_ns) == (None, None)
    for _ in range(100):
        host.note_send_lateness(1_000)
        host.note_receive_lag(2_000)
    (tmp_path / "stat").write_text(STAT.format(1090, 10))
    first = host.look()
    assert first.send_lateness_p99_ns == pytest.approx(1_000, rel=0.07)
    assert first.receive_lag_p99_ns == pytest.approx(2_000, rel=0.07)
    assert first.steal_ratio == 0.1
    for _ in range(100):
        host.note_send_lateness(9_000)
    (tmp_path / "stat").write_text(STAT.format(1190, 10))
    second = host.look()
    assert second.send_lateness_p99_ns == pytest.approx(9_000, rel=0.07)
    assert second.receive_lag_p99_ns is None
    assert second.steal_ratio == 0
    whole = host.floor()
    assert whole.send_lateness_p99_ns == second.send_lateness_p99_ns
    assert whole.receive_lag_p99_ns == first.receive_lag_p99_ns
    assert whole.steal_ratio == 0.05
    assert host.floor() == whole


async def test_what_was_not_looked_at_yet_is_in_the_floor(tmp_path: Path) -> None:
    host = watch(tmp_path)
    await host.begin()
    host.note_send_lateness(5_000)
    assert host.floor().send_lateness_p99_ns is not None
    assert host.look().send_lateness_p99_ns == host.floor().send_lateness_p99_ns


def test_a_watch_that_was_not_begun_says_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="begin"):
        watch(tmp_path).floor()


@pytest.mark.parametrize(
    ("send_stamps", "receive_stamps", "floor_ns"),
    [(True, True, 4_000), (False, True, 4_000), (False, False, 4_000 + 10_485_759)],
)
async def test_pitfall_16_a_busy_host_raises_the_floor_only_where_its_own_clock_was_used(
    send_stamps: bool, receive_stamps: bool, floor_ns: int, tmp_path: Path
) -> None:
    """RTT inflated by load or by a shared receive loop (icmplib#15, fping#97)."""
    host = watch(tmp_path, send_stamps=send_stamps, receive_stamps=receive_stamps)
    await host.begin()
    for _ in range(100):
        host.note_send_lateness(10_000_000)
        if receive_stamps:
            host.note_receive_lag(12_000_000)
    seen = host.look()
    assert seen.floor_ns == floor_ns
    assert seen.send_lateness_p99_ns == 10_485_759
    assert (seen.receive_lag_p99_ns is not None) is receive_stamps


@pytest.mark.parametrize(
    ("devices", "floor_ns", "coalescing_ns", "offload"),
    [
        ((), 4_000, None, None),
        ((Device("eth0"),), 4_000, None, None),
        ((Device("eth0", 50_000, 0, True),), 54_000, 50_000, True),
        ((Device("eth0", None, 20_000, False),), 24_000, 20_000, False),
        ((Device("a", 8_000, 0, False), Device("b", 30_000, 20_000, None)), 54_000, 50_000, False),
    ],
)
async def test_a_device_that_holds_packets_back_is_in_the_floor(
    devices: tuple[Device, ...],
    floor_ns: int,
    coalescing_ns: int | None,
    offload: bool | None,
    tmp_path: Path,
) -> None:
    host = watch(tmp_path, devices)
    found = await host.begin()
    assert (found.floor_ns, found.coalescing_ns) == (floor_ns, coalescing_ns)
    assert found.receive_offload is offload


class NoLoopback(FakeNetwork):
    """A network namespace whose loopback device is down, or a host too busy to get anything."""

    async def loopback_test(self, packets: int) -> LoopbackTest:
        raise OSError(errno.ENETUNREACH, "Network is unreachable")


async def test_a_host_that_cannot_be_tested_is_no_perfect_one() -> None:
    clock = FakeClock(jumps=True)
    found = await HostWatch(NoLoopback(clock), clock, devices=()).begin()
    assert (found.floor_ns, found.stamp_mode) == (UNTESTED_NS, ClockSource.USER)


async def test_this_host() -> None:
    network = SystemNetwork()
    host = HostWatch(network, SystemClock())
    began = await host.begin()
    host.note_send_lateness(70_000)
    seen = host.look()
    network.close()
    assert began.floor_ns > 0
    assert began.stamp_mode is ClockSource.KERNEL
    assert seen.send_lateness_p99_ns is not None
    assert 0 <= seen.steal_ratio <= 1


def test_steal_between_two_looks() -> None:
    assert steal_ratio(CpuTicks(100, 10), CpuTicks(200, 35)) == 0.25
    assert steal_ratio(CpuTicks(100, 10), CpuTicks(100, 10)) == 0.1  # no tick: of all its life
    assert steal_ratio(None, CpuTicks(1, 1)) == 0


def test_ticks_of_a_stat_that_says_little(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    for text in ("", "cpu", "cpu 1 2 3", "cpu a b c d e f g h", "\xff\xfe"):
        stat.write_text(text, encoding="latin-1")
        assert read_ticks(stat) is None
    assert read_ticks(tmp_path / "missing") is None


def test_scheduling_as_the_kernel_says_it(tmp_path: Path) -> None:
    (tmp_path / "sys/kernel").mkdir(parents=True)
    (tmp_path / "sys/kernel/sched_rt_runtime_us").write_text("950000\n")
    (tmp_path / "sys/kernel/sched_rt_period_us").write_text("1000000\n")
    cpu = tmp_path / "devices/system/cpu/cpu0"
    for number, (wait_us, disabled) in enumerate(((2, 0), (133, 0), (890, 1))):
        state = cpu / "cpuidle" / f"state{number}"
        state.mkdir(parents=True)
        (state / "latency").write_text(f"{wait_us}\n")
        (state / "disable").write_text(f"{disabled}\n")
    (cpu / "cpufreq").mkdir()
    (cpu / "cpufreq/scaling_governor").write_text("powersave\n")
    found = read_scheduling(tmp_path, tmp_path)
    assert (found.realtime_share, found.deepest_idle_us) == (0.95, 133)
    assert found.governor == "powersave"
    assert found.timer_slack_ns is None or found.timer_slack_ns > 0
    (tmp_path / "sys/kernel/sched_rt_runtime_us").write_text("-1\n")
    assert read_scheduling(tmp_path, tmp_path).realtime_share == 1
    nothing = read_scheduling(tmp_path / "missing", tmp_path / "missing")
    assert (nothing.realtime_share, nothing.deepest_idle_us, nothing.governor) == (None, None, "")
