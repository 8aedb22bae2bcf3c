"""Intervals that no clock step can change."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.probes.clock import (
    ClockWatcher,
    Reading,
    SystemClock,
    measure_interval,
    read_both,
    step_between,
)
from pathbudget.probes.fake_time import FakeClock
from pathbudget.probes.record import ClockSource

HOUR_NS = 3_600_000_000_000
MILLISECOND_NS = 1_000_000


class SteppedSystemClock(SystemClock):
    """The real clocks, with a wall clock that somebody sets."""

    def __init__(self) -> None:
        self.offset_ns = 0

    def unix_ns(self) -> int:
        return super().unix_ns() + self.offset_ns


class SlowClock:
    """A clock whose readings are far apart, as when the process is preempted between them."""

    def __init__(self, gaps_ns: list[int]) -> None:
        self._gaps_ns = gaps_ns
        self._now_ns = 1_000_000_000

    def monotonic_ns(self) -> int:
        self._now_ns += self._gaps_ns.pop(0) if self._gaps_ns else 100
        return self._now_ns

    def unix_ns(self) -> int:
        return self.monotonic_ns() + HOUR_NS


def test_a_reading_is_the_tightest_of_several() -> None:
    clock = SlowClock([0, 4_000_000, 4_000_000, 0, 500, 500])
    reading = read_both(clock)
    assert reading.error_ns == 1_000
    assert reading.offset_ns == pytest.approx(HOUR_NS, abs=1_000)


def test_preemption_between_the_readings_is_no_step() -> None:
    calm = Reading(1_000, HOUR_NS + 1_000, 100)
    preempted = Reading(5_000_000, HOUR_NS + 5_000_000 + 900_000, 1_000_000)
    assert step_between(calm, preempted) == 0


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS, 5 * MILLISECOND_NS, -5 * MILLISECOND_NS])
def test_the_watcher_counts_steps_and_keeps_the_largest(step_ns: int) -> None:
    clock = FakeClock()
    watcher = ClockWatcher(clock)
    clock.advance(MILLISECOND_NS)
    watcher.read()
    assert watcher.steps == 0
    clock.step(step_ns)
    watcher.read()
    clock.step(-step_ns // 5)
    watcher.read()
    watcher.read()
    assert watcher.steps == 2
    assert watcher.largest_step_ns == abs(step_ns)


def test_the_watcher_sees_a_step_of_the_real_clock() -> None:
    clock = SteppedSystemClock()
    watcher = ClockWatcher(clock)
    for _ in range(100):
        watcher.read()
    assert watcher.steps == 0
    clock.offset_ns = HOUR_NS
    watcher.read()
    assert watcher.steps == 1
    assert watcher.largest_step_ns == pytest.approx(HOUR_NS, rel=1e-6)


def readings(span_ns: int, step_ns: int = 0) -> tuple[Reading, Reading]:
    sent = Reading(1_000_000, HOUR_NS, 0)
    return sent, Reading(1_000_000 + span_ns, HOUR_NS + span_ns + step_ns, 0)


def test_kernel_stamps_are_best() -> None:
    sent, received = readings(5_000_000)
    span = measure_interval(sent, received, HOUR_NS + 10_000, HOUR_NS + 3_010_000)
    assert span == (3_000_000, ClockSource.KERNEL, False)


def test_without_a_send_stamp_the_user_reading_stands_for_it() -> None:
    sent, received = readings(5_000_000)
    span = measure_interval(sent, received, None, HOUR_NS + 3_010_000)
    assert span == (3_010_000, ClockSource.KERNEL_RECEIVE, False)


@pytest.mark.parametrize("kernel_sent", [None, HOUR_NS + 10_000])
def test_without_a_receive_stamp_the_monotonic_clock_counts(kernel_sent: int | None) -> None:
    sent, received = readings(5_000_000)
    span = measure_interval(sent, received, kernel_sent, None)
    assert span == (5_000_000, ClockSource.USER, False)


@pytest.mark.parametrize("step_ns", [HOUR_NS, -HOUR_NS, MILLISECOND_NS, -MILLISECOND_NS])
@pytest.mark.parametrize("where", ["before the reply", "after the reply", "no stamps"])
def test_a_step_never_enters_the_value(step_ns: int, where: str) -> None:
    sent, received = readings(5_000_000, step_ns)
    before = step_ns if where == "before the reply" else 0
    stamps = (None, None) if where == "no stamps" else (HOUR_NS, HOUR_NS + 3_000_000 + before)
    span = measure_interval(sent, received, *stamps)
    assert span == (5_000_000, ClockSource.USER, True)


@pytest.mark.parametrize("there_ns", [HOUR_NS, -HOUR_NS])
def test_a_step_there_and_back_between_the_readings_is_seen_by_the_stamps(there_ns: int) -> None:
    sent, received = readings(5_000_000)
    span = measure_interval(sent, received, HOUR_NS + 10_000, HOUR_NS + 3_000_000 + there_ns)
    assert span == (5_000_000, ClockSource.USER, True)


def test_a_stamp_of_an_earlier_packet_is_not_believed() -> None:
    sent, received = readings(5_000_000)
    span = measure_interval(sent, received, HOUR_NS - 1_000_000, HOUR_NS + 3_000_000)
    assert span.value_ns == 5_000_000
    assert span.source is ClockSource.USER


@given(
    span_ns=st.integers(0, 10**12),
    step_ns=st.integers(-(10**13), 10**13),
    kernel_sent=st.one_of(st.none(), st.integers(-(10**13), 10**13)),
    kernel_received=st.one_of(st.none(), st.integers(-(10**13), 10**13)),
)
def test_no_interval_is_negative_or_longer_than_the_one_that_encloses_it(
    span_ns: int, step_ns: int, kernel_sent: int | None, kernel_received: int | None
) -> None:
    sent, received = readings(span_ns, step_ns)
    stamps = [
        None if stamp is None else HOUR_NS + stamp for stamp in (kernel_sent, kernel_received)
    ]
    span = measure_interval(sent, received, *stamps)
    assert 0 <= span.value_ns <= span_ns + 20_000
