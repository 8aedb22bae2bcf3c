"""The mix of tiers is worth what its tiers are worth together."""

import numpy as np
import pytest

from pathbudget.analysis.siting.judge import judge
from pathbudget.analysis.siting.layers import Layer, mixed, stacked
from pathbudget.analysis.siting.programs import Program, answer


def two_layers() -> list[Layer]:
    rng = np.random.default_rng(4)
    return [Layer(rng.random((6, 4)), rng.random(6)) for _ in range(2)]


def test_the_sum_of_the_mix_is_that_of_its_tiers_at_one_site() -> None:
    layers = two_layers()
    cost, weights = mixed(layers)
    apart = sum(judge(Program(one.cost, one.weights), (2,)).value for one in layers)
    assert judge(Program(cost, weights), (2,)).value == pytest.approx(apart)


def test_tiers_that_may_part_cost_no_more_than_those_that_stay_together() -> None:
    layers = two_layers()
    together = answer(Program(*mixed(layers), k=2)).value
    apart = answer(Program(*stacked(layers), k=2)).value
    assert together is not None
    assert apart is not None
    assert apart <= together + 1e-9


def test_a_site_that_cannot_serve_one_tier_serves_none_of_the_region() -> None:
    lame = Layer(np.array([[np.inf, 1.0]]), np.ones(1))
    idle = Layer(np.array([[5.0, np.inf]]), np.zeros(1))
    cost, _ = mixed([lame, idle])
    assert cost.tolist() == [[np.inf, 1.0]]


def test_tiers_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="different"):
        mixed([Layer(np.ones((2, 2)), np.ones(2)), Layer(np.ones((2, 3)), np.ones(2))])
    with pytest.raises(ValueError, match="no tier"):
        stacked([])
