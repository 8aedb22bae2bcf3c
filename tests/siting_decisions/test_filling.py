"""Filled pairs: learned from the others, with the error they really have."""

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from pathbudget.analysis.siting.filling import (
    Filling,
    applicable,
    error_of,
    fill,
    residuals_of,
)
from pathbudget.analysis.siting.filling_fibre import floor_times_inflation, zones
from pathbudget.analysis.siting.filling_known import Known, floors_between, known_of
from pathbudget.analysis.siting.filling_vivaldi import vivaldi
from pathbudget.analysis.siting.sampling import PROBABILITIES
from pathbudget.sites.geodesy import distance_km, floor_rtt_ms

Matrix = npt.NDArray[np.float64]
Globe = Callable[[int, int, int], tuple[Matrix, Matrix, Matrix]]


def hidden_third(globe: Globe, seed: int = 3) -> tuple[Known, Matrix, npt.NDArray[np.bool_]]:
    truth, here, there = globe(24, 12, seed)
    hidden = np.random.default_rng(seed).random(truth.shape) < 0.3
    return known_of(np.where(hidden, np.nan, truth), here, there), truth, hidden


def test_great_circles_are_the_geodesic_within_a_percent() -> None:
    a, b = np.array([[50.1, 8.7], [-33.9, 151.2]]), np.array([[40.7, -74.0], [1.35, 103.8]])
    for i, here in enumerate(a):
        for j, there in enumerate(b):
            exact = floor_rtt_ms(distance_km(*here, *there))
            assert floors_between(a, b)[i, j] == pytest.approx(exact, rel=0.006)


def test_the_inflation_of_zones_is_learned_and_its_error_is_told(measured_globe: Globe) -> None:
    known, truth, hidden = hidden_third(measured_globe)
    filling = fill(known)
    assert isinstance(filling, Filling)
    assert set(np.flatnonzero(filling.filled)) <= set(np.flatnonzero(hidden))
    there = filling.filled
    off = np.abs(filling.values - truth)[there] / truth[there]
    assert np.median(off) < 0.06
    assert filling.error.median == pytest.approx(np.median(off), abs=0.03)
    inside = (filling.low <= truth) & (truth <= filling.high)
    assert inside[there].mean() >= 0.9
    assert (filling.low <= filling.values)[there].all()
    assert (filling.values <= filling.high)[there].all()
    errors = {one.model: one.median for one in filling.errors}
    assert set(errors) == set(applicable(known))
    assert filling.error.median < errors["light floor x inflation"]
    assert filling.error.median < errors["Vivaldi 3-D + height"]


def test_no_pair_is_predicted_from_itself() -> None:
    """Cross-validation of pure noise finds noise: a leak would look like skill."""
    rng = np.random.default_rng(1)
    costs = rng.lognormal(4, 0.5, (12, 12))
    error = error_of("noise", Known(costs), residuals_of(Known(costs), vivaldi))
    assert error.median > 0.25


def test_few_samples_of_a_pair_count_by_their_number(measured_globe: Globe) -> None:
    known, truth, _ = hidden_third(measured_globe)
    at = next(zip(*np.nonzero(~np.isnan(known.costs)), strict=True))
    costs, scarce = known.costs.copy(), np.zeros(known.costs.shape)
    costs[at] = 3 * truth[at]  # one unlucky sample
    found = []
    for samples in (1.0, 50.0):
        scarce[at] = samples
        odd = Known(costs, known.floors, known.region_floors, known.site_floors)
        filling = fill(odd, ["node terms + s x fibre"], scarce=scarce)
        assert isinstance(filling, Filling)
        assert filling.filled[at]
        found.append(float(filling.values[at]))
    assert truth[at] < found[0] < found[1] < 3 * truth[at] * 1.0001
    assert found[1] > 2.7 * truth[at]


def test_places_without_pairs_are_left_open_and_counted(measured_globe: Globe) -> None:
    known, _, _ = hidden_third(measured_globe)
    costs = known.costs.copy()
    costs[0] = np.nan
    filling = fill(Known(costs), ["Vivaldi 3-D + height"])
    assert isinstance(filling, Filling)
    assert np.isnan(filling.values[0]).all()
    assert filling.not_filled == costs.shape[1]


def test_too_little_to_learn_from_is_refused_in_words() -> None:
    costs = np.full((3, 3), np.nan)
    costs[0, 0] = 5.0
    assert fill(Known(costs)) == "1 pair is known; at least 12 are needed to learn from."


def test_models_of_light_want_coordinates_of_every_place(measured_globe: Globe) -> None:
    known, _, _ = hidden_third(measured_globe)
    spots = np.zeros((24, 2)), np.full((12, 2), np.nan)
    assert not known_of(known.costs, *spots).has_places
    assert "inflation by region pair" not in applicable(known_of(known.costs, *spots))
    with pytest.raises(ValueError, match="coordinates"):
        zones(Known(known.costs))


def test_nothing_is_quicker_than_light(measured_globe: Globe) -> None:
    known, _, _ = hidden_third(measured_globe)
    assert known.floors is not None
    assert (zones(known) >= known.floors - 1e-9).all()
    assert (floor_times_inflation(known) >= known.floors - 1e-9).all()


def test_the_same_pairs_give_the_same_filling(measured_globe: Globe) -> None:
    truth, _, _ = measured_globe(8, 6, 2)
    known = Known(np.where(np.eye(8, 6) > 0, np.nan, truth))
    names = ["Vivaldi + region pairs", "low-rank completion"]
    once, again = fill(known, names), fill(known, names)
    assert isinstance(once, Filling)
    assert isinstance(again, Filling)
    assert np.array_equal(once.values, again.values, equal_nan=True)


@pytest.mark.needs("data")
def test_hidden_pairs_between_real_clouds(shared_data: Path) -> None:
    """30 % of the pairs of 50 cloud regions hidden: better than both baselines."""
    folder = shared_data / "rtt_matrix"
    with (folder / "azure_p50_2026.csv").open(encoding="utf-8") as file:
        (_, *names), *lines = list(csv.reader(file))
    places = json.loads((folder / "azure_region_coordinates.json").read_text("utf-8")).values()
    spots = {one["displayName"]: (one["lat"], one["lon"]) for one in places}
    table = {row[0]: row[1:] for row in lines}
    rows, columns = names[::2], names[1::2]
    rows = [name for name in rows if name in table]
    truth = np.array([[float(table[a][names.index(b)] or "nan") for b in columns] for a in rows])
    hidden = np.random.default_rng(5).random(truth.shape) < 0.3
    here, there = (np.array([spots[name] for name in part]) for part in (rows, columns))
    known = known_of(np.where(hidden, np.nan, truth), here, there)
    filling = fill(known, ["inflation by region pair"])
    assert isinstance(filling, Filling)
    test = filling.filled & ~np.isnan(truth)

    def off(predicted: Matrix) -> float:
        return float(np.median((np.abs(predicted - truth) / truth)[test]))

    assert off(filling.values) < 0.06
    assert off(filling.values) < 0.75 * off(vivaldi(known))
    assert off(filling.values) < 0.4 * off(floor_times_inflation(known))
    inside = (filling.low <= truth) & (truth <= filling.high)
    assert 0.9 <= inside[test].mean() <= 1.0


def test_pairs_that_nothing_else_tells_of_have_no_error_and_no_filling() -> None:
    """Twelve known pairs, each alone in its row and column but one: none can be held out."""
    costs = np.full((12, 12), np.nan)
    costs[np.arange(12), np.arange(12)] = 10.0
    assert fill(Known(costs)) == (
        "the error of a model can be told at 0 of 12 known pairs; at least 8 are needed."
    )


def test_few_errors_make_a_wide_interval(measured_globe: Globe) -> None:
    truth, _, _ = measured_globe(5, 4, 2)
    costs = truth.copy()
    costs[0, 0] = np.nan
    filling = fill(Known(costs), ["low-rank completion"])
    assert isinstance(filling, Filling)
    errors = filling.residuals[~np.isnan(filling.residuals)]
    assert len(errors) < 39
    assert filling.low[0, 0] <= filling.values[0, 0] * errors.min() + 1e-9
    assert filling.high[0, 0] >= filling.values[0, 0] * errors.max() - 1e-9


def test_a_filled_pair_may_be_what_the_errors_say_not_a_bell_curve(measured_globe: Globe) -> None:
    """Half of the errors are within the middle half of the table, however far the ends reach."""
    known, truth, _ = hidden_third(measured_globe)
    costs = known.costs.copy()
    rows, columns = known.pairs
    costs[rows[::9], columns[::9]] *= 6  # a few broken routes
    filling = fill(
        Known(costs, known.floors, known.region_floors, known.site_floors),
        ["inflation by region pair"],
    )
    assert isinstance(filling, Filling)
    tables, there = filling.tables[filling.filled], filling.filled
    assert (np.diff(tables, axis=1) >= 0).all()
    assert tables[:, PROBABILITIES.index(0.025)] == pytest.approx(filling.low[there])
    assert tables[:, PROBABILITIES.index(0.975)] == pytest.approx(filling.high[there])
    middle = [PROBABILITIES.index(level) for level in (0.2, 0.8)]
    reach = np.diff(np.log(tables[:, middle]), axis=1)[:, 0]
    bell = 2 * 0.8416 / 1.96 * np.log(filling.high / filling.low)[there] / 2
    assert np.median(reach / bell) < 0.6
    inside = (tables[:, middle[0]] <= truth[there]) & (truth[there] <= tables[:, middle[1]])
    assert inside.mean() > 0.4


def test_a_place_that_was_hardly_measured_is_filled_by_the_light_floor(
    measured_globe: Globe,
) -> None:
    """It learns nothing of a single place, so its error can be told where that of others cannot."""
    truth, here, there = measured_globe(12, 12, 4)
    costs = np.where(np.eye(12) > 0, truth, np.nan)
    filling = fill(known_of(costs, here, there))
    assert isinstance(filling, Filling)
    assert filling.model == "light floor x inflation"
    assert np.count_nonzero(~np.isnan(filling.residuals)) == 12
    assert filling.not_filled == 0
    inside = (filling.low <= truth) & (truth <= filling.high)
    assert inside[filling.filled].mean() > 0.9


def test_of_few_pairs_few_are_held_out_at_a_time() -> None:
    """Five of 25 held out would leave too many places with one known pair to tell any error."""
    costs = np.random.default_rng(3).lognormal(4, 0.3, (5, 5))
    costs[[0, 0, 1, 2, 2, 3, 3, 4, 4, 1], [1, 3, 0, 1, 4, 0, 2, 2, 3, 4]] = np.nan
    filling = fill(Known(costs), ["low-rank completion"])
    assert isinstance(filling, Filling)
    assert np.count_nonzero(~np.isnan(filling.residuals)) >= 8
