"""Two tracks compared: the difference is held, and night is not compared with day."""

import math

import numpy as np
import pytest
from tests.intervals.campaigns import MIDNIGHT, autoregressive, track_of, truth

from pathbudget.analysis.intervals.comparison import Comparison, Order, compare, superiority
from pathbudget.analysis.quantiles import Values

HOUR = 3_600_000_000_000


def compared(a: Values, b: Values, p: float = 0.5) -> Comparison:
    found = compare(track_of(a), track_of(b), p)
    assert found is not None
    return found


def test_the_difference_is_held() -> None:
    rng = np.random.default_rng(61)
    first, second = (autoregressive(rng, 120, 800, 0.5) for _ in range(2))
    found = [compared(a, 1.1 * b) for a, b in zip(first, second, strict=True)]
    held = np.mean([one.low <= 0.1 * truth(0.5) <= one.high for one in found])
    assert 0.91 <= held <= 0.995
    assert not any(one.order is Order.SECOND_FASTER for one in found)


def test_one_swing_in_both_is_taken_out_of_the_difference() -> None:
    """Their levels go up and down together: the difference is known far better than either."""
    rng = np.random.default_rng(62)
    swing = np.log(autoregressive(rng, 40, 3000, 0.97) / 20)
    noise = rng.standard_normal((2, 40, 3000)) * 0.05
    first, second = (20 * np.exp(swing + one) for one in noise)
    found = [compared(a, b + 1.0) for a, b in zip(first, second, strict=True)]
    apart = [compared(a, b) for a, b in zip(first, np.roll(second, 1, axis=0), strict=True)]
    assert np.median([one.shared for one in found]) > 0.9
    widths, others = ([one.high - one.low for one in some] for some in (found, apart))
    assert np.median(widths) < 0.6 * np.median(others)
    assert np.mean([one.low <= 1.0 <= one.high for one in found]) >= 0.85


def test_only_hours_that_both_measured_are_compared() -> None:
    rng = np.random.default_rng(63)
    values = autoregressive(rng, 1, 2160, 0.0)[0]  # six hours
    late = values + np.where(np.arange(2160) >= 1080, 0.0, 30.0)
    first = track_of(values)
    second = track_of(late, start_unix_ns=MIDNIGHT - 3 * HOUR)
    found = compare(first, second, 0.5)
    assert found is not None
    assert found.hours == (0, 1, 2)
    assert found.left_out == (1080, 1080)
    assert found.order is Order.UNDECIDED
    assert not found.uneven
    assert compare(first, track_of(late, start_unix_ns=MIDNIGHT + 12 * HOUR), 0.5) is None


def test_losses_leave_a_difference_without_a_limit() -> None:
    rng = np.random.default_rng(64)
    values = autoregressive(rng, 2, 500, 0.0)
    values[1, ::10] = np.inf
    found = compared(values[0], values[1], 0.95)
    assert found.high == math.inf
    assert found.difference == math.inf
    assert found.relative is None
    back = compared(values[1], values[0], 0.95)
    assert back.low == -math.inf
    both = compared(values[1], values[1], 0.95)
    assert (both.low, both.high, both.order) == (-math.inf, math.inf, Order.UNDECIDED)


@pytest.mark.parametrize(
    ("first", "second", "chance"),
    [
        ([1.0], [2.0], 1.0),
        ([2.0], [1.0], 0.0),
        ([1.0, 2.0], [1.0, 2.0], 0.5),
        ([1.0], [math.inf], 1.0),
    ],
)
def test_superiority(first: list[float], second: list[float], chance: float) -> None:
    assert superiority(np.array(first), np.array(second)) == chance
