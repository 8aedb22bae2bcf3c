"""The verdict on the whole: the reference tiers, what is assumed, deadlines, all three ways."""

import math
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from tests.whole_budget.conftest import MakeTerm

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.whole_budget.question import Request
from pathbudget.analysis.whole_budget.results import Combine, WholeBudget, WholeVerdict
from pathbudget.analysis.whole_budget.selection import select_terms
from pathbudget.analysis.whole_budget.terms import Term, TermName, TermSource
from pathbudget.analysis.whole_budget.whole import budget_and_figures, whole_budget
from pathbudget.sites.catalogue import Tier

IDS = tuple(f"trace-{i}" for i in range(600))


def request_of(tier: Tier, *given: Term, combine: Combine | None = None) -> Request:
    selection = select_terms("here", "near", tier, given=given)
    return Request("here", "near", tier, selection, combine)


def budget_of(tier: Tier, *given: Term, combine: Combine | None = None) -> WholeBudget:
    return whole_budget(request_of(tier, *given, combine=combine))


def gamma(seed: int, shape: float, scale: float, n: int = 600) -> Values:
    return np.random.default_rng(seed).gamma(shape, scale, n)


@pytest.mark.parametrize("combine", list(Combine))
@pytest.mark.parametrize(("name", "total"), [("voice-ai", 318), ("chat", 513), ("rag", 1110)])
def test_the_reference_tiers_give_their_sums_and_pass(
    tiers: dict[str, Tier], name: str, total: int, combine: Combine
) -> None:
    found = budget_of(tiers[name], combine=combine)
    assert found.value_ms == found.low_ms == found.high_ms == total
    assert found.verdict is WholeVerdict.PASS
    assert found.breach == found.breach_high == 0
    assert set(found.assumed) == {term.name for term in found.terms}
    assert "assumed at the tier's allowances, not measured" in found.reason
    assert [one.value_ms for one in found.combinations] == [total] * 3
    assert math.fsum(term.contribution_ms or 0 for term in found.terms) == total
    assert found.n == 0
    assert found.n_effective is None
    assert found.fix_first == ""


def test_a_pass_on_assumed_terms_names_them(tiers: dict[str, Tier], make_term: MakeTerm) -> None:
    found = budget_of(tiers["chat"], make_term(TermName.TTFT, gamma(1, 9, 10)))
    assert found.verdict is WholeVerdict.PASS
    assert found.assumed == (
        "network", "gateway_and_auth", "retrieval", "tokenization", "first_10_tokens", "guardrail",
    )  # fmt: skip
    assert "Assumed, not measured: network, gateway_and_auth" in found.reason


def test_what_nobody_assumes_is_not_said_to_be(tiers: dict[str, Tier], make_term: MakeTerm) -> None:
    given = [
        make_term(name, np.full(600, 20.0), requests=IDS)
        for name in TermName
        if name is not TermName.OTHER
    ]
    found = budget_of(tiers["chat"], *given)
    assert found.assumed == ()
    assert "ssumed" not in found.reason


def test_a_whole_above_its_target_fails_and_one_about_it_is_undecided(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    slow = budget_of(tiers["chat"], make_term(TermName.TTFT, gamma(2, 9, 60)))
    assert slow.verdict is WholeVerdict.FAIL
    assert "above the target of 800 ms" in slow.reason
    value = budget_of(tiers["chat"], make_term(TermName.TTFT, gamma(2, 9, 10))).value_ms
    tight = replace(tiers["chat"], target_ms=value or 0.0)
    about = budget_of(tight, make_term(TermName.TTFT, gamma(2, 9, 10)))
    assert about.verdict is WholeVerdict.UNDECIDED
    assert "more samples of ttft narrow it" in about.reason


def test_too_few_samples_are_undecided_and_name_their_term(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    found = budget_of(
        tiers["chat"],
        make_term(TermName.TTFT, gamma(3, 9, 10)),
        make_term(TermName.GUARDRAIL, gamma(4, 2, 10, 40)),
    )
    assert found.verdict is WholeVerdict.UNDECIDED
    assert found.high_ms is None
    assert "guardrail has 40 samples" in found.reason
    assert "72 are needed" in found.reason


def test_requests_that_fail_make_the_whole_fail(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    values = [None if i % 8 == 0 else 100.0 for i in range(600)]
    found = budget_of(tiers["chat"], make_term(TermName.TTFT, values))
    assert found.verdict is WholeVerdict.FAIL
    assert found.value_ms is None
    assert found.failing == pytest.approx(75 / 600)
    assert "12.5% of the requests fail" in found.reason
    assert all(term.contribution_ms is None for term in found.terms)
    assert msgspec.json.decode(msgspec.json.encode(found))["value_ms"] is None


def test_finer_than_the_noise_floor_is_undecided(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    asked = request_of(tiers["chat"], make_term(TermName.TTFT, gamma(1, 9, 10)))
    high = whole_budget(asked).high_ms or 0.0
    close = replace(asked, tier=replace(asked.tier, target_ms=high + 0.5), noise_floor_ns=1e6)
    assert "finer than the noise floor" in whole_budget(close).reason
    assert whole_budget(replace(close, noise_floor_ns=1e5)).verdict is WholeVerdict.PASS


def test_a_caution_keeps_a_pass_away(tiers: dict[str, Tier]) -> None:
    asked = replace(request_of(tiers["chat"]), cautions=("nothing answers there.",))
    assert whole_budget(asked).verdict is WholeVerdict.UNDECIDED


def test_dependent_terms_are_joined_by_their_ids_and_the_bound_holds_for_them(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    base = gamma(5, 4, 25)
    given = (
        make_term(TermName.TTFT, base, requests=IDS),
        make_term(TermName.FIRST_TOKENS, 1.5 * base, requests=IDS),
    )
    found = budget_of(tiers["chat"], *given)
    assert found.combine is Combine.JOINT
    by = {one.method: one.value_ms or math.inf for one in found.combinations}
    assert by["independent"] < by["joint"] < by["bound"]
    assert by["joint"] == pytest.approx(by["sum_of_quantiles"])  # they move as one
    assert found.value_ms == by["joint"]
    bound = budget_of(tiers["chat"], *given, combine=Combine.BOUND)
    assert bound.value_ms == by["bound"]
    assert bound.breach_low == 0
    assert bound.breach_high >= found.breach
    assert "bound" in bound.reason or "depends" in bound.reason


def test_every_term_that_keeps_its_deadline_keeps_the_target(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    first, guard = gamma(6, 9, 15), gamma(7, 2, 20)
    found = budget_of(
        tiers["chat"], make_term(TermName.TTFT, first), make_term(TermName.GUARDRAIL, guard)
    )
    deadline = found.deadline
    assert deadline is not None
    own = next(term for term in found.terms if term.name == "ttft")
    assert own.value_ms is not None
    for wanted, end in (
        (deadline.at_percentile_ms, "value_ms"),
        (deadline.at_percentile_safe_ms, "high_ms"),
    ):
        factor = (wanted or 0.0) / own.value_ms
        stretched = budget_of(
            tiers["chat"],
            make_term(TermName.TTFT, first * factor),
            make_term(TermName.GUARDRAIL, guard),
        )
        assert getattr(stretched, end) == pytest.approx(800, rel=2e-3)
    hard = make_term(TermName.TTFT, np.full(600, deadline.hard_ms or 0.0))
    kept = budget_of(tiers["chat"], hard, make_term(TermName.GUARDRAIL, guard))
    assert kept.value_ms == pytest.approx(800, abs=0.5)
    assert (deadline.hard_safe_ms or 0) < (deadline.hard_ms or 0)


def test_the_deadline_of_the_reference_tiers_is_what_the_others_leave(
    tiers: dict[str, Tier],
) -> None:
    found = {name: budget_of(tier).deadline for name, tier in tiers.items()}
    assert {n: one.hard_ms for n, one in found.items() if one} == {
        "voice-ai": 172, "chat": 447, "rag": 770,
    }  # fmt: skip


def test_a_tier_without_a_first_token_has_no_deadline_for_it(tiers: dict[str, Tier]) -> None:
    parts = {"network": 20.0, "guardrail": 10.0, "reranker": 4.0, "audit": 1.0}
    found = budget_of(replace(tiers["chat"], components=parts))
    assert found.deadline is None
    assert found.value_ms == 35
    assert [(term.name, term.value_ms) for term in found.terms][-1] == ("other", 5)


def test_the_term_with_the_heaviest_tail_is_fixed_first(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    heavy = np.random.default_rng(8).lognormal(3, 1.2, 2000)
    found = budget_of(
        tiers["chat"],
        make_term(TermName.TTFT, 150 + gamma(9, 9, 1, 2000)),
        make_term(TermName.RETRIEVAL, heavy),
    )
    assert found.fix_first == "retrieval"
    assert "each ms off the mean of retrieval" in found.fix_reason


def test_the_one_term_that_can_bring_it_within_the_target_is_named(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    found = budget_of(tiers["chat"], make_term(TermName.TTFT, 700 + gamma(9, 9, 1)))
    assert found.verdict is WholeVerdict.FAIL
    assert found.fix_first == "ttft"
    assert "only ttft can bring the whole within its target by itself" in found.fix_reason
    assert "to 447 ms" in found.fix_reason


def test_figures_are_of_one_whole(tiers: dict[str, Tier], make_term: MakeTerm) -> None:
    asked = request_of(tiers["chat"], make_term(TermName.TTFT, gamma(1, 9, 10)))
    p50, p95, p99 = (one.value_ms or 0.0 for one in budget_and_figures(asked, (50, 95, 99))[1])
    assert p50 < p95 < p99
    assert p95 == whole_budget(asked).value_ms


def test_an_allowance_is_a_number_that_nobody_measured(tiers: dict[str, Tier]) -> None:
    found = {term.name: term for term in budget_of(tiers["chat"]).terms}
    assert {term.source for term in found.values()} == {TermSource.TIER}
    assert found["network"].allowance_ms == 45
    assert found["ttft"].stretch == pytest.approx(447 / 160)
    assert found["ttft"].headroom_ms == pytest.approx(287)
