"""Sums of independent terms against exact sums, Monte Carlo and the order in `definitions`."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.whole_budget.conftest import MS, constant, distribution

from pathbudget.analysis.quantiles import empirical_quantile, estimate_quantile
from pathbudget.analysis.request import Distribution
from pathbudget.analysis.whole_budget.combine import (
    Sum,
    guaranteed_bound,
    independent,
    sum_of,
    sum_of_quantiles,
)
from pathbudget.analysis.whole_budget.convolution import Convolution

SMALL = st.lists(st.integers(0, 400), min_size=1, max_size=6)


def exact_sums(parts: list[list[int]]) -> np.ndarray:
    """Every sum there is, in ns."""
    return np.sort([float(sum(pick)) * MS for pick in itertools.product(*parts)])


@settings(max_examples=20, deadline=None)
@given(st.lists(SMALL, min_size=2, max_size=4), st.sampled_from([0.05, 0.5, 0.9, 0.95]))
@example([[0, 1, 1], [0, 1, 3], [0, 1, 3]], 0.05)  # sums far beyond what is asked for came round
def test_a_convolution_is_the_exact_sum_and_rounded_up_at_most_by_its_grid(
    parts: list[list[int]], p: float
) -> None:
    sums = exact_sums(parts)
    exact = float(sums[max(1, math.ceil(p * len(sums) - 1e-9)) - 1])
    whole = sum_of([distribution(part) for part in parts], p)
    found = whole.estimate(p).value
    assert exact - 1e-3 <= found <= exact + whole.rounding_ns + 1e-3


@settings(max_examples=15, deadline=None)
@given(st.lists(SMALL, min_size=2, max_size=3))
def test_the_share_within_a_time_is_exact_at_every_sum(parts: list[list[int]]) -> None:
    sums = exact_sums(parts)
    whole = Sum([distribution(part) for part in parts])
    for time in np.unique(sums):
        exact = np.count_nonzero(sums <= time + 1) / len(sums)
        below = np.count_nonzero(sums <= time - whole.rounding_ns - 1) / len(sums)
        assert below - 1e-9 <= whole.share_within(time) <= exact + 1e-9
        assert whole.share_within(time + whole.rounding_ns + 1) >= exact - 1e-9


def test_a_convolution_is_what_monte_carlo_gives() -> None:
    random = np.random.default_rng(1)
    parts = [random.gamma(3, 20, 4000), random.lognormal(4, 0.6, 3000), random.normal(80, 5, 2000)]
    drawn = sum(random.choice(part, 400_000) for part in parts) * MS
    for p in (0.5, 0.95, 0.99):
        found = independent([distribution(part) for part in parts], p)
        assert found.value == pytest.approx(float(np.quantile(drawn, p)), rel=0.01)


def test_the_order_of_convolution_sum_and_bound_is_that_of_the_definitions() -> None:
    random = np.random.default_rng(20)
    parts = [
        random.lognormal(math.log(110), 0.45, 40_000),
        random.gamma(4, 18, 40_000),
        random.lognormal(math.log(30), 0.8, 40_000),
        random.gamma(2, 20, 40_000),
    ]
    terms = [distribution(part) for part in parts]
    true = float(np.quantile(sum(random.permutation(part) for part in parts), 0.95))
    value = independent(terms, 0.95).value / MS
    total = sum_of_quantiles(terms, 0.95) / MS
    bound = guaranteed_bound(terms, 0.95).value / MS
    assert value == pytest.approx(true, rel=0.01)
    assert value < 0.9 * total < 0.9 * 0.9 * bound


def test_failures_never_vanish() -> None:
    failing = distribution([*[10.0] * 97, *[math.inf] * 3])
    other = distribution([*[20.0] * 95, *[math.inf] * 5])
    whole = sum_of([failing, other], 0.9)
    assert whole.failing == pytest.approx(1 - 0.97 * 0.95)
    assert whole.share_within(1e15) == pytest.approx(0.97 * 0.95)
    assert whole.estimate(0.9).value == pytest.approx(30 * MS)
    assert whole.estimate(0.95).value == math.inf
    assert independent([distribution([math.inf] * 9), other], 0.5).value == math.inf


def test_one_term_that_varies_has_its_own_interval_later_by_the_constants() -> None:
    random = np.random.default_rng(2)
    term = distribution(random.gamma(2, 30, 500))
    own = estimate_quantile(term.ordered, 0.95)
    found = independent([constant(200), term, constant(7.5)], 0.95)
    add = 207.5 * MS
    assert found.value == pytest.approx(own.value + add)
    assert (found.low, found.high) == pytest.approx((own.low + add, own.high + add))
    assert found.n == 500


def test_allowances_alone_add_up_exactly_and_are_no_samples() -> None:
    found = independent([constant(one) for one in (25, 5, 3, 90, 180, 15)], 0.95)
    assert (found.value, found.low, found.high) == (318 * MS, 318 * MS, 318 * MS)
    assert (found.n, found.n_effective) == (0, math.inf)


def test_few_samples_of_one_term_leave_the_whole_without_an_upper_limit() -> None:
    random = np.random.default_rng(3)
    many, few = distribution(random.gamma(2, 30, 5000)), distribution(random.gamma(2, 30, 60))
    assert independent([many, few], 0.95).high == math.inf
    enough = distribution(random.gamma(2, 30, 90))
    assert math.isfinite(independent([many, enough], 0.95).high)
    assert math.isfinite(independent([many, few], 0.5).high)


def test_samples_that_are_all_alike_are_not_taken_for_a_certainty() -> None:
    alike = distribution([10.0] * 20)
    assert independent([alike, constant(5)], 0.95).high == math.inf
    assert independent([alike, distribution(np.arange(1000.0))], 0.95).high == math.inf


def test_the_interval_is_wider_for_correlated_samples() -> None:
    random = np.random.default_rng(4)
    first, second = random.gamma(2, 30, 2000), random.gamma(2, 30, 2000)
    free = independent([distribution(first), distribution(second)], 0.95)
    tied = independent([distribution(first, 200), distribution(second, 200)], 0.95)
    assert tied.value == pytest.approx(free.value, rel=1e-3)
    assert tied.high - tied.low > 2 * (free.high - free.low)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """A quick look; benchmarks/whole_budget_coverage.py repeats it often enough."""
    random = np.random.default_rng(5)
    truth = float(np.quantile(random.gamma(2, 30, 10**6) + random.lognormal(3, 1, 10**6), 0.95))
    held = 0
    for _ in range(25):
        parts = random.gamma(2, 30, 200), random.lognormal(3, 1, 300)
        found = Sum([distribution(part) for part in parts]).estimate(0.95)
        held += found.low <= truth * MS <= found.high
    assert 21 <= held <= 25


def test_a_far_outlier_does_not_coarsen_the_grid_where_it_matters() -> None:
    random = np.random.default_rng(6)
    parts = [np.append(random.gamma(2, 30, 999), 3_600_000.0), random.gamma(3, 10, 500)]
    whole = sum_of([distribution(part) for part in parts], 0.95)
    assert whole.rounding_ns < 0.1 * MS
    assert whole.failing == 0
    drawn = random.choice(parts[0], 200_000) + random.choice(parts[1], 200_000)
    assert whole.estimate(0.95).value / MS == pytest.approx(
        float(np.quantile(drawn, 0.95)), rel=0.01
    )


def test_the_breach_has_an_interval_around_it() -> None:
    random = np.random.default_rng(7)
    whole = sum_of(
        [distribution(random.gamma(2, 30, 400)), distribution(random.gamma(2, 30, 400))], 0.95
    )
    share, low, high = whole.slower(250 * MS)
    assert 0 < low < share < high < 1
    assert Sum([constant(10)]).slower(9 * MS) == (1.0, 1.0, 1.0)
    assert Sum([constant(10)]).slower(10 * MS) == (0.0, 0.0, 0.0)


def test_no_terms_are_no_sum() -> None:
    with pytest.raises(ValueError, match="no terms"):
        independent([], 0.95)


def test_the_grid_says_what_it_adds() -> None:
    grid = Convolution([np.array([0.0, 1e9]), np.array([0.0, 3e9])])
    assert grid.step_ns == pytest.approx(4e9 / (32768 - 3))
    assert grid.share_at(grid.place(4e9 + 2 * grid.step_ns)) == pytest.approx(1.0)
    assert grid.share_at(-1) == 0.0


def test_quantile_of_nothing_but_numbers_is_as_everywhere() -> None:
    known = distribution([1.0, 2.0, 3.0, 4.0], math.inf)
    assert independent([known], 0.75).value == empirical_quantile(known.ordered, 0.75)


def test_what_only_exact_terms_decide_is_not_blurred_by_the_rounding_of_floats() -> None:
    steps = np.repeat([50.0, 100.0, 150.0, 200.0], [400, 120, 400, 80]) * MS
    exact = Distribution(np.sort(steps), math.inf)
    values = np.sort(np.random.default_rng(3).gamma(4, 0.002, 200)) * MS
    sampled = Distribution(values, 200.0)
    for p, step in ((0.45, 100.0), (0.7, 150.0)):
        found = independent([exact, sampled], p)
        assert step * MS <= found.low <= found.value <= found.high
        assert found.high - step * MS < 0.1 * MS


def test_the_upper_end_is_within_a_time_just_when_it_is_not_after_it() -> None:
    rng = np.random.default_rng(4)
    parts = [Distribution(np.sort(rng.gamma(9, 10, 400)) * MS, 400.0) for _ in range(3)]
    whole = sum_of(parts, 0.95)
    high = whole.estimate(0.95).high
    assert whole.quantile(0.95) == whole.estimate(0.95).value
    for share in (0.9, 0.999, 1.001, 1.1):
        assert whole.surely_within(0.95, share * high) == (share > 1)
    alone = Sum(parts[:1])
    assert alone.surely_within(0.95, alone.estimate(0.95).high)
    assert not alone.surely_within(0.95, alone.estimate(0.95).high * 0.99)
