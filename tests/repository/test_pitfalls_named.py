"""What users of other tools were hurt by: each row of the list has a test that bears its number."""

import ast
import re
from pathlib import Path

DEFINITIONS = range(1, 10)
"""Metric definitions."""
CLOCKS = range(10, 21)
"""Clocks, timers, load."""
LOSS = range(21, 30)
"""ICMP, NAT, loss."""
NAME = re.compile(r"test_pitfall_(\d\d)_\w+")


def numbers_in(source: str) -> set[int]:
    """Numbers of the pitfalls that a module has test functions for."""
    names = (
        node.name
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {int(found[1]) for name in names if (found := NAME.fullmatch(name))}


def test_a_number_counts_only_where_there_is_a_test() -> None:
    source = "def test_pitfall_01_a(): ...\nasync def test_pitfall_02_b(): ...\n"
    assert numbers_in(source + "# def test_pitfall_03_c\nTEXT = 'test_pitfall_04_d'\n") == {1, 2}


def test_every_pitfall_has_a_test_that_bears_its_number(root: Path) -> None:
    named: set[int] = set()
    for path in (root / "tests").rglob("test_*.py"):
        named |= numbers_in(path.read_text())
    assert sorted({*DEFINITIONS, *CLOCKS, *LOSS} - named) == []
