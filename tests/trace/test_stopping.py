"""The stopping rule: published values, exact failure, and what a whole trace is promised."""

import math
import random

import pytest

from pathbudget.probes.trace.stopping import (
    MOST_NEXT_HOPS,
    StoppingPoints,
    failure_probability,
    miss_probability,
    needed_for_share,
    stopping_points,
    vertex_alpha,
)

AT_95 = [6, 11, 16, 21, 27, 33, 38, 44, 51, 57, 63, 70, 76, 83, 90, 96]
AT_99 = [8, 15, 21, 28, 36, 43, 51, 58, 66, 74, 82, 90, 98, 106, 115, 123]


@pytest.mark.parametrize(("alpha", "points"), [(0.05, AT_95), (0.01, AT_99)])
def test_points_are_the_published_ones(alpha: float, points: list[int]) -> None:
    rule = StoppingPoints(alpha)
    assert [rule.needed(seen) for seen in range(1, 17)] == points


@pytest.mark.parametrize("next_hops", [2, 3, 8])
def test_the_miss_probability_is_that_of_throwing_balls(next_hops: int) -> None:
    rng, probes, runs = random.Random(next_hops), 2 * next_hops + 3, 20_000
    missed = sum(
        len({rng.randrange(next_hops) for _ in range(probes)}) < next_hops for _ in range(runs)
    )
    expected = miss_probability(probes, next_hops)
    assert abs(missed / runs - expected) < 4 * math.sqrt(expected * (1 - expected) / runs)


def test_a_vertex_with_one_next_hop_misses_none() -> None:
    assert miss_probability(1, 1) == failure_probability(StoppingPoints(0.05), 1) == 0.0
    assert miss_probability(2, 3) == 1.0


def test_the_exact_failure_of_the_sequential_rule_keeps_to_the_share_of_a_vertex() -> None:
    assert failure_probability(StoppingPoints(0.05), 2) == 2**-5
    for vertices in (8, 16, 32, 64):
        alpha = vertex_alpha(0.05, vertices)
        rule = stopping_points(alpha)
        worst = max(failure_probability(rule, next_hops) for next_hops in range(2, 17))
        assert alpha / 4 < worst <= alpha


def test_the_failure_of_a_trace_is_that_of_all_its_vertices() -> None:
    for vertices in (1, 8, 9, 30, 100):
        alpha = vertex_alpha(0.05, vertices)
        assert 1 - (1 - alpha) ** vertices <= 0.05 + 1e-12
    assert vertex_alpha(0.05, 1) == vertex_alpha(0.05, 8) > vertex_alpha(0.05, 9)


def test_points_do_not_grow_beyond_any_load_balancer() -> None:
    rule = stopping_points(0.05)
    assert rule.needed(MOST_NEXT_HOPS) == rule.needed(10_000)
    assert rule.needed(0) == rule.needed(1)


def test_points_of_an_alpha_are_worked_out_once() -> None:
    assert stopping_points(0.05) is stopping_points(0.05)


def test_small_shares_take_more_flows() -> None:
    assert needed_for_share(0.25, 0.05) == 11
    assert 0.75**11 <= 0.05 < 0.75**10
    assert needed_for_share(1.0, 0.05) == 1


@pytest.mark.parametrize("alpha", [0.0, 1.0, -1.0, 2.0])
def test_an_alpha_that_is_no_probability_is_refused(alpha: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        StoppingPoints(alpha)
