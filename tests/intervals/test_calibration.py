"""Intervals hold the truth as often as they say: neither seldom nor always."""

import numpy as np
import pytest
from scipy import special
from tests.intervals.campaigns import autoregressive, distributions, held, track_of, truth

from pathbudget.analysis.distribution import distribution_of
from pathbudget.analysis.intervals.timeline import MOST_GAIN, timeline_of
from pathbudget.analysis.mixture import Part, mixture_estimate
from pathbudget.analysis.quantiles import interval_ranks, widened_ranks
from pathbudget.analysis.track import Track

CAMPAIGNS = 400
CASES = ((0.0, 0.5), (0.0, 0.95), (0.6, 0.5), (0.8, 0.95))
"""Correlation of neighbours, and the quantile."""
LEAST, MOST = 0.93, 0.966
"""Mean share of intervals that hold the truth: 1,600 of them scatter by 0.55 %."""


def test_intervals_hold_the_truth_in_95_of_100() -> None:
    """Were they a fifth narrower or a quarter wider, they would not."""
    seen: dict[float, list[float]] = {1.0: [], 0.8: [], 1.25: []}
    for r, p in CASES:
        rows = autoregressive(np.random.default_rng([21, round(10 * r)]), CAMPAIGNS, 1000, r)
        estimates = [one.estimate(p, 0.95) for one in distributions(rows)]
        for stretch, shares in seen.items():
            shares.append(held(estimates, truth(p), stretch))
    assert LEAST < np.mean(seen[1.0]) < MOST
    assert min(seen[1.0]) > 0.91
    assert max(seen[1.0]) < 0.985
    assert np.mean(seen[0.8]) < LEAST - 0.01
    assert np.mean(seen[1.25]) > MOST


def test_what_repeats_every_day_is_no_chance() -> None:
    """Three days of an evening twice as slow: the interval is of the noise, not of the rhythm."""
    rng = np.random.default_rng(22)
    n = 3 * 480
    evening = np.maximum(0, np.cos(2 * np.pi * (np.arange(n) / 480 - 0.8))) ** 2

    def days(campaigns: int) -> np.typing.NDArray[np.float64]:
        return 20 * (1 + evening) + rng.exponential(2, (campaigns, n))

    median = float(np.median(days(1000)))
    estimates = [one.estimate(0.5, 0.95) for one in distributions(days(300), 180.0)]
    assert 0.92 < held(estimates, median) < 0.985
    naive = [distribution_of(track_of(row)).estimate(0.5, 0.95) for row in days(50)]
    assert np.mean([one.high - one.low for one in naive]) > 3 * np.mean(
        [one.high - one.low for one in estimates]
    )  # the same numbers within four hours, where nothing repeats


def test_bursts_of_losses_count_as_bursts() -> None:
    rng = np.random.default_rng(23)
    values = autoregressive(rng, 1, 3000, 0.0)[0]
    spread, together = values.copy(), values.copy()
    spread[37::75] = np.inf
    for start in range(100, 2900, 700):
        together[start : start + 10] = np.inf
    alone, bursts = (
        distribution_of(track_of(one)).estimate(0.98, 0.95) for one in (spread, together)
    )
    assert alone.n_effective > 2000
    assert bursts.n_effective < 600
    assert bursts.high == np.inf
    assert alone.high < np.inf


def test_a_mixture_holds_the_truth_too() -> None:
    """90 % of one mode, 10 % of one twice as slow that a fifth of the samples are of."""
    rng = np.random.default_rng(24)
    warm = autoregressive(rng, 200, 1000, 0.6)
    cold = 2 * autoregressive(rng, 200, 200, 0.0)
    z = np.log(np.linspace(20, 80, 60001) / 20) / 0.3
    share = 0.9 * special.ndtr(z) + 0.1 * special.ndtr(z - np.log(2) / 0.3)
    p95 = float(np.linspace(20, 80, 60001)[np.searchsorted(share, 0.95)])
    estimates = [
        mixture_estimate(
            [
                Part(0.9, distribution_of(track_of(a))),
                Part(0.1, distribution_of(track_of(b, 50.0))),
            ],
            0.95,
        )
        for a, b in zip(warm, cold, strict=True)
    ]
    assert 0.905 < held(estimates, p95) < 0.99


def test_independent_samples_get_the_exact_order_statistics() -> None:
    """Those that chance makes look correlated are few, and get wider intervals, never narrower."""
    rows = autoregressive(np.random.default_rng(25), 200, 500, 0.0)
    lower, upper = interval_ranks(500, 0.95)
    assert upper is not None
    exact = 0
    for one in distributions(rows):
        found = one.estimate(0.95, 0.95)
        exact += found.low == one.ordered[lower - 1] and found.high == one.ordered[upper - 1]
        assert found.low <= one.ordered[lower - 1]
        assert found.high >= one.ordered[upper - 1]
    assert exact > 170


def test_two_vantages_that_differ_are_no_chance() -> None:
    """Each is of its own level: the share below their middle is always one half."""
    rng = np.random.default_rng(26)
    values = np.tile([20.0, 40.0], 500) + rng.standard_normal(1000)
    track = track_of(values)
    both = Track(track.sent_unix_ns, values, np.tile(np.array([0, 1]), 500))
    apart = distribution_of(both)
    assert apart.worth(0.25) > 1.4 * 1000
    assert apart.worth(0.25) <= MOST_GAIN * 1000
    assert apart.estimate(0.25, 0.95).n_effective == 1000


def test_few_samples_have_no_timeline_and_an_interval() -> None:
    track = track_of(np.arange(20.0))
    assert timeline_of(track, 10.0) is None
    assert distribution_of(track).estimate(0.5, 0.95).low < 9.5


@pytest.mark.parametrize("worth", [1.0, 40.3, 72.0, 500.5, 999.0, 1000.0, 2500.0])
@pytest.mark.parametrize("p", [0.5, 0.95, 0.99])
def test_more_worth_is_never_wider(worth: float, p: float) -> None:
    lower, upper = widened_ranks(1000, worth, p, 0.95)
    better_lower, better_upper = widened_ranks(1000, worth + 100, p, 0.95)
    assert lower <= better_lower <= 1000 * p + 1
    assert better_upper is None or better_upper >= 1000 * p
    assert upper is None or (better_upper is not None and better_upper <= upper)
