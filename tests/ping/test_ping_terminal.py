"""The command on real sockets: in a terminal of 80 columns, in a pipe, ended by Ctrl-C."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable

PATHBUDGET = (sys.executable, "-c", "from pathbudget.agents.cli.main import run; run()", "ping")
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
HERE = "127.0.0.1"
ENTER_SCREEN, LEAVE_SCREEN = "\x1b[?1049h", "\x1b[?1049l"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A pseudo-terminal with the command in it."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 24) -> None:
        self._ours, theirs = pty.openpty()
        self.resize(columns, rows)
        self.process = subprocess.Popen(
            [*PATHBUDGET, *arguments],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env=ENVIRONMENT,
            start_new_session=True,
        )
        os.close(theirs)
        self.output = ""

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read_until(self, enough: Callable[[str], object], seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while not enough(self.output):
            assert time.monotonic() < end, self.output[-2_000:]
            if not select.select([self._ours], [], [], 0.5)[0]:
                continue
            try:
                data = os.read(self._ours, 65_536)
            except OSError:  # the other end has gone
                return
            self.output += data.decode(errors="replace")

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        self.read_until(lambda _: False)
        os.close(self._ours)
        return self.process.wait(60)


def frames(output: str) -> list[list[str]]:
    """Each redrawing as lines of text."""
    inside = output.partition(ENTER_SCREEN)[2].partition(LEAVE_SCREEN)[0]
    return [CONTROL.sub("", one).splitlines() for one in inside.split("\x1b[H")]


def test_the_live_view_fits_80_columns_grows_with_the_terminal_and_leaves_a_table() -> None:
    terminal = Terminal(HERE, "127.0.0.2", "-i", "20ms")
    terminal.read_until(lambda text: re.search(r"127\.0\.0\.2 .* [2-9]\d +0% us", text))
    small = len(terminal.output)
    terminal.resize(120, 40)
    terminal.read_until(lambda text: len(max(frames(text)[-1], key=len, default="")) > 100)
    code = terminal.interrupt()
    drawn = frames(terminal.output[:small])
    assert max(len(line) for one in drawn for line in one) <= 80
    assert max(len(one) for one in drawn) <= 24
    last = CONTROL.sub("", terminal.output.rpartition(LEAVE_SCREEN)[2])
    assert code == 0, last
    assert re.search(r"127\.0\.0\.1 .* 0% us .* K (raw|dgm)", last)
    assert "lost \u2514" in terminal.output  # the chart


def test_lines_of_text_where_there_is_no_terminal() -> None:
    done = subprocess.run(
        [*PATHBUDGET, HERE, "-i", "20ms", "-c", "40", "--every", "300ms"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(rf"^{HERE}: sent \d+ loss 0% min ", done.stdout, re.MULTILINE)
    assert "\x1b" not in done.stdout
    assert re.search(rf"^{HERE} .* 40   0% us", done.stdout, re.MULTILINE)
    assert max(map(len, done.stdout.splitlines())) <= 100


def test_json_lines_end_with_a_summary_and_survive_a_reader_that_leaves() -> None:
    done = subprocess.run(
        [*PATHBUDGET, HERE, "-i", "10ms", "-c", "25", "--json"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    kinds = [json.loads(line)["type"] for line in done.stdout.splitlines()]
    assert kinds == ["begin", *["sample"] * 25, "summary"]
    with subprocess.Popen(
        [*PATHBUDGET, HERE, "-i", "10ms", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as reading:
        assert reading.stdout is not None
        assert reading.stderr is not None
        assert reading.stdout.readline()
        reading.stdout.close()
        assert reading.wait(60) == 141
        assert reading.stderr.read() == b""


def test_lines_of_text_end_with_their_reader() -> None:
    with subprocess.Popen(
        [*PATHBUDGET, HERE, "-i", "20ms", "--every", "50ms"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
    ) as reading:
        assert reading.stdout is not None
        assert reading.stderr is not None
        assert reading.stdout.readline()
        reading.stdout.close()
        assert reading.wait(60) == 141
        assert reading.stderr.read() == b""


def test_a_run_with_an_end_that_is_cut_short_says_so() -> None:
    with subprocess.Popen(
        [*PATHBUDGET, HERE, "--duration", "1h", "--json"],
        stdout=subprocess.PIPE,
        env=ENVIRONMENT,
        text=True,
    ) as process:
        assert process.stdout is not None
        while json.loads(process.stdout.readline())["type"] != "sample":
            pass
        process.send_signal(signal.SIGINT)
        last = process.stdout.read().splitlines()[-1]
        assert process.wait(60) == 130
    assert json.loads(last)["type"] == "summary"


def test_not_one_number_is_an_exit_code_of_its_own() -> None:
    done = subprocess.run(
        [*PATHBUDGET, "nowhere.invalid", "-c", "1"],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        timeout=60,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert "last failure: name not found" in done.stdout
    assert done.stderr == "Not one packet was answered.\n"
