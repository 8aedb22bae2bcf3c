"""The waterfall adds up; room and leverage are what a direct calculation gives."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.whole_budget.conftest import MS, MakeTerm

from pathbudget.analysis.whole_budget.anatomy import Anatomy
from pathbudget.analysis.whole_budget.combine import sum_of
from pathbudget.analysis.whole_budget.groups import grouped
from pathbudget.analysis.whole_budget.terms import Term, TermName, TermSource

NAMES = (TermName.GATEWAY, TermName.TTFT, TermName.GUARDRAIL)


def anatomy_of(terms: list[Term], p: float = 0.95) -> Anatomy:
    groups = grouped(terms)
    return Anatomy(groups, sum_of([group.distribution for group in groups], p, also_ns=1e9))


@settings(max_examples=12, deadline=None)
@given(
    st.lists(st.lists(st.floats(0, 500), min_size=1, max_size=30), min_size=1, max_size=3),
    st.sampled_from([0.5, 0.9, 0.95]),
)
def test_the_contributions_add_up_to_the_percentile(parts: list[list[float]], p: float) -> None:
    terms = [
        Term(name, TermSource.FILE, np.array(values) * MS, float(len(values)))
        for name, values in zip(NAMES, parts, strict=False)
    ]
    anatomy = anatomy_of(terms, p)
    value = anatomy.whole.estimate(p).value
    shares = anatomy.contributions(p, value)
    assert math.fsum(shares) == pytest.approx(value, rel=1e-12, abs=1e-3)
    least = [term.values_ns.min() for term in terms]
    assert all(share >= low - 1 for share, low in zip(shares, least, strict=True))


def test_a_contribution_is_the_mean_in_requests_about_as_slow(make_term: MakeTerm) -> None:
    random = np.random.default_rng(1)
    parts = [random.gamma(2, 5, 3000), random.lognormal(4, 0.7, 3000), random.gamma(9, 5, 3000)]
    terms = [make_term(name, part) for name, part in zip(NAMES, parts, strict=True)]
    anatomy = anatomy_of(terms)
    value = anatomy.whole.estimate(0.95).value
    drawn = np.array([random.choice(part, 400_000) for part in parts])
    sums = drawn.sum(axis=0)
    low, high = np.quantile(sums, [0.93, 0.97])
    expected = drawn[:, (sums >= low) & (sums <= high)].mean(axis=1)
    found = np.array(anatomy.contributions(0.95, value)) / MS
    assert found == pytest.approx(expected, rel=0.05)


def test_the_tail_of_one_term_is_where_a_millisecond_is_worth_most(make_term: MakeTerm) -> None:
    random = np.random.default_rng(2)
    steady, heavy = 80 + random.normal(0, 3, 4000), random.lognormal(3.5, 0.9, 4000)
    anatomy = anatomy_of([make_term(TermName.TTFT, steady), make_term(TermName.GUARDRAIL, heavy)])
    value = anatomy.whole.estimate(0.95).value
    assert anatomy.about_target(1e12)[2] == 0
    leverages = anatomy.leverages(*anatomy.about(0.95, value))
    assert leverages is not None
    assert leverages[0] == pytest.approx(1, abs=0.02)
    assert leverages[1] > 2
    # 2 % off all of its times takes so many milliseconds off the percentile
    smaller = anatomy_of(
        [make_term(TermName.TTFT, steady), make_term(TermName.GUARDRAIL, 0.98 * heavy)]
    )
    fallen = value - smaller.whole.estimate(0.95).value
    assert fallen / (0.02 * heavy.mean() * MS) == pytest.approx(leverages[1], rel=0.1)


def test_breaches_fall_by_the_density_times_the_leverage(make_term: MakeTerm) -> None:
    random = np.random.default_rng(3)
    parts = [random.gamma(4, 20, 5000), random.gamma(2, 30, 5000)]
    terms = [make_term(name, part) for name, part in zip(NAMES, parts, strict=False)]
    anatomy = anatomy_of(terms)
    target = 230 * MS
    low, high, density = anatomy.about_target(target)
    leverages = anatomy.leverages(low, high)
    assert leverages is not None
    smaller = anatomy_of([make_term(NAMES[0], parts[0]), make_term(NAMES[1], 0.98 * parts[1])])
    fewer = anatomy.whole.slower(target)[0] - smaller.whole.slower(target)[0]
    per_ns = fewer / (0.02 * float(parts[1].mean()) * MS)
    assert density * leverages[1] == pytest.approx(per_ns, rel=0.15)


def test_a_stretched_term_just_keeps_the_target(make_term: MakeTerm) -> None:
    random = np.random.default_rng(4)
    parts = [random.gamma(4, 20, 2000), random.gamma(2, 30, 2000)]
    terms = [make_term(NAMES[0], parts[0]), make_term(NAMES[1], parts[1])]
    factor = anatomy_of(terms).stretch(1, 0, 0.95, 400 * MS)
    assert factor is not None
    assert factor > 1
    for less, holds in ((0.995, True), (1.005, False)):
        changed = [terms[0], make_term(NAMES[1], parts[1] * factor * less)]
        assert (anatomy_of(changed).whole.estimate(0.95).value <= 400 * MS) is holds


def test_a_term_that_may_be_anything_and_one_that_is_too_much(make_term: MakeTerm) -> None:
    nothing = anatomy_of(
        [make_term(TermName.GATEWAY, [0.0] * 50), make_term(TermName.TTFT, [9.0] * 50)]
    )
    assert nothing.stretch(0, 0, 0.95, 400 * MS) is None
    assert nothing.stretch(1, 0, 0.95, 400 * MS) == pytest.approx(400 / 9)
    assert nothing.stretch(0, 0, 0.95, 5 * MS) == 0.0


def test_requests_that_fail_are_made_of_no_times(make_term: MakeTerm) -> None:
    anatomy = anatomy_of([make_term(TermName.TTFT, [1.0, None])])
    with pytest.raises(ValueError, match="fail"):
        anatomy.contributions(0.95, math.inf)
