"""What each term contributes to the whole at its percentile, region by region, and the target."""

from collections.abc import Sequence

from pathbudget.analysis.report.chart import (
    ACCENT,
    INK,
    QUIET,
    Chart,
    Trace,
    View,
    axis,
    base_layout,
    label,
    named_axis,
)
from pathbudget.analysis.report.chart_target import target_line, target_word
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.whole_budget import shown_budgets, term_words
from pathbudget.analysis.report.words import UNBOUNDED, bare_ms, figure, interval
from pathbudget.analysis.results import TierInfo
from pathbudget.analysis.whole_budget.results import WholeBudget, WholeTerm, WholeVerdict

BARS = 24
COLOURS = {
    "network": ACCENT,
    "network_in": ACCENT,
    "network_out": "#4f93bd",
    "gateway_and_auth": "#8a5a9e",
    "retrieval": "#a9861b",
    "tokenization": "#5b6b78",
    "ttft": "#c2571a",
    "first_10_tokens": "#3f7d5b",
    "guardrail": "#c0627c",
    "other": "#2f8f9d",
}
LOUD = "#a33b0b"


def whole_budget_chart(lookup: Lookup) -> Chart:
    """One view per tier: every region at its recommended site."""
    views: list[View] = []
    left = 0
    for tier in lookup.tiers:
        budgets = shown_budgets(lookup, tier.name)
        if budgets:
            views.append(_view(lookup, tier, budgets[:BARS]))
            left = max(left, len(budgets) - BARS)
    note = f"{left} lighter regions are not drawn; the tables have them." if left > 0 else ""
    return Chart(views, width=340, note=note)


def _view(lookup: Lookup, tier: TierInfo, budgets: Sequence[WholeBudget]) -> View:
    names = [
        f"{label(lookup.region(one.region), 22)}<br>→ {label(lookup.site(one.site), 18)}"
        for one in budgets
    ]
    terms = list(dict.fromkeys(term.name for one in budgets for term in one.terms))
    traces = [_bars(name, budgets, last=name == terms[-1]) for name in terms]
    totals = [one.high_ms or one.value_ms or 0.0 for one in budgets]
    reach = max(tier.target_ms, *totals)
    layout = base_layout(
        barmode="stack",
        bargap=0.35,
        xaxis=axis("ms of one request", range=[0, 1.6 * reach], rangemode="tozero"),
        yaxis=named_axis(names, range=[len(names) - 0.5, -0.7]),
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 40, "b": 44},
        shapes=[target_line(tier)],
        annotations=[
            *(_outcome(one, place, tier) for place, one in enumerate(budgets)),
            target_word(tier),
        ],
    )
    return View(label(tier.title or tier.name), traces, layout, 210 + 40 * len(names))


def _bars(name: str, budgets: Sequence[WholeBudget], *, last: bool) -> Trace:
    found = [_of(one, name) for one in budgets]
    is_assumed = any(term is not None and term.source == "tier" for term in found)
    trace: Trace = {
        "type": "bar",
        "orientation": "h",
        "name": label(term_words(name)) + (" (assumed)" if is_assumed else ""),
        "x": [0.0 if term is None else term.contribution_ms or 0.0 for term in found],
        "y": list(range(len(budgets))),
        "marker": {
            "color": COLOURS.get(name, QUIET),
            "opacity": 0.55 if is_assumed else 1.0,
            "pattern": {"shape": "/" if is_assumed else "", "size": 5, "solidity": 0.4},
        },
        "customdata": [_hover(term) for term in found],
        "hovertemplate": f"{label(term_words(name))}: %{{customdata}}<extra></extra>",
    }
    if last:
        trace["error_x"] = _error_bars(budgets)
    return trace


def _of(one: WholeBudget, name: str) -> WholeTerm | None:
    return next((term for term in one.terms if term.name == name), None)


def _hover(term: WholeTerm | None) -> str:
    if term is None:
        return "not in this request"
    share = UNBOUNDED if term.contribution_ms is None else f"{figure(term.contribution_ms)} ms"
    if term.source == "tier":
        return f"{share}, assumed"
    ends = interval(term.low_ms, term.high_ms)
    return f"{share}; its own {bare_ms(term.value_ms)} ({ends}) ms, n {term.n:,}"


def _error_bars(budgets: Sequence[WholeBudget]) -> Trace:
    """Interval of the whole at the end of the last bar, where both of its ends are bounded."""

    def reach(one: WholeBudget, end: float | None) -> float:
        return 0.0 if one.value_ms is None or end is None else abs(end - one.value_ms)

    return {
        "type": "data",
        "symmetric": False,
        "array": [reach(one, one.high_ms) for one in budgets],
        "arrayminus": [reach(one, one.low_ms) for one in budgets],
        "color": INK,
        "thickness": 1.2,
        "width": 3,
    }


def _outcome(one: WholeBudget, place: int, tier: TierInfo) -> Trace:
    words = UNBOUNDED if one.value_ms is None else f"{bare_ms(one.value_ms)} ms"
    mark = {WholeVerdict.PASS: "✓", WholeVerdict.FAIL: "✕", WholeVerdict.UNDECIDED: "?"}[
        one.verdict
    ]
    return {
        "x": max(tier.target_ms, one.high_ms or 0.0, one.value_ms or 0.0),
        "y": place,
        "text": f"{mark} {words}",
        "xanchor": "left",
        "xshift": 8,
        "showarrow": False,
        "font": {"size": 12, "color": LOUD if one.verdict is WholeVerdict.FAIL else INK},
    }
