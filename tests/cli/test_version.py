"""`pathbudget --version`: what goes into a report of a fault."""

from importlib.metadata import version

from typer.testing import CliRunner

from pathbudget.agents.cli.main import application


def test_the_version_is_that_of_the_package() -> None:
    result = CliRunner().invoke(application, ["--version"])
    assert result.exit_code == 0
    assert result.stdout == f"pathbudget {version('pathbudget')}\n"
