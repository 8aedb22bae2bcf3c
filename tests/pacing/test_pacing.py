"""`Network.pace` by a clock that tests move, and by this host's own."""

import asyncio
import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from pathbudget.probes import timer
from pathbudget.probes.channels import Cancellable
from pathbudget.probes.fake_network import FakeClock, FakeNetwork
from pathbudget.probes.network import SystemNetwork
from pathbudget.probes.pacing import AT_ONCE, GAP_AFTER_SEVERAL_NS, GAP_NS, READ_AHEAD

MS = 1_000_000
SECOND = 1_000 * MS

Item = tuple[int, str]


class Watched:
    """A pacing on a fake clock, and everything that it did: (time, items) per call."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.network = FakeNetwork(self.clock)
        self.start = self.clock.monotonic_ns()
        self.calls: list[tuple[int, list[Item]]] = []
        self.finished: list[int] = []
        self.on_fire: Callable[[], None] = lambda: None

    def pace(self, *offsets: int) -> Cancellable:
        return self.pace_items((offset, str(number)) for number, offset in enumerate(offsets))

    def pace_items(self, items: Iterator[Item]) -> Cancellable:
        due = ((self.start + offset, name) for offset, name in items)
        return self.network.pace(due, self._fire, lambda: self.finished.append(self.now()))

    def now(self) -> int:
        return self.clock.monotonic_ns() - self.start

    def delivered(self) -> list[Item]:
        return [item for _, batch in self.calls for item in batch]

    def _fire(self, batch: Sequence[Item]) -> None:
        self.calls.append((self.now(), [(due - self.start, name) for due, name in batch]))
        self.on_fire()


def test_each_item_goes_out_at_its_time_and_the_end_is_said_once() -> None:
    watched = Watched()
    watched.pace(10 * MS, 20 * MS, 35 * MS)
    watched.clock.advance(9 * MS)
    assert watched.calls == []
    watched.clock.advance(SECOND)
    assert [at for at, _ in watched.calls] == [10 * MS, 20 * MS, 35 * MS]
    assert watched.finished == [35 * MS]


def test_what_is_due_at_the_same_time_goes_out_in_one_call_in_its_order() -> None:
    watched = Watched()
    watched.pace(5, 5, 5, 9)
    watched.clock.advance(5)
    assert watched.calls == [(5, [(5, "0"), (5, "1"), (5, "2")])]


def test_late_items_are_delivered_in_order_and_none_is_lost() -> None:
    watched = Watched()
    offsets = [number * MS for number in range(1, 101)]
    watched.pace(*offsets)
    watched.clock.advance(10 * MS)
    watched.clock.stall(60 * MS)
    watched.clock.advance(SECOND)
    assert [due for due, _ in watched.delivered()] == offsets
    assert max(len(batch) for _, batch in watched.calls) == 60  # the stall, in one call


def test_a_long_backlog_leaves_whole_in_calls_of_bounded_size() -> None:
    watched = Watched()
    watched.pace_items((number * MS, str(number)) for number in range(20_000))
    watched.clock.advance(0)
    watched.clock.stall(3_600 * SECOND)
    watched.clock.advance(0)
    assert max(len(batch) for _, batch in watched.calls) == AT_ONCE
    assert [int(name) for _, name in watched.delivered()] == list(range(20_000))


async def test_between_two_calls_of_a_backlog_the_loop_has_its_turn() -> None:
    """Answers are read while a backlog goes out."""
    network = SystemNetwork()
    loop = asyncio.get_running_loop()
    turns: list[str] = []

    def fire(batch: Sequence[tuple[int, int]]) -> None:
        turns.append("fire")
        loop.call_soon(turns.append, "other work")

    finished = asyncio.Event()
    network.pace(((number, number) for number in range(3 * AT_ONCE)), fire, finished.set)
    await finished.wait()
    network.close()
    assert turns[:5] == ["fire", "other work", "fire", "other work", "fire"]


def test_items_of_one_time_stay_together_however_many_they_are() -> None:
    watched = Watched()
    watched.pace(*[7] * (3 * AT_ONCE), 8)
    watched.clock.advance(SECOND)
    assert [len(batch) for _, batch in watched.calls] == [3 * AT_ONCE, 1]


def test_close_items_share_a_call_and_none_waits_longer_than_for_that() -> None:
    watched = Watched()
    offsets = [number * GAP_NS // 5 for number in range(1_000)]
    watched.pace(*offsets)
    watched.clock.advance(SECOND)
    assert [due for due, _ in watched.delivered()] == offsets
    assert len(watched.calls) <= offsets[-1] // GAP_AFTER_SEVERAL_NS + 3
    assert max(at - batch[0][0] for at, batch in watched.calls) <= GAP_AFTER_SEVERAL_NS


def test_lateness_does_not_add_up() -> None:
    """Each wait is for a time of the schedule, never for a span after the send before."""
    watched = Watched()
    watched.on_fire = lambda: watched.clock.stall(300_000)
    watched.pace(*(number * MS for number in range(1, 1001)))
    watched.clock.advance(2 * SECOND)
    assert {at - batch[0][0] for at, batch in watched.calls} == {0}


def test_the_schedule_is_read_only_as_far_as_needed() -> None:
    watched = Watched()
    endless = itertools.count(MS, MS)
    watched.pace_items((offset, "") for offset in endless)
    watched.clock.advance(10 * MS)
    assert next(endless) == (11 + READ_AHEAD) * MS  # ten were fired, the others wait


def test_after_cancel_nothing_goes_out_and_the_end_is_not_said() -> None:
    watched = Watched()
    pacing = watched.pace(10, 20)
    watched.clock.advance(10)
    pacing.cancel()
    pacing.cancel()
    watched.clock.advance(SECOND)
    assert watched.delivered() == [(10, "0")]
    assert watched.finished == []


def test_whoever_is_fired_may_cancel() -> None:
    watched = Watched()
    pacing = watched.pace(10, 20)
    watched.on_fire = lambda: pacing.cancel()
    watched.clock.advance(SECOND)
    assert watched.delivered() == [(10, "0")]
    assert watched.finished == []


def test_an_empty_schedule_ends_at_once_but_not_inside_the_call() -> None:
    watched = Watched()
    watched.pace()
    assert watched.finished == []
    watched.clock.advance(0)
    assert watched.finished == [0]
    assert watched.calls == []


def test_a_schedule_that_raises_is_reported_after_what_was_due_before() -> None:
    def broken() -> Iterator[Item]:
        yield (5, "a")
        yield (5, "b")
        raise ValueError("no more dice")

    watched = Watched()
    watched.pace_items(broken())
    with pytest.raises(ValueError, match="no more dice"):
        watched.clock.advance(SECOND)
    assert watched.delivered() == [(5, "a"), (5, "b")]
    watched.clock.advance(SECOND)
    assert watched.finished == []


def test_a_fire_that_raises_is_reported_and_ends_the_pacing() -> None:
    def broken() -> None:
        raise ValueError("no socket")

    watched = Watched()
    watched.on_fire = broken
    watched.pace(5, 6)
    with pytest.raises(ValueError, match="no socket"):
        watched.clock.advance(SECOND)
    watched.clock.advance(SECOND)
    assert watched.delivered() == [(5, "0")]
    assert watched.finished == []


async def paced_by_this_host() -> None:
    """Everything comes, in order, never early."""
    network = SystemNetwork()
    finished = asyncio.Event()
    start = time.monotonic_ns()
    offsets = [-5 * MS, 0, *(2 * MS + number * 100_000 for number in range(200))]
    got: list[int] = []
    early: list[int] = []

    def fire(batch: Sequence[tuple[int, int]]) -> None:
        now = time.monotonic_ns()
        got.extend(number for _, number in batch)
        early.extend(due for due, _ in batch if due > now)

    due = ((start + offset, number) for number, offset in enumerate(offsets))
    network.pace(due, fire, finished.set)
    await finished.wait()
    network.close()
    assert got == list(range(len(offsets)))
    assert early == []


async def test_on_this_host() -> None:
    await paced_by_this_host()


async def test_on_a_host_without_timerfd(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(timer, "_open_timerfd", lambda: None)
    await paced_by_this_host()


async def test_on_this_host_what_raises_reaches_the_handler_of_the_loop() -> None:
    loop = asyncio.get_running_loop()
    told: asyncio.Future[BaseException] = loop.create_future()
    loop.set_exception_handler(lambda _, context: told.set_result(context["exception"]))

    def broken() -> Iterator[tuple[int, str]]:
        yield (0, "first")
        raise ValueError("no more dice")

    network = SystemNetwork()
    fired: list[object] = []
    pacing = network.pace(broken(), fired.extend, lambda: fired.append("finished"))
    assert isinstance(await told, ValueError)
    assert fired == [(0, "first")]
    pacing.cancel()
    network.close()


async def test_on_this_host_a_cancelled_pacing_gives_its_descriptor_back() -> None:
    network = SystemNetwork()
    with contextlib.closing(network):
        for _ in range(3):
            soon = time.monotonic_ns() + SECOND
            pacing = network.pace(iter([(soon, 1)]), lambda batch: None, lambda: None)
            await asyncio.sleep(0)
            pacing.cancel()
        waiting = network.pace(iter([(0, 1)]), lambda batch: None, lambda: None)
        await asyncio.sleep(0.01)
        waiting.cancel()
