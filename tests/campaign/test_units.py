"""Durations as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pathbudget.agents.units import format_duration, parse_duration_ns


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("250ms", 250_000_000),
        ("1.5s", 1_500_000_000),
        ("10m", 600_000_000_000),
        ("2h", 7_200_000_000_000),
        ("1d", 86_400_000_000_000),
        (" 5 us ", 5_000),
    ],
)
def test_the_usual_forms(text: str, ns: int) -> None:
    assert parse_duration_ns(text) == ns


@pytest.mark.parametrize("text", ["", "ms", "-1s", "1 minute", "1e3s", "nan s", "1s2ms"])
def test_anything_else_is_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match="no duration such as 250ms"):
        parse_duration_ns(text)


def test_a_number_alone_is_answered_with_what_was_probably_meant() -> None:
    with pytest.raises(ValueError, match=r"'5' is no duration: it has no unit; 5s\?"):
        parse_duration_ns("5")


@given(st.integers(1, 10**6), st.sampled_from(["us", "ms", "s", "m", "h"]))
def test_what_is_printed_reads_back_as_the_same(number: int, unit: str) -> None:
    ns = parse_duration_ns(f"{number}{unit}")
    assert parse_duration_ns(format_duration(ns)) == ns
