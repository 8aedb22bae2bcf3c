"""`pathbudget budget`: the name of the older command still works beside its sub-commands."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from pathbudget.agents.cli.main import application


@pytest.mark.parametrize("words", [[], ["--tier", "chat"], ["no-such-store"], ["lines"]])
def test_without_the_name_of_a_command_it_is_lines(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(application, ["budget", *words])
    assert result.exit_code == 4
    assert "there is no store" in result.stderr


def test_a_folder_that_is_called_nearly_like_a_command_is_a_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "line").mkdir()
    result = CliRunner().invoke(application, ["budget", "line"])
    assert result.exit_code == 5
    assert "Did you mean" not in result.output


def test_a_misspelt_command_is_told_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner(env={"COLUMNS": "200"}).invoke(application, ["budget", "linse"])
    assert result.exit_code == 2
    assert "Did you mean 'lines'?" in result.output


def test_help_is_that_of_the_group() -> None:
    result = CliRunner().invoke(application, ["budget", "--help"])
    assert result.exit_code == 0
    assert "Print budget lines" in result.output
