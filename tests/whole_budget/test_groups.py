"""Terms joined request by request."""

import math

import numpy as np
import pytest
from tests.whole_budget.conftest import MS, MakeTerm

from pathbudget.analysis.quantiles import estimate_quantile
from pathbudget.analysis.whole_budget.combine import independent, joint
from pathbudget.analysis.whole_budget.groups import MODEL_IDS, grouped, joined
from pathbudget.analysis.whole_budget.terms import TermName

IDS = tuple(f"r{i}" for i in range(400))


def test_joint_is_the_quantile_of_the_sums_themselves(make_term: MakeTerm) -> None:
    random = np.random.default_rng(1)
    base = random.gamma(2, 30, 400)
    first = make_term(TermName.TTFT, base, requests=IDS)
    second = make_term(TermName.FIRST_TOKENS, 2 * base + random.random(400), requests=IDS)
    direct = estimate_quantile(np.sort(first.values_ns + second.values_ns), 0.95)
    found = joint([first, second], 0.95)
    assert (found.value, found.low, found.high) == (direct.value, direct.low, direct.high)
    terms = [first.distribution, second.distribution]
    assert found.value > independent(terms, 0.95).value


def test_requests_are_matched_by_their_ids_in_whatever_order(make_term: MakeTerm) -> None:
    order = np.random.default_rng(2).permutation(400)
    first = make_term(TermName.TTFT, np.arange(400.0), requests=IDS)
    ids = [IDS[i] for i in order]
    second = make_term(TermName.GUARDRAIL, 1000.0 - order, requests=ids)
    group = joined([first, second])
    assert group.sums_ns == pytest.approx(np.full(400, 1000 * MS))
    assert group.left_out == 0


def test_requests_that_lack_a_term_are_left_out_and_counted(make_term: MakeTerm) -> None:
    first = make_term(TermName.TTFT, np.arange(400.0), requests=IDS)
    second = make_term(TermName.GUARDRAIL, np.arange(100.0), requests=IDS[:100])
    group = joined([first, second])
    assert (len(group.sums_ns), group.left_out) == (100, 300)


def test_a_request_that_failed_in_one_term_failed(make_term: MakeTerm) -> None:
    first = make_term(TermName.TTFT, [1.0, None, 3.0], requests="abc")
    second = make_term(TermName.GUARDRAIL, [5.0, 5.0, None], requests="cab")
    assert list(joined([first, second]).sums_ns) == [6 * MS, math.inf, 8 * MS]


def test_terms_without_common_ids_cannot_be_joined(make_term: MakeTerm) -> None:
    first = make_term(TermName.TTFT, [1.0], requests="a")
    with pytest.raises(ValueError, match="gateway_and_auth has no ids"):
        joint([first, make_term(TermName.GATEWAY, [1.0])], 0.5)
    with pytest.raises(ValueError, match="no request has all of ttft, guardrail"):
        joint([first, make_term(TermName.GUARDRAIL, [1.0], requests="b")], 0.5)


def test_both_ways_of_the_network_are_one_summand_and_ids_of_traces_only_where_asked(
    make_term: MakeTerm,
) -> None:
    terms = [
        make_term(TermName.NETWORK_IN, [1.0, 2.0], requests=("n:0", "n:1")),
        make_term(TermName.TTFT, [1.0, 2.0], requests="ab"),
        make_term(TermName.GUARDRAIL, [1.0, 2.0], requests="ba"),
        make_term(TermName.NETWORK_OUT, [5.0, 5.0], requests=("n:0", "n:1")),
    ]
    assert [len(group.terms) for group in grouped(terms)] == [2, 1, 1]
    assert [len(group.terms) for group in grouped(terms, by_request=True)] == [2, 2]


def test_what_a_model_ties_together_stays_together(make_term: MakeTerm) -> None:
    ids = (f"{MODEL_IDS}0", f"{MODEL_IDS}1")
    terms = [
        make_term(name, [1.0, 2.0], requests=ids) for name in (TermName.TTFT, TermName.GUARDRAIL)
    ]
    assert len(grouped(terms)) == 1
