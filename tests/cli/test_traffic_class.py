"""``--dscp``: by number or by name, and every form in the answer to anything else."""

import pytest
import typer

from pathbudget.agents.cli.traffic_class import traffic_class


def test_a_class_by_name_and_number() -> None:
    assert [traffic_class(word) for word in ("EF", "ef", "46", "cs5", "af41")] == [
        46,
        46,
        46,
        40,
        34,
    ]


@pytest.mark.parametrize("word", ["fast", "64", "-1", ""])
def test_anything_else_is_answered_with_the_forms(word: str) -> None:
    with pytest.raises(typer.BadParameter, match="0 to 63, EF, CS0 to CS7 or AF11 to AF43"):
        traffic_class(word)
