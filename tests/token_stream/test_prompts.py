"""Lengths of prompts: fixed, log-normal, and as often as a file has them."""

import random
import statistics
from pathlib import Path

import pytest

from pathbudget.probes.errors import ConfigError
from pathbudget.probes.stream.prompts import fixed, from_file, lognormal, prompt_of, read_lengths

LLM = Path(__file__).resolve().parents[3] / "shared" / "data" / "llm"


def test_a_prompt_has_so_many_words_and_no_other_begins_alike() -> None:
    rng = random.Random(1)
    first, second = prompt_of(200, rng), prompt_of(200, rng)
    assert len(first.split()) == len(second.split()) == 200
    assert first[:30] != second[:30]
    assert fixed(7)(rng) == 7


def test_log_normal_lengths_have_their_median_and_their_bound() -> None:
    rng = random.Random(2)
    draw = lognormal(500, 1.0, 4_000)
    drawn = [draw(rng) for _ in range(3_000)]
    assert statistics.median(drawn) == pytest.approx(485, rel=0.08)
    assert max(drawn) <= 4_000
    assert min(drawn) >= 1


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("12\n\n7\n", "", [12, 7]),
        ("when,ContextTokens\na,5\nb,6\n", "", [5, 6]),
        ("\ufefflength\n5\n", "", [5]),
        ("x,y\n1,2\n", "y", [2]),
        ('{"input_length": 3}\n\n{"input_length": 4}\n', "", [3, 4]),
        ('{"a": 3, "b": 9}\n', "b", [9]),
    ],
    ids=["numbers", "csv", "mark", "column", "json", "json-column"],
)
def test_files_of_lengths(tmp_path: Path, text: str, column: str, expected: list[int]) -> None:
    (tmp_path / "file").write_text(text, "utf-8")
    assert read_lengths(str(tmp_path / "file"), column) == expected


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no length that can be used"),
        ("x,y\n1,2\n", "columns x, y; expected a column ContextTokens or"),
        ("tokens\n5\nmany\n", "line 3: 'many'; expected a whole number"),
        ("tokens\n-5\n", "line 2: '-5'"),
        ("tokens,a\n5,1\n\n,2\n", "line 4: ''"),
        ("99999\n", "no length that can be used; expected lengths from 1 to 1000"),
        ('{"tokens": 1}\nnot json\n', "line 2"),
        ('{"tokens": 1.5}\n', "line 1: '1.5'"),
    ],
    ids=["empty", "columns", "word", "negative", "hole", "beyond", "broken", "fraction"],
)
def test_faults_of_files_name_the_place(tmp_path: Path, text: str, fault: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    with pytest.raises(ConfigError) as told:
        from_file(str(file), "", 1_000)
    assert fault in str(told.value)


@pytest.mark.needs("data")
def test_real_lengths_are_drawn_as_often_as_they_are() -> None:
    file = str(LLM / "azure_llm_code_2023.csv")
    real = read_lengths(file)
    assert len(real) > 8_000
    draw, rng = from_file(file, "", 1_000_000), random.Random(3)
    drawn = [draw(rng) for _ in range(4_000)]
    assert statistics.median(drawn) == pytest.approx(statistics.median(real), rel=0.1)
    assert len(read_lengths(str(LLM / "mooncake_synthetic_first3000.jsonl"))) == 3_000
