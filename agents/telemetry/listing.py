"""What was gathered, as a table of 80 columns and as JSON."""

import math
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from pathbudget.agents.cli.wording import harmless
from pathbudget.agents.telemetry.gather import Gathered
from pathbudget.analysis.whole_budget.spans import SpanTerms
from pathbudget.analysis.whole_budget.spans_map import MODEL
from pathbudget.analysis.whole_budget.terms import Term, TermSource

QUANTILES = (0.5, 0.95, 0.99)
MILLISECOND = 1e6
SHOWN_NAMES = 5

SCHEMA = "pathbudget-terms-1"


def print_terms(gathered: Gathered, confidence: float) -> None:
    """The table, then what has to be known of it."""
    console = Console(highlight=False, markup=False, emoji=False)
    console.print(_table(gathered, confidence))
    console.print()
    for line in _remarks(gathered, confidence):
        console.print(Text(harmless(line)))


def _table(gathered: Gathered, confidence: float) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("term", no_wrap=True)
    for heading in ("n", "failed"):
        table.add_column(heading, justify="right", no_wrap=True)
    for p in QUANTILES:
        table.add_column(f"p{p * 100:g} ms", justify="right")
    for term in gathered.terms:
        cells = [_cell(term, p, confidence) for p in QUANTILES]
        n = "-" if math.isinf(term.n_effective) else f"{_requests(term):,}"
        table.add_row(Text(_name(term)), n, f"{_failed(term)}", *cells)
    return table


def _name(term: Term) -> str:
    scope = [word for word in (term.scope.region, term.scope.site, term.scope.tier) if word]
    return harmless(" ".join((term.name, *scope)))


def _requests(term: Term) -> int:
    """Samples; of a stated distribution what it is worth."""
    if term.source is TermSource.FILE and not term.requests and len(term.values_ns) > 1:
        stated = "quantiles" in term.origin or "samples" not in term.origin
        return round(term.n_effective) if stated else len(term.values_ns)
    return len(term.values_ns)


def _failed(term: Term) -> str:
    losses = int(np.count_nonzero(np.isinf(term.values_ns)))
    if not losses or term.requests or "samples" in term.origin:
        return f"{losses:,}"
    return f"{losses / len(term.values_ns):.2%}"


def _cell(term: Term, p: float, confidence: float) -> str:
    estimate = term.distribution.estimate(p, confidence)
    if math.isinf(term.n_effective):
        return f"{_ms(estimate.value)}\nas stated"
    return f"{_ms(estimate.value)}\n{_ms(estimate.low)} - {_ms(estimate.high)}"


def _ms(value_ns: float) -> str:
    """Three digits that count; beyond them whole milliseconds."""
    if math.isinf(value_ns):
        return "inf"
    ms = value_ns / MILLISECOND
    if ms >= 100:
        return f"{ms:.0f}"
    return f"{ms:.1f}" if ms >= 10 else f"{ms:.2f}"


def _remarks(gathered: Gathered, confidence: float) -> list[str]:
    lines = [
        f"Below each quantile its {confidence:.0%} interval. inf: failed requests reach that far,",
        "or there are too few to set a limit.",
    ]
    spans = gathered.spans
    if spans is not None:
        used = sum(spans.used.values())
        lines.append(f"{spans.spans:,} spans of {spans.traces:,} traces; {used:,} used:")
        lines += [f"  {count:,} {_told(name)}" for name, count in _by_count(spans)]
        lines += _time_in_no_term(spans)
    if notes := gathered.notes:
        lines.append("Left out, and to be known:")
        lines += [f"  {note}" for note in notes]
    if spans is not None and spans.unmapped:
        names = sorted(spans.unmapped.items(), key=lambda item: -item[1])
        shown = ", ".join(f'"{name[:40]}" ({count:,})' for name, count in names[:SHOWN_NAMES])
        more = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
        lines.append(f"In no rule of the table: {shown}{more}")
    return lines


def _by_count(spans: SpanTerms) -> list[tuple[str, int]]:
    return sorted(spans.used.items(), key=lambda item: -item[1])


def _told(name: str) -> str:
    return "calls of a model (ttft, first tokens)" if name == MODEL else str(name)


def _time_in_no_term(spans: SpanTerms) -> list[str]:
    times = spans.unaccounted_ns
    if not len(times) or float(np.median(times)) < 0.0005 * MILLISECOND:
        return []
    middle, slow = np.quantile(times, [0.5, 0.95]) / MILLISECOND
    return [f"Time of a trace in no term: {middle:.3g} ms in the middle, {slow:.3g} ms at p95"]


def as_json(gathered: Gathered, confidence: float) -> bytes:
    """All of it in one object; times in ms, null for no upper limit."""
    spans = gathered.spans
    content: dict[str, Any] = {
        "schema": SCHEMA,
        "confidence": confidence,
        "terms": [_term_json(term, confidence) for term in gathered.terms],
        "notes": list(gathered.notes),
        "problems": [
            {"file": f.file, "where": f.where, "problem": f.problem, "expected": f.expected}
            for f in gathered.problems.faults
        ],
    }
    if spans is not None:
        content["spans"] = {
            "spans": spans.spans,
            "traces": spans.traces,
            "used": dict(spans.used),
            "left_out": dict(spans.left_out),
            "unreadable": dict(gathered.problems.spans),
            "traces_noted": dict(spans.notes),
            "unmapped": dict(spans.unmapped),
            "moved": spans.moved,
        }
    return msgspec.json.format(msgspec.json.encode(content), indent=2)


def _term_json(term: Term, confidence: float) -> dict[str, Any]:
    spread = term.distribution
    quantiles = {f"p{p * 100:g}": spread.estimate(p, confidence) for p in QUANTILES}
    return {
        "term": str(term.name),
        "region": term.scope.region,
        "site": term.scope.site,
        "tier": term.scope.tier,
        "source": str(term.source),
        "origin": term.origin,
        "n": _requests(term) if math.isfinite(term.n_effective) else None,
        "n_effective": _finite(term.n_effective),
        "failed_ratio": spread.losses / spread.n,
        "quantiles_ms": {
            name: {
                "value": _finite(one.value / MILLISECOND),
                "low": _finite(one.low / MILLISECOND),
                "high": _finite(one.high / MILLISECOND),
            }
            for name, one in quantiles.items()
        },
    }


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None
