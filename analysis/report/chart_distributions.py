"""Cumulative distribution of the round-trip time from each region to its recommended site."""

from pathbudget.analysis.report.chart import (
    DASHES,
    SERIES,
    Chart,
    Layout,
    Trace,
    View,
    axis,
    base_layout,
    label,
)
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import listed
from pathbudget.analysis.results import Summary, TierInfo

NAMED = 6
CURVES = 10
"""More curves than this cannot be told apart."""


def distributions(lookup: Lookup) -> Chart:
    """One view per tier; tiers with the same assignments share one."""
    groups: dict[tuple[tuple[str, str], ...], list[TierInfo]] = {}
    for tier in lookup.tiers:
        if chosen := lookup.chosen(tier.name):
            ordered = sorted(chosen.assignments, key=lambda a: -a.weight)
            groups.setdefault(tuple((a.region, a.site) for a in ordered), []).append(tier)
    views: list[View] = []
    notes: list[str] = []
    for pairs, tiers in groups.items():
        name = ", ".join(label(tier.title or tier.name) for tier in tiers)
        series = [s for region, site in pairs if (s := lookup.series(region, site)) is not None]
        answered = [s for s in series if any(ms is not None for _, ms in s.quantile_curve)]
        if answered:
            views.append(_view(lookup, name, answered[:CURVES]))
            notes.append(_note(lookup, name, pairs, answered))
    if not views:
        return Chart(note="No region has a recommended site that answered.")
    return Chart(views, width=300, note=" ".join(note for note in notes if note))


def _note(
    lookup: Lookup, name: str, pairs: tuple[tuple[str, str], ...], answered: list[Summary]
) -> str:
    """Which regions have no curve, and why."""
    drawn = {summary.region for summary in answered}
    unserved = [region for region, site in pairs if not site]
    silent = [region for region, site in pairs if site and region not in drawn]
    parts: list[str] = []
    if len(answered) > CURVES:
        parts.append(f"{len(answered) - CURVES} lighter regions are not drawn")
    if unserved:
        parts.append(f"no site with an upper limit serves {_names(lookup, unserved)}")
    if silent:
        parts.append(f"there is no reply for {_names(lookup, silent)}")
    return f"{name}: {'; '.join(parts)}; the table has them." if parts else ""


def _names(lookup: Lookup, regions: list[str]) -> str:
    rest = len(regions) - NAMED
    names = [label(lookup.region(region)) for region in regions[:NAMED]]
    return listed([*names, *([f"{rest} more"] if rest > 0 else [])])


def _time_axis(series: list[Summary]) -> Layout:
    """Linear below one decade, where a logarithmic axis has hardly a tick to show."""
    shown = [ms for s in series for _, ms in s.quantile_curve if ms is not None and ms > 0]
    if not shown or max(shown) < 10 * min(shown):
        return axis("round-trip time (ms)", tickformat="~g", nticks=6)
    return axis("round-trip time (ms, logarithmic)", type="log", dtick="D2", tickformat="~g")


def _view(lookup: Lookup, name: str, series: list[Summary]) -> View:
    layout = base_layout(
        xaxis=_time_axis(series),
        yaxis=axis("probes answered within (%)", range=[0, 101], ticksuffix=" %"),
        showlegend=True,
        legend={"orientation": "h", "x": 0, "y": -0.22, "yanchor": "top"},
        hovermode="closest",
    )
    layout["yaxis"]["title"] = {"text": ""}
    traces = [_trace(lookup, summary, i) for i, summary in enumerate(series)]
    return View(name, traces, layout, 380 + 22 * len(series))


def _trace(lookup: Lookup, summary: Summary, position: int) -> Trace:
    points = [(ms, 100 * p) for p, ms in summary.quantile_curve if ms is not None and ms > 0]
    pair = f"{label(lookup.region(summary.region))} to {label(lookup.site(summary.site))}"
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"{pair}, n {summary.n:,}",
        "x": [ms for ms, _ in points],
        "y": [percent for _, percent in points],
        "line": {
            "color": SERIES[position % len(SERIES)],
            "width": 2,
            "dash": DASHES[position % len(DASHES)],
        },
        "hovertemplate": f"{pair}<br>%{{y:.0f}} % within %{{x:.2f}} ms<extra></extra>",
    }
