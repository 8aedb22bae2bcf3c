"""Each direction by itself: skew, steps and path changes between two clocks nobody synchronised."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.variation.simulated_paths import Simulation, Way, simulate

from pathbudget.analysis.clock_fit import fit_clocks
from pathbudget.analysis.directions import (
    Directions,
    Variation,
    directions_of,
    ipdv_estimates,
    pdv_estimates,
    round_trip_variation,
)
from pathbudget.analysis.envelope import lower_hull, shared_skew

MS = 1e6


def of(made: Simulation) -> Directions:
    found = directions_of(made.stream)
    assert found is not None
    return found


def test_the_lower_hull_is_that_of_brute_force() -> None:
    rng = np.random.default_rng(1)
    for _ in range(30):
        times = np.sort(rng.integers(0, 40, 25)).astype(np.float64)
        values = rng.integers(0, 30, 25).astype(np.float64)
        corners = lower_hull(times, values)
        chain = np.interp(times, times[corners], values[corners])
        assert (values >= chain - 1e-9).all()
        assert (np.diff(np.diff(values[corners]) / np.diff(times[corners])) > 0).all()


def test_skew_is_exact_where_no_packet_waits() -> None:
    times = np.arange(0, 100e9, 1e9)
    skew = shared_skew(times, 7e9 + 80e-6 * times, -7e9 - 80e-6 * times)
    assert skew == pytest.approx(80e-6, rel=1e-6)


def test_eighty_ppm_over_minutes_vanish() -> None:
    """300 s at 80 ppm move the transit times by 24 ms; less than 0.2 ms of it is left."""
    made = simulate(4, n=3000, gap_ms=100.0)
    found = of(made)
    (piece,) = found.fit.pieces
    assert abs(piece.skew - 80e-6) < piece.skew_error < 0.7e-6
    truth = made.arrived("forward")
    assert np.abs(found.forward.pdv_ns - (truth - truth.min())).max() < 0.2 * MS


def test_the_skew_is_within_its_error_as_often_as_stated() -> None:
    """99 % intervals of 60 paths with a step, so of 120 pieces: five misses would be a defect."""
    misses = 0
    for seed in range(60):
        for piece in of(simulate(seed, n=2000, step_ms=5.0)).fit.pieces:
            misses += abs(piece.skew - 80e-6) > piece.skew_error
    assert misses <= 4


@pytest.mark.parametrize("step_ms", [0.0, 5.0, -40.0])
@pytest.mark.parametrize("way", ["forward", "reverse"])
def test_intervals_of_pdv_cover_the_truth_as_often_as_stated(way: str, step_ms: float) -> None:
    """30 ms out, 20 ms back, different gammas and losses, 80 ppm, a step: 95 % intervals.

    The truth is the quantile of the distribution, over the smallest delay that there is; and what
    the packets really did, over the smallest delay of theirs. 30 paths: at 95 % two or fewer would
    miss in 81 % of all cases, five or more in 2 %, so five misses are a defect.
    """
    shape, scale = (2.0, 1.0) if way == "forward" else (1.5, 2.0)
    misses: Counter[tuple[float, str]] = Counter()
    for seed in range(30):
        made = simulate(1000 + seed, n=2400, step_ms=step_ms)
        found = of(made)
        variation: Variation = getattr(found, way)
        truth = made.arrived(way)
        for p, estimate in zip(
            (0.5, 0.95, 0.99), pdv_estimates(variation, (0.5, 0.95, 0.99)), strict=True
        ):
            drawn = stats.gamma.ppf(p, shape, scale=scale) * MS
            happened = np.quantile(truth - truth.min(), p)
            misses[p, "drawn"] += not estimate.low <= drawn <= estimate.high
            misses[p, "happened"] += not estimate.low <= happened <= estimate.high
            assert estimate.high - estimate.low < (0.35 if p < 0.99 else 0.6) * drawn + 0.2 * MS
    assert max(misses.values()) <= 4, misses


@pytest.mark.parametrize(("way", "ratio"), [("forward", 0.02), ("reverse", 0.01)])
def test_loss_of_each_direction_is_within_its_interval(way: str, ratio: float) -> None:
    hits = 0
    for seed in range(40):
        found = of(simulate(seed, n=1500))
        loss = found.forward_loss if way == "forward" else found.reverse_loss
        assert loss.unknown == 0
        hits += loss.low <= ratio <= loss.high
    assert hits >= 36


def test_loss_that_no_end_can_place_widens_both_intervals() -> None:
    found = of(simulate(5, placed=False))
    assert (found.forward_loss.lost, found.reverse_loss.lost) == (0, 0)
    assert found.forward_loss.unknown == found.reverse_loss.unknown > 50
    for loss, truth in ((found.forward_loss, 0.02), (found.reverse_loss, 0.01)):
        assert loss.low == 0.0
        assert loss.low <= truth <= loss.high


def test_the_counts_of_the_reflector_place_losses_that_no_packet_could_be_charged_with() -> None:
    made = simulate(5, placed=False)
    stream = made.stream
    stream.counters.update({"lost_forward": 40, "lost_reverse": 30})
    found = of(made)
    lost = int(np.count_nonzero(stream.lost))
    assert (found.forward_loss.lost, found.reverse_loss.lost) == (40, 30)
    assert found.forward_loss.unknown == lost - 70
    assert found.reverse_loss.sent == stream.n - 40


@pytest.mark.parametrize("step_ms", [3.0, -3.0, 500.0])
def test_a_clock_step_is_told_from_a_path_change(step_ms: float) -> None:
    found = of(simulate(6, step_ms=step_ms))
    (step,) = found.steps
    assert found.path_changes == ()
    assert abs(step.step_ns / MS - step_ms) < step.error_ns / MS < 1.5
    assert abs(step.at - 1500) <= 3


@pytest.mark.parametrize("path_ms", [(8.0, 0.0), (0.0, 6.0), (-9.0, 0.0), (7.0, 5.0)])
def test_a_path_change_is_told_from_a_clock_step(path_ms: tuple[float, float]) -> None:
    found = of(simulate(7, path_ms=path_ms))
    (change,) = found.path_changes
    assert found.steps == ()
    assert change.forward_ns / MS == pytest.approx(path_ms[0], abs=0.5)
    assert change.reverse_ns / MS == pytest.approx(path_ms[1], abs=0.5)


def test_pitfall_26_variation_is_counted_from_the_minimum_of_each_path() -> None:
    with_change = of(simulate(8, path_ms=(12.0, 0.0)))
    without = of(simulate(8))
    for way in ("forward", "reverse"):
        changed, calm = (
            pdv_estimates(getattr(one, way), (0.95,))[0] for one in (with_change, without)
        )
        assert changed.value == pytest.approx(calm.value, abs=0.3 * MS)
    there, _ = with_change.levels_ns()
    assert there[0] == 0.0
    assert there[-1] == pytest.approx(12 * MS, abs=0.5 * MS)


def test_a_queue_that_stands_for_a_while_is_variation_and_no_path() -> None:
    made = simulate(9, out=calm_way(loss=0.0), back=calm_way(loss=0.0))
    stream = made.stream
    stream.forward.values_ns[1200:1800] += 15 * MS
    stream.round_trips_ns[1200:1800] += 15 * MS
    found = of(made)
    assert found.path_changes == found.steps == ()
    assert float(np.median(found.forward.delays_ns[1300:1700])) > 15 * MS
    assert pdv_estimates(found.forward, (0.95,))[0].value > 15 * MS
    assert pdv_estimates(found.reverse, (0.95,))[0].value < 6 * MS


def calm_way(loss: float) -> Way:
    return Way(10.0, 1.5, 1.0, loss)


@pytest.mark.parametrize("shape", [0.7, 1.0, 3.0])
def test_noise_alone_is_no_step_and_no_path_change(shape: float) -> None:
    rng = np.random.default_rng(20)
    for _ in range(60):
        times = np.arange(2000) * 50_000_000
        forward, reverse = (rng.gamma(shape, 2 * MS, 2000) for _ in range(2))
        cuts = fit_clocks(times, forward, reverse).cuts
        assert not any(cut.is_clock_step or cut.is_path_change for cut in cuts)


def test_few_packets_give_a_wide_interval_and_no_claim_about_the_skew() -> None:
    found = of(simulate(3, n=12, gap_ms=1000.0))
    (piece,) = found.fit.pieces
    assert piece.skew_error >= 200e-6
    (middle,) = pdv_estimates(found.forward, (0.5,))
    assert middle.high - middle.low > 1 * MS


def test_one_packet_has_no_variation_and_none_at_all_has_no_directions() -> None:
    single = of(simulate(3, n=1, out=calm_way(0.0), back=calm_way(0.0)))
    (middle,) = pdv_estimates(single.forward, (0.5,))
    assert (middle.value, middle.low, middle.high) == (0.0, 0.0, np.inf)
    assert ipdv_estimates(single.forward, (0.5,)) == ()
    lost = simulate(3, n=5, out=calm_way(1.0))
    assert directions_of(lost.stream) is None
    assert round_trip_variation(lost.stream) is None


def test_ipdv_pairs_nothing_across_a_step_or_a_loss() -> None:
    found = of(simulate(10, step_ms=300.0))
    assert np.abs(found.forward.ipdv_ns).max() < 30 * MS
    low, middle, high = ipdv_estimates(found.forward, (0.01, 0.5, 0.99))
    assert low.value < 0 < high.value
    assert middle.low < 0 < middle.high


@settings(max_examples=15, deadline=None)
@given(st.integers(-(10**15), 10**15), st.floats(-150, 150))
def test_law_offset_and_skew_of_the_clocks_change_no_variation(
    offset_ns: int, skew_ppm: float
) -> None:
    rng = np.random.default_rng(2)
    sent = np.cumsum(rng.exponential(5e7, 800)).astype(np.int64)
    forward, reverse = rng.gamma(2, MS, 800), rng.gamma(1, MS, 800)
    moved = offset_ns + skew_ppm * 1e-6 * sent
    plain = fit_clocks(sent, forward, reverse)
    other = fit_clocks(sent, forward + moved, reverse - moved)
    assert other.pieces[0].skew - plain.pieces[0].skew == pytest.approx(skew_ppm * 1e-6, abs=1e-8)


def test_law_the_directions_of_a_mirrored_path_change_places() -> None:
    made = simulate(11, step_ms=4.0)
    stream = made.stream
    mirrored = directions_of(replace(stream, forward=stream.reverse, reverse=stream.forward))
    plain = of(made)
    assert mirrored is not None
    assert mirrored.reverse.delays_ns == pytest.approx(plain.forward.delays_ns, nan_ok=True)
    assert mirrored.steps[0].step_ns == pytest.approx(-plain.steps[0].step_ns)
