"""The worked examples run from end to end on the data they are about, and print their answers."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

NOTEBOOKS = Path(__file__).resolve().parents[2] / "examples" / "notebooks"
EXAMPLES = {
    "siting": (
        "rtt_matrix",
        ("Faster than light: 0 pairs.", "Four sites: ", "rag: 8 sites bring all regions within 70"),
    ),
    "monitoring": (
        "changepoint/real_trace_labelled",
        ("2001 round trips in 5.6 days, 6 lost.", "where a person saw one too.", "second half"),
    ),
    "llm_budget": ("", ("Share of requests over 1500 ms:", "Fix first: ", "lepton_7b")),
}


@pytest.mark.needs("data")
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str, shared_data: Path) -> None:
    folder, expected = EXAMPLES[name]
    done = subprocess.run(
        [sys.executable, "-W", "error", NOTEBOOKS / f"{name}.py", shared_data / folder],
        capture_output=True, text=True, check=False,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    for words in expected:
        assert words in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_every_example_is_tried() -> None:
    assert {path.stem for path in NOTEBOOKS.glob("*.py")} == set(EXAMPLES)
