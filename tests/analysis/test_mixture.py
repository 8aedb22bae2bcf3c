"""The quantile of a mixture of connection modes."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.analysis.mixture import Part, first_reaching, mixture_estimate
from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.request import Distribution


def part(weight: float, values: Values) -> Part:
    return Part(weight, Distribution(np.sort(values), float(len(values))))


def test_one_mode_alone_is_that_mode() -> None:
    only = part(1.0, np.arange(1.0, 301.0))
    assert mixture_estimate([only], 0.95) == only.distribution.estimate(0.95, 0.95)


def test_value_is_the_quantile_of_the_mixed_distribution() -> None:
    """90 % at 10, 10 % at 100: p50 is 10, p95 is 100; no average of 10 and 100 ever is."""
    parts = [part(0.9, np.full(500, 10.0)), part(0.1, np.full(500, 100.0))]
    assert mixture_estimate(parts, 0.50).value == 10.0
    assert mixture_estimate(parts, 0.90).value == 10.0
    assert mixture_estimate(parts, 0.95).value == 100.0


def test_sample_counts_do_not_weigh() -> None:
    few, many = np.linspace(1, 2, 100), np.linspace(5, 6, 10_000)
    assert mixture_estimate([part(0.9, few), part(0.1, many)], 0.5).value < 2


@given(
    st.lists(st.floats(0, 1000), min_size=1, max_size=40),
    st.lists(st.floats(0, 1000), min_size=1, max_size=40),
    st.floats(0.05, 0.95),
    st.sampled_from([0.5, 0.95]),
)
def test_value_against_its_definition(
    one: list[float], two: list[float], weight: float, p: float
) -> None:
    parts = [part(weight, np.array(one)), part(1 - weight, np.array(two))]
    estimate = mixture_estimate(parts, p)

    def below(x: float) -> float:
        shares = [sum(value <= x for value in values) / len(values) for values in (one, two)]
        return weight * shares[0] + (1 - weight) * shares[1]

    assert below(estimate.value) >= p - 1e-9
    assert all(below(x) < p for x in [*one, *two] if x < estimate.value)
    assert estimate.low <= estimate.value <= estimate.high


def test_what_is_missing_widens_both_ends() -> None:
    warm = part(0.9, np.linspace(10, 20, 1000))
    whole = mixture_estimate([warm, part(0.1, np.linspace(10, 20, 1000))], 0.5)
    holed = mixture_estimate([warm], 0.5, missing_weight=0.1)
    assert holed.low < whole.low < whole.high < holed.high < math.inf
    assert mixture_estimate([warm], 0.95, missing_weight=0.1).high == math.inf


def test_losses_beyond_the_percentile_leave_it_unbounded() -> None:
    warm, cold = np.full(500, 10.0), np.full(500, 40.0)
    cold[:300] = math.inf
    parts = [part(0.9, warm), part(0.1, cold)]
    assert mixture_estimate(parts, 0.95).value == math.inf
    assert mixture_estimate(parts, 0.90).value == 10.0


def test_first_reaching() -> None:
    grid = np.array([1.0, 2.0, 3.0])
    assert first_reaching(grid, lambda x: x / 4, 0.5) == 2.0
    assert first_reaching(grid, lambda x: x / 4, 0.9) == math.inf


@pytest.mark.parametrize("p", [0.5, 0.95])
def test_coverage(p: float) -> None:
    """The interval is conservative: at least nominal over 400 seeded runs."""
    rng = np.random.default_rng(5)
    weights, centres = (0.9, 0.08, 0.02), (1.0, 2.0, 3.0)
    reference = np.concatenate(
        [
            np.exp(0.3 * rng.standard_normal(round(w * 2e6)) + c)
            for w, c in zip(weights, centres, strict=True)
        ]
    )
    truth = float(np.quantile(reference, p))
    hits = 0
    for _ in range(400):
        parts = [
            part(w, np.exp(0.3 * rng.standard_normal(300) + c))
            for w, c in zip(weights, centres, strict=True)
        ]
        estimate = mixture_estimate(parts, p)
        hits += estimate.low <= truth <= estimate.high
    assert hits / 400 >= 0.95
