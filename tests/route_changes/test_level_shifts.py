"""Level shifts of delay, variation and loss, at once and as samples come."""

import tracemalloc
from collections.abc import Callable

import numpy as np
import pytest
from tests.route_changes.conftest import MS, Times, Values
from tests.route_changes.noises import NOISES

from pathbudget.analysis.routes.episodes import gap_ns
from pathbudget.analysis.routes.level_shifts import (
    FALSE_ALARMS,
    SETTLED,
    LevelWatch,
    ShiftOptions,
    level_shifts,
)
from pathbudget.analysis.routes.model import LevelShift, PathSeries

Poisson = Callable[[int, int], Times]


def calm(n: int, seed: int) -> Values:
    """20 ms and a little, with spikes."""
    rng = np.random.default_rng(seed)
    values = 20 + 0.3 * rng.gamma(0.7, 1, n)
    return (values + np.where(rng.random(n) < 0.01, rng.pareto(1.5, n) * 5, 0.0)) * MS


def watched(series: PathSeries, times: Times, values: Values) -> list[LevelShift]:
    watch = LevelWatch(series)
    return watch.see_all(times.tolist(), values.tolist()) + watch.finish()


@pytest.mark.parametrize("cost_ms", [12.0, -3.0, 0.5])
def test_a_step_is_told_with_its_time_and_cost(
    series: PathSeries, poisson: Poisson, cost_ms: float
) -> None:
    times, values = poisson(900, 1), calm(900, 1)
    values[500:] += cost_ms * MS
    (shift,) = level_shifts(series, "rtt", times, values)
    assert (shift.what, shift.gradual, shift.metric) == ("rtt", False, "rtt")
    assert shift.window.after_unix_ns < times[500]
    assert shift.window.by_unix_ns >= times[500]
    assert shift.cost.low_ns <= cost_ms * MS <= shift.cost.high_ns
    assert shift.cost.high_ns - shift.cost.low_ns < 0.2 * MS
    assert shift.floor_ns == pytest.approx(cost_ms * MS, abs=0.1 * MS)
    assert shift.false_alarms == FALSE_ALARMS


def test_a_large_step_is_placed_between_two_samples(series: PathSeries, poisson: Poisson) -> None:
    times, values = poisson(400, 2), calm(400, 2)
    values[200:] += 200 * MS
    (shift,) = level_shifts(series, "rtt", times, values)
    assert shift.window == (times[199], times[200])


def test_intervals_of_the_cost_hold_the_truth_as_often_as_they_say(series: PathSeries) -> None:
    held = 0
    for seed in range(16):
        rng = np.random.default_rng(seed)
        values = NOISES["AR(1), 0.9"](rng, 400) * MS
        values[200:] += 12 * MS
        shifts = level_shifts(series, "rtt", np.arange(400) * 1000, values)
        held += any(shift.cost.low_ns <= 12 * MS <= shift.cost.high_ns for shift in shifts)
    assert held >= 14


def test_a_hole_in_the_data_leaves_the_time_open(series: PathSeries, poisson: Poisson) -> None:
    times, values = poisson(600, 3), calm(600, 3)
    values[300:] += 8 * MS
    times[300:] += 3_600_000_000_000
    (shift,) = level_shifts(series, "rtt", times, values)
    assert shift.window == (times[299], times[300])


def test_losses_around_a_step_do_not_hide_it(series: PathSeries, poisson: Poisson) -> None:
    times, values = poisson(600, 4), calm(600, 4)
    values[300:] += 8 * MS
    values[np.random.default_rng(4).random(600) < 0.1] = np.inf
    values[290:310] = np.inf
    found = [one for one in level_shifts(series, "rtt", times, values) if one.what == "rtt"]
    assert [one.window for one in found] == [(times[289], times[310])] or (
        len(found) == 1
        and found[0].window.after_unix_ns <= times[300] <= found[0].window.by_unix_ns
    )


def test_more_spread_at_the_same_level_is_variation(series: PathSeries, poisson: Poisson) -> None:
    rng = np.random.default_rng(6)
    values = 20 + 0.2 * rng.standard_normal(1200)
    values[600:] = 20 + 2 * rng.standard_normal(600)
    (shift,) = level_shifts(series, "rtt", poisson(1200, 6), values * MS)
    assert shift.what == "pdv"
    assert shift.before.value_ns == pytest.approx(0.51 * MS, rel=0.2)
    assert shift.after.value_ns == pytest.approx(5.1 * MS, rel=0.2)
    assert shift.cost.low_ns < 4.6 * MS < shift.cost.high_ns


def test_loss_is_a_share_with_its_interval(series: PathSeries, poisson: Poisson) -> None:
    values = calm(1600, 7)
    lost = np.random.default_rng(7).random(1600)
    values[(lost < 0.1) & (np.arange(1600) >= 800)] = np.inf
    (shift,) = level_shifts(series, "rtt", poisson(1600, 7), values)
    assert shift.what == "loss"
    assert shift.before.value_ns == pytest.approx(0, abs=0.002)
    assert shift.after.low_ns < 0.1 < shift.after.high_ns < 0.2


def test_a_swell_is_gradual_and_a_step_is_not(series: PathSeries, poisson: Poisson) -> None:
    times, values = poisson(1500, 8), calm(1500, 8)
    swell = (1 - np.cos(np.linspace(0, 2 * np.pi, 500))) / 2
    values[500:1000] += 10 * MS * swell
    found = level_shifts(series, "rtt", times, values)
    assert len(found) >= 4
    assert sum(one.gradual for one in found) > 0.8 * len(found)


@pytest.mark.parametrize(
    "kind", ["two paths by chance", "four paths in turn", "Pareto, 1.1", "AR(1), 0.9"]
)
def test_what_a_calm_series_does_anyway_is_no_shift(
    series: PathSeries, poisson: Poisson, kind: str
) -> None:
    """Not one in 2,048 samples: load balancers by packet included (flutter is no event)."""
    values = NOISES[kind](np.random.default_rng(11), 2048) * MS
    assert level_shifts(series, "rtt", poisson(2048, 11), values) == []


def test_shifts_smaller_than_the_noise_floor_are_not_told(
    series: PathSeries, poisson: Poisson
) -> None:
    times, values = poisson(800, 12), calm(800, 12)
    values[400:] += 0.4 * MS
    assert level_shifts(series, "rtt", times, values, ShiftOptions(least_ns=0.5 * MS)) == []
    assert len(level_shifts(series, "rtt", times, values, ShiftOptions(least_ns=0.2 * MS))) == 1


def test_the_watch_tells_what_the_batch_tells(series: PathSeries, poisson: Poisson) -> None:
    times, values = poisson(1400, 13), calm(1400, 13)
    for first, end, cost in ((300, 420, 12), (700, 1000, 3), (1200, 1400, 5)):
        values[first:end] += cost * MS
    batch, live = level_shifts(series, "rtt", times, values), watched(series, times, values)
    assert len(live) == len(batch) == 5
    for one, other in zip(live, batch, strict=True):
        assert gap_ns(one.window, other.window) == 0
        assert abs(one.cost.value_ns - other.cost.value_ns) < 0.3 * MS


def test_the_watch_tells_soon_and_once(series: PathSeries, poisson: Poisson) -> None:
    times, values = poisson(1000, 14), calm(1000, 14)
    values[600:] += 6 * MS
    watch = LevelWatch(series)
    told = [(n, shift) for n in range(1000) for shift in watch.see(int(times[n]), float(values[n]))]
    ((when, shift),) = told
    assert shift.window.by_unix_ns >= times[600]
    assert SETTLED <= when - 600 <= 2 * SETTLED
    assert watch.finish() == []


def test_the_watch_needs_no_more_memory_for_a_longer_series(
    series: PathSeries, poisson: Poisson
) -> None:
    times, values = poisson(2400, 15), calm(2400, 15)
    values[::7] = np.inf
    watch = LevelWatch(series)
    watch.see_all(times[:800].tolist(), values[:800].tolist())
    tracemalloc.start()
    watch.see_all(times[800:1600].tolist(), values[800:1600].tolist())
    once = tracemalloc.get_traced_memory()[0]
    watch.see_all(times[1600:].tolist(), values[1600:].tolist())
    later = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert later <= once + 4096
    assert once < 40_000
