"""How a command ends when something goes wrong: a sentence and a code, and 1 for budgets alone."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import typer

from pathbudget.agents.cli.exits import ExitCode, reports_errors, tell
from pathbudget.probes.errors import ConfigError, Fault

RUN = "from pathbudget.agents.cli.main import run; run()"
PATHBUDGET = (sys.executable, "-c", RUN)


def ran(
    *arguments: str, before: str = "", **environment: str
) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", before + RUN, *arguments]
    environment = {**os.environ, **environment}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


@pytest.mark.parametrize("arguments", [("demo", "--world", "loopback", "--output", "FILE/there")])
def test_a_folder_that_cannot_be_made_is_one_line_with_path_and_reason(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    done = ran(*(word.replace("FILE", str(file)) for word in arguments))
    assert done.returncode == 5
    assert done.stderr == f"{file}/there: Not a directory\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied", "/srv/x"), "/srv/x: Permission denied"),
        (OSError(28, "No space left on device", "/a"), "/a: No space left on device"),
        (OSError(24, "Too many open files"), "the system refuses: Too many open files"),
    ],
)
def test_what_the_system_refuses_is_trouble(
    error: OSError, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    @reports_errors
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as caught:
        command()
    assert caught.value.exit_code == ExitCode.TROUBLE
    assert capsys.readouterr().err == said + "\n"


def test_a_bug_has_a_traceback_and_a_code_of_its_own() -> None:
    broken = (
        "import pathbudget.agents.cli.capabilities as one\n"
        "def broken(application): raise RuntimeError('bug')\n"
        "one.register = broken\n"
    )
    done = ran("capabilities", before=broken)
    assert done.returncode == 70
    assert "RuntimeError: bug" in done.stderr


@pytest.mark.parametrize(
    "raised", ["raise KeyboardInterrupt", "raise ImportError('x') from KeyboardInterrupt()"]
)
def test_ctrl_c_while_libraries_are_loaded_is_130_and_quiet(tmp_path: Path, raised: str) -> None:
    (tmp_path / "rich.py").write_text(raised)
    done = ran("--help", before=f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n")
    assert (done.returncode, done.stderr) == (130, "")


def test_a_real_ctrl_c_at_the_beginning(tmp_path: Path) -> None:
    """Sent by the first module that is loaded, so at a known moment; also where the tests run in
    the background of a shell, which has Ctrl-C ignored by all that it starts there."""
    (tmp_path / "rich.py").write_text(
        f"import os, time\nos.kill(os.getpid(), {int(signal.SIGINT)})\ntime.sleep(9)\n"
    )
    heard = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    done = ran("--help", before=f"{heard}import sys; sys.path.insert(0, {str(tmp_path)!r})\n")
    assert (done.returncode, done.stderr) == (130, "")


def test_what_would_steer_a_terminal_is_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    tell("no interface \x1b[31mred\r\x07\u202e\nnext")
    assert capsys.readouterr().err == "no interface \\x1b[31mred\\r\\x07\\u202e\nnext\n"


def told(faults: list[Fault], capsys: pytest.CaptureFixture[str]) -> str:
    @reports_errors
    def command() -> None:
        raise ConfigError(faults)

    with pytest.raises(typer.Exit) as caught:
        command()
    assert caught.value.exit_code == ExitCode.USAGE
    return capsys.readouterr().err


def test_faults_of_a_file_are_counted_and_those_of_the_command_line_are_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    fault = Fault("a.toml", "name", "is missing", "text")
    assert told([fault], capsys).endswith("expected text\n1 fault; nothing was loaded.\n")
    typed = Fault("command line", "HOST", '"x/" is not usable', "HOST")
    assert told([typed], capsys) == 'command line: HOST: "x/" is not usable; expected HOST\n'


def test_a_long_fault_is_wrapped_at_the_width_and_whole_in_a_pipe(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fault = [Fault("bad.toml", "probe[0].flow", "no option 'flow'", "one of " + "flows, " * 20)]
    monkeypatch.delenv("COLUMNS", raising=False)
    assert len(told(fault, capsys).splitlines()) == 2
    monkeypatch.setenv("COLUMNS", "60")
    assert max(map(len, told(fault, capsys).splitlines())) <= 60


def test_a_terminal_says_how_wide_it_is() -> None:
    parent, terminal = pty.openpty()
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 50, 0, 0))
    environment = {key: value for key, value in os.environ.items() if key != "COLUMNS"}
    command = [*PATHBUDGET, "check", "https://a.example/with-a-long-path"]
    done = subprocess.run(
        command, stdout=subprocess.DEVNULL, stderr=terminal, check=False, env=environment
    )
    os.close(terminal)
    lines = os.read(parent, 1 << 16).decode().splitlines()
    os.close(parent)
    assert done.returncode == 2
    assert len(lines) > 1
    assert max(map(len, lines)) <= 50
