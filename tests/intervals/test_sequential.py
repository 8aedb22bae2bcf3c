"""Always-valid intervals: looking as often as one likes does not make them wrong."""

import numpy as np
import pytest
from tests.intervals.campaigns import autoregressive, track_of, truth

from pathbudget.analysis.distribution import distribution_of
from pathbudget.analysis.intervals.sequential import (
    always_valid_mixture,
    one_look_confidence,
    sequence_ranks,
)
from pathbudget.analysis.mixture import Part
from pathbudget.analysis.quantiles import interval_ranks


@pytest.mark.parametrize("p", [0.5, 0.95])
def test_a_hundred_looks_miss_in_under_five_of_a_hundred(p: float) -> None:
    """The one-look interval misses at some look in about every third campaign."""
    below = np.cumsum(np.random.default_rng(51).random((2000, 2000)) < p, axis=1)
    looks = np.arange(20, 2001, 20)
    for make, least, most in ((sequence_ranks, 0.0, 0.05), (interval_ranks, 0.2, 1.0)):
        missed = np.zeros(2000, dtype=bool)
        for n in looks:
            lower, upper = make(int(n), p)
            k = below[:, n - 1]  # of n samples so many are below the quantile
            missed |= k < lower
            if upper is not None:
                missed |= k >= upper
        assert least <= missed.mean() <= most


def test_it_is_wider_than_one_look_and_narrows() -> None:
    for n in (400, 1000, 20_000):
        lower, upper = sequence_ranks(n, 0.95)
        once_lower, once_upper = interval_ranks(n, 0.95)
        assert upper is not None
        assert once_upper is not None
        assert lower <= once_lower < once_upper <= upper
        assert upper - lower < 2 * (once_upper - once_lower)
    assert sequence_ranks(60, 0.95)[1] is None
    assert sequence_ranks(5, 0.5) == (0, None)


def test_the_equivalent_confidence_gives_about_the_same_ranks() -> None:
    for p in (0.5, 0.95):
        lower, upper = sequence_ranks(2000, p)
        again = interval_ranks(2000, p, one_look_confidence(2000.0, p))
        assert upper is not None
        assert again[1] is not None
        assert abs(again[0] - lower) <= 4
        assert abs(again[1] - upper) <= 8


def test_correlated_samples_looked_at_again_and_again() -> None:
    rows = autoregressive(np.random.default_rng(52), 40, 1000, 0.6)
    missed = 0
    for row in rows:
        found = [
            always_valid_mixture([Part(1.0, distribution_of(track_of(row[:n])))], 0.5)
            for n in range(200, 1001, 200)
        ]
        missed += any(not one.low <= truth(0.5) <= one.high for one in found)
    assert missed <= 5
