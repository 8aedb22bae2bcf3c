"""Quantiles in bounded memory against sorted lists; packets in order; smoke columns."""

import math
import random

from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.agents.ping.in_order import LONGEST_WAIT, InOrder
from pathbudget.agents.ping.sketch import EXACT, Sketch
from pathbudget.agents.ping.strip import KEPT, Strip

MS = 1_000_000
SECOND = 1_000 * MS
SHARES = (0.0, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0)


def filled(values: list[int]) -> Sketch:
    sketch = Sketch()
    for value in values:
        sketch.add(value)
    return sketch


def exact(values: list[int], share: float) -> int:
    """Smallest x with F(x) >= share, by counting."""
    counted = enumerate(sorted(values), start=1)
    return next(x for at_or_below, x in counted if at_or_below >= share * len(values) - 1e-9)


@given(st.lists(st.integers(-(10**12), 10**12), min_size=1, max_size=60))
def test_few_numbers_are_exact(values: list[int]) -> None:
    sketch = filled(values)
    assert [sketch.quantile(share) for share in SHARES] == [exact(values, one) for one in SHARES]
    assert sketch.error_ns(exact(values, 0.5)) == 0


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(-(10**10), 10**11), st.integers(1_000, 10**9))
def test_many_numbers_are_within_the_error_that_is_stated(
    seed: int, base: int, spread: int
) -> None:
    rng = random.Random(seed)
    values = [base + int(rng.expovariate(1 / spread)) for _ in range(EXACT * 4)]
    sketch = filled(values)
    for share in SHARES:
        found = sketch.quantile(share)
        assert found is not None
        assert abs(found - exact(values, share)) <= sketch.error_ns(found)


def test_a_variation_of_a_millisecond_is_seen_on_top_of_a_hundred() -> None:
    """The error is a share of what varies, not of the distance to the other continent."""
    values = [100 * MS + (number % 1_000) * 1_000 for number in range(5_000)]
    sketch = filled(values)
    p99 = sketch.quantile(0.99)
    assert p99 is not None
    assert sketch.error_ns(p99) <= 15_000
    assert abs(p99 - exact(values, 0.99)) <= 15_000


def test_memory_does_not_grow_with_time() -> None:
    rng = random.Random(1)
    sketch = filled([int(10 ** rng.uniform(2, 11)) for _ in range(20_000)])
    assert sketch.buckets < 1_100
    assert sketch.n == 20_000


def test_losses_are_infinitely_late() -> None:
    sketch = filled([1, 2, 3, 4])
    assert sketch.quantile(0.5, lost=4) == 4
    assert sketch.quantile(0.51, lost=4) == math.inf
    assert Sketch().quantile(0.5, lost=1) == math.inf
    assert Sketch().quantile(0.5) is None


@given(st.permutations(range(50)))
def test_results_come_out_in_the_order_of_sending(arrived: list[int]) -> None:
    order: InOrder[str] = InOrder(SECOND)
    out = [one for seq in arrived for one in order.push(seq, f"p{seq}", seq * MS)]
    assert [one.seq for one in out] == list(range(50))
    assert [one.item for one in out] == [f"p{seq}" for seq in range(50)]
    assert not any(one.gap for one in out)


def test_a_result_that_never_comes_is_given_up_and_told() -> None:
    order: InOrder[int] = InOrder(SECOND)
    assert order.push(0, 0, 0)[0].seq == 0
    out = [one for seq in range(2, LONGEST_WAIT + 4) for one in order.push(seq, seq, seq * MS)]
    assert out[0].seq == 2
    assert [one.seq for one in out if one.gap] == [2]
    assert order.push(1, 1, MS) == []


@given(st.permutations(range(10, 60)))
def test_a_series_that_begins_late_begins_with_its_first_packet(arrived: list[int]) -> None:
    """Its name did not resolve before, or has moved: 50 packets in a second, in any order."""
    order: InOrder[int] = InOrder(SECOND)
    early = [one for seq in arrived for one in order.push(seq, seq, seq * 20 * MS)]
    assert early == []
    out = order.push(60, 60, arrived[0] * 20 * MS + SECOND + 1)
    assert [one.seq for one in out] == list(range(10, 61))
    assert not any(one.gap for one in out)


def test_what_still_waits_at_the_end_is_looked_at() -> None:
    order: InOrder[int] = InOrder(SECOND)
    for seq in (12, 10, 14):
        assert order.push(seq, seq, seq) == []
    assert [(one.seq, one.gap) for one in order.rest()] == [(10, False), (12, True), (14, True)]


def test_columns_hold_quartiles_and_losses_of_their_time() -> None:
    strip = Strip(start_unix_ns=0, width_ns=10 * SECOND, timeout_ns=SECOND)
    for at, value in enumerate((1, 2, 3, 4, 5, None)):
        strip.add(at * SECOND, None if value is None else value * MS)
    strip.add(25 * SECOND, 9 * MS)
    first, second, third = strip.columns(10)
    assert first is not None
    assert first.quartiles_ns == (1 * MS, 2 * MS, 3 * MS, 4 * MS, 5 * MS)
    assert (first.sent, first.lost) == (6, 1)
    assert second is None
    assert third is not None
    assert third.sent == 1


def test_a_loss_is_put_where_it_was_sent_although_it_is_known_later() -> None:
    strip = Strip(start_unix_ns=0, width_ns=SECOND, timeout_ns=3 * SECOND)
    strip.add(0, 5 * MS)
    strip.add(4 * SECOND, 5 * MS)
    assert strip.add(SECOND // 2, None)
    first = strip.columns(10)[0]
    assert first is not None
    assert first.lost == 1


def test_a_strip_of_days_keeps_what_a_screen_can_show() -> None:
    strip = Strip(start_unix_ns=0, width_ns=SECOND, timeout_ns=SECOND)
    for second in range(5_000):
        strip.add(second * SECOND, 5 * MS)
    known = strip.columns(10_000)
    assert sum(one is not None for one in known) <= KEPT + 4
    assert [one.number for one in strip.columns(3) if one] == [4_997, 4_998, 4_999]
