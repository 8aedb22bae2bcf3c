"""The exact choice against brute force and published optima."""

import gzip
import itertools
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.siting.model import (
    Choice,
    Matrix,
    Problem,
    assess,
    serving,
    solve_program,
)
from pathbudget.analysis.siting.solve import look_at_all, solve

Solve = Callable[..., Choice | None]
both_ways = pytest.mark.parametrize("solve", [solve_program, look_at_all])

costs = st.one_of(st.integers(1, 400).map(lambda tenths: tenths / 10), st.just(math.inf))


@st.composite
def problems(draw: st.DrawFn, *, negative: bool = False) -> tuple[Problem, int]:
    rows, columns = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    cell = costs.map(lambda cost: cost - 20) if negative else costs
    cost = np.array([[draw(cell) for _ in range(columns)] for _ in range(rows)])
    weights = np.array([draw(st.integers(1, 9)) for _ in range(rows)], dtype=np.float64)
    prices = np.array([100.0 * draw(st.integers(0, 3)) for _ in range(columns)])
    limit = draw(st.one_of(st.none(), st.just(15.0)))
    return Problem(cost, weights / weights.sum(), prices, limit), draw(st.integers(1, columns))


def rank(problem: Problem, choice: Choice) -> tuple[float, float, float, tuple[int, ...]]:
    """Order of choices, written down a second time."""
    cost, price = round(choice.objective, 7), choice.price
    first, second = (cost, price) if problem.limit is None else (price, cost)
    return round(choice.unserved_weight, 7), first, second, choice.columns


def brute_force(problem: Problem, k: int, forbidden: tuple[int, ...] = ()) -> Choice | None:
    every = itertools.combinations(range(problem.cost.shape[1]), k)
    choices = [assess(problem, columns) for columns in every if columns != forbidden]
    return min(choices, key=lambda choice: rank(problem, choice), default=None)


@both_ways
@settings(max_examples=50, deadline=None)
@given(problems())
def test_best_and_next_best_are_those_of_brute_force(
    solve: Solve, case: tuple[Problem, int]
) -> None:
    problem, k = case
    best = solve(problem, k)
    assert best == brute_force(problem, k)
    assert best is not None
    following = solve(problem, k, forbidden=[best.columns])
    assert following == brute_force(problem, k, best.columns)


@both_ways
@settings(max_examples=25, deadline=None)
@given(problems(negative=True))
def test_negative_costs_are_solved_too(solve: Solve, case: tuple[Problem, int]) -> None:
    problem, k = case
    assert solve(problem, k) == brute_force(problem, k)


@both_ways
def test_more_sites_than_there_are_is_no_choice(solve: Solve) -> None:
    problem = Problem(np.ones((2, 2)), np.ones(2) / 2, np.zeros(2))
    assert solve(problem, 3) is None
    assert solve(problem, 2, forbidden=[(0, 1)]) is None


@both_ways
def test_what_is_unbounded_is_never_served_silently(solve: Solve) -> None:
    cost = np.array([[1.0, math.inf], [math.inf, math.inf], [math.inf, 2.0]])
    problem = Problem(cost, np.array([0.5, 0.3, 0.2]), np.zeros(2))
    best = solve(problem, 1)
    assert best is not None
    assert best.columns == (0,)
    assert best.unserved_weight == pytest.approx(0.5)
    assert serving(problem, best.columns) == [0, None, None]


@both_ways
def test_serving_more_weight_comes_before_serving_it_quickly(solve: Solve) -> None:
    cost = np.array([[1.0, 90.0], [math.inf, 90.0]])
    best = solve(Problem(cost, np.array([0.9, 0.1]), np.zeros(2)), 1)
    assert best is not None
    assert best.columns == (1,)


@both_ways
def test_ties_are_broken_by_price_and_then_by_name_for_many_sites(solve: Solve) -> None:
    n = 45
    prices = np.full(n, 7.0)
    prices[[30, 41, 44]] = 5.0
    best = solve(Problem(np.ones((3, n)), np.ones(3) / 3, prices), 2)
    assert best is not None
    assert best.columns == (30, 41)
    best = solve(Problem(np.ones((3, n)), np.ones(3) / 3, np.zeros(n)), 3)
    assert best is not None
    assert best.columns == (0, 1, 2)


def shortest_paths(text: str) -> tuple[Matrix, int]:
    """OR-Library p-median: edges may repeat and the last one counts; then all shortest paths."""
    numbers = iter(text.split())
    n, edges, k = int(next(numbers)), int(next(numbers)), int(next(numbers))
    distance = np.full((n, n), math.inf)
    np.fill_diagonal(distance, 0)
    for _ in range(edges):
        a, b, length = int(next(numbers)) - 1, int(next(numbers)) - 1, float(next(numbers))
        distance[a, b] = distance[b, a] = length
    for middle in range(n):
        np.minimum(distance, distance[:, middle, None] + distance[middle], out=distance)
    return distance, k


@pytest.mark.needs("data")
@pytest.mark.parametrize("name", ["pmed1", "pmed5"])
def test_published_optima_are_reached(shared_data: Path, name: str) -> None:
    folder = shared_data / "facility" / "pmed"
    optima = dict(line.split() for line in (folder / "pmedopt.txt").read_text().splitlines())
    with gzip.open(folder / f"{name}.txt.gz", "rt") as file:
        distance, k = shortest_paths(file.read())
    n = len(distance)
    best = solve_program(Problem(distance, np.ones(n), np.zeros(n)), k)
    assert best is not None
    assert best.objective == float(optima[name])


def test_many_choices_go_to_the_program_and_few_are_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(problem: Problem, k: int, *, forbidden: Sequence[Sequence[int]] = ()) -> None:
        """Stands in for the program, and is told apart by having no answer."""

    monkeypatch.setattr("pathbudget.analysis.siting.solve.solve_program", refuse)
    assert solve(Problem(np.ones((2, 40)), np.ones(2), np.zeros(40)), 3) is not None
    assert solve(Problem(np.ones((2, 40)), np.ones(2), np.zeros(40)), 9) is None
