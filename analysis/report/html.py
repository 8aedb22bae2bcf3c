"""The report as one HTML file that needs nothing else: no network, no fonts, no folder beside it.

A content security policy in its head forbids every load and every script but the two whose hashes
it names, so that a hostile name in somebody's catalogue can neither run nor phone home.
"""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from typing import Any

from pathbudget.analysis.report.chart import Chart, as_json
from pathbudget.analysis.report.chart_distributions import distributions
from pathbudget.analysis.report.chart_heatmap import heatmap
from pathbudget.analysis.report.chart_map import world_map
from pathbudget.analysis.report.chart_route_timeline import route_timeline
from pathbudget.analysis.report.chart_waterfall import waterfall
from pathbudget.analysis.report.chart_whole_budget import whole_budget_chart
from pathbudget.analysis.report.content import byline, sections
from pathbudget.analysis.report.document import Block, Cell, Column, Section
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.routes import route_sections
from pathbudget.analysis.report.words import DEFAULT_TITLE, counted
from pathbudget.analysis.results import Evaluation
from pathbudget.analysis.routes.route_report import RouteReport

LONG_WORD = 24
"""A longer word may be broken anywhere, so that it cannot push a table apart."""

HINT = "wider than this page: scroll sideways →"
"""Stands over a table or chart that does not fit; report.js shows it where that is so."""

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; script-src {hashes}"
)


def render_html(evaluation: Evaluation, routes: RouteReport | None = None) -> str:
    """The whole report; about 5 MB, nearly all of it the drawing library.

    Raises ModuleNotFoundError without jinja2 and plotly, which the extra ``report`` installs.
    """
    lookup = Lookup(evaluation, routes)
    title = evaluation.title or DEFAULT_TITLE
    return _page(title, byline(lookup), sections(lookup), _charts(lookup))


def render_routes_html(report: RouteReport, title: str, about: tuple[str, ...] = ()) -> str:
    """What is known of routes as a page of its own; `about` stands below the title."""
    charts = {"route-timeline": route_timeline(report)}
    return _page(title, about, route_sections(report), charts)


def _page(
    title: str,
    about: tuple[str, ...],
    parts: tuple[Section, ...],
    charts: dict[str, Chart],
) -> str:
    scripts = {"plotly": _plotly(), "report": _own_file("report.js")}
    page: str = _template().render(
        title=title,
        byline=about,
        sections=parts,
        charts={key: (chart, as_json(chart)) for key, chart in charts.items()},
        style=_own_file("report.css"),
        policy=POLICY.format(hashes=" ".join(_hash(text) for text in scripts.values())),
        scripts=scripts,
        kind_of=_kind_of,
        class_of=_class_of,
        counted=counted,
        hint=HINT,
    )
    return page.lstrip() + "\n"


def _charts(lookup: Lookup) -> dict[str, Chart]:
    charts = {
        "heatmap": heatmap(lookup),
        "distributions": distributions(lookup),
        "waterfall": waterfall(lookup),
        "map": world_map(lookup),
    }
    if lookup.evaluation.whole_budgets:
        charts["whole-budget"] = whole_budget_chart(lookup)
    if lookup.routes is not None:
        charts["route-timeline"] = route_timeline(lookup.routes)
    return charts


def _kind_of(block: Block) -> str:
    return type(block).__name__


def _class_of(cell: Cell | str, column: Column) -> str:
    """Classes of a table cell: its tone, flush right, breakable anywhere."""
    texts = (cell,) if isinstance(cell, str) else (cell.text, *cell.details)
    long = any(len(word) > LONG_WORD for text in texts for word in text.split())
    tone = "" if isinstance(cell, str) else str(cell.tone)
    words = [tone, "number" * column.numeric, "long" * long]
    return " ".join(word for word in words if word)


@cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(_own_file("report.html"))


@cache
def _own_file(name: str) -> str:
    return files("pathbudget.analysis.report").joinpath(name).read_text("utf-8")


@cache
def _plotly() -> str:
    """plotly.js as its Python package brings it. Nothing in it may end our script element."""
    from plotly.offline import get_plotlyjs

    text: str = get_plotlyjs()
    return text.replace("</script", "<\\/script")


def _hash(script: str) -> str:
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
