"""Sampling distributions of headline values, choice frequency, regret, what to measure next."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest

from pathbudget.analysis.distribution import Distribution
from pathbudget.analysis.mixture import Part
from pathbudget.analysis.quantiles import empirical_quantile
from pathbudget.analysis.siting.information import Worth, worth_of_pairs
from pathbudget.analysis.siting.robustness import (
    ALL,
    NEIGHBOURS,
    Resampled,
    resample,
    robustness_of,
)
from pathbudget.analysis.siting.sampling import (
    LEVEL_WEIGHTS,
    PROBABILITIES,
    at_levels,
    draws,
    of_interval,
    of_parts,
)
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.score import Score, finite, neighbours
from pathbudget.analysis.siting.vocabulary import Aim

Build = Callable[..., Scene]


def median_score(scene: Scene) -> Score:
    return Score(Aim.P_MEDIAN, scene.weights)


def test_the_table_is_that_of_the_bootstrap() -> None:
    """The quantile of 4,000 bootstrap samples has the distribution that is tabulated."""
    rng = np.random.default_rng(1)
    values = np.sort(rng.gamma(2.0, 10.0, 300))
    table = of_parts([Part(1.0, Distribution(values, 300.0))], 0.95)
    again = np.sort(rng.choice(values, (4000, 300)), axis=1)
    quantiles = [empirical_quantile(row, 0.95) for row in again]
    spread = values[-1] - values[0]
    for probability, tabulated in zip(PROBABILITIES, table, strict=True):
        assert tabulated == pytest.approx(np.quantile(quantiles, probability), abs=0.03 * spread)


def test_fewer_effective_samples_spread_wider() -> None:
    values = np.sort(np.random.default_rng(2).gamma(2.0, 10.0, 400))
    wide = of_parts([Part(1.0, Distribution(values, 40.0))], 0.5)
    narrow = of_parts([Part(1.0, Distribution(values, 400.0))], 0.5)
    assert wide[0] < narrow[0]
    assert narrow[-1] < wide[-1]
    assert (np.diff(wide) >= 0).all()


def test_losses_and_missing_modes_are_unbounded() -> None:
    values = np.append(np.linspace(1, 2, 90), [math.inf] * 10)
    table = of_parts([Part(1.0, Distribution(values, 100.0))], 0.95)
    assert math.isinf(table[-1])
    half = of_parts([Part(0.5, Distribution(np.linspace(1, 2, 100), 100.0))], 0.95, 0.5)
    assert math.isinf(half[6])


def test_a_mixture_of_equal_parts_is_their_union() -> None:
    values = np.sort(np.random.default_rng(3).gamma(2.0, 10.0, 400))
    parts = [Part(0.5, Distribution(values[i::2], 200.0)) for i in (0, 1)]
    whole = of_parts([Part(1.0, Distribution(values, 400.0))], 0.9)
    assert of_parts(parts, 0.9) == pytest.approx(whole, rel=0.03)


def test_an_interval_is_met_at_its_ends() -> None:
    table = of_interval(20.0, 15.0, 30.0)
    assert table[PROBABILITIES.index(0.025)] == pytest.approx(15.0)
    assert table[PROBABILITIES.index(0.5)] == pytest.approx(20.0)
    assert table[PROBABILITIES.index(0.975)] == pytest.approx(30.0)
    assert math.isinf(of_interval(20.0, 15.0, math.inf)[-1])
    assert np.isinf(of_interval(math.inf, math.inf, math.inf)).all()


def test_draws_are_mirrored_seeded_and_within_their_tables() -> None:
    tables = np.array([[of_interval(20.0, 15.0, 30.0), of_interval(5.0, 5.0, 5.0)]])
    once, again = draws(tables, 100, 7), draws(tables, 100, 7)
    assert np.array_equal(once, again)
    assert not np.array_equal(once, draws(tables, 100, 8))
    assert once[:, 0, 1] == pytest.approx(5.0)
    assert (once[:, 0, 0] >= tables[0, 0, 0]).all()
    assert (once[:, 0, 0] <= tables[0, 0, -1]).all()
    assert once[:, 0, 0].mean() == pytest.approx(LEVEL_WEIGHTS @ tables[0, 0], rel=0.03)
    ends = at_levels(tables, np.array([[[0.0, 0.0]], [[1.0, 1.0]]]))
    assert ends[:, 0, 0] == pytest.approx([tables[0, 0, 0], tables[0, 0, -1]])


def test_a_clear_choice_is_always_the_best(scene_of_table: Build) -> None:
    scene = scene_of_table({"r": {"a": (10.0, 9.0, 11.0), "b": (30.0, 28.0, 33.0)}})
    robust = robustness_of(resample(scene.tables, median_score(scene), (0,)), scene.names)
    assert robust.share_of_best == 1.0
    assert robust.regret_p95 == 0.0
    assert robust.choices[0].sites == ("a",)


def test_equal_sites_are_each_the_best_half_of_the_time(scene_of_table: Build) -> None:
    scene = scene_of_table({"r": {"a": (20.0, 15.0, 27.0), "b": (20.0, 15.0, 27.0)}})
    robust = robustness_of(resample(scene.tables, median_score(scene), (0,)), scene.names)
    assert robust.share_of_best == pytest.approx(0.5, abs=0.1)
    assert robust.regret_mean > 0
    assert robust.regret_median > 0 or robust.share_of_best >= 0.5
    assert sum(one.share for one in robust.sites) == pytest.approx(1.0)


def test_a_wrong_choice_is_seldom_the_best_and_still_shown(scene_of_table: Build) -> None:
    scene = scene_of_table({"r": {"a": (10.0, 9.0, 11.0), "b": (30.0, 28.0, 33.0)}})
    robust = robustness_of(resample(scene.tables, median_score(scene), (1,)), scene.names)
    assert robust.share_of_best == 0.0
    assert [(one.sites, one.share) for one in robust.choices] == [(("a",), 1.0), (("b",), 0.0)]
    assert robust.regret_relative_p95 is not None
    assert robust.regret_relative_p95 > 1.5


def test_regret_is_that_of_looking_at_every_choice_of_every_draw(line_of_sites: Scene) -> None:
    score = median_score(line_of_sites)
    resampled = resample(line_of_sites.tables, score, (0, 3), count=30)
    assert resampled.method == ALL
    for drawn, regret in zip(resampled.drawn, resampled.regret, strict=True):
        costs = [
            float(line_of_sites.weights @ drawn[:, list(pair)].min(axis=1))
            for pair in itertools.combinations(range(4), 2)
        ]
        mine = float(line_of_sites.weights @ drawn[:, [0, 3]].min(axis=1))
        assert regret == pytest.approx(mine - min(costs), abs=1e-9)


def test_looking_around_finds_what_looking_at_all_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(5)
    values = rng.gamma(3.0, 10.0, (20, 12))
    tables = np.array([[of_interval(v, v * 0.9, v * 1.2) for v in row] for row in values])
    score = Score(Aim.P_MEDIAN, np.full(20, 0.05))
    every = resample(tables, score, (0, 1, 2), count=50)
    monkeypatch.setattr("pathbudget.analysis.siting.robustness.MOST_CELLS", 50 * 20 * 3 * 200)
    around = resample(tables, score, (0, 1, 2), count=50)
    assert (every.method, around.method) == (ALL, NEIGHBOURS)
    assert len(around.choices) <= 200 < len(every.choices)
    assert around.best == pytest.approx(every.best, rel=0.01)


def test_constraints_hold_for_the_choices_of_draws(line_of_sites: Scene) -> None:
    resampled = resample(
        line_of_sites.tables, median_score(line_of_sites), (0, 3), allowed=lambda one: 0 in one
    )
    assert all(0 in columns for columns in resampled.choices)


def test_neighbours_differ_in_one_site() -> None:
    found = neighbours((1, 3), 5)
    assert len(found) == len(set(found)) == 6
    assert all(len({1, 3} & set(one)) == 1 for one in found)


def test_what_is_unbounded_is_put_to_twice_the_largest() -> None:
    assert finite(np.array([[[1.0, 4.0, math.inf]]])).tolist() == [[[1.0, 4.0, 8.0]]]


def worths(scene: Scene, columns: tuple[int, ...], batch: int) -> tuple[list[Worth], Resampled]:
    score = median_score(scene)
    resampled = resample(scene.tables, score, columns, count=400)
    plain = np.ones(scene.value.shape)
    found = worth_of_pairs(resampled, score, scene.tables, scene.sizes, batch, plain)
    return found, resampled


def test_endless_samples_of_the_one_open_pair_bring_the_whole_regret(scene_of_table: Build) -> None:
    """One region, one uncertain pair: perfect information about it is all there is to know."""
    scene = scene_of_table({"r": {"a": (20.0, 14.0, 29.0), "b": 20.5}}, n=10)
    found, resampled = worths(scene, (0,), 10**7)
    assert found[0].column == 0
    mean = float(resampled.values.mean(axis=0).min() - resampled.best.mean())
    assert found[0].reduction == pytest.approx(mean, rel=0.15)
    assert len(found) == 1


def test_more_samples_are_worth_more_and_known_pairs_nothing(scene_of_table: Build) -> None:
    table = {"r": {"a": (20.0, 14.0, 29.0), "b": (21.0, 20.9, 21.1), "c": (90.0, 80.0, 99.0)}}
    scene = scene_of_table(table)
    few, _ = worths(scene, (0,), 10)
    many, _ = worths(scene, (0,), 1000)
    assert 0 < few[0].reduction < many[0].reduction
    assert many[0].column == 0
    assert all(one.column != 2 for one in many)


def test_a_site_of_every_choice_cannot_tell_them_apart(scene_of_table: Build) -> None:
    scene = scene_of_table({"r": {"a": (20.0, 14.0, 29.0)}})
    found, _ = worths(scene, (0,), 100)
    assert found == []


@pytest.mark.parametrize("aim", [Aim.P_CENTER, Aim.COVERING])
def test_other_aims_have_a_worth_too(aim: Aim, scene_of_table: Build) -> None:
    scene = scene_of_table({"r": {"a": (20.0, 14.0, 29.0), "b": (21.0, 15.0, 30.0)}})
    score = Score(aim, scene.weights, np.array([20.0]) if aim is Aim.COVERING else None)
    resampled = resample(scene.tables, score, (0,), count=400)
    ones = np.ones(scene.value.shape)
    found = worth_of_pairs(resampled, score, scene.tables, scene.sizes, 1000, ones)
    assert {one.column for one in found} == {0, 1}
    assert all(one.reduction <= resampled.regret.mean() * 1.2 + 0.05 for one in found)
