"""Standard streams that are closed, full or no longer read: every command, no traceback."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

PATHBUDGET = (sys.executable, "-c", "from pathbudget.agents.cli.main import run; run()")
PRINTING = (
    ("catalogue", "list"),
    ("catalogue", "list", "--format", "json"),
    ("catalogue", "list", "--format", "csv"),
    ("catalogue", "distance", "0,0", "1,1"),
    ("capabilities",),
)


def shell(arguments: tuple[str, ...], redirection: str) -> "subprocess.CompletedProcess[str]":
    """Run a command with the streams as a shell would leave them; PIPESTATUS needs bash."""
    script = f'"$@" {redirection}; exit ${{PIPESTATUS[0]}}'
    command = ["bash", "-c", script, "bash", *PATHBUDGET, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("arguments", PRINTING)
def test_an_output_that_takes_nothing_is_told_in_a_sentence(arguments: tuple[str, ...]) -> None:
    done = shell(arguments, "> /dev/full")
    assert done.returncode == 5, done.stderr
    assert done.stderr == "the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("arguments", PRINTING)
def test_a_reader_that_has_seen_enough_is_neither_an_error_nor_a_verdict(
    arguments: tuple[str, ...],
) -> None:
    done = shell(arguments, "| true")
    assert done.returncode in (0, 141), done.stderr  # 0: all was written before `true` ended
    assert done.stderr == ""


def test_a_pipe_closed_beforehand_ends_the_command_as_a_shell_would() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    command = [*PATHBUDGET, "catalogue", "list"]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize("closed", [">&-", "<&- >&-", "2>&-", "<&- >&- 2>&-"])
def test_a_run_with_closed_streams_measures_and_stores(tmp_path: Path, closed: str) -> None:
    """A journal must not become standard output because that number was free."""
    (tmp_path / "catalogue.toml").write_text(
        '[[region]]\nname = "here"\nlatitude = 1\nlongitude = 1\n'
        '[[site]]\nname = "there"\nlatitude = 2\nlongitude = 2\n'
        '[[site.target]]\nhost = "127.0.0.1"\nport = 1\n'
    )
    (tmp_path / "campaign.toml").write_text(
        'name = "closed"\ncatalogue = "catalogue.toml"\nduration = "1s"\n'
        '[[vantage]]\nname = "one"\nregion = "here"\n'
        '[[probe]]\nkind = "tcp"\ninterval = "100ms"\nschedule = "periodic"\n'
    )
    store = tmp_path / "store"
    done = shell(("run", str(tmp_path / "campaign.toml"), "--store", str(store)), closed)
    assert done.returncode == 4, done.stderr  # refused: round trips, and not one connection
    listed = shell(("store", "list", str(store), "--format", "json"), "")
    assert '"samples": 10' in listed.stdout, listed.stdout
    assert not list((store / "spool").iterdir())
