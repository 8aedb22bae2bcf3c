"""The truth against closed forms, and against brute force with the directions themselves."""

import math
from typing import Any

import pytest

from pathbudget.agents.lab.direction import Direction
from pathbudget.agents.lab.geography import world_from_places
from pathbudget.agents.lab.link import BurstLoss, DirectionModel, Variation, VariationKind
from pathbudget.agents.lab.truth import Truth, truth
from pathbudget.agents.lab.world import World

MS = 1_000_000
PAIR = ("region", "site")
SHARES = (0.05, 0.5, 0.9, 0.95, 0.99)


def brute_force(world: World, n: int) -> tuple[list[float], int]:
    """Round trips in ms of `n` echoes far apart, and how many were lost."""
    loop = world.path(*PAIR) + world.path(*reversed(PAIR))
    directions = [Direction(step.model, f"brute {step}") for step in loop]
    found: list[float] = []
    for number in range(n):
        start: int = number * 10**12
        now: int | None = start
        for direction in directions:
            if now is not None:
                now = direction.due(now, 98, number.to_bytes(4, "big"))
        if now is not None:
            found.append((now - start) / 1e6)
    return sorted(found), n - len(found)


def only(world: World) -> Truth:
    return truth(world)[PAIR]


def test_constant_links_give_one_number(tools: Any) -> None:
    true = only(tools.line(DirectionModel(3 * MS), DirectionModel(4 * MS)))
    assert true.minimum_ms == 11
    assert [true.quantile_ms(share) for share in SHARES] == pytest.approx([11] * 5, abs=1e-9)
    assert true.loss == 0


def test_one_pareto_direction_against_its_closed_form(tools: Any) -> None:
    variation = Variation(VariationKind.PARETO, 2 * MS, 2.5)
    true = only(tools.line(DirectionModel(3 * MS, variation), DirectionModel(3 * MS)))
    for share in SHARES:
        exact = 10 + 2 * ((1 - share) ** (-1 / 2.5) - 1)
        assert true.quantile_ms(share) == pytest.approx(exact, abs=2 * true.numeric_error_ms)


def test_two_normal_directions_add_their_variances(tools: Any) -> None:
    one = DirectionModel(20 * MS, Variation(VariationKind.NORMAL, 3 * MS))
    other = DirectionModel(20 * MS, Variation(VariationKind.NORMAL, 4 * MS))
    true = only(tools.line(one, other))
    assert true.quantile_ms(0.5) == pytest.approx(44, abs=0.01)
    # scales 3 and 4 make 5; the cut at 4 scales takes less than a thousandth of that away
    assert true.quantile_ms(0.95) == pytest.approx(44 + 5 * 1.64485, abs=0.01)
    assert true.quantile_ms(0.05) == pytest.approx(44 - 5 * 1.64485, abs=0.01)
    assert true.minimum_ms == pytest.approx(44 - 12 - 16)


def test_loss_is_that_of_request_or_reply(tools: Any) -> None:
    bursts = BurstLoss(0.01, 0.19, loss_bad=0.5)
    true = only(tools.line(DirectionModel(loss=0.1), DirectionModel(bursts=bursts)))
    assert true.loss == pytest.approx(1 - 0.9 * (1 - 0.05 * 0.5))


def test_bits_take_time_on_a_rate_limited_link(tools: Any) -> None:
    slow = DirectionModel(1 * MS, rate_bits=1_000_000)
    world = tools.line(slow, DirectionModel(1 * MS))
    # 84 octets of IP are a frame of 102: 816 bits at 1 Mbit/s.
    assert only(world).minimum_ms == pytest.approx(6 + 0.816)
    assert truth(world, octets=1482)[PAIR].minimum_ms == pytest.approx(6 + 12)


def test_reordering_is_a_mixture(tools: Any) -> None:
    true = only(tools.line(DirectionModel(reorder=0.1, reorder_by_ns=5 * MS), DirectionModel()))
    assert true.quantile_ms(0.89) == pytest.approx(4, abs=0.01)
    assert true.quantile_ms(0.91) == pytest.approx(9, abs=0.01)


HARD = [
    (
        DirectionModel(5 * MS, Variation(VariationKind.PARETO, 2 * MS, 2.2, share=0.3), loss=0.05),
        DirectionModel(2 * MS, Variation(VariationKind.NORMAL, 1 * MS), reorder=0.05),
    ),
    (
        DirectionModel(1 * MS, Variation(VariationKind.NORMAL, 3 * MS)),
        DirectionModel(4 * MS, Variation(VariationKind.PARETO, 1 * MS, 1.7), rate_bits=2_000_000),
    ),
]


@pytest.mark.parametrize(("forward", "reverse"), HARD)
def test_brute_force_agrees(tools: Any, forward: DirectionModel, reverse: DirectionModel) -> None:
    world = tools.line(forward, reverse)
    n = 40_000
    found, lost = brute_force(world, n)
    true = only(world)
    for share in SHARES:
        low, high = true.band_ms(share, len(found), deviations=4)
        slack = true.numeric_error_ms + 0.001
        assert low - slack <= found[math.ceil(share * len(found)) - 1] <= high + slack
    assert found[0] >= true.minimum_ms - 0.001
    assert abs(lost - n * true.loss) <= 4 * math.sqrt(n * true.loss) + 1


def test_a_tail_beyond_the_grid_is_infinite_and_not_lost(tools: Any) -> None:
    wild = DirectionModel(1 * MS, Variation(VariationKind.PARETO, 1 * MS, 1.05))
    true = only(tools.line(wild, wild))
    assert true.quantile_ms(0.5) < 20
    assert true.quantile_ms(1.0) == math.inf


def test_the_smallest_of_few_lies_above_the_minimum(tools: Any) -> None:
    variation = Variation(VariationKind.PARETO, 2 * MS, 2.5)
    true = only(tools.line(DirectionModel(3 * MS, variation)))
    exact = 10 + 2 * ((1 - (1 - 0.5 ** (1 / 10))) ** (-1 / 2.5) - 1)
    assert true.smallest_of_ms(10) == pytest.approx(exact, abs=2 * true.numeric_error_ms)


def test_the_geographic_world_has_a_precise_truth() -> None:
    regions = [("rome", 41.9, 12.5), ("oslo", 59.9, 10.8), ("lima", -12.0, -77.0)]
    sites = [("paris", 48.9, 2.3), ("miami", 25.8, -80.2)]
    for (region, site), true in truth(world_from_places(regions, sites)).items():
        assert true.numeric_error_ms < 0.02, (region, site)
        assert true.minimum_ms <= true.quantile_ms(0.01) < true.quantile_ms(0.99)
