"""Decisions: constraints kept, losses followed, routing taken as given, clashes named."""

import itertools
import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.siting.decide import decide
from pathbudget.analysis.siting.decision import Decision
from pathbudget.analysis.siting.fill_scene import fill_scene, prior_of
from pathbudget.analysis.siting.frontier import frontier
from pathbudget.analysis.siting.scene import Scene
from pathbudget.analysis.siting.sweep import sweep
from pathbudget.analysis.siting.vocabulary import Aim
from pathbudget.analysis.siting.wishes import Wishes

Build = Callable[..., Scene]


def by_hand(scene: Scene, k: int) -> float:
    """Least mean of the upper ends, by looking at all choices."""
    sites = range(len(scene.sites))
    return min(
        float(scene.weights @ scene.cost[:, list(some)].min(axis=1))
        for some in itertools.combinations(sites, k)
    )


def test_the_choice_is_the_best_and_says_that_it_is_proved(line_of_sites: Scene) -> None:
    decision = decide(line_of_sites, Wishes(k=2))
    assert decision.value == pytest.approx(by_hand(line_of_sites, 2))
    assert decision.proved
    assert decision.gap == 0.0
    assert decision.robustness is not None
    assert decision.margin is not None
    assert decision.price_per_month == sum(
        {"s0": 100.0, "s1": 150.0, "s2": 200.0, "s3": 250.0}[name] for name in decision.sites
    )
    assert len(decision.assignments) == 5
    assert math.fsum(one.weight for one in decision.assignments) == pytest.approx(1.0)


def test_constraints_are_kept(line_of_sites: Scene) -> None:
    cheap = decide(line_of_sites, Wishes(k=2, budget=260.0), robust=False)
    assert cheap.sites == ("s0", "s1")
    assert cheap.price_per_month == 250.0
    with_it = decide(line_of_sites, Wishes(k=2, must_have=("s1",), must_not=("s3",)), robust=False)
    assert "s1" in with_it.sites
    assert "s3" not in with_it.sites
    weak = decide(line_of_sites, Wishes(k=2, power_cap_kw=30.0), robust=False)
    assert weak.power_kw is not None
    assert weak.power_kw <= 30.0


def test_full_sites_send_their_regions_elsewhere(line_of_sites: Scene) -> None:
    free = decide(line_of_sites, Wishes(k=3), robust=False)
    assert any(load.load > 3.0 for load in free.loads)
    kept = decide(line_of_sites, Wishes(k=3, capacity=True))
    assert all(load.load <= 4.0 + 1e-6 for load in kept.loads)
    assert kept.value is not None
    assert free.value is not None
    assert kept.value >= free.value - 1e-9
    total = sum(one.share * one.weight for one in kept.assignments)
    assert total == pytest.approx(1.0)
    assert kept.robustness is not None


def test_power_limits_what_a_site_carries(line_of_sites: Scene) -> None:
    """s0 has 10 of the 40 kW that all need: no more than a quarter of the traffic."""
    decision = decide(line_of_sites, Wishes(k=2, power_kw=40.0, must_have=("s0",)), robust=False)
    first = next(load for load in decision.loads if load.site == "s0")
    assert first.share <= 0.25 + 1e-6
    assert first.power_needed_kw == pytest.approx(first.share * 40.0)
    assert decision.served_share == pytest.approx(1.0)


def test_the_loss_of_every_site_has_its_assignment(line_of_sites: Scene) -> None:
    decision = decide(line_of_sites, Wishes(k=2), robust=False)
    assert [loss.lost_site for loss in decision.failover] == list(decision.sites)
    served = {one.region: one.site for one in decision.assignments}
    for loss in decision.failover:
        assert loss.value is not None
        assert decision.value is not None
        assert loss.value > decision.value
        assert {move.region for move in loss.moved} == {
            region for region, site in served.items() if site == loss.lost_site
        }
        assert all(move.site != loss.lost_site for move in loss.moved)
        backups = {one.region: one.backup_ms for one in decision.assignments}
        assert all(move.after_ms == backups[move.region] for move in loss.moved)


def test_with_one_site_nothing_is_left(line_of_sites: Scene) -> None:
    (loss,) = decide(line_of_sites, Wishes(k=1), robust=False).failover
    assert loss.value is None
    assert loss.unserved_share == 1.0


def test_covering_counts_by_the_allowance_of_each_tier(scene_of_table: Build) -> None:
    table = {"x": {"a": 10.0, "b": 40.0}, "y": {"a": 90.0, "b": 40.0}}
    scene = scene_of_table(table, allowance=50.0)
    decision = decide(scene, Wishes(k=1, objective=Aim.COVERING), robust=False)
    assert decision.sites == ("b",)
    assert decision.value == pytest.approx(1.0)
    assert decision.unit == "share"
    with pytest.raises(ValueError, match="allowance"):
        decide(scene_of_table(table), Wishes(objective=Aim.COVERING))


def test_the_region_worst_off_decides_p_center(scene_of_table: Build) -> None:
    table = {"x": {"a": 10.0, "b": 40.0}, "y": {"a": 90.0, "b": 41.0}}
    scene = scene_of_table(table, weights={"x": 100.0})
    assert decide(scene, Wishes(k=1, objective=Aim.P_CENTER), robust=False).sites == ("b",)
    assert decide(scene, Wishes(k=1), robust=False).sites == ("a",)


def test_tiers_share_sites_by_their_traffic(scene_of_table: Build) -> None:
    table = {"x": {"a": 10.0, "b": 30.0}}
    scene = scene_of_table(table, tiers={"voice": 0.75, "rag": 0.25})
    decision = decide(scene, Wishes(k=1), robust=False)
    assert [(one.tier, one.share) for one in decision.tiers] == [("voice", 0.75), ("rag", 0.25)]
    assert [(one.tier, one.weight) for one in decision.assignments] == [
        ("voice", 0.75),
        ("rag", 0.25),
    ]


def clash(scene: Scene, wishes: Wishes) -> str:
    decision = decide(scene, wishes)
    assert decision.sites == ()
    return " ".join(decision.clashes)


def test_clashes_are_said_in_words(line_of_sites: Scene) -> None:
    both = clash(line_of_sites, Wishes(k=2, must_have=("s1",), must_not=("s1",)))
    assert "s1 must be taken; s1 must not be taken" in both
    dear = clash(line_of_sites, Wishes(k=3, budget=300.0))
    assert "3 of 4 candidate sites" in dear
    assert "at most 300 per month" in dear
    assert "The least possible: s0, s1 and s2, 450 per month" in dear
    far = clash(line_of_sites, Wishes(k=1, backup=1))
    assert "1 further site" in far
    weak = clash(line_of_sites, Wishes(k=1, power_cap_kw=5.0))
    assert "at most 5 kW together" in weak


def test_a_region_that_cannot_be_served_is_named(scene_of_table: Build) -> None:
    scene = scene_of_table({"x": {"a": 10.0}, "y": {"b": 12.0}})
    said = clash(scene, Wishes(k=1, serve_all=True))
    assert "x" in said
    assert "y" in said
    assert "must be served." in said


def test_covering_everybody_is_about_the_allowance(scene_of_table: Build) -> None:
    scene = scene_of_table({"r0": {"a": 10.0}, "r1": {"a": 40.0}}, allowance=30.0)
    said = clash(scene, Wishes(k=1, objective=Aim.COVERING, serve_all=True))
    assert "r1 must be served within the allowance" in said


def test_names_and_numbers_that_are_not_there_are_refused(line_of_sites: Scene) -> None:
    with pytest.raises(ValueError, match="no site nowhere; candidates: s0"):
        decide(line_of_sites, Wishes(must_have=("nowhere",)))


def test_prices_must_be_known_for_a_budget(scene_of_table: Build) -> None:
    scene = scene_of_table({"x": {"a": 10.0, "b": 30.0}})
    with pytest.raises(ValueError, match="no price of a, b: fill in the column price_per_month"):
        decide(scene, Wishes(budget=10.0))
    with pytest.raises(ValueError, match="no power of a, b"):
        decide(scene, Wishes(power_kw=10.0))
    with pytest.raises(ValueError, match="no site has a capacity"):
        decide(scene, Wishes(capacity=True))


def test_nothing_measured_is_no_choice(scene_of_table: Build) -> None:
    assert "nothing to choose" in clash(scene_of_table({"x": {}}), Wishes())


def test_routing_is_given_not_chosen(scene_of_table: Build) -> None:
    """Anycast sends x to the far site b, as long as b is there."""
    scene = scene_of_table({"x": {"a": 10.0, "b": 50.0}, "y": {"a": 30.0, "b": 12.0}})
    steered = Wishes(k=2, steering={"x": {"b": 0.8, "a": 0.2}, "y": {"b": 1.0}})
    decision = decide(scene, steered)
    assert decision.steering is not None
    assert decision.steering.value_ms == pytest.approx((0.8 * 50 + 0.2 * 10 + 12) / 2)
    assert decision.steering.controlled_ms == pytest.approx(11.0)
    assert decision.steering.misrouted_share == pytest.approx(0.4)
    shares = {(one.region, one.site): one.share for one in decision.assignments}
    assert shares["x", "b"] == pytest.approx(0.8)
    assert decision.steering.unseen == ()
    alone = decide(scene, Wishes(k=1, must_not=("b",), steering=steered.steering), robust=False)
    assert alone.steering is not None
    assert alone.steering.unseen == ("y",)


def test_a_sweep_shows_the_fewest_sites_that_are_worth_it(scene_of_table: Build) -> None:
    table = {
        "x": {"a": 10.0, "b": 80.0, "c": 60.0},
        "y": {"a": 80.0, "b": 10.0, "c": 60.0},
        "z": {"a": 12.0, "b": 80.0, "c": 11.9},
    }
    found = sweep(scene_of_table(table), Wishes(), [1, 2, 3])
    assert [one.k for one in found.choices] == [1, 2, 3]
    assert found.shown.k == 2
    assert found.shown.robustness is not None


def test_the_frontier_goes_from_quick_to_cheap(line_of_sites: Scene) -> None:
    points = frontier(line_of_sites, Wishes(), [1, 2])
    for k in (1, 2):
        mine = [point for point in points if point.k == k]
        prices = [point.price_per_month or 0.0 for point in mine]
        values = [point.value or 0.0 for point in mine]
        assert prices == sorted(prices, reverse=True)
        assert values == sorted(values)
        assert mine[0].value == pytest.approx(by_hand(line_of_sites, k))
    for one in points:
        better = [
            other
            for other in points
            if (other.price_per_month or 0) <= (one.price_per_month or 0) - 1e-6
            and (other.value or 0) <= (one.value or 0) - 1e-6
        ]
        assert not (one.efficient and better)


def test_filled_pairs_are_marked_everywhere(scene_of_table: Build) -> None:
    rng = np.random.default_rng(4)
    here, there = rng.uniform(0, 100, (9, 2)), rng.uniform(0, 100, (4, 2))
    far = np.sqrt(((here[:, None] - there[None]) ** 2).sum(axis=2)) + 5
    table = {
        f"r{i}": {f"s{j}": float(far[i, j]) for j in range(4) if (i, j) not in {(0, 1), (3, 2)}}
        for i in range(9)
    }
    scene = fill_scene(scene_of_table(table))
    assert isinstance(scene, Scene)
    assert {(int(i), int(j)) for i, j in zip(*np.nonzero(scene.filled), strict=True)} == {
        (0, 1),
        (3, 2),
    }
    decision = decide(scene, Wishes(k=4))
    marked = {(one.region, one.site): one.filled for one in decision.assignments}
    assert marked == {key: key in {("r0", "s1"), ("r3", "s2")} for key in marked}
    assert any("2 of 36 pairs are filled by a model" in note for note in decision.notes)
    assert decision.proved


def test_unmeasured_pairs_have_a_prior_for_what_to_measure(scene_of_table: Build) -> None:
    scene = scene_of_table({"x": {"a": 10.0, "b": 30.0}, "y": {"a": 12.0}})
    prior = prior_of(scene)
    assert (prior.words, prior.unknown) == ("", 1)
    assert np.isinf(prior.tables[1, 1]).all()


def limits(decision: Decision) -> dict[str, float]:
    return {load.site: load.load for load in decision.loads}


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3))
def test_random_choices_are_those_of_brute_force(seed: int, k: int) -> None:
    from pathbudget.analysis.siting.matrix_scene import scene_of_matrix
    from pathbudget.sites.pair_files import PairRow

    rng = np.random.default_rng(seed)
    costs = rng.integers(1, 60, (5, 4))
    pairs = [
        PairRow(f"r{i}", f"s{j}", float(costs[i, j]), weight=float(i + 1))
        for i in range(5)
        for j in range(4)
    ]
    scene = scene_of_matrix(pairs)
    decision = decide(scene, Wishes(k=k), robust=False)
    assert decision.value == pytest.approx(by_hand(scene, k))
    assert set(limits(decision)) == set(decision.sites)
