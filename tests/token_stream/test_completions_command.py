"""`pathbudget completions` as a process, and the example of its page."""

import os
import re
import select
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from pathbudget.agents.completions.script import read_script

PAGE = Path(__file__).resolve().parents[2] / "docs" / "completions.md"
COMMAND = [sys.executable, "-m", "pathbudget.agents.cli.main", "completions"]


def free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        port: int = bound.getsockname()[1]
        return port


def test_the_example_of_the_page_is_a_script(tmp_path: Path) -> None:
    example = re.search(r"```toml\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert example is not None
    (tmp_path / "script.toml").write_text(example[1])
    script = read_script(tmp_path / "script.toml")
    assert (script.trouble.share, script.stall.every, script.slots) == (0.1, 20, 4)


def test_it_answers_until_it_is_told_to_stop() -> None:
    port = free_port()
    reader, writer = os.pipe()
    with subprocess.Popen(
        [*COMMAND, "--port", str(port), "--ready-fd", str(writer)], pass_fds=[writer]
    ) as process:
        os.close(writer)
        assert select.select([reader], [], [], 60)[0]
        assert os.read(reader, 16) == b"ready\n"
        os.close(reader)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/v1/models", timeout=10) as said:
            assert b'"scripted"' in said.read()
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


@pytest.mark.parametrize("option", ["--certificate", "--api-key-file"])
def test_files_that_are_missing_are_named(option: str, tmp_path: Path) -> None:
    missing = str(tmp_path / "none")
    done = subprocess.run([*COMMAND, option, missing], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "no such file" in " ".join(done.stderr.split())
