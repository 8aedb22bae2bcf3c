"""What levers do, against what the literature and simple arithmetic say they must."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.whole_budget.conftest import MS, MakeNetwork, MakeTerm

from pathbudget.analysis.results import Mode
from pathbudget.analysis.whole_budget.case import Case
from pathbudget.analysis.whole_budget.lever_serving import steps_needed, tokens_per_step
from pathbudget.analysis.whole_budget.levers import LEVERS, read_lever
from pathbudget.analysis.whole_budget.results import WhatIf
from pathbudget.analysis.whole_budget.terms import TermName
from pathbudget.analysis.whole_budget.what_if import what_ifs
from pathbudget.probes.errors import ConfigError
from pathbudget.sites.catalogue import Tier

IDS = tuple(f"trace-{i}" for i in range(400))


def pull(case: Case, *levers: str) -> WhatIf:
    """The last what-if: of one lever that one, of several all of them together."""
    return what_ifs(case, [read_lever(text) for text in levers])[-1]


def values_of(one: WhatIf) -> tuple[list[float], list[float]]:
    """p50, p95, p99 before and after."""
    before, after = one.before_figures, one.after_figures
    return [f.value_ms or math.inf for f in before], [f.value_ms or math.inf for f in after]


@pytest.fixture
def rag(tiers: dict[str, Tier]) -> Case:
    """All terms of the RAG tier at their allowances: 28 ms a token."""
    return Case(("", ""), tiers["rag"])


def test_every_lever_says_what_it_assumes_and_what_would_confirm_it(
    tiers: dict[str, Tier], make_network: MakeNetwork
) -> None:
    networks = {
        ("here", "near"): make_network([40.0] * 90, {Mode.COLD: [85.0] * 90}),
        ("here", "ashburn"): make_network([60.0] * 90, site="ashburn"),
    }
    case = Case(("here", "near"), tiers["rag"], networks)
    for lever in LEVERS.values():
        changed = lever.apply(case, read_lever(lever.example)[1])
        assert changed.assumptions, lever.name
        assert changed.confirm, lever.name


def test_speculative_decoding_takes_a_token_from_28_to_11_ms(rag: Case) -> None:
    assert 28 * (4 * 0.08 + 1) / tokens_per_step(0.8, 4) == pytest.approx(11, abs=0.01)
    found = pull(rag, "speculative")
    assert "from 28.0 to 11.0 ms" in found.notes[0]
    steps = steps_needed(10, 0.8, 4)
    mean = float(np.arange(len(steps)) @ steps)
    tokens = next(term for term in found.after.terms if term.name == "first_10_tokens")
    assert tokens.mean_ms == pytest.approx(mean * 28 * 1.32, rel=2e-3)


@pytest.mark.parametrize(("alpha", "draft"), [(0.8, 4), (0.5, 3), (0.0, 4), (0.95, 8)])
def test_steps_are_what_drawing_them_gives(alpha: float, draft: int) -> None:
    random = np.random.default_rng(1)
    drawn = []
    for _ in range(4000):
        made = steps = 0
        while made < 10:
            accepted = 0
            while accepted < draft and random.random() < alpha:
                accepted += 1
            made, steps = made + accepted + 1, steps + 1
        drawn.append(steps)
    exact = steps_needed(10, alpha, draft)
    assert exact.sum() == pytest.approx(1)
    assert float(np.arange(len(exact)) @ exact) == pytest.approx(np.mean(drawn), rel=0.03)


def test_without_acceptance_drafts_only_cost(rag: Case) -> None:
    before, after = values_of(pull(rag, "speculative=0,draft:2,cost:0.1"))
    assert after[1] - before[1] == pytest.approx(280 * 0.2)


def test_a_prefix_cache_changes_a_percentile_only_beyond_its_misses(rag: Case) -> None:
    before, after = values_of(pull(rag, "prefix-cache=0.6,hit-ms:15"))
    assert before == [1110, 1110, 1110]
    assert after == pytest.approx([1110 - 365, 1110, 1110])
    assert "p95 itself falls from a hit rate of 95%" in pull(rag, "prefix-cache=0.6").notes[0]
    _, most = values_of(pull(rag, "prefix-cache=0.97,hit-ms:15"))
    assert most == pytest.approx([745, 745, 1110])
    assert pull(rag, "prefix-cache=0.97").notes == ()


def test_a_cache_mixes_hits_and_misses_evenly_over_slow_and_quick_requests(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    term = make_term(TermName.TTFT, np.random.default_rng(2).gamma(4, 90, 1500))
    case = Case(("", ""), tiers["rag"], given=(term,))
    lever, setting = read_lever("prefix-cache=0.5,hit-ms:15")
    values = lever.apply(case, setting).case.terms()[TermName.TTFT].values_ns / MS
    mean = float(term.values_ns.mean()) / MS
    assert len(values) % 1500 == 0
    hits = values[values < 90]
    assert float(values.mean()) == pytest.approx((mean + 15) / 2, rel=0.03)
    assert float(hits.mean()) == pytest.approx(15, rel=0.15)


def test_failures_stay_failures_under_every_model(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    given = tuple(
        make_term(name, [None if i % 10 == 0 else 50.0 + i / 10 for i in range(400)])
        for name in (TermName.TTFT, TermName.FIRST_TOKENS, TermName.GATEWAY, TermName.GUARDRAIL)
    )
    case = Case(("", ""), tiers["rag"], given=given)
    for text in (
        "prefix-cache=0.9", "cached-keys", "speculative", "chunked-prefill", "token-rate=90",
        "async-guardrail", "async-guardrail=answer",
    ):  # fmt: skip
        lever, setting = read_lever(text)
        terms = lever.apply(case, setting).case.terms()
        for given_one in given:
            term = terms[given_one.name]
            losses = np.count_nonzero(np.isinf(term.values_ns))
            assert losses / len(term.values_ns) == pytest.approx(0.1, rel=0.02), text
            assert not np.isnan(term.values_ns).any()


def test_chunked_prefill_caps_what_a_burst_adds(rag: Case) -> None:
    found = pull(rag, "chunked-prefill=4,prefill:380,chunk:20,overhead:0.1")
    before, after = values_of(found)
    assert found.before.verdict == "fail"
    # p95 of Poisson(4 x 0.28) is 3 prompts, p99 4: each holds up by 380 ms, or all by 10 x 20
    assert before == pytest.approx([1110 + 380, 1110 + 3 * 380, 1110 + 4 * 380])
    assert after[2] == pytest.approx(1110 + 200 + 38)
    assert found.after.verdict == "pass"


def test_measured_stalls_are_capped_above_their_median(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    values = [250.0] * 300 + [900.0] * 100
    case = Case(("", ""), tiers["rag"], given=(make_term(TermName.FIRST_TOKENS, values),))
    before, after = values_of(pull(case, "chunked-prefill=4,chunk:20,overhead:0"))
    assert before[1] - after[1] == pytest.approx(900 - 450)
    assert before[0] == after[0]


def test_a_guardrail_beside_the_model_counts_for_what_is_longer(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    case = Case(("", ""), tiers["rag"])
    before, after = values_of(pull(case, "async-guardrail"))
    assert before[1] - after[1] == 80
    slow = Case(("", ""), tiers["rag"], given=(make_term(TermName.GUARDRAIL, [400.0] * 400),))
    _, after = values_of(pull(slow, "async-guardrail=ttft"))
    assert after[1] == pytest.approx(1110 - 80 + 20)
    _, after = values_of(pull(slow, "async-guardrail=answer"))
    assert after[1] == pytest.approx(1110 - 80)


def test_guardrail_and_model_of_the_same_traces_are_compared_request_by_request(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    first = make_term(TermName.TTFT, [100.0, 300.0] * 200, requests=IDS)
    guard = make_term(TermName.GUARDRAIL, [150.0, 310.0] * 200, requests=IDS)
    case = Case(("", ""), tiers["rag"], given=(first, guard))
    lever, setting = read_lever("async-guardrail")
    terms = lever.apply(case, setting).case.terms()
    assert set(terms[TermName.GUARDRAIL].values_ns) == {10 * MS, 50 * MS}


def test_levers_together_are_applied_one_after_the_other(rag: Case) -> None:
    found = what_ifs(rag, [read_lever(text) for text in ("async-guardrail", "token-rate=50")])
    assert [one.lever for one in found][:2] == ["async-guardrail", "token-rate=50"]
    _, after = values_of(found[2])
    assert after[1] == pytest.approx(1110 - 80 - 80)


def test_the_network_is_replayed(tiers: dict[str, Tier], make_network: MakeNetwork) -> None:
    networks = {
        ("here", "near"): make_network([40.0] * 200, {Mode.COLD: [85.0] * 200}),
        ("here", "far"): make_network([90.0] * 200, site="far"),
    }
    case = Case(("here", "near"), replace(tiers["chat"], prompt_bytes=800), networks)
    base = 513 - 45
    for text, expected in (
        ("mix=cold:1", base + 125),
        ("prompt=20000", base + 80),
        ("site=far", base + 90),
        ("site=far,near", base + 40),
        ("pop=10", base + 40),
    ):
        assert pull(case, text).after.value_ms == pytest.approx(expected), text
    both = pull(case, "mix=cold:1", "pop=10").after.value_ms
    assert both == pytest.approx(base + 2 * 10 + 5 + 40)
    assert pull(case, "site=far").after.site == "far"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("prefx-cache=1", "prefix-cache, perhaps"),
        ("nothing", "one of mix, prompt"),
        ("prefix-cache", "like prefix-cache=0.6"),
        ("prefix-cache=1.5", "hit is 1.5"),
        ("prefix-cache=0.5,hit-ms:nan", "'nan' is no number"),
        ("prefix-cache=0.5,warm:3", "'warm' is no setting of it"),
        ("prefix-cache=a", "'a' is no number"),
        ("prefix-cache=0.5,hit:0.6", "'0.5' is not understood"),
        ("prefix-cache=hit:0.5,hit:0.6", "hit is there twice"),
        ("speculative=1", "acceptance is 1"),
        ("token-rate", "like token-rate=60"),
        ("token-rate=0", "per-second is 0"),
        ("async-guardrail=maybe", "ttft or answer"),
        ("mix=cold:1", "was not measured"),
        ("pop=8", "was not measured"),
        ("prompt=8", "was not measured"),
        ("site=x", "'x' was not measured"),
    ],
)
def test_what_cannot_be_is_refused_with_what_could(rag: Case, text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        pull(rag, text)
    assert words in str(caught.value)
    assert "command line: --lever" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mix=warm:0.5", "the shares sum to 0.5"),
        ("mix=lukewarm:1", "unknown mode 'lukewarm'"),
        ("mix=warm:2,cold:-1", "cold is -1"),
        ("pop=40", "is not nearer than the site (40.0 ms)"),
        ("pop=far", "far (90.0 ms) is not nearer than the site (40.0 ms)"),
        ("mix=cold:1", "no cold connection was measured from here to near"),
        ("pop", "like pop=8"),
        ("site", "no site is named"),
        ("prompt=0", "bytes is 0"),
    ],
)
def test_what_the_network_cannot_do_is_refused(
    tiers: dict[str, Tier], make_network: MakeNetwork, text: str, words: str
) -> None:
    networks = {
        ("here", "near"): make_network([40.0] * 9),
        ("here", "far"): make_network([90.0] * 9, site="far"),
    }
    case = Case(("here", "near"), tiers["chat"], networks)
    with pytest.raises(ConfigError) as caught:
        pull(case, text)
    assert words in str(caught.value)


def test_a_lever_needs_its_term(tiers: dict[str, Tier]) -> None:
    bare = replace(tiers["chat"], components={"network": 45.0})
    with pytest.raises(ConfigError, match="chat has no ttft"):
        pull(Case(("", ""), bare), "prefix-cache=0.5")
