"""Which part of a trace is which term, and what is said of the rest."""

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pathbudget.analysis.whole_budget.groups import joined
from pathbudget.analysis.whole_budget.intervals_of_time import length, moved_inside, without
from pathbudget.analysis.whole_budget.spans import Intake, SpanTerms, terms_of
from pathbudget.analysis.whole_budget.spans_map import default_map, parse_span_map
from pathbudget.analysis.whole_budget.spans_model import Span, SpanEvent, SpanKind
from pathbudget.analysis.whole_budget.spans_trace import Node
from pathbudget.analysis.whole_budget.terms import TermName, TermSource

MakeSpan = Callable[..., Span]
BEGIN = 1_790_000_000 * 10**9
MS = 1_000_000
CHAT = {"gen_ai.operation.name": "chat"}
SERVER = {"kind": SpanKind.SERVER}


def ms_of(found: SpanTerms) -> dict[TermName, list[float]]:
    return {term.name: [float(v) / MS for v in term.values_ns] for term in found.terms}


def of(spans: Iterable[Span]) -> dict[TermName, list[float]]:
    return ms_of(terms_of(spans))


def first_token(after_ms: float, span_start: float = 0.0) -> tuple[SpanEvent, ...]:
    return (SpanEvent("First Token Stream Event", BEGIN + round((span_start + after_ms) * MS)),)


def test_a_gateway_around_everything_counts_its_own_part_alone(span: MakeSpan) -> None:
    spans = [
        span("gateway", "", 0, 100),
        span("retrieve", "gateway", 10, 40),
        span("tokenize", "gateway", 30, 50),  # runs beside the retrieval for 10 ms
        span("guardrail", "gateway", 90, 95),
    ]
    assert of(spans) == {
        TermName.GATEWAY: [55.0],  # 100 - (10 to 50) - (90 to 95), not 100 - 30 - 20 - 5
        TermName.RETRIEVAL: [30.0],
        TermName.TOKENIZATION: [20.0],
        TermName.GUARDRAIL: [5.0],
    }


def test_what_no_rule_fits_below_a_gateway_is_the_gateways_own(span: MakeSpan) -> None:
    spans = [
        span("gateway", "", 0, 100),
        span("handler", "gateway", 5, 95),
        span("retrieve", "handler", 10, 40),
    ]
    found = terms_of(spans)
    assert ms_of(found) == {TermName.GATEWAY: [70.0], TermName.RETRIEVAL: [30.0]}
    assert found.left_out == {"counts as the own time of a span of a term": 1}


def test_the_time_of_a_span_that_cannot_be_read_is_nobodys_own(span: MakeSpan) -> None:
    """The model's call is missing: the gateway would have its time."""
    spans = [span("gateway", "", 0, 100), span("retrieve", "gateway", 10, 40)]
    intake = Intake(default_map())
    for one in spans:
        intake.add(one)
    found = intake.result(missing={spans[0].trace_id: {spans[0].span_id}})
    assert ms_of(found) == {TermName.RETRIEVAL: [30.0]}
    assert found.left_out == {"own time in a trace with an unreadable span": 1}


def test_parallel_and_later_spans_of_one_term_are_one_term(span: MakeSpan) -> None:
    spans = [
        span("gateway", "", 0, 100),
        span("retrieve a", "gateway", 10, 30),
        span("retrieve b", "gateway", 15, 35),
        span("retrieve c", "gateway", 50, 60),
    ]
    assert of(spans)[TermName.RETRIEVAL] == [35.0]


def test_the_table_may_ask_for_the_sum_instead(span: MakeSpan) -> None:
    table = parse_span_map(
        '[[rule]]\nterm = "retrieval"\nnames = "find*"\nseveral = "sum"\n', "own.toml"
    )
    spans = [span("find a", "", 0, 20), span("find b", "", 5, 25)]
    assert ms_of(terms_of(spans, table)) == {TermName.RETRIEVAL: [40.0]}


def test_a_model_that_judges_within_a_guardrail_is_no_answer(span: MakeSpan) -> None:
    spans = [
        span("guardrail", "", 0, 30),
        span("judge", "guardrail", 2, 28, attributes=CHAT, events=first_token(10)),
    ]
    found = terms_of(spans)
    assert ms_of(found) == {TermName.GUARDRAIL: [30.0]}
    assert found.left_out == {"part of a span of a term": 1}


def test_a_server_span_without_a_term_above_it_is_the_gateway(span: MakeSpan) -> None:
    spans = [
        span("POST /", "", 0, 50, **SERVER),
        span("retrieve", "POST /", 10, 40),
        span("GET /search", "retrieve", 15, 35, **SERVER),
    ]
    assert of(spans) == {TermName.GATEWAY: [20.0], TermName.RETRIEVAL: [30.0]}


@pytest.mark.parametrize(
    ("attributes", "ttft", "further"),
    [
        ({"gen_ai.response.time_to_first_chunk": 0.1, "gen_ai.usage.output_tokens": 11}, 100, 400),
        ({"gen_ai.server.time_to_first_token": "0.1", "gen_ai.usage.completion_tokens": "11"},
         100, 400),
        ({"gen_ai.latency.time_to_first_token": 0.1,
          "gen_ai.server.time_per_output_token": 0.002}, 100, 20),
        ({"ai.response.msToFirstChunk": 100, "ai.usage.outputTokens": 11}, 100, 400),
        ({"gen_ai.response.time_to_first_chunk": 0.1, "llm.token_count.completion": 5}, 100, 1000),
    ],
)  # fmt: skip
def test_old_and_new_words_of_a_call(
    span: MakeSpan, attributes: dict[str, Any], ttft: float, further: float
) -> None:
    found = of([span("chat m", "", 0, 500, attributes={**CHAT, **attributes})])
    assert found[TermName.TTFT] == pytest.approx([ttft])
    assert found[TermName.FIRST_TOKENS] == pytest.approx([further])


@pytest.mark.parametrize(
    "attributes",
    [
        {"gen_ai.operation.name": "text_completion"},
        {"openinference.span.kind": "LLM"},
        {"llm.request.type": "chat"},
        {"ai.operationId": "ai.streamText.doStream"},
        {"gen_ai.system": "vertex_ai", "gen_ai.request.model": "gemini"},
        {"gen_ai.latency.e2e": 0.5},
    ],
    ids=lambda attributes: next(iter(attributes)),
)
def test_every_convention_names_a_call(span: MakeSpan, attributes: dict[str, Any]) -> None:
    call = span("llm_request", "", 0, 500, attributes=attributes, events=first_token(120))
    assert of([call]) == {TermName.TTFT: [120.0]}


@pytest.mark.parametrize("operation", ["retrieval", "embeddings", "execute_tool"])
def test_tools_and_searches_are_context_building(span: MakeSpan, operation: str) -> None:
    one = span("work", "", 0, 25, attributes={"gen_ai.operation.name": operation})
    assert of([one]) == {TermName.RETRIEVAL: [25.0]}


def test_number_of_tokens_that_count(span: MakeSpan) -> None:
    told = {"gen_ai.server.time_per_output_token": 0.01}
    call = span("c", "", 0, 500, attributes={**CHAT, **told}, events=first_token(100))
    assert ms_of(terms_of([call], tokens=25))[TermName.FIRST_TOKENS] == [pytest.approx(250)]


def test_a_call_that_failed_before_the_first_token_is_a_loss_of_both(span: MakeSpan) -> None:
    found = of([span("chat", "", 0, 20, attributes=CHAT, failed=True)])
    assert found == {TermName.TTFT: [math.inf], TermName.FIRST_TOKENS: [math.inf]}


def test_a_call_that_broke_off_lost_its_further_tokens(span: MakeSpan) -> None:
    call = span("chat", "", 0, 500, attributes={**CHAT, "error.type": "timeout"},
                events=first_token(90))  # fmt: skip
    assert of([call]) == {TermName.TTFT: [90.0], TermName.FIRST_TOKENS: [math.inf]}


def test_the_failed_try_before_a_good_one_is_waited_for(span: MakeSpan) -> None:
    spans = [
        span("gateway", "", 0, 600),
        span("try 1", "gateway", 10, 60, attributes=CHAT, failed=True),
        span("try 2", "gateway", 80, 580, attributes=CHAT, events=first_token(100, 80)),
    ]
    found = terms_of(spans)
    assert ms_of(found)[TermName.TTFT] == [150.0]
    assert found.notes["a call was tried again; the time of the failed ones counts"] == 1
    assert found.used["model"] == 2


def test_an_error_counts_where_it_arose_and_once(span: MakeSpan) -> None:
    """The gateway passes on that the retrieval failed; it did its own work."""
    spans = [
        span("gateway", "", 0, 50, failed=True),
        span("retrieve", "gateway", 10, 40, failed=True),
    ]
    assert of(spans) == {TermName.GATEWAY: [20.0], TermName.RETRIEVAL: [math.inf]}
    assert of([span("gateway", "", 0, 5, failed=True)]) == {TermName.GATEWAY: [math.inf]}


def test_a_retrieval_that_was_repeated_with_success_is_none(span: MakeSpan) -> None:
    spans = [span("retrieve 1", "", 0, 10, failed=True), span("retrieve 2", "", 12, 20)]
    assert of(spans) == {TermName.RETRIEVAL: [18.0]}
    parallel = [span("retrieve 1", "", 0, 10, failed=True), span("retrieve 2", "", 1, 20)]
    assert of(parallel) == {TermName.RETRIEVAL: [math.inf]}


def test_a_streamed_call_that_never_streamed_is_a_loss_where_others_stream(span: MakeSpan) -> None:
    streamed = {**CHAT, "gen_ai.request.stream": True}
    silent = span("a", "", 0, 100, attributes=streamed)
    telling = span("b", "", 0, 100, attributes=streamed, events=first_token(30), trace_id="u")
    assert of([silent]) == {}
    assert of([silent, telling])[TermName.TTFT] == [math.inf, 30.0]
    whole = span("c", "", 0, 100, attributes=CHAT, trace_id="v")
    assert of([whole, telling])[TermName.TTFT] == [30.0]


def test_the_last_call_answers_and_the_others_are_told(span: MakeSpan) -> None:
    spans = [
        span("plan", "", 0, 200, attributes=CHAT, events=first_token(50)),
        span("answer", "", 300, 500, attributes=CHAT, events=first_token(70, 300)),
    ]
    found = terms_of(spans)
    assert ms_of(found) == {TermName.TTFT: [70.0]}
    assert found.left_out == {"another call of a model than the one that answers": 1}
    assert found.notes["several calls of a model"] == 1


def test_a_server_tells_what_its_client_does_not(span: MakeSpan) -> None:
    spans = [
        span("chat", "", 0, 500, attributes=CHAT),
        span("llm_request", "chat", 20, 480, service="vllm", attributes={
            "gen_ai.latency.time_to_first_token": 0.1, "gen_ai.latency.e2e": 0.46,
            "gen_ai.usage.completion_tokens": 37}),
    ]  # fmt: skip
    found = of(spans)
    assert found[TermName.TTFT] == pytest.approx([120.0])
    assert found[TermName.FIRST_TOKENS] == pytest.approx([100.0])


def test_children_by_another_clock_are_moved_into_their_parent(span: MakeSpan) -> None:
    spans = [
        span("gateway", "", 0, 100),
        span("retrieve", "gateway", -40, 20, service="search"),
        span("embed", "retrieve", -30, -20, service="search"),
    ]
    found = terms_of(spans)
    assert ms_of(found) == {TermName.GATEWAY: [40.0], TermName.RETRIEVAL: [60.0]}
    assert found.moved == 1


def test_incomplete_traces_are_counted_and_used(span: MakeSpan) -> None:
    spans = [
        span("gateway", "", 0, 100),
        span("retrieve", "lost", 10, 40),
        span("guardrail", "gone", 0, 7, trace_id="u"),
    ]
    found = terms_of(spans)
    assert found.notes["incomplete: a parent is missing"] == 2
    assert ms_of(found)[TermName.GATEWAY] == [70.0]  # all of a trace comes from its root


def test_parents_in_a_circle_are_counted_and_end(span: MakeSpan) -> None:
    spans = [span("retrieve", "embed", 0, 10), span("embed", "retrieve", 2, 8)]
    found = terms_of([*spans, span("guardrail", "guardrail", 0, 3, trace_id="u")])
    assert found.notes["parents in a circle"] == 2
    assert sum(found.used.values()) == 3


def test_the_same_span_twice_counts_once(span: MakeSpan) -> None:
    one = span("guardrail", "", 0, 10)
    found = terms_of([one, one])
    assert ms_of(found) == {TermName.GUARDRAIL: [10.0]}
    assert found.left_out == {"a second copy of the same span": 1}


def test_terms_that_run_at_once_are_told(span: MakeSpan) -> None:
    beside = [span("retrieve", "", 0, 50), span("guardrail", "", 0, 40)]
    after = [span("retrieve", "", 0, 50), span("guardrail", "", 50, 90)]
    assert terms_of(beside).notes["terms ran at the same time"] == 1
    assert "terms ran at the same time" not in terms_of(after).notes


def test_terms_join_by_trace_and_know_their_order(span: MakeSpan) -> None:
    spans = [span("guardrail", "", 10 * n, 10 * n + n, trace_id=f"{9 - n}") for n in (3, 1, 2)]
    (term,) = terms_of(spans).terms
    assert term.requests == ("8", "7", "6")
    assert list(term.values_ns) == [1 * MS, 2 * MS, 3 * MS]
    assert term.sent_unix_ns == tuple(BEGIN + 10 * n * MS for n in (1, 2, 3))
    assert term.source is TermSource.TRACES


def test_scopes_come_from_attributes_that_the_table_names(span: MakeSpan) -> None:
    table = parse_span_map('[scope]\nregion = ["client.region"]\nsite = "cloud.region"\n', "x")
    spans = [
        span("guardrail", "", 0, 1, resource={"cloud.region": "fra"}),
        span("inner", "guardrail", 0, 1, attributes={"client.region": "paris"}),
        span("guardrail", "", 0, 2, trace_id="u"),
    ]
    found = terms_of(spans, table).terms
    assert [(term.scope.region, term.scope.site) for term in found] == [("", ""), ("paris", "fra")]


def test_time_in_no_term_is_told(span: MakeSpan) -> None:
    found = terms_of([span("main", "", 0, 100), span("retrieve", "main", 20, 50)])
    assert list(found.unaccounted_ns) == [70 * MS]
    assert found.unmapped == {"main": 1}


trees = st.lists(
    st.tuples(
        st.integers(0, 12), st.integers(0, 100), st.integers(0, 60),
        st.sampled_from(["gateway", "retrieve", "guardrail", "tokenize", "other"]), st.booleans(),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@given(trees)
@settings(max_examples=60, deadline=None)
def test_every_span_is_accounted_for_and_own_times_add_up(rows: Any) -> None:
    """Whatever the tree: used + left out = spans, and no term is longer than the trace's spans."""
    spans = [
        Span("t", f"{at}", f"{parent}" if parent < at else "", name, BEGIN + begin, BEGIN + begin
             + size, failed=failed)
        for at, (parent, begin, size, name, failed) in enumerate(rows)
    ]  # fmt: skip
    found = terms_of(spans)
    assert sum(found.used.values()) + sum(found.left_out.values()) == found.spans == len(spans)
    covered = length((s.start_unix_ns, s.end_unix_ns) for s in spans)
    for term in found.terms:
        finite = term.values_ns[np.isfinite(term.values_ns)]
        assert (finite >= 0).all()
        assert (finite <= covered).all()


stretches = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=6)


@given(stretches, st.tuples(st.integers(0, 20), st.integers(20, 40)))
@settings(max_examples=60, deadline=None)
def test_unions_and_differences_against_counting(others: Any, one: tuple[int, int]) -> None:
    inside = {t for begin, end in others for t in range(begin, end)}
    assert length(others) == len(inside)
    left = without(one, others)
    assert {t for begin, end in left for t in range(begin, end)} == set(range(*one)) - inside


def test_moves_are_as_small_as_can_be() -> None:
    assert moved_inside((5, 10), (0, 20)) == 0
    assert moved_inside((-5, 10), (0, 20)) == 5
    assert moved_inside((15, 25), (0, 20)) == -5
    assert moved_inside((-5, 30), (0, 20)) == 0


def test_a_request_that_failed_early_stays_a_loss_of_the_whole(span: MakeSpan) -> None:
    """It never came to the guardrail; left out of the join it would make the whole look quick."""
    spans = [
        span("chat", "", 0, 20, attributes=CHAT, failed=True),
        span("chat", "", 30, 90, attributes=CHAT, events=first_token(10, 30), trace_id="u"),
        span("guardrail", "", 95, 99, trace_id="u"),
        span("guardrail", "", 200, 204, trace_id="half"),
    ]
    ttft, guardrail = terms_of(spans).terms[0], terms_of(spans).terms[-1]
    group = joined([ttft, guardrail])
    assert sorted(group.sums_ns / MS) == [14.0, math.inf]
    assert group.left_out == 1


def test_the_work_for_a_chain_of_spans_does_not_grow_with_their_square(
    span: MakeSpan, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Searches, each within the one before: how often is it asked which term a span is of?"""
    asked, term = [0], vars(Node)["term"]

    def counted(node: Node) -> str:
        asked[0] += 1
        return str(term.fget(node))

    monkeypatch.setattr(Node, "term", property(counted))
    chain = [span("retrieve 0", "", 0, 1000)]
    for number in range(1, 500):
        chain.append(span(f"retrieve {number}", f"retrieve {number - 1}", 0, 1000))
    assert of(chain) == {TermName.RETRIEVAL: [1000.0]}
    assert asked[0] < 50 * len(chain)
