"""Every aim with every constraint against brute force, and what an answer says of itself."""

import ctypes
import math
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from scipy import optimize
from tests.siting_programs.brute import brute_force, rank_of
from tests.siting_programs.random_programs import programs

from pathbudget.analysis.siting.programs import (
    Aim,
    Answer,
    Clash,
    Conflict,
    Program,
    Survive,
    answer,
)


def value_of(program: Program, found: Answer) -> float:
    assert found.value is not None
    return -found.value if program.aim is Aim.COVERING else found.value


@settings(max_examples=120, deadline=None, derandomize=True)
@given(program=programs())
@example(Program(np.array([[1.0, 3.0]]), np.ones(1), prices=np.array([3.0, 1.0]), price_cap=2.0))
@example(
    Program(
        np.array([[1.0, 6.0, 6.0, 1.0], [1.0, 6.0, 6.0, 6.0]]),
        np.array([1.0, 2.0]),
        aim=Aim.COVERING,
        k=1,
        limit=5.0,
        survive=Survive.MEAN,
    )
)
def test_answers_are_those_of_brute_force(program: Program) -> None:
    """The last one is the best there is; those told on the way are worth what can be had."""
    best = brute_force(program)
    told: list[Answer] = []
    found = answer(program, on_better=told.append)
    if best is None:
        assert found.columns == ()
        assert found.conflicts
        assert not told
        return
    assert found.proved
    assert value_of(program, found) == pytest.approx(best[1], rel=2e-6, abs=1e-5)
    if program.survive is None:
        assert found.unserved_weight == pytest.approx(best[0], abs=1e-5)
    for one in told:
        possible = rank_of(program, one.columns)
        assert possible is not None
        slack = 1e-5 + 2e-6 * abs(possible[1])
        if program.survive is not None or program.aim is Aim.COVERING:
            assert value_of(program, one) >= possible[1] - slack
        else:
            least = round(one.unserved_weight, 5), value_of(program, one)
            assert least >= (round(possible[0], 5), possible[1] - slack)


@pytest.mark.parametrize("seed", [3, 5])
def test_branching_and_the_radius_program_agree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    program = Program(rng.random((15, 8)) * 90, rng.random(15) + 0.1, k=3)
    by_program = answer(program)
    monkeypatch.setattr("pathbudget.analysis.siting.median.SMALL", 0)
    by_branching = answer(program)
    assert by_program.columns == by_branching.columns
    assert by_program.proved
    assert by_branching.proved


def test_a_clash_is_smallest() -> None:
    cost = np.array([[1.0, 9.0, 9.0], [9.0, 1.0, 9.0], [9.0, 9.0, 1.0]])
    program = Program(cost, np.ones(3), k=2, limit=5.0, serve_all=True, must_have=(0,))
    found = answer(program)
    serve = [Conflict(Clash.SERVE, row=row) for row in range(3)]
    assert found.conflicts == (Conflict(Clash.COUNT), *serve)
    assert found.proved
    assert not found.feasible


def test_a_cap_clashes_with_the_site_that_must_be_there() -> None:
    prices = np.array([5.0, 1.0, 1.0])
    program = Program(
        np.ones((2, 3)), np.ones(2), k=2, prices=prices, price_cap=5.5, must_have=(0, 1)
    )
    found = answer(program)
    codes = {conflict.code for conflict in found.conflicts}
    assert Clash.PRICE_CAP in codes
    assert codes <= {Clash.PRICE_CAP, Clash.MUST_HAVE, Clash.COUNT}


def test_without_time_the_interchange_answer_stands_with_no_proof() -> None:
    rng = np.random.default_rng(1)
    program = Program(rng.random((40, 20)), np.ones(40), k=5)
    ticks = iter(range(10_000))
    told: list[Answer] = []
    found = answer(program, seconds=0.5, on_better=told.append, clock=lambda: float(next(ticks)))
    assert found.feasible
    assert not found.proved
    assert told[0].columns
    assert found.gap is None or found.gap >= 0


def test_better_answers_are_told_in_order() -> None:
    rng = np.random.default_rng(2)
    told: list[Answer] = []
    program = Program(rng.random((30, 15)), rng.random(30), k=4)
    found = answer(program, on_better=told.append)
    values = [one.value for one in told if one.value is not None]
    assert values == sorted(values, reverse=True)
    assert found.value == values[-1]
    assert found.bound == pytest.approx(found.value)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"weights": np.ones(3)}, "2 numbers wanted"),
        ({"weights": np.array([1.0, -1.0])}, "negative"),
        ({"cost": np.array([[1.0, math.nan], [1.0, 1.0]])}, "neither"),
        ({"aim": Aim.COVERING}, "needs a limit"),
        ({"price_cap": 3.0}, "prices"),
        ({"must_have": (2,)}, "no site number 2"),
        ({"survive": Survive.MEAN}, "number of sites"),
        ({"k": 0}, "at least one"),
    ],
)
def test_nonsense_is_refused(changed: dict[str, object], said: str) -> None:
    program = Program(np.ones((2, 2)), np.ones(2))
    with pytest.raises(ValueError, match=said):
        replace(program, **changed)  # type: ignore[arg-type]


def test_the_solver_cannot_print_among_our_results(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """HiGHS has lines of C that no option silences."""
    solve = optimize.milp

    def talkative(*words: Any, **named: Any) -> Any:
        ctypes.CDLL(None).puts(b"HighsMipSolverData::said")
        return solve(*words, **named)

    monkeypatch.setattr(optimize, "milp", talkative)
    sys.stdout.write("before\n")
    cost = np.array([[1.0, 2.0], [2.0, 1.0]])
    found = answer(Program(cost, np.ones(2), k=1, aim=Aim.P_CENTER))
    sys.stdout.write("after\n")
    ctypes.CDLL(None).fflush(None)
    assert found.proved
    assert capfd.readouterr().out == "before\nafter\n"
