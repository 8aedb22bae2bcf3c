"""Who waits for the kernel's T3 of the reflector, and who need not."""

from collections.abc import Callable

from pathbudget.probes.record import ClockSource, Metric
from pathbudget.probes.stamp.fake_pair import MS, FakePair
from pathbudget.probes.stamp.follow_ups import USELESS
from pathbudget.probes.stamp.reflector_session import ReflectorSession

MakePair = Callable[..., FakePair]


class Unstamped(ReflectorSession):
    """A reflector whose kernel gives no send stamps while `stamps` is false."""

    stamps = False

    def transmitted(self, key: int, kernel_unix_ns: int) -> None:
        if self.stamps:
            super().transmitted(key, kernel_unix_ns)


def unstamped(pair: FakePair) -> Unstamped:
    reflector = Unstamped(pair.reflector._policy)
    pair.reflector = reflector
    return reflector


def sources(pair: FakePair) -> list[ClockSource]:
    return [one.clock_source for one in pair.of(Metric.RTT)]


def test_a_reflector_without_send_stamps_is_not_waited_for(pair: FakePair) -> None:
    unstamped(pair)
    for _ in range(USELESS + 1):
        pair.step()
    before = len(pair.of(Metric.RTT))
    for more in range(1, 6):
        pair.step()
        assert len(pair.of(Metric.RTT)) == before + more
    pair.end()
    assert sources(pair) == [ClockSource.KERNEL_RECEIVE] * (USELESS + 6)
    assert [one.seq for one in pair.of(Metric.RTT)] == list(range(USELESS + 6))


def test_when_it_has_stamps_after_all_answers_wait_again(pair: FakePair) -> None:
    reflector = unstamped(pair)
    for _ in range(10):
        pair.step()
    reflector.stamps = True
    for _ in range(4):
        pair.step()
    pair.end()
    # The first reply with something to tell tells of one that has not waited; the last one waits
    # in vain for a next.
    assert sources(pair)[10:] == [
        ClockSource.KERNEL_RECEIVE,
        ClockSource.KERNEL,
        ClockSource.KERNEL,
        ClockSource.KERNEL_RECEIVE,
    ]


def test_a_few_missing_stamps_do_not_end_the_waiting(pair: FakePair) -> None:
    reflector = unstamped(pair)
    for number in range(40):
        reflector.stamps = number % USELESS == 0
        pair.step()
    pair.end()
    assert sources(pair).count(ClockSource.KERNEL) == 10


def test_lost_replies_are_no_reason_not_to_wait(pair: FakePair) -> None:
    """The Follow-Up after a loss tells of a reply that never came."""
    for number in range(60):
        pair.step(reverse=number % 2 == 0)
    for _ in range(5):
        pair.step()
    pair.end()
    assert sources(pair)[60:] == [ClockSource.KERNEL] * 4 + [ClockSource.KERNEL_RECEIVE]


def test_who_waited_when_time_was_up_is_told_of_once(pair: FakePair) -> None:
    pair.step()
    pair.pass_time(10 * pair.timeout_ns)
    assert len(pair.of(Metric.RTT)) == 1
    pair.step()
    pair.end()
    assert [one.seq for one in pair.of(Metric.RTT)] == [0, 1]
    assert pair.counts["duplicate"] == 0
    assert pair.of(Metric.RTT)[1].value_ns is not None
    assert pair.sender.under_way == 0
    assert pair.sender.next_deadline_ns() is None


def test_who_is_answered_at_once_leaves_nothing_behind(make_pair: MakePair) -> None:
    """Nobody asks for a deadline where nothing is under way: what is kept stays short anyway."""
    pair = make_pair(follow_up=False)
    for _ in range(500):
        pair.arrive(pair.must_reflect(pair.send()).payload)
        pair.now_ns += MS
    assert sum(map(len, pair.sender._table._deadlines.values())) < 5
