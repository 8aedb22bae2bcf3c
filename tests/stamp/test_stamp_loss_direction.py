"""Directions of losses against the truth, on made-up ways that lose, overtake and double."""

import random
from collections import Counter
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.probes.record import Direction
from pathbudget.probes.stamp import loss_direction
from pathbudget.probes.stamp.loss_direction import LossDirection

FORWARD, REVERSE = Direction.FORWARD, Direction.REVERSE


@dataclass
class Way:
    """Probabilities, and by how many packets one may be overtaken."""

    lost_there: float = 0.0
    lost_back: float = 0.0
    overtaken_there: float = 0.0
    overtaken_back: float = 0.0
    doubled: float = 0.0
    first_number: int = 0
    restarts_at: int | None = None


@dataclass
class Told:
    counts: Counter[Direction | None]
    truth: dict[int, Direction]
    wrong: int
    without_doubt: int


def run(way: Way, seed: int, packets: int = 600, timeout: int = 50) -> Told:
    """Send one packet a tick over a way of 10 ticks each direction."""
    dice, counts = random.Random(seed), Counter[Direction | None]()
    losses = LossDirection(lambda series, direction: counts.update([direction]))
    truth: dict[int, Direction] = {}
    there: list[tuple[float, int]] = []
    for number in range(1, packets + 1):
        if dice.random() < way.lost_there:
            truth[number] = FORWARD
            continue
        for _ in range(1 + (dice.random() < way.doubled)):
            there.append((number + 10 + dice.random() * way.overtaken_there, number))
    events: list[tuple[float, int, int, int]] = []
    answered: set[int] = set()
    own = way.first_number
    for arrived, number in sorted(there):
        if number == way.restarts_at:
            own = 0
        if dice.random() >= way.lost_back:
            answered.add(number)
            back = arrived + 10 + dice.random() * way.overtaken_back
            events.append((back, 0, number, own % 2**32))
        own += 1
    truth |= {number: REVERSE for _, number in there if number not in answered}
    events += [(number + timeout, 1, number, 0) for number in truth]
    wrong = without_doubt = 0
    for when, is_loss, number, sequence in sorted(events):
        if is_loss:
            direction = losses.lost(number, 0)
            without_doubt += direction is not None
            wrong += direction not in (None, truth[number])
        else:
            losses.answered(number, sequence, int(when), 2 * timeout)
    losses.finish()
    return Told(counts, truth, wrong, without_doubt)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.floats(0, 0.5), st.floats(0, 0.5))
def test_with_order_kept_no_loss_is_told_wrong_and_the_counts_are_exact(
    seed: int, there: float, back: float
) -> None:
    told = run(Way(there, back), seed, packets=200)
    assert told.wrong == 0
    assert sum(told.counts.values()) == len(told.truth)
    true = Counter(told.truth.values())
    assert told.counts[FORWARD] <= true[FORWARD]
    assert told.counts[REVERSE] <= true[REVERSE]
    # Unknown is only what has no answer behind it.
    last = max((number for number in range(1, 201) if number not in told.truth), default=0)
    assert told.counts[None] == sum(number > last for number in told.truth)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([1.2, 2.0, 5.0]))
def test_overtaking_on_the_way_back_changes_nothing(seed: int, overtaken: float) -> None:
    told = run(Way(0.05, 0.05, overtaken_back=overtaken), seed, packets=300)
    assert told.wrong == 0
    assert told.counts[None] <= 6


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6))
def test_heavy_overtaking_on_the_way_there_leaves_losses_unknown(seed: int) -> None:
    told = run(Way(0.05, 0.05, overtaken_there=4.0), seed, packets=300)
    assert told.wrong <= 1
    assert sum(told.counts.values()) == len(told.truth)


def test_a_little_overtaking_and_doubling_spoils_little() -> None:
    told = run(Way(0.03, 0.03, overtaken_there=1.05, doubled=0.003), seed=4, packets=3_000)
    assert told.wrong == 0
    assert told.without_doubt > 0.6 * len(told.truth)


@pytest.mark.parametrize("number", [2**32 - 100, 2**31 - 100])
def test_numbers_of_the_reflector_that_wrap(number: int) -> None:
    told = run(Way(0.05, 0.05, first_number=number), seed=2)
    assert told.wrong == 0
    assert told.counts[None] <= 8


@pytest.mark.parametrize("at", [5, 60, 300])
@pytest.mark.parametrize("first", [0, 3_000_000_000])
def test_a_reflector_that_begins_again(at: int, first: int) -> None:
    told = run(Way(0.05, 0.05, first_number=first, restarts_at=at), seed=at)
    assert told.wrong == 0
    assert sum(told.counts.values()) == len(told.truth)
    assert told.counts[None] <= 25


def test_a_stateless_reflector_is_known_by_its_first_answer() -> None:
    losses = LossDirection(lambda series, direction: None)
    losses.answered(1, 1, 0, 100)
    assert losses.stateful is False
    losses = LossDirection(lambda series, direction: None)
    losses.answered(1, 0, 0, 100)
    assert losses.stateful is True


def test_what_waits_for_an_answer_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loss_direction, "UNDECIDED", 10)
    counts = Counter[Direction | None]()
    losses = LossDirection(lambda series, direction: counts.update([direction]))
    losses.answered(1, 0, 0, 100)
    for number in range(2, 102):
        losses.lost(number, 0)
    assert counts == {None: 90}
    losses.answered(102, 1, 0, 100)
    assert counts == {None: 90, FORWARD: 10}


def test_what_never_arrived_takes_a_bounded_memory_and_no_direction_is_guessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """While a target refuses for hours, and of the gap that is left when it answers again."""
    monkeypatch.setattr(loss_direction, "UNSENT", 100)
    counts = Counter[Direction | None]()
    losses = LossDirection(lambda series, direction: counts.update([direction]))
    losses.answered(1, 0, 0, 100)
    for number in range(2, 1_000):
        losses.never_arrived(number)
    assert len(losses._never_arrived) == 100
    losses.answered(1_001, 1, 0, 100)
    assert losses.lost(1_000, 0) is None
    assert counts == {None: 1}
    losses.answered(1_003, 2, 0, 100)
    assert losses.lost(1_002, 0) is FORWARD


def test_a_few_that_never_arrived_leave_the_direction_of_others_certain() -> None:
    losses = LossDirection(lambda series, direction: None)
    losses.answered(1, 0, 0, 100)
    for number in range(2, 50):
        losses.never_arrived(number)
    losses.answered(51, 2, 0, 100)
    assert losses.lost(50, 0) is REVERSE
