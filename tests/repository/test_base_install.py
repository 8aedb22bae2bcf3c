"""What a machine sees that has only the base install: help, or the name of the extra."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from pathbudget.agents.cli.exits import ExitCode
from pathbudget.agents.cli.main import application

ABSENT = """\
import importlib.machinery
ABSENT = {"numpy", "scipy", "pandas", "pyarrow", "duckdb", "plotly", "jinja2", "pyroute2",
          "cryptography", "scapy", "ripe", "hypothesis", "pytest", "dask", "distributed", "google",
          "opentelemetry"}
finder = importlib.machinery.PathFinder
original = finder.find_spec
def find_spec(name, path=None, target=None):
    return None if name.partition(".")[0] in ABSENT else original(name, path, target)
finder.find_spec = find_spec
"""
"""As sitecustomize, so that processes that a command starts lack the packages as well."""

ARGUMENTS = {
    "pathbudget check": ["127.0.0.1"],
    "pathbudget completions": ["--listen", "nowhere.invalid"],
    "pathbudget demo": ["--duration", "1"],
    "pathbudget ping": ["127.0.0.1", "--count", "2", "--interval", "0.1"],
    "pathbudget reflector": ["--listen", "nowhere.invalid"],
    "pathbudget telemetry receive": ["--listen", "127.0.0.1:1"],
    "pathbudget trace": ["127.0.0.1", "--once"],
    "pathbudget responder": ["--bind", "127.0.0.1", "--certificate-directory", "certificates"],
}
"""Commands that need no file; the others get the name of one that does not exist."""


def leaves(group: Any, name: str = "pathbudget") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for word, command in group.commands.items():
        full = f"{name} {word}"
        found |= leaves(command, full) if hasattr(command, "commands") else {full: command}
    return found


LEAVES = leaves(typer.main.get_command(application))


COMMAND = "from pathbudget.agents.cli.main import run; run()"


def run_bare(folder: Path, *words: str, code: str = COMMAND) -> subprocess.CompletedProcess[str]:
    """Run the command in `folder` without the optional packages."""
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(ABSENT)
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(site), "COLUMNS": "200", "NO_COLOR": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
    )


def arguments_of(name: str) -> list[str]:
    required = [
        parameter
        for parameter in LEAVES[name].params
        if parameter.required and parameter.param_type_name == "argument"
    ]
    return ARGUMENTS.get(name, ["nothing-there.toml" for _ in required])


def test_the_packages_are_really_absent(tmp_path: Path) -> None:
    result = run_bare(tmp_path, code="import numpy")
    assert "No module named 'numpy'" in result.stderr


def test_help_lists_every_command(tmp_path: Path) -> None:
    result = run_bare(tmp_path, "--help")
    assert result.returncode == 0, result.stderr
    assert all(name.split()[1] in result.stdout for name in LEAVES)


def test_every_command_gives_help(tmp_path: Path) -> None:
    code = (
        "import json, sys\n"
        "from typer.testing import CliRunner\n"
        "from pathbudget.agents.cli.main import application\n"
        "for words in json.loads(sys.argv[1]):\n"
        "    result = CliRunner().invoke(application, [*words, '--help'])\n"
        "    assert result.exit_code == 0 and 'Usage' in result.output, (words, result)\n"
    )
    calls = json.dumps([name.split()[1:] for name in LEAVES])
    result = run_bare(tmp_path, calls, code=code)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_works_or_names_what_is_missing(tmp_path: Path, name: str) -> None:
    result = run_bare(tmp_path, *name.split()[1:], *arguments_of(name))
    told = result.stdout + result.stderr
    assert "Traceback" not in told, told
    assert result.returncode in set(ExitCode), told
    if re.search(r"No module named|is not installed|this needs|making a certificate", told):
        assert re.search(r"pip install 'pathbudget\[[a-z,]+\]'", told), told


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("pathbudget responder", "lab"),
        ("pathbudget report", "analysis|report|store|all"),
        ("pathbudget store list", "store"),
    ],
)
def test_commands_that_need_an_extra_say_which(tmp_path: Path, name: str, extra: str) -> None:
    (tmp_path / "pathbudget-store").mkdir()
    result = run_bare(tmp_path, *name.split()[1:], *arguments_of(name))
    assert result.returncode != 0
    assert re.search(rf"pip install 'pathbudget\[(?:{extra})", result.stderr), result.stderr


def test_the_help_loads_nothing_heavy_where_it_is_installed() -> None:
    code = "import sys; import pathbudget.agents.cli.application; print(*sorted(sys.modules))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    loaded = {name.partition(".")[0] for name in result.stdout.split()}
    heavy = {"numpy", "scipy", "pandas", "pyarrow", "duckdb", "plotly", "jinja2", "cryptography"}
    assert "typer" in loaded
    assert loaded & heavy == set()
