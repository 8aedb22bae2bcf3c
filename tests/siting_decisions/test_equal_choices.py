"""Which of equally good choices is taken, against every choice ranked by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.siting import ties
from pathbudget.analysis.siting.judge import judge
from pathbudget.analysis.siting.programs import Aim, Answer, Matrix, Program, answer
from pathbudget.analysis.siting.ties import first_of_equals

costs = st.one_of(st.integers(1, 12).map(float), st.just(math.inf))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Program, Matrix]:
    rows, columns = draw(st.integers(1, 4)), draw(st.integers(1, 5))
    cost = np.array([[draw(costs) for _ in range(columns)] for _ in range(rows)])
    weights = np.array([draw(st.integers(1, 3)) for _ in range(rows)], dtype=np.float64)
    prices = np.array([100.0 * draw(st.integers(0, 2)) for _ in range(columns)])
    aim = draw(st.sampled_from([Aim.P_MEDIAN, Aim.COVERING, Aim.P_CENTER]))
    limit = 6.0 if aim is Aim.COVERING else None
    k = draw(st.integers(1, columns))
    return Program(cost, weights / weights.sum(), aim=aim, k=k, limit=limit), prices


def ranked(program: Program, prices: Matrix) -> list[tuple[int, ...]]:
    """Every choice: as little unserved as can be; the value; the price; the mean; the name."""

    def rank(columns: tuple[int, ...]) -> tuple[float, float, float, float, tuple[int, ...]]:
        worth = judge(program, columns)
        cheapest = np.where(program.usable, program.cost, np.inf)[:, list(columns)].min(axis=1)
        mean = float(program.weights @ np.where(np.isfinite(cheapest), cheapest, 0.0))
        value = -worth.value if program.aim is Aim.COVERING else worth.value
        price = float(prices[list(columns)].sum())
        return round(worth.unserved_weight, 7), round(value, 7), price, round(mean, 7), columns

    return sorted(itertools.combinations(range(program.sites), program.k or 1), key=rank)


def taken(program: Program, prices: Matrix) -> Answer:
    return first_of_equals(program, answer(program), prices)


@settings(max_examples=40, deadline=None)
@given(cases())
def test_the_first_of_equals_is_the_one_ranked_first(case: tuple[Program, Matrix]) -> None:
    program, prices = case
    best = taken(program, prices)
    assert best.columns == ranked(program, prices)[0]
    assert best.value == pytest.approx(judge(program, best.columns).value)
    assert best.proved


def test_among_many_sites_the_lower_price_and_then_the_name_decides(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    n = 45
    prices = np.full(n, 7.0)
    prices[[30, 41, 44]] = 5.0
    program = Program(np.ones((3, n)), np.ones(3) / 3, k=2)
    assert taken(program, prices).columns == (30, 41)
    assert taken(program, np.zeros(n)).columns == (0, 1)
    monkeypatch.setattr(ties, "MOST_CELLS", 2 * n * 6)  # too few for all pairs of sites
    assert taken(program, prices).columns == (30, 41)
    monkeypatch.setattr(ties, "MOST_CELLS", 0)
    stands = answer(program)
    assert first_of_equals(program, stands, prices) == stands


def test_what_is_not_proved_or_not_nearest_stays_as_it_is() -> None:
    program = Program(np.ones((1, 3)), np.ones(1), k=1, capacities=np.ones(3), demands=np.ones(1))
    found = answer(program)
    assert first_of_equals(program, found, np.array([3.0, 2.0, 1.0])) is found


def test_forbidden_choices_do_not_come_back() -> None:
    program = Program(np.ones((1, 3)), np.ones(1), k=1, forbidden=((0,),))
    assert taken(program, np.zeros(3)).columns == (1,)
