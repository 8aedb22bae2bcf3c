"""Quantiles, ranks and intervals against definitions, tables and simulation."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.analysis.quantiles import (
    Values,
    effective_size,
    empirical_quantile,
    estimate_quantile,
    fewest_samples,
    independent_size,
    interval_ranks,
    lag_one_correlation,
    loss_interval,
    widened_ranks,
)

delays = st.lists(st.one_of(st.floats(0, 1e10), st.just(math.inf)), min_size=1, max_size=60).map(
    lambda values: np.sort(np.array(values, dtype=np.float64))
)


@pytest.mark.parametrize(
    ("n", "p", "ranks"),
    [
        (300, 0.95, (277, 293)),
        (1000, 0.95, (936, 964)),
        (1000, 0.99, (983, 997)),
    ],
)
def test_ranks_are_those_of_the_published_table(n: int, p: float, ranks: tuple[int, int]) -> None:
    assert interval_ranks(n, p) == ranks


@pytest.mark.parametrize(
    ("p", "two_sided", "one_sided"), [(0.95, 72, 59), (0.99, 368, 299), (0.999, 3688, 2995)]
)
def test_no_upper_limit_below_the_smallest_size(p: float, two_sided: int, one_sided: int) -> None:
    assert fewest_samples(p) == two_sided
    assert fewest_samples(p, two_sided=False) == one_sided
    assert interval_ranks(two_sided, p)[1] == two_sided
    assert interval_ranks(two_sided - 1, p)[1] is None


def binomial_cdf(k: int, n: int, p: float) -> float:
    return sum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(k + 1))


@given(st.integers(1, 120), st.sampled_from([0.5, 0.9, 0.95, 0.99]))
def test_ranks_follow_their_definition(n: int, p: float) -> None:
    lower, upper = interval_ranks(n, p)
    if lower > 0:
        assert binomial_cdf(lower - 1, n, p) <= 0.025 + 1e-12
    assert binomial_cdf(lower, n, p) > 0.025 - 1e-12
    if upper is None:
        assert binomial_cdf(n - 1, n, p) < 0.975 + 1e-12
    else:
        assert binomial_cdf(upper - 1, n, p) >= 0.975 - 1e-12
        assert upper == 1 or binomial_cdf(upper - 2, n, p) < 0.975 + 1e-12


def test_ranks_of_large_samples_stay_exact() -> None:
    from scipy import stats

    n, p = 1_000_000, 0.95
    lower, upper = interval_ranks(n, p)
    assert upper is not None
    assert stats.binom.cdf(lower - 1, n, p) <= 0.025 < stats.binom.cdf(lower, n, p)
    assert stats.binom.cdf(upper - 2, n, p) < 0.975 <= stats.binom.cdf(upper - 1, n, p)


@given(delays, st.floats(0.01, 0.99))
def test_quantile_is_the_smallest_value_with_enough_below(ordered: Values, p: float) -> None:
    value = empirical_quantile(ordered, p)
    n = len(ordered)
    if p == 0.5 and n % 2 == 0:
        return
    assert np.count_nonzero(ordered <= value) >= p * n - 1e-6
    assert np.count_nonzero(ordered < value) < p * n + 1e-6


def test_median_of_an_even_number_is_the_mean_of_the_two_middle_ones() -> None:
    assert empirical_quantile(np.array([1.0, 2.0, 4.0, 9.0]), 0.5) == 3.0
    assert empirical_quantile(np.array([1.0, 2.0, 4.0]), 0.5) == 2.0
    assert empirical_quantile(np.array([1.0, math.inf]), 0.5) == math.inf


def test_a_loss_is_slower_than_any_number() -> None:
    ordered = np.sort(np.array([10.0] * 94 + [math.inf] * 6))
    assert empirical_quantile(ordered, 0.94) == 10.0
    assert empirical_quantile(ordered, 0.95) == math.inf


def test_nothing_has_no_quantile() -> None:
    with pytest.raises(ValueError, match="no samples"):
        empirical_quantile(np.array([]), 0.5)


@given(delays, st.sampled_from([0.5, 0.95, 0.99]), st.floats(0.01, 1.0))
def test_value_lies_in_its_interval(ordered: Values, p: float, worth: float) -> None:
    estimate = estimate_quantile(ordered, p, n_effective=worth * len(ordered))
    assert 0 <= estimate.low <= estimate.value <= estimate.high


@given(st.integers(1, 400), st.floats(0.02, 1.0), st.sampled_from([0.5, 0.95]))
def test_correlation_never_narrows_an_interval(n: int, share: float, p: float) -> None:
    lower, upper = interval_ranks(n, p)
    wide_lower, wide_upper = widened_ranks(n, n * share, p, 0.95)
    assert wide_lower <= lower
    assert wide_upper is None or (upper is not None and wide_upper >= upper)


def test_loss_interval_is_that_of_clopper_and_pearson() -> None:
    from scipy import stats

    for losses, n in ((0, 50), (3, 200), (50, 50), (7, 8)):
        exact = stats.binomtest(losses, n).proportion_ci(0.95, "exact")
        assert loss_interval(losses, n) == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert loss_interval(0, 0) == (0.0, 1.0)


def test_correlation_of_simple_series() -> None:
    assert lag_one_correlation(np.array([1.0, 2.0])) is None
    assert lag_one_correlation(np.full(50, 7.0)) is None
    assert lag_one_correlation(np.full(50, math.inf)) is None
    rising = lag_one_correlation(np.arange(100.0))
    assert rising is not None
    assert rising > 0.9
    alternating = lag_one_correlation(np.tile([1.0, math.inf], 50))
    assert alternating is not None
    assert alternating < -0.9


def test_correlation_sees_bursts_of_loss() -> None:
    bursts = np.tile(np.repeat([5.0, math.inf], [90, 10]), 10)
    correlation = lag_one_correlation(bursts)
    assert correlation is not None
    assert correlation > 0.8


def test_effective_size() -> None:
    assert effective_size(300, None) == 300
    assert effective_size(300, -0.5) == 300
    assert effective_size(300, 0.5) == pytest.approx(100)
    assert 0 < effective_size(300, 1.0) < 1


def ar1(rng: np.random.Generator, n: int, correlation: float) -> Values:
    noise = rng.standard_normal(n) * math.sqrt(1 - correlation**2)
    state = np.empty(n)
    state[0] = rng.standard_normal()
    for i in range(1, n):
        state[i] = correlation * state[i - 1] + noise[i]
    return state


def coverage(correlation: float, p: float, n: int, runs: int, seed: int) -> float:
    """Share of intervals that enclose the true quantile, of log-normal delays."""
    from scipy import special

    rng = np.random.default_rng(seed)
    truth = math.exp(0.5 * float(special.ndtri(p)))
    hits = 0
    for _ in range(runs):
        values = np.exp(0.5 * ar1(rng, n, correlation))
        worth = independent_size(values)
        estimate = estimate_quantile(np.sort(values), p, n_effective=worth)
        hits += estimate.low <= truth <= estimate.high
    return hits / runs


@pytest.mark.parametrize(("p", "n"), [(0.5, 100), (0.95, 100), (0.95, 300), (0.99, 400)])
def test_coverage_of_independent_samples(p: float, n: int) -> None:
    """At least nominal; 1.5 % is three standard errors of 1,000 runs at 95 %, rounded down."""
    assert coverage(0.0, p, n, 1000, seed=11) >= 0.95 - 0.015


@pytest.mark.parametrize("correlation", [0.3, 0.6, 0.9])
def test_coverage_of_correlated_samples(correlation: float) -> None:
    assert coverage(correlation, 0.95, 1000, 150, seed=12) >= 0.90


def swinging(rng: np.random.Generator, n: int) -> Values:
    """Quick noise on a slow swing: correlations of neighbours are small, and last long."""
    swing = math.sqrt(0.3) * ar1(rng, n, 0.95)
    return np.exp(swing + math.sqrt(0.7) * rng.standard_normal(n))


def test_a_slow_swing_under_quick_noise_widens_the_interval() -> None:
    """One lag alone does not see it: the median would be missed every third time."""
    rng = np.random.default_rng(14)
    hits = naive_hits = 0
    for _ in range(100):
        values = swinging(rng, 1000)
        ordered = np.sort(values)
        whole = estimate_quantile(ordered, 0.5, n_effective=independent_size(values))
        one_lag = effective_size(1000, lag_one_correlation(values))
        naive = estimate_quantile(ordered, 0.5, n_effective=one_lag)
        hits += whole.low <= 1.0 <= whole.high
        naive_hits += naive.low <= 1.0 <= naive.high
    assert hits >= 88
    assert naive_hits < 80


def test_independent_samples_keep_nearly_all_their_worth() -> None:
    rng = np.random.default_rng(15)
    worth = [independent_size(rng.exponential(size=300)) for _ in range(100)]
    assert np.mean(worth) > 0.93 * 300
    assert independent_size(np.full(300, 7.0)) == 300
    assert independent_size(np.array([1.0])) == 1


@given(st.lists(st.floats(0, 1e12) | st.just(math.inf), min_size=1, max_size=60))
def test_nothing_is_worth_more_than_its_number(values: list[float]) -> None:
    assert 0 < independent_size(np.array(values)) <= len(values)


def test_ignoring_correlation_would_cover_far_less() -> None:
    """What the effective size is for."""
    rng = np.random.default_rng(13)
    truth = math.exp(0.5 * 1.6448536)
    hits = 0
    for _ in range(150):
        naive = estimate_quantile(np.sort(np.exp(0.5 * ar1(rng, 1000, 0.9))), 0.95)
        hits += naive.low <= truth <= naive.high
    assert hits / 150 < 0.75
