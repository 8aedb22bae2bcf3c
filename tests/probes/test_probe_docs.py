"""Each probe has its page, each option its row, and the examples run."""

import re
from pathlib import Path

import pytest

from pathbudget.probes.contract import ProbeSpec
from pathbudget.probes.table import BUILTIN

DOCS = Path(__file__).resolve().parents[2] / "docs"
EXAMPLES = re.findall(
    r"```python\n(.*?)```", (DOCS / "adding-a-probe.md").read_text(), flags=re.DOTALL
)


@pytest.mark.parametrize("spec", BUILTIN.values(), ids=list(BUILTIN))
def test_every_probe_has_a_page_that_names_every_option(spec: ProbeSpec) -> None:
    page = DOCS / "probes" / f"{spec.name}.md"
    assert page.is_file(), f"write {page.relative_to(DOCS.parent)}"
    text = page.read_text()
    rows = set(re.findall(r"^\| `(\w+)` \|", text.partition("## Options")[2], flags=re.MULTILINE))
    assert set(spec.options) <= rows, f"{page.name} does not name every option"
    assert spec.primary_metric in text


def test_no_page_is_left_of_a_probe_that_is_gone() -> None:
    assert {page.stem for page in (DOCS / "probes").glob("*.md")} == set(BUILTIN)


@pytest.mark.parametrize("source", EXAMPLES, ids=["probe", "test"])
def test_the_examples_run(source: str) -> None:
    exec(compile(source, "docs/adding-a-probe.md", "exec"), {})
