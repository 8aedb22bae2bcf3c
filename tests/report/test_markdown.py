"""Markdown has the same content, as tables, and no name in it becomes markup."""

import re

from pathbudget.analysis.report.content import sections
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.markdown import escaped, render_markdown
from pathbudget.analysis.results import Evaluation


def test_same_sections_as_the_page(evaluation: Evaluation) -> None:
    text = render_markdown(evaluation)
    heads = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert heads == [section.title for section in sections(Lookup(evaluation))]


def test_tables_have_as_many_cells_as_heads(hostile: Evaluation) -> None:
    width = 0
    for line in render_markdown(hostile).splitlines():
        if not line.startswith("|"):
            width = 0
            continue
        cells = len(re.findall(r"(?<!\\)\|", line))
        width = width or cells
        assert cells == width, line


def test_names_do_not_become_markup(hostile: Evaluation) -> None:
    text = render_markdown(hostile)
    assert not re.search(r"(?<!\\)<", text)
    assert not re.search(r"(?<!\\)\]\(", text)
    assert "http://" not in text


def test_escaping_keeps_one_line() -> None:
    assert escaped("a\n# b | c") == r"a \# b \| c"


def test_no_limit_is_the_word(evaluation: Evaluation) -> None:
    text = render_markdown(evaluation)
    assert "no limit" in text
    assert "unbounded" not in text.lower()
    assert not re.search(r"\b(inf|nan|None)\b", text)
