"""Where the distribution of a series changes."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.routes.rank_cuts import LEAST, gains_of_cuts, rank_cuts


@pytest.mark.parametrize("n", [0, 1, LEAST, 2 * LEAST - 1])
def test_too_few_values_have_no_cut(n: int) -> None:
    assert rank_cuts(np.arange(n, dtype=np.float64)) == []


@pytest.mark.parametrize("at", [40, 300, 471])
def test_a_step_is_cut_where_it_is(at: int) -> None:
    values = np.random.default_rng(at).normal(0, 1, 500)
    values[at:] += 12
    assert rank_cuts(values) == [at]


def test_levels_that_share_a_bin_of_the_window_are_cut_too() -> None:
    rng = np.random.default_rng(3)
    levels = [0, 50, 51.0, 50, 0, 52]
    values = np.concatenate([level + rng.normal(0, 0.05, 120) for level in levels])
    assert rank_cuts(values) == [120, 240, 360, 480, 600]


def test_spikes_are_no_levels() -> None:
    values = np.random.default_rng(5).normal(0, 1, 1000)
    values[::90] += 1000
    values[500 : 500 + LEAST - 3] += 1000
    assert rank_cuts(values) == []


def test_a_level_of_some_samples_is_found_in_a_long_window() -> None:
    values = np.random.default_rng(7).normal(0, 1, 2000)
    values[901:931] += 50
    assert rank_cuts(values) == [901, 931]


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(20, 180))
def test_only_ranks_count(seed: int, at: int) -> None:
    """Whatever keeps the order of the values keeps the cuts: the rate of false ones as well."""
    values = np.random.default_rng(seed).normal(0, 1, 200)
    values[at:] += 3
    assert rank_cuts(values) == rank_cuts(np.exp(values))


def test_noughts_and_ones_are_cut_by_their_share() -> None:
    lost = (np.random.default_rng(9).random(1200) < 0.005).astype(np.float64)
    lost[700:] = np.random.default_rng(10).random(500) < 0.2
    (cut,) = rank_cuts(lost, least=16)
    assert abs(cut - 700) < 25


def test_gains_are_none_at_the_ends_and_most_at_the_step() -> None:
    values = np.r_[np.zeros(30), np.ones(20)] + np.linspace(0, 0.4, 50)
    gains = gains_of_cuts(values, 25)
    assert gains[0] == pytest.approx(0)
    assert gains[-1] == pytest.approx(0)
    assert int(np.argmax(gains)) == 30
