"""The block bootstrap agrees with order statistics where nothing correlates."""

import math

import numpy as np
import pytest
from tests.intervals.campaigns import autoregressive, truth

from pathbudget.analysis.intervals.block_bootstrap import block_length, bootstrap_interval
from pathbudget.analysis.quantiles import interval_ranks


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_it_agrees_with_order_statistics_on_independent_samples(p: float) -> None:
    rows = autoregressive(np.random.default_rng(31), 30, 800, 0.0)
    lower, upper = interval_ranks(800, p)
    assert upper is not None
    widths = [np.diff(bootstrap_interval(row, p, seed=i))[0] for i, row in enumerate(rows)]
    ordered = np.sort(rows, axis=1)
    exact = ordered[:, upper - 1] - ordered[:, lower - 1]
    assert 0.9 < np.mean(widths) / np.mean(exact) < 1.15


def test_blocks_are_as_long_as_memory_is() -> None:
    """The textbook length for AR(1) is (2 (2r / (1 - r^2))^2 / (4/3))^(1/3) n^(1/3): 64 for 0.9."""
    rng = np.random.default_rng(32)
    lengths = {
        r: float(np.median([block_length(row) for row in autoregressive(rng, 40, 2000, r)]))
        for r in (0.0, 0.5, 0.9)
    }
    assert lengths[0.0] <= 3
    assert 8 <= lengths[0.5] <= 28
    assert 35 <= lengths[0.9] <= 100


def test_it_holds_the_truth_of_correlated_samples() -> None:
    rows = autoregressive(np.random.default_rng(33), 120, 1500, 0.8)
    intervals = [bootstrap_interval(row, 0.5, seed=i) for i, row in enumerate(rows)]
    held = np.mean([low <= truth(0.5) <= high for low, high in intervals])
    assert held > 0.86


def test_it_is_reproducible_and_knows_its_limits() -> None:
    values = autoregressive(np.random.default_rng(34), 1, 300, 0.5)[0]
    assert bootstrap_interval(values, 0.9, seed=5) == bootstrap_interval(values, 0.9, seed=5)
    assert bootstrap_interval(values, 0.99)[1] == math.inf  # 368 would set a limit
    assert bootstrap_interval(np.full(50, math.inf), 0.5) == (math.inf, math.inf)
    assert block_length(np.full(500, 7.0)) == 1
    with pytest.raises(ValueError, match="no samples"):
        bootstrap_interval(np.array([]), 0.5)
