"""The bound against every coupling there is, and against the worst one."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.whole_budget.conftest import MS, constant, distribution

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.whole_budget.combine import guaranteed_bound


def share_above(sums: np.ndarray, time_ns: float) -> float:
    return float(np.count_nonzero(sums > time_ns + 1e-3)) / len(sums)


@settings(max_examples=15, deadline=None)
@given(
    st.lists(st.integers(0, 100), min_size=5, max_size=5),
    st.lists(st.integers(0, 100), min_size=5, max_size=5),
    st.sampled_from([0.2, 0.4, 0.6, 0.8]),
)
def test_no_coupling_of_two_terms_exceeds_it_oftener_than_it_may(
    first: list[int], second: list[int], p: float
) -> None:
    bound = guaranteed_bound([distribution(first), distribution(second)], p).value
    for order in itertools.permutations(second):
        sums = (np.array(first) + np.array(order)) * MS
        assert share_above(sums, bound) <= 1 - p + 1e-9


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_coupling_of_four_terms_exceeds_it_oftener_than_it_may(seed: int) -> None:
    random = np.random.default_rng(seed)
    parts = [random.gamma(2, 20, 200), random.lognormal(3, 1, 200), random.random(200) * 50]
    parts.append(random.exponential(9, 200))
    bound = guaranteed_bound([distribution(part) for part in parts], 0.9).value

    def order(kind: int, part: Values) -> "np.typing.NDArray[np.intp]":
        return [np.argsort(part), np.argsort(-part), random.permutation(200)][kind]

    for pick in itertools.product(range(3), repeat=3):
        others = [part[order(kind, part)] for part, kind in zip(parts[1:], pick, strict=True)]
        assert share_above((np.sort(parts[0]) + np.sum(others, axis=0)) * MS, bound) <= 0.1


def test_the_worst_coupling_of_two_terms_reaches_it() -> None:
    """The slowest tenth of both, the slowest of one with the least slow of the other."""
    first = np.arange(1, 1001.0)
    second = np.arange(1, 1001.0)
    bound = guaranteed_bound([distribution(first), distribution(second)], 0.9).value
    worst = second.copy()
    worst[900:] = worst[900:][::-1]
    sums = (first + worst) * MS
    assert share_above(sums, bound) <= 0.1
    assert share_above(sums, bound - 2 * MS) >= 0.1 - 1e-9


def test_a_constant_takes_none_of_the_share() -> None:
    term = distribution(np.arange(1, 1001.0))
    bound = guaranteed_bound([constant(50), term, constant(7)], 0.95)
    assert bound.value == pytest.approx((950 + 57) * MS)
    assert bound.shares == pytest.approx((1.0, 0.95, 1.0))


def test_its_upper_end_needs_enough_samples_of_every_term() -> None:
    random = np.random.default_rng(4)
    few = [distribution(random.gamma(2, 20, 100)) for _ in range(2)]
    assert guaranteed_bound(few, 0.95).high == math.inf
    many = [distribution(random.gamma(2, 20, 5000)) for _ in range(2)]
    found = guaranteed_bound(many, 0.95)
    assert found.value < found.high < 1.2 * found.value


def test_failures_are_part_of_the_share_that_may_be_slower() -> None:
    failing = distribution([*range(1, 97), math.inf, math.inf, math.inf, math.inf])
    other = distribution(np.arange(1, 101.0))
    assert math.isfinite(guaranteed_bound([failing, other], 0.95).value)
    assert guaranteed_bound([failing, failing], 0.95).value == math.inf


def test_no_terms_have_no_bound() -> None:
    with pytest.raises(ValueError, match="no terms"):
        guaranteed_bound([], 0.95)
