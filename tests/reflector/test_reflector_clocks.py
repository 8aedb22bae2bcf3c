"""Clocks that are wrong on purpose, by exactly as much as asked."""

import asyncio
import threading

import pytest

from pathbudget.agents.reflector.clock_error import AGED_NS, Claiming, host_error_ns
from pathbudget.agents.reflector.clocks import HostClock, Skew, SkewedClock
from pathbudget.probes.fake_time import FakeClock
from pathbudget.probes.record import ClockQuality, SyncState

SECOND = 1_000_000_000
START = 1_700_000_000 * SECOND


def skewed(skew: Skew) -> SkewedClock:
    return SkewedClock(FakeClock(), skew, START)


def test_the_clock_of_the_host_changes_no_stamp() -> None:
    clock = FakeClock()
    assert HostClock(clock).of_kernel(START) == START
    assert HostClock(clock).unix_ns() == clock.unix_ns()


def test_an_offset_moves_every_stamp_alike() -> None:
    clock = skewed(Skew(offset_ns=-3_000))
    assert [clock.of_kernel(START + at) - START for at in (0, SECOND)] == [-3_000, SECOND - 3_000]


def test_a_fast_clock_gains_its_parts_per_million() -> None:
    clock = skewed(Skew(ppm=80))
    assert clock.of_kernel(START) == START
    assert clock.of_kernel(START + 100 * SECOND) == START + 100 * SECOND + 8_000_000


def test_a_step_happens_once_at_its_time() -> None:
    clock = skewed(Skew(step_ns=5_000_000, step_after_ns=10 * SECOND))
    assert clock.of_kernel(START + 10 * SECOND - 1) == START + 10 * SECOND - 1
    assert clock.of_kernel(START + 10 * SECOND) == START + 10 * SECOND + 5_000_000
    assert clock.of_kernel(START + 20 * SECOND) == START + 20 * SECOND + 5_000_000


def test_own_readings_and_kernel_stamps_show_the_same_clock() -> None:
    true = FakeClock()
    clock = SkewedClock(true, Skew(offset_ns=7, ppm=-40), true.unix_ns() - SECOND)
    assert clock.unix_ns() == clock.of_kernel(true.unix_ns())
    assert clock.monotonic_ns() == true.monotonic_ns()


@pytest.mark.parametrize(
    ("quality", "claimed"),
    [
        (ClockQuality(SyncState.SYNCHRONISED, "chrony", 30_000), 30_000 + AGED_NS),
        (ClockQuality(SyncState.SYNCHRONISED, "adjtimex", None), None),
        (ClockQuality(SyncState.UNSYNCHRONISED, "ntpd", 30_000), None),
        (ClockQuality(), None),
    ],
)
def test_an_error_is_claimed_only_where_somebody_vouches_for_a_bound(
    quality: ClockQuality, claimed: int | None
) -> None:
    assert host_error_ns(lambda: quality) == claimed
    assert AGED_NS == 240_000


class Asked:
    """A time daemon that answers when it is let, and what was claimed."""

    def __init__(self) -> None:
        self.let = threading.Semaphore(0)
        self.times = 0
        self.claimed: list[int | None] = []

    def ask(self) -> int | None:
        self.times += 1
        assert self.let.acquire(timeout=20)
        return 1_000 * self.times

    async def until(self, times: int, claims: int) -> None:
        async with asyncio.timeout(20):
            while self.times < times or len(self.claimed) < claims:  # noqa: ASYNC110 (a thread)
                await asyncio.sleep(0.005)


async def test_once_the_clock_was_set_nothing_is_claimed_until_it_was_asked_again() -> None:
    clock, asked = FakeClock(), Asked()
    claiming = Claiming(clock, asked.ask, asked.claimed.append)
    keeping = asyncio.create_task(claiming.keep())
    asked.let.release()
    await asked.until(1, 1)
    claiming.look()
    assert asked.claimed == [1_000]
    clock.step(SECOND)
    claiming.look()
    assert asked.claimed == [1_000, None]
    await asked.until(2, 2)  # asked at once, not in 16 s
    clock.step(-SECOND)  # while the daemon makes up its mind: what it says then is void
    asked.let.release()
    await asked.until(3, 3)
    assert asked.claimed == [1_000, None, None]
    asked.let.release()
    await asked.until(3, 4)
    assert asked.claimed[3:] == [3_000]
    keeping.cancel()


def test_what_a_lab_makes_wrong_with_a_clock_is_no_step_of_the_host() -> None:
    clock, claimed = FakeClock(), list[int | None]()
    wrong = SkewedClock(clock, Skew(ppm=80, step_ns=SECOND), START)
    claiming = Claiming(wrong.clock, lambda: None, claimed.append)
    clock.advance(10 * SECOND)
    claiming.look()
    assert claimed == []
