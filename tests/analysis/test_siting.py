"""Recommendations: margin, decidedness, failover, and what is said when there is no choice."""

import math

import msgspec
import pytest

from pathbudget.analysis.budget import unmeasured_headline
from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.results import (
    BudgetLine,
    Objective,
    Recommendation,
    RegionInfo,
    SiteInfo,
    Verdict,
)
from pathbudget.analysis.siting.ground import Ground, ground_of
from pathbudget.analysis.siting.recommend import capacity_findings, recommend
from pathbudget.sites.catalogue import Tier

Interval = tuple[float, float | None] | None
ALLOWANCE = 25.0
TIER = Tier("t", "T", 400.0, {"network": ALLOWANCE}, 95.0, "warm", 800, {"warm": 1.0})


def line(region: str, site: str, ends: Interval) -> BudgetLine:
    empty = unmeasured_headline(region, site, TIER)
    if ends is None:
        return empty
    low, high = ends
    known = None if math.isinf(low) else low
    return msgspec.structs.replace(empty, value_ms=known, low_ms=known, high_ms=high, n=300)


def ground(
    table: dict[str, dict[str, Interval]],
    *,
    weights: dict[str, float] | None = None,
    prices: dict[str, float] | None = None,
    floors: dict[tuple[str, str], float | None] | None = None,
) -> Ground:
    sites = sorted({site for row in table.values() for site in row})
    regions = [
        RegionInfo(
            name=name,
            title=name,
            latitude=None,
            longitude=None,
            weight=(weights or {}).get(name, 1.0),
            vantages=(),
        )
        for name in table
    ]
    infos = [
        SiteInfo(
            name=name,
            title=name,
            operator="",
            metro="",
            latitude=None,
            longitude=None,
            price_per_month=(prices or {}).get(name),
            capacity=1.5,
            targets=(),
        )
        for name in sites
    ]
    lines = {(r, s): line(r, s, ends) for r, row in table.items() for s, ends in row.items()}
    return ground_of("t", ALLOWANCE, regions, infos, lines, floors or {})


CLEAR: dict[str, dict[str, Interval]] = {
    "west": {"a": (9, 10), "b": (60, 62), "c": (30, 31)},
    "east": {"a": (58, 60), "b": (7, 8), "c": (32, 33)},
}


def p_median(a_ground: Ground, k: int) -> Recommendation:
    return recommend(a_ground, Objective.P_MEDIAN, k)


def test_the_choice_its_value_and_its_margin() -> None:
    choice = p_median(ground(CLEAR), 2)
    assert choice.sites == ("a", "b")
    assert choice.value == pytest.approx(9.0)
    assert choice.next_best_sites == ("b", "c")
    assert choice.next_best_value == pytest.approx((8 + 31) / 2)
    assert choice.margin == pytest.approx(10.5)
    assert choice.decided
    assert choice.would_change == ()
    assert [(a.region, a.site, a.cost_ms) for a in choice.assignments] == [
        ("west", "a", 10),
        ("east", "b", 8),
    ]
    assert "Next best is b and c" in choice.reasons[1]


def test_weights_decide() -> None:
    assert p_median(ground(CLEAR, weights={"west": 5.0}), 1).sites == ("a",)
    assert p_median(ground(CLEAR, weights={"east": 5.0}), 1).sites == ("b",)


def test_overlapping_intervals_leave_it_undecided_and_say_where() -> None:
    table: dict[str, dict[str, Interval]] = {"west": {"a": (9, 14), "b": (12, 15)}}
    choice = p_median(ground(table), 1)
    assert (choice.sites, choice.decided) == (("a",), False)
    assert choice.would_change == ("west: b 12.00 ms to 15.00 ms against a 9.00 ms to 14.00 ms",)
    assert "Within the intervals another choice may be better by 2.00 ms." in choice.reasons


LONDON: tuple[tuple[str, Interval, Interval, str], ...] = (
    ("limitless", (70, None), (125, None), "london (33 % of traffic) has no upper limit to either"),
    ("nowhere", None, None, "london (33 % of traffic) was not measured"),
    ("near one", (72.5, 72.9), None, "london (33 % of traffic) was not measured to b"),
    ("overlap", (60, 100), (20, 140), "the intervals of a and of b overlap"),
)


@pytest.mark.parametrize(
    ("to_a", "to_b", "why"), [one[1:] for one in LONDON], ids=[one[0] for one in LONDON]
)
def test_undecided_has_its_true_reason(to_a: Interval, to_b: Interval, why: str) -> None:
    """Of the regions that were measured the intervals are far apart."""
    table: dict[str, dict[str, Interval]] = {
        "texas": {"a": (72.5, 72.9), "b": (125, 126)},
        "ohio": {"a": (72.5, 72.9), "b": (75, 76)},
        "london": {"a": to_a, "b": to_b},
    }
    choice = p_median(ground(table), 1)
    assert (choice.sites, choice.decided) == (("a",), False)
    assert choice.why_undecided == why
    assert f"Undecided: {why}." in choice.reasons


def test_what_both_choices_share_does_not_blur_the_difference() -> None:
    """`east` is served by b in both choices; its wide interval must not matter."""
    table: dict[str, dict[str, Interval]] = {
        "west": {"a": (9, 10), "b": (90, 91), "c": (15, 16)},
        "east": {"a": (90, 91), "b": (20, 50), "c": (90, 91)},
    }
    choice = p_median(ground(table), 2)
    assert (choice.sites, choice.next_best_sites) == (("a", "b"), ("b", "c"))
    assert choice.decided


def test_a_rival_behind_the_next_best_can_leave_it_undecided() -> None:
    """c has few samples: last by its upper end, and perhaps the best of all."""
    table: dict[str, dict[str, Interval]] = {"west": {"a": (9, 10), "b": (12, 13), "c": (2, 99)}}
    choice = p_median(ground(table), 1)
    assert choice.next_best_sites == ("b",)
    assert not choice.decided
    assert choice.would_change[0].startswith("west: c 2.00 ms to 99.00 ms")


def test_an_unbounded_pair_is_never_chosen_silently() -> None:
    table: dict[str, dict[str, Interval]] = {
        "west": {"a": (9, 10), "b": (20, 21)},
        "east": {"a": (50, None), "b": (50, None)},
    }
    choice = p_median(ground(table), 1)
    assert choice.sites == ("a",)
    assert choice.uncovered == ("east",)
    assert choice.value == pytest.approx(10.0)
    assert "the mean of the 50.0% served is 10.00 ms" in choice.reasons[0]
    assert choice.served_share == pytest.approx(0.5)
    assert not choice.decided  # b may serve east, for all that is known
    east = choice.assignments[1]
    assert (east.site, east.cost_ms) == ("", None)


def test_a_margin_between_choices_that_serve_different_weight_is_not_given() -> None:
    table: dict[str, dict[str, Interval]] = {
        "west": {"a": (40, 41), "b": (9, 10)},
        "east": {"a": (40, 41), "b": (math.inf, None)},
    }
    choice = p_median(ground(table), 1)
    assert (choice.sites, choice.next_best_sites) == (("a",), ("b",))
    assert choice.margin is None
    assert (choice.served_share, choice.next_best_served_share) == pytest.approx((1.0, 0.5))
    assert choice.uncovered == ()


@pytest.mark.parametrize("objective", Objective)
def test_no_site_is_recommended_on_the_little_that_has_an_upper_limit(objective: Objective) -> None:
    """One region of four, 25 % of the traffic: its mean says nothing of the others."""
    table: dict[str, dict[str, Interval]] = {"one": {"a": (9, 10), "b": (20, 21)}}
    for name in ("two", "three"):
        table[name] = {"a": (9, None), "b": (20, None)}
    table["four"] = {"a": None, "b": None}
    choice = recommend(ground(table), objective, 1)
    assert (choice.sites, choice.value, choice.margin) == ((), choice.value, None)
    assert choice.value in (None, 0.0)
    assert choice.reasons[0] == (
        "1 of 4 regions was not measured, and 2 of 4 regions have no upper limit: measure longer, "
        "or from a quieter host. 25% of the traffic has an upper limit; below 50% no site is "
        "recommended."
    )
    assert choice.measured_share == pytest.approx(0.75)


def test_a_next_best_that_serves_nobody_has_no_infinite_cost() -> None:
    table: dict[str, dict[str, Interval]] = {"west": {"a": (9, 10), "b": (20, None)}}
    choice = p_median(ground(table), 1)
    assert choice.next_best_sites == ("b",)
    assert choice.next_best_value is None
    assert "no region has an upper limit from there" in choice.reasons[1]
    assert not any("inf" in reason for reason in choice.reasons)


def test_a_region_without_a_sample_is_not_measured_in_the_assignments_too() -> None:
    table: dict[str, dict[str, Interval]] = {
        "west": {"a": (9, 10)},
        "north": {"a": (9, 10)},
        "east": {"a": None},
    }
    choice = p_median(ground(table), 1)
    assert [a.verdict for a in choice.assignments][2] is Verdict.NOT_MEASURED
    assert (choice.measured_share, choice.served_share) == pytest.approx((2 / 3, 2 / 3))


def test_an_unmeasured_pair_counts_as_quick_as_light() -> None:
    table: dict[str, dict[str, Interval]] = {
        "west": {"a": (9, 10), "b": None},
        "east": {"a": (9, 10), "b": (9, 10)},
    }
    near = p_median(ground(table, floors={("west", "b"): 3.0}), 1)
    assert (near.sites, near.decided) == (("a",), False)
    assert "not measured, at least 3.00 ms by the light floor" in near.would_change[0]
    far = p_median(ground(table, floors={("west", "b"): 80.0}), 1)
    assert far.decided


def test_sites_nobody_measured_are_no_candidates_and_named() -> None:
    table: dict[str, dict[str, Interval]] = {"west": {"a": (9, 10), "b": None, "c": None}}
    choice = p_median(ground(table), 1)
    assert choice.sites == ("a",)
    assert choice.reasons[-1] == "b and c were not measured from any region, so no candidate."
    assert choice.next_best_sites == ()
    assert choice.margin is None
    assert choice.decided


def test_covering_counts_what_is_surely_within_the_allowance() -> None:
    choice = recommend(ground(CLEAR, weights={"west": 3.0}), Objective.COVERING, 1)
    assert (choice.sites, choice.value) == (("a",), 0.75)
    assert (choice.next_best_sites, choice.next_best_value) == (("b",), 0.25)
    assert choice.margin == pytest.approx(0.5)
    assert choice.uncovered == ("east",)
    assert choice.decided
    assert choice.assignments[1].site == "a"  # served, though not within the allowance


def test_covering_is_undecided_while_a_straddling_pair_may_cover_as_much() -> None:
    table: dict[str, dict[str, Interval]] = {"west": {"a": (9, 10), "b": (20, 30)}}
    choice = recommend(ground(table), Objective.COVERING, 1)
    assert (choice.sites, choice.decided) == (("a",), False)
    assert choice.would_change == ("west to b: 20.00 ms to 30.00 ms, allowance 25 ms",)
    assert choice.why_undecided == "west (100 % of traffic) is perhaps within 25 ms from b"


def test_equal_choices_go_to_the_lower_price_then_to_the_name() -> None:
    table: dict[str, dict[str, Interval]] = {"west": {"a": (9, 10), "b": (9, 10), "c": (9, 10)}}
    priced = p_median(ground(table, prices={"a": 300.0, "b": 200.0, "c": 200.0}), 1)
    assert (priced.sites, priced.price_per_month) == (("b",), 200.0)
    assert (priced.margin, priced.decided) == (0.0, False)
    assert "It is equal" in priced.reasons[1]
    assert p_median(ground(table, prices={"b": 1.0}), 1).sites == ("a",)  # a price is unknown


def test_failover_says_what_is_left() -> None:
    two = p_median(ground(CLEAR), 2)
    assert [(f.lost_site, f.unserved) for f in two.failover] == [("a", ()), ("b", ())]
    assert [f.value for f in two.failover] == pytest.approx([35.0, 35.0])
    one = p_median(ground(CLEAR), 1)
    assert [(f.value, f.unserved) for f in one.failover] == [(None, ("west", "east"))]
    covering = recommend(ground(CLEAR), Objective.COVERING, 2)
    assert [(f.lost_site, f.value) for f in covering.failover] == [("a", 0.5), ("b", 0.5)]


@pytest.mark.parametrize(
    ("table", "k", "objective", "why"),
    [
        ({"west": {"a": None}}, 1, Objective.P_MEDIAN, "no site was measured"),
        ({"west": {"a": (9, 10)}}, 2, Objective.P_MEDIAN, "1 site was measured: no choice of 2"),
        ({"west": {"a": (9, None)}}, 1, Objective.P_MEDIAN, "1 of 1 region has no upper limit"),
        ({"west": {"a": (40, 41)}}, 1, Objective.COVERING, "within 25 ms for any region"),
    ],
)
def test_why_there_is_no_choice(
    table: dict[str, dict[str, Interval]], k: int, objective: Objective, why: str
) -> None:
    choice = recommend(ground(table), objective, k)
    assert choice.sites == ()
    assert why in choice.reasons[0]
    assert choice.uncovered == ("west",)
    assert not choice.decided


def test_a_site_with_too_little_capacity_is_reported() -> None:
    a_ground = ground(CLEAR)
    (finding,) = capacity_findings(p_median(a_ground, 1), a_ground.sites)
    assert finding.kind is FindingKind.CAPACITY
    assert "2 of weight is assigned to a capacity of 1.5" in finding.text
    assert not capacity_findings(p_median(a_ground, 2), a_ground.sites)
