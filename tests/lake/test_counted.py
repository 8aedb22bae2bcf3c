"""Counting gives the scatter that summing gives."""

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given

from pathbudget.agents.lake.counted import cells_of, counted_distribution, in_order, scaled
from pathbudget.analysis.distribution import distribution_of
from pathbudget.analysis.intervals.timeline import ANY_NUMBER
from pathbudget.analysis.track import Track

HOUR_NS = 3_600_000_000_000


def track(n: int, vantages: int, hours: float, lost: float = 0.02) -> Track:
    rng = np.random.default_rng([n, vantages])
    sent = np.sort(rng.integers(0, int(hours * HOUR_NS), n)) + 1_772_323_200_000_000_000
    values = np.round(rng.gamma(3, 1e6, n) + 1e7 + 2e6 * np.sin(np.arange(n) / n * 9))
    values[rng.random(n) < lost] = np.inf
    return Track(sent, values, rng.integers(0, vantages, n) * 3)


@pytest.mark.parametrize("hours", [0.5, 20.0, 30.0, 75.0])
@pytest.mark.parametrize("vantages", [1, 2, 5])
@pytest.mark.parametrize("factor", [0.5, 1.0, 2.5])
def test_counted_is_summed(hours: float, vantages: int, factor: float) -> None:
    one = track(3000, vantages, hours)
    plain = distribution_of(Track(one.sent_unix_ns, one.values_ns * factor, one.vantages))
    others = Track(one.sent_unix_ns, one.values_ns[::-1].copy(), one.vantages)
    base = counted_distribution(one, cells_of(others))
    counted = base if factor == 1 else scaled(base, factor)
    assert np.array_equal(counted.ordered, plain.ordered)
    assert counted.losses == plain.losses
    assert counted.n_effective == pytest.approx(plain.n_effective, rel=1e-9)
    for p in (0.01, 0.5, 0.95, 0.97, 0.985, 0.999):
        ours, theirs = counted.estimate(p, 0.95), plain.estimate(p, 0.95)
        assert (ours.value, ours.low, ours.high) == (theirs.value, theirs.low, theirs.high)
        assert ours.n_effective == pytest.approx(theirs.n_effective, rel=1e-9)


@pytest.mark.parametrize("hours", [0.5, 30.0])
@pytest.mark.parametrize("vantages", [1, 3])
def test_every_number_of_a_scatter(hours: float, vantages: int) -> None:
    one = track(3000, vantages, hours)
    summed, counted = distribution_of(one).timeline, counted_distribution(one).timeline
    assert summed is not None
    assert counted is not None
    for q in (np.min(one.values_ns), 1.2e7, 1.5e7, ANY_NUMBER):
        ours, theirs = counted.scatter(float(q)), summed.scatter(float(q))
        for mine, its in zip(ours, theirs, strict=True):
            assert mine == pytest.approx(its, rel=1e-6, abs=1e-9)


def test_all_alike_and_all_lost() -> None:
    for value in (5e6, np.inf):
        one = track(200, 2, 1.0)
        same = Track(one.sent_unix_ns, np.full(one.n, value), one.vantages)
        ours, theirs = counted_distribution(same), distribution_of(same)
        assert ours.estimate(0.5, 0.95) == theirs.estimate(0.5, 0.95)
        assert ours.losses == theirs.losses


def test_few_are_not_counted() -> None:
    with pytest.raises(ValueError, match="too few"):
        counted_distribution(track(10, 1, 1.0))


WHOLE = st.integers(0, 2**32 + 2).map(float)
ODD = st.sampled_from([np.inf, 2.0**32 - 1, 2.0**32, 2.0**40, 2.0**60, 0.5, -1.0, -0.5, 0.0])


@given(st.lists(WHOLE | ODD) | st.lists(WHOLE))
def test_in_order_is_sorted_whatever_fits(numbers: list[float]) -> None:
    values = np.array(numbers, dtype=np.float64)
    before = values.copy()
    assert in_order(values).tolist() == sorted(numbers)
    assert np.array_equal(values, before)
