"""Round-trip time of every pair as a heat map; one view for the median, one for p95."""

import math

from pathbudget.analysis.report.chart import (
    INK,
    Chart,
    Trace,
    View,
    base_layout,
    label,
    named_axis,
)
from pathbudget.analysis.report.lookup import Lookup, quantile
from pathbudget.analysis.report.words import NOT_MEASURED, UNBOUNDED, bare_ms, interval, ms
from pathbudget.analysis.results import Quantile, RegionInfo, SiteInfo

ROWS = 60
SCALE = [[0.0, "#f6f7f2"], [0.5, "#c5dbe2"], [1.0, "#77adc9"]]
"""Light enough for dark figures in every cell."""
TILTED = 9
"""From so many sites on, their names stand at an angle."""
HEAD = 18
"""Characters in the head of a column."""
VIEWS = ((50.0, "median"), (95.0, "p95"))


def heatmap(lookup: Lookup) -> Chart:
    """Rows are regions, heaviest on top; darker is slower, on a logarithmic scale."""
    regions, sites = lookup.regions[:ROWS], lookup.sites
    if not regions or not lookup.evaluation.summaries:
        return Chart()
    left = len(lookup.regions) - len(regions)
    note = f"{left} lighter regions are not drawn; the tables have them." if left > 0 else ""
    views = [_view(lookup, regions, sites, percentile, word) for percentile, word in VIEWS]
    return Chart(views, width=110 + 58 * len(sites), note="Darker is slower. " + note)


def _view(
    lookup: Lookup,
    regions: tuple[RegionInfo, ...],
    sites: tuple[SiteInfo, ...],
    percentile: float,
    word: str,
) -> View:
    cells = [
        [quantile(lookup.series(region.name, site.name), percentile) for site in sites]
        for region in regions
    ]
    rows = [label(lookup.region(region.name)) for region in regions]
    columns = [_short(lookup, site.name) for site in sites]
    angle = {"tickangle": -40} if len(sites) >= TILTED else {}  # else as the width allows
    layout = base_layout(
        xaxis=named_axis(columns, side="top", **angle),
        yaxis=named_axis(rows, range=[len(rows) - 0.5, -0.5]),
        margin={"l": 8, "r": 8, "t": 34, "b": 8},
        annotations=_words(cells),
    )
    return View(
        word,
        [_trace(cells, rows, columns)],
        layout,
        70 + 34 * len(rows) + (80 if len(sites) >= TILTED else 0),
    )


def _short(lookup: Lookup, name: str) -> str:
    """The title of a site, or its key where that is too long for the head of a column."""
    title = lookup.site(name)
    return label(title if len(title) <= HEAD else name, HEAD)


def _trace(cells: list[list[Quantile | None]], rows: list[str], columns: list[str]) -> Trace:
    hover = [
        [_hover(cell, rows[i], columns[j]) for j, cell in enumerate(row)]
        for i, row in enumerate(cells)
    ]
    return {
        "type": "heatmap",
        "z": [[_shade(cell) for cell in row] for row in cells],
        "text": [[_text(cell) for cell in row] for row in cells],
        "texttemplate": "%{text}",
        "textfont": {"color": INK, "size": 12.5},
        "customdata": hover,
        "hovertemplate": "%{customdata}<extra></extra>",
        "colorscale": SCALE,
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
    }


def _shade(cell: Quantile | None) -> float | None:
    if cell is None or cell.value_ms is None:
        return None
    return math.log10(max(cell.value_ms, 0.01))


def _text(cell: Quantile | None) -> str:
    return "" if cell is None or cell.value_ms is None else bare_ms(cell.value_ms)


def _hover(cell: Quantile | None, row: str, column: str) -> str:
    if cell is None or not cell.n:
        return f"{row} to {column}: {NOT_MEASURED}"
    ends = interval(cell.low_ms, cell.high_ms)
    return f"{row} to {column}<br>{ms(cell.value_ms)} ({ends}), n {cell.n:,}"


def _words(cells: list[list[Quantile | None]]) -> list[Trace]:
    """What a cell without a number says."""
    return [
        {
            "x": j,
            "y": i,
            "text": UNBOUNDED if cell is not None and cell.n else NOT_MEASURED.replace(" ", "<br>"),
            "showarrow": False,
            "font": {"size": 11, "color": "#5d666d"},
        }
        for i, row in enumerate(cells)
        for j, cell in enumerate(row)
        if _shade(cell) is None
    ]
