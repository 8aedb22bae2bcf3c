"""Delay of each series over time, p50 to p95, its loss, and the incidents drawn over it."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from pathbudget.analysis.report.chart import (
    ACCENT,
    INK,
    QUIET,
    Chart,
    Layout,
    Trace,
    View,
    axis,
    base_layout,
    label,
)
from pathbudget.analysis.report.route_words import by_name, cause_words, series_name, touches
from pathbudget.analysis.routes.model import Incident
from pathbudget.analysis.routes.route_report import RouteReport, Timeline

MOST_VIEWS = 24
LONGEST_IDLE = 4
"""Buckets without a packet that a line is drawn over."""
BAND, FAIL_INK = "rgba(11,90,138,0.22)", "#b3420e"
MOMENT = "rgba(179,66,14,0.75)"
STATE = "rgba(179,66,14,0.09)"
Numbers = Mapping[int, int]
"""Number of an incident in the table, by identity."""


def route_timeline(report: RouteReport) -> Chart:
    """A view per series; incidents carry the number that they have in the table."""
    numbers = {id(one): number for number, one in enumerate(in_order(report.incidents), 1)}
    known = [one for one in report.timelines if one.starts_unix_ns]
    shown = sorted(known, key=lambda one: by_name(one.series))[:MOST_VIEWS]
    titles = _titles(shown)
    views = [
        View(titles[n], _traces(one), _layout(one, report.incidents, numbers), height=400)
        for n, one in enumerate(shown)
    ]
    left = len(report.timelines) - len(shown)
    more = f" {left} more series are in the JSON." if left > 0 and shown else ""
    note = (
        "Band: median to 95th percentile; below: loss. Numbers are those of the incidents: shaded "
        f"until they were over, with a solid line where they are not.{more}"
    )
    return Chart(views, width=340, note=note if views else "")


def in_order(incidents: Sequence[Incident]) -> list[Incident]:
    """As they are numbered: by time."""
    return sorted(incidents, key=lambda one: (one.window.by_unix_ns, one.cause))


def _titles(timelines: Sequence[Timeline]) -> list[str]:
    """The pair; with the address where a pair has several series, with the metric where needed."""
    names = [series_name(one.series) for one in timelines]
    texts = [
        f"{name} {one.series.address}" if names.count(name) > 1 else name
        for name, one in zip(names, timelines, strict=True)
    ]
    return [
        label(f"{text} {one.metric}" if texts.count(text) > 1 else text, 44)
        for text, one in zip(texts, timelines, strict=True)
    ]


def _moment(unix_ns: int) -> str:
    """For a date axis, which knows no zones: what is written is UTC."""
    return datetime.fromtimestamp(unix_ns / 1e9, UTC).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3]


def _ms(value: float | None) -> float | None:
    return None if value is None else round(value / 1e6, 4)


def _looked(one: Timeline) -> list[int]:
    """Buckets to draw. A short one in which nothing was sent is no gap: nobody looked."""
    kept: list[int] = []
    idle: list[int] = []
    for index, n in enumerate(one.n):
        idle = [] if n else [*idle, index]
        if n or len(idle) == LONGEST_IDLE:
            kept += idle or [index]
        elif len(idle) > LONGEST_IDLE:
            kept.append(index)
    return kept


def _traces(one: Timeline) -> list[Trace]:
    looked = _looked(one)
    times = [_moment(one.starts_unix_ns[n] + one.bucket_ns // 2) for n in looked]
    p50, p95 = [_ms(one.p50_ns[n]) for n in looked], [_ms(one.p95_ns[n]) for n in looked]
    sent = [one.n[n] for n in looked]
    band_x, band_y = _band(times, p50, p95)
    quiet: Trace = {"hoverinfo": "skip", "line": {"width": 0}, "type": "scatter", "mode": "lines"}
    hover = "%{x|%m-%d %H:%M} UTC<br>p50 %{y} ms, p95 %{customdata[0]} ms<br>"
    return [
        {**quiet, "x": band_x, "y": band_y, "fill": "toself", "fillcolor": BAND},
        {
            "type": "scatter",
            "mode": "lines",
            "x": times,
            "y": p50,
            "customdata": [list(pair) for pair in zip(p95, sent, strict=True)],
            "line": {"color": ACCENT, "width": 1.6},
            "hovertemplate": hover + "%{customdata[1]} sent<extra></extra>",
        },
        {
            "type": "bar",
            "x": times,
            "y": [round(100 * share, 3) for share in (one.loss[n] for n in looked)],
            "yaxis": "y2",
            "marker": {"color": FAIL_INK},
            "width": one.bucket_ns / 1e6,
            "hovertemplate": "%{x|%m-%d %H:%M} UTC: %{y} % lost<extra></extra>",
        },
    ]


Values = Sequence[float | None]


def _band(times: Sequence[str], low: Values, high: Values) -> tuple[list[str | None], Values]:
    """One outline for every stretch without a gap."""
    xs: list[str | None] = []
    ys: list[float | None] = []
    stretch: list[int] = []
    for index in range(len(times) + 1):
        if index < len(times) and low[index] is not None and high[index] is not None:
            stretch.append(index)
        elif stretch:
            back = stretch[::-1]
            xs += [times[n] for n in (*stretch, *back)] + [None]
            ys += [*(high[n] for n in stretch), *(low[n] for n in back), None]
            stretch = []
    return xs, ys


def _layout(one: Timeline, incidents: Sequence[Incident], numbers: Numbers) -> Layout:
    begin = one.starts_unix_ns[0]
    end = one.starts_unix_ns[-1] + one.bucket_ns
    touching = [
        incident
        for incident in incidents
        if touches(incident, one.series)
        and incident.window.by_unix_ns >= begin
        and incident.window.after_unix_ns <= end
    ]
    worst = max((100 * share for share in one.loss), default=0.0)
    layout = base_layout(
        xaxis=axis("UTC", type="date", anchor="y2", range=[_moment(begin), _moment(end)], nticks=6),
        yaxis=axis("round trip (ms)", domain=[0.26, 0.94], nticks=6),
        yaxis2=axis("loss (%)", domain=[0.0, 0.16], range=[0, max(1.0, 1.05 * worst)], nticks=3),
        bargap=0,
        shapes=[shape for incident in touching for shape in _shapes(incident, end)],
        annotations=[_number(incident, numbers[id(incident)], end) for incident in touching],
    )
    layout["margin"] = {"l": 8, "r": 12, "t": 8, "b": 36}
    return layout


def _shapes(incident: Incident, end: int) -> list[Layout]:
    """A line where it began; what is over is shaded until then."""
    common: Layout = {"yref": "paper", "y0": 0, "y1": 0.94, "layer": "below"}
    begin, over = incident.window.by_unix_ns, incident.over
    width = {"color": MOMENT, "width": 1.2, "dash": "solid" if over is None else "dot"}
    moment = {"type": "line", "x0": _moment(begin), "x1": _moment(begin), "line": width}
    if over is None:
        return [common | moment]
    until = _moment(min(max(over.by_unix_ns, begin), end))
    state = {"type": "rect", "x0": _moment(begin), "x1": until, "fillcolor": STATE}
    return [common | state | {"line": {"width": 0}}, common | moment]


def _number(incident: Incident, number: int, end: int) -> Layout:
    return {
        "x": _moment(min(incident.window.by_unix_ns, end)),
        "y": 0.945,
        "yref": "paper",
        "yanchor": "bottom",
        "text": str(number),
        "hovertext": label(cause_words(incident.cause), 60),
        "showarrow": False,
        "font": {"color": INK, "size": 11},
        "bgcolor": "#ffffff",
        "bordercolor": QUIET,
        "borderpad": 2,
    }
