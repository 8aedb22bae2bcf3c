"""One trace: which of its spans is which term, and how long each term took.

A term whose rule says "own" leaves out the spans of other terms below it, as one stretch where
those ran at once. Spans below a "whole" one belong to it. A child that a service with another clock
stamped outside of its parent is moved into it, as little as that takes, before anything is left
out; lengths need no common clock.
"""

import math
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from pathbudget.analysis.whole_budget.intervals_of_time import (
    Stretch,
    length,
    moved_inside,
    total,
    united,
    without,
)
from pathbudget.analysis.whole_budget.spans_calls import NOTHING, CallTimes, per_token_ns
from pathbudget.analysis.whole_budget.spans_map import MODEL, OUTSIDE, Rule, Several
from pathbudget.analysis.whole_budget.terms import TermName

FAILED = math.inf
DAMAGED = "own time in a trace with an unreadable span"
Placed = Mapping[str, Sequence[int]]
"""For each term the places of its spans in the order of the trace, rising."""
OVERLAP = 0.01
"""Terms that ran at once for a larger share of a trace are told about."""


@dataclass(slots=True)
class Node:
    """A span, with what the table said of it when it was read."""

    span_id: str
    parent_id: str
    name: str
    service: str
    start: int
    end: int
    failed: bool
    rule: int | None
    """Place of the first rule that fits, of those that fit anywhere."""
    entry_rule: int | None
    """The same of those for entries only."""
    call: CallTimes = NOTHING
    scope: tuple[str, str, str] = ("", "", "")
    shift: int = 0
    applied: Rule | None = None
    last: int = 0
    """Place in the order of the trace of the last span below this one."""

    @property
    def stretch(self) -> Stretch:
        """When it was, by the clock of the trace's root."""
        return self.start + self.shift, self.end + self.shift

    @property
    def duration(self) -> int:
        """In ns."""
        return self.end - self.start

    @property
    def term(self) -> str:
        """Which term it is of; empty for none."""
        return "" if self.applied is None else self.applied.term


@dataclass(slots=True)
class TraceTerms:
    """What one trace gives."""

    trace_id: str
    start: int
    scope: tuple[str, str, str]
    values: dict[TermName, float] = field(default_factory=dict[TermName, float])
    used: Counter[str] = field(default_factory=Counter[str])
    """Spans by term."""
    left_out: Counter[str] = field(default_factory=Counter[str])
    """Spans by reason."""
    unmapped: Counter[str] = field(default_factory=Counter[str])
    """Names of spans that no rule fits and that are part of no other."""
    notes: set[str] = field(default_factory=set[str])
    no_first_token: str = ""
    """The service of a streamed call that ended well and tells no first token."""
    call: CallTimes = NOTHING
    unaccounted_ns: int = 0
    moved: int = 0
    services_with_first_token: set[str] = field(default_factory=set[str])


def read_trace(
    trace_id: str,
    nodes: Mapping[str, Node],
    rules: Sequence[Rule],
    tokens: int,
    *,
    missing: Collection[str] = (),
) -> TraceTerms:
    """The terms of one trace; `nodes` by span id, at least one.

    The time of a span that could not be read would count as the own time of those above it, from
    the one in `missing` on. So that is left out.
    """
    order, roots, notes = _in_order(nodes)
    scope = tuple(next((n.scope[i] for n in order if n.scope[i]), "") for i in range(3))
    begin = min(node.start for node in order)
    made = TraceTerms(trace_id, begin, (scope[0], scope[1], scope[2]), notes=notes)
    made.services_with_first_token = {n.service for n in order if n.call.first_ns is not None}
    _apply_rules(order, rules, made)
    made.moved = _move(order, nodes)
    placed = _placed(order)
    for name in TermName:
        spans = [(at, node) for at, node in enumerate(order) if node.term == name]
        if missing and any(_lacks(order, nodes, at, missing) for at, _ in spans):
            made.left_out[DAMAGED] += len(spans)
        elif spans:
            made.values[name] = _plain(order, placed, spans)
            made.used[name] += len(spans)
    calls = [node for node in order if node.term == MODEL]
    if calls:
        _call(order, calls, made, tokens)
    _account(order, placed, roots, calls, made)
    return made


def _lacks(
    order: Sequence[Node], nodes: Mapping[str, Node], at: int, missing: Collection[str]
) -> bool:
    """Whether a span below may be missing, whose time would count as the own time of this one."""
    rule = order[at].applied
    if rule is None or not rule.own:
        return False
    within = {order[place].span_id for place in range(at, order[at].last + 1)}
    return any(parent in within or parent not in nodes for parent in missing)


def _in_order(nodes: Mapping[str, Node]) -> tuple[list[Node], list[Node], set[str]]:
    """Every span after the one above it; the tops; what a reader has to know.

    All spans of a trace come from its root. So one whose parent is not there stands below the
    root, where there is exactly one.
    """
    notes: set[str] = set()
    roots = [node for node in nodes.values() if not node.parent_id]
    below: dict[str, list[Node]] = {}
    tops = list(roots)
    for node in nodes.values():
        if not node.parent_id:
            continue
        parent = node.parent_id
        if parent not in nodes:
            notes.add("incomplete: a parent is missing")
            if len(roots) != 1:
                tops.append(node)
                continue
            parent = roots[0].span_id
        below.setdefault(parent, []).append(node)
    if len(roots) > 1:
        notes.add("more than one root")
    order: list[Node] = []
    seen: set[str] = set()
    _walk(tops, below, order, seen)
    if len(order) < len(nodes):
        notes.add("parents in a circle")
        for node in nodes.values():
            if node.span_id not in seen:
                tops.append(node)
                _walk([node], below, order, seen)
    return order, tops, notes


def _walk(
    tops: Sequence[Node], below: Mapping[str, list[Node]], order: list[Node], seen: set[str]
) -> None:
    """Add all that is below `tops` to `order`, depth first, children in order of time."""
    waiting: list[tuple[Node, bool]] = [(top, False) for top in reversed(tops)]
    while waiting:
        node, done = waiting.pop()
        if done:
            node.last = len(order) - 1
            continue
        if node.span_id in seen:
            continue
        seen.add(node.span_id)
        order.append(node)
        waiting.append((node, True))
        children = sorted(below.get(node.span_id, ()), key=lambda child: child.start, reverse=True)
        waiting += [(child, False) for child in children]


def _apply_rules(order: Sequence[Node], rules: Sequence[Rule], made: TraceTerms) -> None:
    """Give each span its rule, and count those that get none."""
    swallowed_until, mapped_until = -1, -1
    for at, node in enumerate(order):
        fits = [node.rule] if node.rule is not None else []
        if node.entry_rule is not None and at > mapped_until:
            fits.append(node.entry_rule)
        if at <= swallowed_until:
            made.left_out["part of a span of a term"] += 1
        elif fits:
            node.applied = rules[min(fits)]
            mapped_until = max(mapped_until, node.last)
            if node.term == OUTSIDE:
                made.left_out["belongs to no term, by the table"] += 1
            if not node.applied.own:
                swallowed_until = node.last
        elif at <= mapped_until:
            made.left_out["counts as the own time of a span of a term"] += 1
        else:
            made.left_out["no rule of the table fits"] += 1
            made.unmapped[node.name] += 1


def _move(order: Sequence[Node], nodes: Mapping[str, Node]) -> int:
    """Bring children of other clocks into their parents; how many had to be moved."""
    moved = 0
    for node in order:
        parent = nodes.get(node.parent_id)
        if parent is None or parent is node:
            continue
        node.shift = parent.shift
        if node.service != parent.service:
            further = moved_inside(node.stretch, parent.stretch)
            node.shift += further
            moved += further != 0
    return moved


def _below(order: Sequence[Node], at: int) -> Sequence[Node]:
    return order[at + 1 : order[at].last + 1]


def _placed(order: Sequence[Node]) -> dict[str, list[int]]:
    """Where the spans of each term are in the order: below another one they are a slice of it."""
    placed: dict[str, list[int]] = {}
    for at, node in enumerate(order):
        if node.term:
            placed.setdefault(node.term, []).append(at)
    return placed


def _own(order: Sequence[Node], placed: Placed, at: int) -> list[Stretch]:
    """The time of a span that is its term's."""
    node = order[at]
    if node.applied is None or not node.applied.own:
        return [node.stretch]
    others = [
        order[below].stretch
        for term, places in placed.items()
        if term != node.term
        for below in places[bisect_right(places, at) : bisect_right(places, node.last)]
    ]
    return without(node.stretch, others)


def _plain(order: Sequence[Node], placed: Placed, spans: Sequence[tuple[int, Node]]) -> float:
    """A term that is as long as its spans are."""
    if any(_is_loss(order, at, spans) for at, _ in spans):
        return FAILED
    by_time = sorted(spans, key=lambda pair: pair[1].stretch)
    several = next((node.applied.several for _, node in spans if node.applied), Several.UNION)
    if several is Several.SUM:
        return float(sum(total(_own(order, placed, at)) for at, _ in spans))
    if several is not Several.UNION:
        return float(total(_own(order, placed, by_time[0 if several is Several.FIRST else -1][0])))
    return float(length(stretch for at, _ in spans for stretch in _own(order, placed, at)))


def _is_loss(order: Sequence[Node], at: int, spans: Sequence[tuple[int, Node]]) -> bool:
    """Whether a span failed for good: nothing below it is to blame, and no later one made good."""
    node = order[at]
    if not node.failed:
        return False
    if any(n.failed and n.term and n.term != node.term for n in _below(order, at)):
        return False
    return not any(not other.failed and other.start >= node.end for _, other in spans)


def _call(order: Sequence[Node], calls: list[Node], made: TraceTerms, tokens: int) -> None:
    """The two terms of the call whose answer the user sees: the last one, or as the table says."""
    calls = sorted(calls, key=lambda node: node.stretch)
    first = calls[0].applied
    node = calls[0 if first is not None and first.several is Several.FIRST else -1]
    tries = [c for c in calls if c.failed and c.end <= node.start and c.call.first_ns is None]
    earlier = len(calls) - 1 - len(tries)
    if earlier:
        made.notes.add("several calls of a model")
        made.left_out["another call of a model than the one that answers"] += earlier
    made.used[MODEL] += 1 + len(tries)
    waited = length(c.stretch for c in tries)
    if tries and not node.failed:
        made.notes.add("a call was tried again; the time of the failed ones counts")
    times = _times(order, node)
    made.call = times
    if node.failed and times.first_ns is None:
        made.values[TermName.TTFT] = made.values[TermName.FIRST_TOKENS] = FAILED
    elif times.first_ns is not None:
        _first_and_further(node, times, waited, made, tokens)
    elif times.streamed:
        made.no_first_token = node.service or " "
    else:
        made.notes.add("no first token is told")


def _first_and_further(
    node: Node, times: CallTimes, waited: int, made: TraceTerms, tokens: int
) -> None:
    assert times.first_ns is not None
    if times.first_ns > node.duration + 1e6:
        made.notes.add("the first token came after the end of its call")
        return
    made.values[TermName.TTFT] = times.first_ns + waited
    if node.failed:
        made.values[TermName.FIRST_TOKENS] = FAILED
        return
    each = per_token_ns(times, node.duration)
    if each is None:
        made.notes.add("no time per token: fewer than 2 output tokens are told")
    else:
        made.values[TermName.FIRST_TOKENS] = tokens * each


def _times(order: Sequence[Node], node: Node) -> CallTimes:
    """What the span of the call says, or else one below it: a server's, within a client's."""
    if node.call.first_ns is not None:
        return node.call
    at = next(i for i, other in enumerate(order) if other is node)
    for inner in _below(order, at):
        if inner.call.first_ns is not None:
            later = max(0, inner.stretch[0] - node.stretch[0])
            outer, told = node.call, inner.call
            return CallTimes(
                told.first_ns + later if told.first_ns is not None else None,
                told.per_token_ns
                if told.per_token_ns is not None
                else per_token_ns(told, inner.duration),
                outer.input_tokens if outer.input_tokens is not None else told.input_tokens,
                outer.output_tokens if outer.output_tokens is not None else told.output_tokens,
                outer.streamed if outer.streamed is not None else told.streamed,
            )
    return node.call


def _account(
    order: Sequence[Node],
    placed: Placed,
    roots: Sequence[Node],
    calls: Sequence[Node],
    made: TraceTerms,
) -> None:
    """Time of the trace in no term, and whether terms ran at once."""
    if not made.values and not made.no_first_token:
        made.notes.add("nothing of a term in it")
        return
    everything = [node.stretch for node in order if node.term]
    inside = length(everything)
    made.unaccounted_ns = max(0, length([*everything, *(r.stretch for r in roots)]) - inside)
    by_term: dict[str, list[Stretch]] = {}
    for at, node in enumerate(order):
        if node.term and node.term != OUTSIDE:
            by_term.setdefault(node.term, []).extend(_own(order, placed, at))
    apart = [united(stretches) for stretches in by_term.values()]
    doubled = sum(total(one) for one in apart) - length(s for one in apart for s in one)
    if doubled > OVERLAP * max(1, inside):
        made.notes.add("terms ran at the same time")
    if length(c.stretch for c in calls) < total([c.stretch for c in calls]):
        made.notes.add("calls of a model ran at the same time")
