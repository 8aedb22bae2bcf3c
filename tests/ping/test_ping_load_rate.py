"""The load finds what is answered: against a limit by the second, a bottleneck, loss, silence."""

import re
from collections.abc import Callable

import pytest

from pathbudget.agents.ping.load_rate import FIRST_BITS_PER_SECOND, LoadRate, OurLoad

MS = 1_000_000
SECOND = 1_000 * MS
OCTETS = 1_400
BITS = 8 * OCTETS
MBIT = 1_000_000

Path = Callable[[int, int], int | None]
"""(packet, when it was sent) to its round trip, None where it is lost."""


def run(asked_bps: int, path: Path, seconds: int = 12, usual_loss: float = 0.0) -> LoadRate:
    """Every two milliseconds: what has come, the rate, what is owed. A rest after each 3 s."""
    rate = LoadRate(asked_bps, OCTETS)
    under_way: list[tuple[int, int, int]] = []
    number, owed = 0, 0.0
    for now in range(0, seconds * SECOND, 2 * MS):
        for come in sorted(one for one in under_way if one[0] <= now):
            rate.answered(come[1], come[2])
        under_way = [one for one in under_way if one[0] > now]
        if now // (3 * SECOND) % 2:
            rate.pause(now)
            continue
        rate.judge(now, usual_loss)
        owed += rate.now * 2 * MS / SECOND / BITS
        for _ in range(int(owed)):
            rate.sent(number, now)
            round_trip = path(number, now)
            if round_trip is not None:
                under_way.append((now + round_trip, number, round_trip))
            number += 1
        owed %= 1
    rate.pause(seconds * SECOND)
    return rate


def report(rate: LoadRate) -> OurLoad:
    return rate.report(60 * SECOND)


def by_the_second(most: int, round_trip_ns: int = 20 * MS) -> Path:
    """A reflector that answers so many packets in each second."""
    counts: dict[int, int] = {}

    def path(number: int, sent_ns: int) -> int | None:
        second = sent_ns // SECOND
        counts[second] = counts.get(second, 0) + 1
        return round_trip_ns if counts[second] <= most else None

    return path


def test_a_load_that_is_answered_reaches_what_was_asked_for() -> None:
    rate = run(50 * MBIT, lambda number, sent: 20 * MS)
    assert rate.limited == ""
    found = report(rate)
    assert found.sent_bps == pytest.approx(50 * MBIT, rel=0.02)
    assert found.answered_bps == found.sent_bps
    assert run(500_000, lambda number, sent: 20 * MS).now == 500_000 < FIRST_BITS_PER_SECOND


@pytest.mark.parametrize("most", [300, 1_000, 2_000])
def test_a_reflector_that_limits_is_told_and_left_room(most: int) -> None:
    """The allowance of 2,000 packets a second is 22.4 Mbit/s of such packets."""
    rate = run(50 * MBIT, by_the_second(most), 30)
    assert re.search(r"the reflector answers (only|not all of) ", rate.limited)
    assert 0.4 * most * BITS < rate.now <= most * BITS * 0.9
    found = report(rate)
    assert found.answered_bps == pytest.approx(rate.now, rel=0.05)
    assert found.sent_bps == pytest.approx(rate.now, rel=0.05)
    assert found.answered < found.sent
    assert found.limited == rate.limited


def test_a_path_that_fills_is_told_apart_by_its_queue() -> None:
    """10 Mbit/s and a buffer of 100 ms: what does not fit into it is lost."""
    free = [0]

    def path(number: int, sent_ns: int) -> int | None:
        wait = max(0, free[0] - sent_ns)
        if wait > 100 * MS:
            return None
        free[0] = sent_ns + wait + BITS * SECOND // (10 * MBIT)
        return 20 * MS + wait

    rate = run(50 * MBIT, path)
    assert "the path carries " in rate.limited
    assert rate.now == pytest.approx(10 * MBIT, rel=0.25)


def test_what_the_path_loses_anyway_is_no_limit() -> None:
    rate = run(10 * MBIT, lambda number, sent: None if number % 20 == 7 else 20 * MS, 12, 0.05)
    assert (rate.limited, rate.now) == ("", 10 * MBIT)
    found = report(rate)
    assert found.sent_bps is not None
    assert found.answered_bps == pytest.approx(0.95 * found.sent_bps, rel=0.01)


def test_a_host_that_sends_less_than_it_should_says_so() -> None:
    rate = LoadRate(MBIT, OCTETS)
    for number in range(100):
        rate.sent(number, number * 20 * MS)  # 0.56 Mbit/s
        rate.answered(number, 20 * MS)
    assert report(rate).limited == "This host sends only 0.56 Mbit/s of load."


def test_silence_is_no_limit_and_is_met_with_next_to_nothing() -> None:
    rate = run(10 * MBIT, lambda number, sent: 20 * MS if sent < 2 * SECOND else None, 3)
    assert (rate.limited, rate.now) == ("", 100_000)
    assert report(LoadRate(MBIT, OCTETS)).sent_bps is None
