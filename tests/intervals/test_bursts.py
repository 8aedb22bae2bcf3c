"""Losses in bursts: what may be lost beyond what was, and where it decides a quantile."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.intervals.campaigns import autoregressive, track_of

from pathbudget.agents.lake.counted import counted_distribution
from pathbudget.analysis.distribution import Distribution, distribution_of
from pathbudget.analysis.intervals.bursts import (
    Bursts,
    bursts_of,
    most_beyond,
    none_in_bursts,
    slow_allowed,
)
from pathbudget.analysis.mixture import Part, mixture_estimate
from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.track import Track


def with_losses(places: list[int], n: int = 3000, seed: int = 5) -> Values:
    values: Values = autoregressive(np.random.default_rng(seed), 1, n, 0.0)[0]
    values[places] = np.inf
    return values


def bursts(size: int, count: int, n: int = 3000) -> list[int]:
    return [start + i for start in range(100, n, n // count) for i in range(size)][: size * count]


def test_bursts_are_found_and_chance_is_none() -> None:
    found = bursts_of(np.array(bursts(10, 4)), 3000)
    assert found == Bursts(3000, 40, 4 * 100, 10)
    holed = bursts_of(np.array([100, 102, 103, 500, 502, 505]), 3000)
    assert (holed.squares, holed.largest) == (18, 3)
    rng = np.random.default_rng(1)
    found_by_chance = sum(
        bursts_of(np.flatnonzero(rng.random(2000) < 0.01), 2000).largest > 1 for _ in range(300)
    )
    assert found_by_chance < 30
    assert bursts_of(np.array([7]), 3000) == none_in_bursts(1, 3000)
    assert bursts_of(np.arange(50), 50).largest in (1, 50)


@given(st.integers(0, 200), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
@settings(max_examples=30, deadline=None)
def test_single_losses_have_the_exact_limit_of_garwood(lost: int, confidence: float) -> None:
    found = most_beyond([(1.0, none_in_bursts(lost, 5000))], [0], 0.99, confidence)
    exact = stats.chi2.ppf((1 + confidence) / 2, 2 * (lost + 1)) / 2
    assert found * 5000 == pytest.approx(exact)


@given(st.integers(1, 30), st.integers(1, 20), st.integers(0, 100))
@settings(max_examples=30, deadline=None)
def test_larger_bursts_may_mean_more(size: int, count: int, slow: int) -> None:
    lost = size * count
    one = most_beyond([(1.0, Bursts(9000, lost, size * lost, size))], [slow], 0.95, 0.95)
    other = most_beyond([(1.0, Bursts(9000, lost, 2 * size * lost, 2 * size))], [slow], 0.95, 0.95)
    assert (lost + slow) / 9000 < one < other


@pytest.mark.parametrize("p", [0.9, 0.95, 0.99])
def test_most_slow_ones_are_allowed(p: float) -> None:
    few = Bursts(3000, 20, 200, 10)
    allowed = slow_allowed(few, p, 0.95)
    assert allowed >= 0 or most_beyond([(1.0, few)], [0], p, 0.95) > 1 - p
    assert most_beyond([(1.0, few)], [allowed + 1], p, 0.95) > 1 - p
    if allowed >= 0:
        assert most_beyond([(1.0, few)], [allowed], p, 0.95) <= 1 - p


def test_many_bursts_leave_slow_samples_to_the_scatter() -> None:
    many = Bursts(9000, 60, 180, 3)
    assert not many.are_few
    assert slow_allowed(many, 0.95, 0.95) == 9000 - 60
    assert slow_allowed(many, 0.993, 0.95) == -1
    assert Bursts(9000, 60, 60 * 30, 30).are_few
    assert not none_in_bursts(2, 9000).are_few


def test_two_bursts_leave_a_p99_without_an_end_and_single_losses_do_not() -> None:
    single = distribution_of(track_of(with_losses(list(range(50, 3000, 160)))))
    burst = distribution_of(track_of(with_losses(bursts(9, 2))))
    assert single.losses >= burst.losses
    assert single.estimate(0.99, 0.95).high < math.inf
    assert burst.estimate(0.99, 0.95).high == math.inf
    assert burst.estimate(0.95, 0.95).high < math.inf


def test_a_mixture_says_so_too() -> None:
    lossy = distribution_of(track_of(with_losses(bursts(9, 2))))
    clean = distribution_of(track_of(with_losses([], seed=6)))

    def high(weight: float) -> float:
        parts = [Part(weight, lossy), Part(1 - weight, clean)]
        return mixture_estimate(parts, 0.99).high

    assert high(0.9) == math.inf
    assert high(0.05) < math.inf


def test_counting_gives_the_same_bursts() -> None:
    values = with_losses(bursts(7, 3))
    vantages = np.arange(3000) % 3
    track = Track(track_of(values).sent_unix_ns, values, vantages)
    summed, counted = distribution_of(track), counted_distribution(track)
    assert summed.bursts() == counted.bursts() == Bursts(3000, 21, 3 * 49, 7)
    for p in (0.5, 0.95, 0.99):
        assert summed.estimate(p, 0.95).high == counted.estimate(p, 0.95).high


def test_without_order_there_are_no_bursts() -> None:
    ordered = np.sort(with_losses(bursts(9, 2)))
    assert Distribution(ordered, 3000.0).bursts() is None


def test_intervals_of_bursts_hold() -> None:
    """Eight bursts of ten in 1 % of the samples, on average; p95 has 95 % of its range."""
    rng = np.random.default_rng(8)
    held = []
    for _ in range(300):
        values = autoregressive(rng, 1, 8000, 0.0)[0]
        for start in rng.integers(0, 7900, rng.poisson(8)):
            values[start : start + rng.geometric(0.1)] = np.inf
        found = distribution_of(track_of(values)).estimate(0.95, 0.95)
        held.append(found.low <= 33.75 <= found.high)
    assert np.mean(held) > 0.92


def test_vantages_one_after_the_other_hold_as_those_that_take_turns() -> None:
    """The slow cosines are those of which no vantage's own level takes its part."""
    rows = autoregressive(np.random.default_rng(9), 400, 1500, 0.6)
    levels = np.array([1.0, 1.5, 2.2])
    after, turns = np.arange(1500) // 500, np.arange(1500) % 3
    truth = float(np.median(np.concatenate([rows[:, :500].ravel() * level for level in levels])))
    for vantages in (after, turns):
        held = 0
        for row in rows:
            track = track_of(row * levels[vantages])
            one = distribution_of(Track(track.sent_unix_ns, track.values_ns, vantages))
            assert one.timeline is not None
            assert (one.timeline.scales == 1).all() == (vantages is turns)
            estimate = one.estimate(0.5, 0.95)
            held += estimate.low <= truth <= estimate.high
        assert 0.93 < held / 400 < 0.985
