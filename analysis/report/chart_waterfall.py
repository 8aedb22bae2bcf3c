"""The budget of each tier as stacked bars, the network term as measured, beside the target."""

from pathbudget.analysis.report.chart import (
    ACCENT,
    INK,
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
from pathbudget.analysis.report.words import UNBOUNDED, bare_ms, given, interval
from pathbudget.analysis.results import BudgetLine, TierInfo

BARS = 24
TERMS = ("#c3ccd1", "#d9cdb0", "#b3c6b0", "#cdbcd0", "#e3c3af", "#a8bfc9", "#d6d6cf", "#c9b6a6")
NETWORK = "network"

Bars = list[tuple[str, BudgetLine]]


def waterfall(lookup: Lookup) -> Chart:
    """One view per tier: the allowances on top, then every region at its recommended site."""
    views: list[View] = []
    left = 0
    for tier in lookup.tiers:
        bars = _bars(lookup, tier)
        if bars:
            views.append(_view(tier, bars[:BARS]))
            left = max(left, len(bars) - BARS)
    note = f"{left} lighter regions are not drawn; the tables have them." if left > 0 else ""
    return Chart(views, width=340, note=note)


def _bars(lookup: Lookup, tier: TierInfo) -> Bars:
    chosen = lookup.chosen(tier.name)
    ordered = sorted(chosen.assignments, key=lambda a: -a.weight) if chosen else []
    found = ((a.region, a.site, lookup.headline(tier.name, a.region, a.site)) for a in ordered)
    return [
        (f"{label(lookup.region(region), 22)}<br>→ {label(lookup.site(site), 18)}", line)
        for region, site, line in found
        if line is not None
    ]


def _view(tier: TierInfo, bars: Bars) -> View:
    names = ["allowances of the tier", *(name for name, _ in bars)]
    others = [name for name in tier.components if name != NETWORK]
    traces = [_network(tier, bars)]
    for position, name in enumerate(others):
        traces.append(_term(tier, name, len(names), TERMS[position % len(TERMS)]))
    totals = _totals(tier, bars)
    reach = max(tier.target_ms, *(total or 0.0 for total in totals))
    layout = base_layout(
        barmode="stack",
        bargap=0.35,
        xaxis=axis("ms of one request", range=[0, 1.45 * reach], rangemode="tozero"),
        yaxis=named_axis(names, range=[len(names) - 0.5, -0.7]),
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "traceorder": "normal"},
        margin={"l": 8, "r": 8, "t": 40, "b": 44},
        uniformtext={"minsize": 9, "mode": "hide"},
        shapes=[target_line(tier)],
        annotations=[*_total_words(tier, totals), target_word(tier)],
    )
    return View(label(tier.title or tier.name), traces, layout, 170 + 34 * len(names))


def _network(tier: TierInfo, bars: Bars) -> Trace:
    lines = [line for _, line in bars]
    values = [tier.network_allowance_ms, *(line.value_ms or 0.0 for line in lines)]
    return {
        "type": "bar",
        "orientation": "h",
        "name": "network",
        "x": values,
        "y": list(range(len(values))),
        "marker": {"color": ACCENT, "opacity": [0.5, *(1.0 for _ in lines)]},
        "error_x": _error_bars(lines),
        "customdata": [f"allowance {given(values[0])} ms", *(_hover(line) for line in lines)],
        "hovertemplate": "network: %{customdata}<extra></extra>",
    }


def _hover(line: BudgetLine) -> str:
    value = bare_ms(line.value_ms)
    return f"{value} ({interval(line.low_ms, line.high_ms)}) ms, n {line.n:,}"


def _error_bars(lines: list[BudgetLine]) -> Trace:
    """Interval ends where both are bounded; an unbounded one is said in words at the bar."""

    def reach(line: BudgetLine, end: float | None) -> float:
        if line.value_ms is None or end is None:
            return 0.0
        return abs(end - line.value_ms)

    return {
        "type": "data",
        "symmetric": False,
        "array": [None, *(reach(line, line.high_ms) for line in lines)],
        "arrayminus": [None, *(reach(line, line.low_ms) for line in lines)],
        "color": INK,
        "thickness": 1.2,
        "width": 3,
    }


def _term(tier: TierInfo, name: str, count: int, colour: str) -> Trace:
    allowed = tier.components[name]
    return {
        "type": "bar",
        "orientation": "h",
        "name": f"{label(name)} {given(allowed)}",
        "x": [allowed] * count,
        "y": list(range(count)),
        "marker": {"color": colour},
        "hovertemplate": f"{label(name)}: {given(allowed)} ms allowed<extra></extra>",
    }


def _totals(tier: TierInfo, bars: Bars) -> list[float | None]:
    others = sum(allowed for name, allowed in tier.components.items() if name != NETWORK)
    measured = [None if line.value_ms is None else others + line.value_ms for _, line in bars]
    return [others + tier.network_allowance_ms, *measured]


def _total_words(tier: TierInfo, totals: list[float | None]) -> list[Trace]:
    others = sum(allowed for name, allowed in tier.components.items() if name != NETWORK)
    return [
        {
            "x": max(tier.target_ms, others if total is None else total),
            "y": position,
            "text": UNBOUNDED if total is None else f"{bare_ms(total)} ms",
            "xanchor": "left",
            "xshift": 8,
            "showarrow": False,
            "font": {"size": 12, "color": INK if total and total <= tier.target_ms else "#a33b0b"},
        }
        for position, total in enumerate(totals)
    ]
