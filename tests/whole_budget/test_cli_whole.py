"""The two commands as a user has them, and the report's section."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from pathbudget.agents.cli.budget_what_if import register_what_if
from pathbudget.agents.cli.budget_whole import register_whole
from pathbudget.agents.cli.whole_table import place
from pathbudget.agents.cli.wording import in_a_line
from pathbudget.analysis.whole_budget.results import WholeBudget

group = typer.Typer()
register_whole(group)
register_what_if(group)
runner = CliRunner()


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder without a store."""
    monkeypatch.chdir(tmp_path)


def run(*words: str) -> tuple[int, str, str]:
    result = runner.invoke(group, words)
    return result.exit_code, result.stdout, result.stderr


def test_without_a_store_the_reference_tiers_pass_on_what_they_assume() -> None:
    code, out, err = run("whole")
    assert (code, err) == (0, "")
    for line in (
        "voice-ai: p95 318 ms of 400 ms, PASSED",
        "chat: p95 513 ms of 800 ms, PASSED",
        "rag: p95 1,110 ms of 1,500 ms, PASSED",
    ):
        assert line in out.splitlines()
    assert out.count("are assumed at the") == 3
    assert max(map(len, out.splitlines())) <= 80


def test_the_same_as_json() -> None:
    code, out, _ = run("whole", "--allowances", "--format", "json")
    found = json.loads(out)
    assert code == 0
    assert [one["value_ms"] for one in found["whole_budgets"]] == [318, 513, 1110]
    assert {one["verdict"] for one in found["whole_budgets"]} == {"pass"}


def write_terms(path: Path, name: str, values: "np.typing.NDArray[np.float64]") -> Path:
    samples = ", ".join(f"{value:.3f}" for value in values)
    path.write_text(f'[[term]]\nname = "{name}"\nsamples_ms = [{samples}]\n')
    return path


def test_terms_of_a_file_take_the_place_of_allowances(tmp_path: Path) -> None:
    values = np.random.default_rng(1).gamma(9, 10, 300)
    path = write_terms(tmp_path / "terms.toml", "ttft", values)
    code, out, _ = run("whole", "--tier", "chat", "--terms", str(path), "--format", "json")
    found = json.loads(out)["whole_budgets"][0]
    assert code == 0
    assert "ttft" not in found["assumed"]
    assert found["value_ms"] == pytest.approx(513 - 160 + np.sort(values)[284], abs=0.01)
    assert found["low_ms"] < found["value_ms"] < found["high_ms"]


def test_a_whole_that_fails_ends_with_1_and_one_that_is_open_as_asked(tmp_path: Path) -> None:
    values = np.random.default_rng(1).gamma(9, 100, 300)
    slow = write_terms(tmp_path / "slow.toml", "ttft", values)
    code, out, _ = run("whole", "--tier", "chat", "--terms", str(slow))
    assert code == 1
    assert "FAILED" in out
    few = write_terms(tmp_path / "few.toml", "ttft", values[:20] / 10)
    code, out, err = run("whole", "--tier", "chat", "--terms", str(few))
    assert code == 0
    assert "warning: 1 undecided" in err
    assert run("whole", "--tier", "chat", "--terms", str(few), "--undecided", "fail")[0] == 1


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("nowhere",), 4, "nowhere: there is no store; measure first, or --allowances."),
        ((".", "--allowances"), 2, "--allowances is for no store"),
        (("--region", "x"), 2, "--region and --site need a store"),
        (("--tier", "x"), 2, "unknown tier x; known: voice-ai, chat, rag"),
        (("--percentile", "100"), 2, "expected 1 to below 100"),
        (("--terms", "missing.toml"), 5, "missing.toml"),
    ],
)
def test_what_cannot_be_is_said_in_a_line(words: tuple[str, ...], code: int, message: str) -> None:
    found, _, err = run("whole", *words)
    assert found == code
    assert message in err


def test_a_faulty_file_names_its_faults(tmp_path: Path) -> None:
    path = tmp_path / "terms.toml"
    path.write_text('[[term]]\nname = "tfft"\nsamples_ms = [1]\n')
    code, _, err = run("whole", "--terms", str(path))
    assert code == 2
    assert "ttft" in err


def test_what_if_lists_its_levers_and_shows_before_and_after() -> None:
    code, out, _ = run("what-if")
    assert code == 0
    assert "--lever async-guardrail=ttft" in out
    code, out, err = run("what-if", "--tier", "rag", "--lever", "speculative")
    assert (code, err) == (0, "")
    assert "from 28.0 to 11.0 ms" in " ".join(out.split())
    assert "Assumes:" in out
    assert "Would confirm it:" in out
    assert max(map(len, out.splitlines())) <= 80


def test_what_if_as_json_has_both_budgets() -> None:
    code, out, _ = run("what-if", "--tier", "rag", "--lever", "async-guardrail", "--format", "json")
    found = json.loads(out)["what_ifs"][0]
    assert code == 0
    assert (found["before"]["value_ms"], found["after"]["value_ms"]) == (1110, 1030)


def test_a_lever_that_is_none_is_refused() -> None:
    code, _, err = run("what-if", "--lever", "specultive")
    assert code == 2
    assert "speculative, perhaps" in err


def test_terms_for_a_place_or_tier_that_is_not_known_are_told(tmp_path: Path) -> None:
    path = tmp_path / "terms.toml"
    path.write_text('[[term]]\nname = "ttft"\nsamples_ms = [1]\nsite = "dallsa"\ntier = "chta"\n')
    code, _, err = run("whole", "--tier", "chat", "--terms", str(path))
    assert code == 0
    assert err.splitlines() == [
        "Left out: ttft of site dallsa, which is not known here",
        "Left out: ttft of tier chta, which is not known here",
    ]


def test_no_name_makes_a_line_of_its_own() -> None:
    """A log that reads commands (``::error::``) gets none from the names of users."""
    assert in_a_line("a\n::error::\x1b[31m") == "a\\n::error::\\x1b[31m"
    named = SimpleNamespace(tier="chat", region="a\n::error::b", site="c")
    assert place(cast("WholeBudget", named)) == "chat, a\\n::error::b to c"
