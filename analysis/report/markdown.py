"""The report as Markdown: the same sections, with tables where HTML has charts."""

import re

from pathbudget.analysis.report.content import byline, sections
from pathbudget.analysis.report.document import (
    Block,
    Bullets,
    Cell,
    Drawings,
    Facts,
    Figure,
    Paragraph,
    Section,
    Table,
)
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import DEFAULT_TITLE
from pathbudget.analysis.results import Evaluation
from pathbudget.analysis.routes.route_report import RouteReport

SPECIAL = re.compile(r"([\\`*_{}\[\]<>()#+!|~$&])")


def render_markdown(evaluation: Evaluation, routes: RouteReport | None = None) -> str:
    """The whole report. Names are escaped: no name can become markup or a link."""
    lookup = Lookup(evaluation, routes)
    parts = [f"# {escaped(evaluation.title or DEFAULT_TITLE)}", escaped(", ".join(byline(lookup)))]
    for section in sections(lookup):
        parts.extend(_section(section))
    return "\n\n".join(parts) + "\n"


def escaped(text: str) -> str:
    """`text` as plain words of one line."""
    one_line = " ".join(text.split())
    return SPECIAL.sub(r"\\\1", one_line).replace("://", ":\\//").replace("www.", "www\\.")


def _section(section: Section) -> list[str]:
    blocks = [text for block in section.blocks if (text := _block(block))]
    return [f"## {escaped(section.title)}", *blocks]


def _block(block: Block) -> str:
    match block:
        case Paragraph(text):
            return escaped(text)
        case Bullets(lead, items):
            listed = "\n".join(f"- {escaped(item)}" for item in items)
            return f"{escaped(lead)}\n\n{listed}" if lead else listed
        case Facts():
            return _facts(block)
        case Table():
            return _table(block)
        case Figure() | Drawings():
            return ""


def _facts(facts: Facts) -> str:
    pairs = "\n".join(f"- {escaped(word)}: {escaped(text)}" for word, text in facts.pairs)
    return f"### {escaped(facts.title)}\n\n**{escaped(facts.answer)}**\n\n{pairs}"


def _table(table: Table) -> str:
    heads = "| " + " | ".join(escaped(column.name) for column in table.columns) + " |"
    rule = "|" + "|".join(" ---: " if c.numeric else " --- " for c in table.columns) + "|"
    rows = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in table.rows]
    parts = [f"#### {escaped(table.caption)}", "\n".join([heads, rule, *rows])]
    return "\n\n".join(parts + ([escaped(table.note)] if table.note else []))


def _cell(cell: Cell | str) -> str:
    if isinstance(cell, str):
        return escaped(cell)
    return "; ".join(escaped(text) for text in (cell.text, *cell.details))
