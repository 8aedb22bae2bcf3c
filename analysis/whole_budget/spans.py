"""Terms of the budget out of spans: `terms_of`.

spans_model.py   a span                       spans_map.py    which span is which term
spans_calls.py   a call of a model            spans_trace.py  one trace
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from pathbudget.analysis.quantiles import Values, independent_size
from pathbudget.analysis.whole_budget.spans_calls import NOTHING, call_times
from pathbudget.analysis.whole_budget.spans_map import (
    MODEL,
    NoFirstToken,
    SpanMap,
    default_map,
    found,
)
from pathbudget.analysis.whole_budget.spans_model import Span
from pathbudget.analysis.whole_budget.spans_trace import FAILED, Node, TraceTerms, read_trace
from pathbudget.analysis.whole_budget.terms import Scope, Term, TermName, TermSource

TOKENS = 10
"""Tokens after the first in the term `first_10_tokens`."""
MOST_KINDS = 10_000
"""Combinations of name, kind, service and attributes that are remembered."""
CALL_TERMS = (TermName.TTFT, TermName.FIRST_TOKENS)
DUPLICATE = "a second copy of the same span"


@dataclass(frozen=True, slots=True)
class SpanTerms:
    """Terms out of spans, and what became of every span and every trace.

    `spans` is the sum of `used` and `left_out`. The ids of the terms' requests are trace ids.
    """

    terms: tuple[Term, ...]
    """One per term and scope, in the order of the budget; none without values."""
    spans: int
    traces: int
    used: Mapping[str, int]
    """Spans by term; those of a call of a model under ``model``."""
    left_out: Mapping[str, int]
    """Spans by reason."""
    notes: Mapping[str, int]
    """Traces by what a reader has to know of them."""
    unmapped: Mapping[str, int]
    """Spans by name that no rule fits."""
    moved: int = 0
    """Spans that another clock had put outside of their parent."""
    unaccounted_ns: Values = field(default_factory=lambda: np.empty(0), repr=False)
    """Time of each trace with a term that is in no term."""
    input_tokens: Values = field(default_factory=lambda: np.empty(0), repr=False)
    output_tokens: Values = field(default_factory=lambda: np.empty(0), repr=False)


def terms_of(
    spans: Iterable[Span], span_map: SpanMap | None = None, *, tokens: int = TOKENS
) -> SpanTerms:
    """The terms that the spans give by the table (the shipped one if there is none given).

    A request that failed is +inf: a span with status ERROR that no later one of its term made
    good, a call of a model that failed before the first token. Spans may come in any order.
    """
    table = default_map() if span_map is None else span_map
    intake = Intake(table)
    for span in spans:
        intake.add(span)
    return intake.result(tokens=tokens)


class Intake:
    """Takes spans one by one and keeps of each what a trace needs: some 400 bytes."""

    def __init__(self, table: SpanMap) -> None:
        self._table = table
        self._anywhere = [(i, rule) for i, rule in enumerate(table.rules) if not rule.entry]
        self._entries = [(i, rule) for i, rule in enumerate(table.rules) if rule.entry]
        self._keys: dict[str, bool] = {}
        for rule in table.rules:
            for key, pattern in rule.attributes.items():
                self._keys[key] = self._keys.get(key, False) or pattern.globs != ("*",)
        self._fitting: dict[tuple[str | None, ...], tuple[int | None, int | None]] = {}
        self._traces: dict[str, dict[str, Node]] = {}
        self._known: dict[tuple[str, ...], tuple[str, ...]] = {}
        self._spans = 0
        self._duplicates = 0

    def add(self, span: Span) -> None:
        """Take one span; a second copy of one that is there is counted and nothing else."""
        self._spans += 1
        trace = self._traces.setdefault(span.trace_id, {})
        if span.span_id in trace:
            self._duplicates += 1
            return
        trace[span.span_id] = self._node(span)

    def result(
        self, *, tokens: int = TOKENS, missing: Mapping[str, Collection[str]] | None = None
    ) -> SpanTerms:
        """The terms of all that was taken.

        `missing` has, by trace, the ids of spans that had another one below them which could not
        be read.
        """
        lost = missing or {}
        read = [
            read_trace(name, nodes, self._table.rules, tokens, missing=lost.get(name, ()))
            for name, nodes in self._traces.items()
        ]
        read.sort(key=lambda trace: (trace.start, trace.trace_id))
        self._settle(read)
        left_out = _summed(trace.left_out for trace in read)
        if self._duplicates:
            left_out[DUPLICATE] += self._duplicates
        return SpanTerms(
            _terms(read),
            self._spans,
            len(read),
            _summed(trace.used for trace in read),
            left_out,
            Counter(note for trace in read for note in trace.notes),
            _summed(trace.unmapped for trace in read),
            sum(trace.moved for trace in read),
            np.array([float(t.unaccounted_ns) for t in read if t.values]),
            _counts(trace.call.input_tokens for trace in read),
            _counts(trace.call.output_tokens for trace in read),
        )

    def _node(self, span: Span) -> Node:
        rule, entry = self._rules_for(span)
        failed = span.failed or any(found(span, key) for key in self._table.failure)
        return Node(
            span.span_id,
            span.parent_id,
            span.name,
            self._once(span.service)[0],
            span.start_unix_ns,
            span.end_unix_ns,
            failed,
            rule,
            entry,
            call_times(span, self._table.model),
            self._scope(span),
        )

    def _rules_for(self, span: Span) -> tuple[int | None, int | None]:
        """The first rule that fits, and the first of those for entries; looked up once per kind."""
        alike = (span.name, span.kind, span.service, *self._looked_at(span))
        fitting = self._fitting.get(alike)
        if fitting is None:
            if len(self._fitting) >= MOST_KINDS:
                self._fitting.clear()
            fitting = (
                next((i for i, rule in self._anywhere if rule.fits(span)), None),
                next((i for i, rule in self._entries if rule.fits(span)), None),
            )
            self._fitting[alike] = fitting
        return fitting

    def _looked_at(self, span: Span) -> list[str | None]:
        """The attributes that rules ask for; of those that need only be there, whether they are."""
        words: list[str | None] = []
        for key, matters in self._keys.items():
            value = found(span, key)
            words.append(None if value is None else str(value) if matters else "")
        return words

    def _scope(self, span: Span) -> tuple[str, str, str]:
        if not self._table.scope:
            return ("", "", "")
        words = [
            next((str(v) for key in keys if (v := found(span, key)) is not None), "")
            for keys in (self._table.scope.get(part, ()) for part in ("region", "site", "tier"))
        ]
        region, site, tier = self._once(*words)
        return region, site, tier

    def _once(self, *words: str) -> tuple[str, ...]:
        """The same texts, each kept once."""
        return self._known.setdefault(words, words)

    def _settle(self, read: Iterable[TraceTerms]) -> None:
        """What streamed calls are that told no first token: losses, where others of theirs do."""
        read = list(read)
        telling = {service or " " for trace in read for service in trace.services_with_first_token}
        choice = self._table.model.no_first_token
        for trace in read:
            if not trace.no_first_token:
                continue
            lost = choice is NoFirstToken.LOSS or (
                choice is NoFirstToken.AUTO and trace.no_first_token in telling
            )
            if lost:
                trace.values[TermName.TTFT] = trace.values[TermName.FIRST_TOKENS] = FAILED
            trace.notes.add(
                "a streamed call without a first token: a loss"
                if lost
                else "no first token is told"
            )


def _terms(read: Iterable[TraceTerms]) -> tuple[Term, ...]:
    rows: dict[tuple[tuple[str, str, str], TermName], list[TraceTerms]] = {}
    for trace in read:
        for name in trace.values:
            rows.setdefault((trace.scope, name), []).append(trace)
    order = list(TermName)
    keys = sorted(rows, key=lambda key: (key[0], order.index(key[1])))
    return tuple(_term(name, scope, rows[scope, name]) for scope, name in keys)


def _term(name: TermName, scope: tuple[str, str, str], traces: list[TraceTerms]) -> Term:
    values = np.array([trace.values[name] for trace in traces])
    return Term(
        name,
        TermSource.TRACES,
        values,
        independent_size(values),
        tuple(trace.trace_id for trace in traces),
        "traces",
        Scope(*scope),
        tuple(trace.start for trace in traces),
    )


def _summed(counts: Iterable[Counter[str]]) -> Counter[str]:
    found_all: Counter[str] = Counter()
    for count in counts:
        found_all.update(count)
    return found_all


def _counts(numbers: Iterable[int | None]) -> Values:
    return np.array([float(n) for n in numbers if n is not None and math.isfinite(n)])


__all__ = ["CALL_TERMS", "MODEL", "NOTHING", "TOKENS", "Intake", "SpanTerms", "terms_of"]
