"""A report and `sites choose` on the same measurements: the same sites, numbers and verdict."""

import itertools
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.evaluate import EvaluationOptions, evaluate
from pathbudget.analysis.results import Evaluation, Recommendation, RegionInfo, SiteInfo
from pathbudget.analysis.siting.decide import decide
from pathbudget.analysis.siting.decision import Decision
from pathbudget.analysis.siting.losses import solved
from pathbudget.analysis.siting.programs import Aim, Answer, Program
from pathbudget.analysis.siting.rivals import rivals_of
from pathbudget.analysis.siting.scene import Row, Scene, empty_scene, put, scene_of
from pathbudget.analysis.siting.ties import first_of_equals, prices_of
from pathbudget.analysis.siting.wishes import Wishes, program_of
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue, Region, Site

ROUND_TRIPS = {
    ("west", "alpha"): 6.0,
    ("west", "beta"): 6.1,
    ("west", "gamma"): 30.0,
    ("east", "alpha"): 31.0,
    ("east", "beta"): 23.5,
    ("north", "beta"): 9.0,
    ("north", "gamma"): 9.0,
}
"""ms; two pairs are not measured, `delta` is measured from nowhere."""


@pytest.fixture
def evaluation(make_path: Callable[..., list[Measurement]], catalogue: Catalogue) -> Evaluation:
    regions = {**catalogue.regions, "north": Region("north", 47.6, -122.3, 2.0)}
    more = (Site("gamma", 47.0, -119.0, price_per_month=50.0), Site("delta", 10.0, 10.0))
    sites = {**catalogue.sites, **{site.name: site for site in more}}
    measured = [
        one for pair, rtt in ROUND_TRIPS.items() for one in make_path(*pair, rtt, n=120, spread=0.2)
    ]
    options = EvaluationOptions(whole=False)
    return evaluate(measured, Catalogue(regions, sites, catalogue.tiers), options)


def check(report: Recommendation, decision: Decision) -> None:
    assert report.sites == decision.sites
    assert report.value == decision.value
    assert (report.next_best_sites, report.next_best_value) == (
        decision.next_best_sites,
        decision.next_best_value,
    )
    assert report.margin == decision.margin
    assert report.decided == bool(decision.decided)
    assert report.why_undecided == decision.why_undecided
    assert report.would_change == decision.would_change
    assert report.price_per_month == decision.price_per_month
    assert report.robustness == decision.robustness
    assert report.facts == decision.facts
    served = {one.region: (one.site, one.cost_ms) for one in decision.assignments}
    assert {one.region: (one.site, one.cost_ms) for one in report.assignments} == served
    losses = [(one.lost_site, one.value) for one in decision.failover]
    if report.k > 1:
        assert [(one.lost_site, one.value) for one in report.failover] == losses


def test_both_say_the_same_of_the_same_measurements(evaluation: Evaluation) -> None:
    verdicts = set[bool]()
    assert len(evaluation.recommendations) == 2 * 2 * 3
    for report in evaluation.recommendations:
        scene = scene_of(evaluation, {report.tier: 1.0})
        decision = decide(scene, Wishes(k=report.k, objective=Aim(report.objective.value)))
        if not report.sites:
            assert report.reasons[0] == decision.clashes[0]
            continue
        check(report, decision)
        verdicts.add(report.decided)
    assert verdicts == {True, False}


def scene_of_ends(ends: list[list[tuple[int, int] | None]], floor: float) -> Scene:
    rows = tuple(
        Row(
            RegionInfo(
                name=f"r{i}", title="", latitude=None, longitude=None, weight=i + 1.0, vantages=()
            ),
            "t",
            1.0,
            20.0,
        )
        for i in range(len(ends))
    )
    sites = tuple(
        SiteInfo(
            name=f"s{j}",
            title="",
            operator="",
            metro="",
            latitude=None,
            longitude=None,
            price_per_month=None,
            capacity=None,
            targets=(),
        )
        for j in range(len(ends[0]))
    )
    scene = empty_scene(rows, sites, 95.0)
    for at in np.ndindex(scene.value.shape):
        pair = ends[at[0]][at[1]]
        if pair is not None:
            low, high = float(min(pair)), float(max(pair))
            put(scene, at, ((low + high) / 2, low, high), 300)
    floors = np.full(scene.value.shape, floor)
    return replace(scene, floors=floors)


def is_undecided(scene: Scene, program: Program, best: Answer) -> bool:
    """Every other choice against the best, region by region, at their extremes."""
    for columns in itertools.combinations(range(program.sites), program.k or 1):
        if columns != best.columns and _may_be_as_good(scene, best, list(columns)):
            return True
    return False


def _may_be_as_good(scene: Scene, best: Answer, columns: list[int]) -> bool:
    difference = unserved = 0.0
    for row, mine in enumerate(best.assignment):
        quick = {j: scene.optimistic[row, j] for j in columns}
        if mine is None:
            if np.isfinite(min(quick.values())):
                unserved -= scene.weights[row]
            continue
        if mine in quick:
            quick[mine] = scene.ceiling[row, mine]
        difference += scene.weights[row] * (min(quick.values()) - scene.ceiling[row, mine])
    return bool(unserved < -1e-9 or difference <= 1e-9)


pairs = st.one_of(st.none(), st.tuples(st.integers(1, 30), st.integers(1, 30)))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.lists(pairs, min_size=4, max_size=4), min_size=1, max_size=4),
    st.integers(1, 3),
)
def test_undecided_is_what_every_other_choice_says(
    ends: list[list[tuple[int, int] | None]], k: int
) -> None:
    scene = scene_of_ends(ends, 8.0)
    program = program_of(scene, Wishes(k=k))
    best = first_of_equals(program, solved(program), prices_of(scene))
    assert rivals_of(scene, program, best).possible == is_undecided(scene, program, best)


def test_p_center_is_undecided_by_the_region_that_is_worst_off() -> None:
    scene = scene_of_ends([[(9, 10), (5, 25)], [(1, 2), (1, 2)]], 0.0)
    program = program_of(scene, Wishes(k=1, objective=Aim.P_CENTER))
    rivals = rivals_of(scene, program, solved(program))
    assert (rivals.possible, rivals.advantage) == (True, 5.0)
    assert rivals.pairs == ("r0: s1 5.00 ms to 25.00 ms against s0 9.00 ms to 10.00 ms",)
    apart = scene_of_ends([[(9, 10), (11, 25)], [(1, 2), (1, 2)]], 0.0)
    assert not rivals_of(apart, program, solved(program)).possible


def test_what_both_choices_may_cover_does_not_blur_covering() -> None:
    """r0 hangs on s0, which stays; s2 instead of s1 covers less of r1 in any case."""
    scene = scene_of_ends([[(15, 25), (40, 41), (40, 41)], [(40, 41), (9, 10), (30, 31)]], 0.0)
    program = program_of(scene, Wishes(k=2, objective=Aim.COVERING, must_have=("s0",)))
    best = solved(program)
    assert best.columns == (0, 1)
    assert not rivals_of(scene, program, best).possible
