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
from pathbudget.analysis.report.chart_waterfall import waterfall
from pathbudget.analysis.report.content import byline, sections
from pathbudget.analysis.report.document import Block, Cell, Column
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import DEFAULT_TITLE, counted
from pathbudget.analysis.results import Evaluation

LONG_WORD = 24
"""A longer word may be broken anywhere, so that it cannot push a table apart."""

HINT = "wider than this page: scroll sideways →"
"""Stands over a table or chart that does not fit; report.js shows it where that is so."""

POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "
    "form-action 'none'; script-src {hashes}"
)


def render_html(evaluation: Evaluation) -> str:
    """The whole report; about 5 MB, nearly all of it the drawing library.

    Raises ModuleNotFoundError without jinja2 and plotly, which the extra ``report`` installs.
    """
    lookup = Lookup(evaluation)
    scripts = {"plotly": _plotly(), "report": _own_file("report.js")}
    page: str = _template().render(
        title=evaluation.title or DEFAULT_TITLE,
        byline=byline(lookup),
        sections=sections(lookup),
        charts={key: (chart, as_json(chart)) for key, chart in _charts(lookup).items()},
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
    return {
        "heatmap": heatmap(lookup),
        "distributions": distributions(lookup),
        "waterfall": waterfall(lookup),
        "map": world_map(lookup),
    }


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
