"""Which numbers stand for a term, and what is said where some do not."""

from tests.whole_budget.conftest import MakeTerm

from pathbudget.analysis.whole_budget.network import NetworkTerms
from pathbudget.analysis.whole_budget.selection import select_terms
from pathbudget.analysis.whole_budget.terms import Scope, TermName, TermSource
from pathbudget.sites.catalogue import Tier


def test_a_term_of_the_very_place_goes_before_one_of_all(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    every = make_term(TermName.TTFT, [1.0], source=TermSource.TRACES)
    here = make_term(TermName.TTFT, [2.0], scope=Scope(region="here", tier="chat"))
    there = make_term(TermName.TTFT, [3.0], scope=Scope(region="there"))
    found = select_terms("here", "near", tiers["chat"], given=(every, there, here))
    assert here in found.terms
    assert len(found.notes) == 1
    assert "ttft: file of a test stands, not traces of a test" in found.notes[0]
    assert every in select_terms("else", "near", tiers["chat"], given=(every, there, here)).terms


def test_traces_go_before_files_of_the_same_scope(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    file, traces = (
        make_term(TermName.TTFT, [1.0], source=source)
        for source in (TermSource.FILE, TermSource.TRACES)
    )
    assert traces in select_terms("", "", tiers["chat"], given=(file, traces)).terms


def test_what_the_tier_does_not_have_is_part_of_the_request_all_the_same(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    retrieval = make_term(TermName.RETRIEVAL, [30.0])
    found = select_terms("", "", tiers["voice-ai"], given=(retrieval,))
    assert [term.name for term in found.terms][2] == TermName.RETRIEVAL


def test_our_own_network_goes_before_a_given_one(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    own = [make_term(name, [4.0], source=TermSource.MEASURED) for name in TermName][:1]
    out = make_term(TermName.NETWORK_OUT, [4.0], source=TermSource.MEASURED)
    given = make_term(TermName.NETWORK_IN, [9.0])
    network = NetworkTerms(own[0], out)
    found = select_terms("", "", tiers["chat"], network=network, given=(given,))
    assert given not in found.terms
    assert out in found.terms
    assert any("measured by our probes" in note for note in found.notes)


def test_half_a_network_leaves_the_allowance_for_the_other_half(
    tiers: dict[str, Tier], make_term: MakeTerm
) -> None:
    given = make_term(TermName.NETWORK_IN, [9.0])
    found = select_terms("", "", tiers["chat"], given=(given,))
    out = found.terms[-1]
    assert (out.name, out.source) == (TermName.NETWORK_OUT, TermSource.TIER)
    assert out.values_ns[0] == 45e6
    assert "only network_in is given" in found.notes[0]
