"""Steps that are taken in two, and queues that are not."""

from collections.abc import Callable

import numpy as np
import pytest
from tests.route_changes.conftest import MS, Times, Values

from pathbudget.analysis.routes.level_shifts import level_shifts
from pathbudget.analysis.routes.model import PathSeries
from pathbudget.analysis.routes.transitions import Turn, with_transitions


def levels(*parts: tuple[float, int]) -> Values:
    return np.concatenate([np.full(n, ms * MS) for ms, n in parts])


def differ(values: Values, first: int, cut: int, end: int) -> bool:
    return bool(np.median(values[first:cut]) != np.median(values[cut:end]))


def test_a_level_between_two_that_is_left_at_once_is_the_way_to_the_next() -> None:
    for between in (48, 70):
        values = levels((58, 100), (between, 10), (35, 100))
        turns = with_transitions(values, [(100, "rtt"), (110, "rtt")], differ)
        assert turns == [Turn(0, 100, 110, 210, "rtt")]


def test_a_burst_there_and_back_and_a_level_that_stays_are_two_turns() -> None:
    burst = levels((35, 100), (48, 10), (35, 100))
    assert len(with_transitions(burst, [(100, "rtt"), (110, "rtt")], differ)) == 2
    stays = levels((58, 100), (48, 16), (35, 100))
    assert len(with_transitions(stays, [(100, "rtt"), (116, "rtt")], differ)) == 2
    swell = levels((30, 100), (31, 10), (32, 10), (33, 10))
    assert len(with_transitions(swell, [(100, "rtt"), (110, "rtt"), (120, "rtt")], differ)) == 3


@pytest.mark.parametrize("between", [48, 70])
def test_a_path_that_moves_there_and_then_on_the_way_back_is_one_step(
    between: float, series: PathSeries, poisson: Callable[[int, int], Times]
) -> None:
    rng = np.random.default_rng(5)
    noise = rng.gamma(2.0, 0.02 * MS, 410)
    values = levels((58, 200), (between, 10), (35, 200)) + noise
    times = poisson(410, 5)
    (shift,) = level_shifts(series, "rtt", times, values)
    assert not shift.gradual
    assert shift.cost.low_ns <= -23 * MS <= shift.cost.high_ns
    assert shift.cost.high_ns < -22.9 * MS
    assert shift.window.after_unix_ns <= times[200] <= shift.window.by_unix_ns
