"""What the charts share: palette, axes, labels, and the shape that report.js draws.

A chart is plain data (the JSON of a plotly figure), so no plotting library is imported to make it:

    {"views": [{"data", "layout", "height", "aspect"}]}
"""

import html
import json
from dataclasses import dataclass, field
from typing import Any

Trace = dict[str, Any]
Layout = dict[str, Any]

INK = "#22282d"
QUIET = "#5d666d"
RULE = "#d9dcd8"
ACCENT = "#0b5a8a"
SERIES = ("#0b5a8a", "#c2571a", "#3f7d5b", "#8a5a9e", "#a9861b", "#5b6b78", "#c0627c", "#2f8f9d")
"""Told apart with every common colour blindness, and by dash as well."""
DASHES = ("solid", "dash", "dot")


@dataclass(frozen=True, slots=True)
class View:
    """One drawing of a chart; a chart with several has a choice above it."""

    label: str
    data: list[Trace]
    layout: Layout
    height: int = 420
    aspect: float = 0.0
    """Height over width of a drawing that must keep its shape; then `height` is what is added."""


@dataclass(frozen=True, slots=True)
class Chart:
    """All drawings of one figure. `width` is the least that is still readable, in CSS pixels."""

    views: list[View] = field(default_factory=list[View])
    width: int = 280
    note: str = ""


def label(text: str, limit: int = 22) -> str:
    """`text` for an axis or a hover box: cut to `limit`, and no markup in it can act.

    Cut in the middle: names that begin alike tend to differ at the end.
    """
    one_line = " ".join(text.split())
    if len(one_line) > limit:
        tail = limit // 3
        one_line = f"{one_line[: limit - tail - 1].rstrip()}…{one_line[-tail:].lstrip()}"
    return html.escape(one_line)


def base_layout(**more: Any) -> Layout:
    """Margins, fonts and colours of every chart."""
    layout: Layout = {
        "font": {"family": "system-ui, -apple-system, 'Segoe UI', sans-serif", "size": 12.5},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "margin": {"l": 8, "r": 16, "t": 12, "b": 40},
        "colorway": list(SERIES),
        "hoverlabel": {"bgcolor": "#ffffff", "bordercolor": RULE, "font": {"color": INK}},
        "dragmode": False,
        "showlegend": False,
    }
    layout["font"]["color"] = INK
    return layout | more


def axis(title: str = "", **more: Any) -> Layout:
    """A quiet axis with its title, fixed so that a scrolling finger does not zoom it."""
    settings: Layout = {
        "fixedrange": True,
        "gridcolor": "#e8eae7",
        "linecolor": RULE,
        "zeroline": False,
        "automargin": True,
    }
    if title:
        settings["title"] = {"text": title, "font": {"color": QUIET, "size": 12.5}}
    return settings | more


def named_axis(names: list[str], **more: Any) -> Layout:
    """Names along an axis by position, so that two equal names stay two rows."""
    settings = axis(type="linear", showgrid=False, range=[-0.5, len(names) - 0.5])
    ticks = {"tickmode": "array", "tickvals": list(range(len(names))), "ticktext": names}
    return settings | ticks | more


def as_json(chart: Chart) -> str:
    """The chart as JSON that can stand inside a script element: no ``<``, ``>`` or ``&`` in it."""
    views = [
        {"data": v.data, "layout": v.layout, "height": v.height, "aspect": v.aspect}
        for v in chart.views
    ]
    text = json.dumps({"views": views}, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
