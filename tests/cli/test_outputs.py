"""Outputs that are no regular file: pipes, devices, and standard output under its other names."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import typer

from pathbudget.agents.cli.exits import ExitCode
from pathbudget.agents.cli.outputs import STDOUT, check_outputs, is_stdout, write_whole

WRITE = (
    "import sys; from pathlib import Path;"
    "from pathbudget.agents.cli.outputs import write_whole;"
    "write_whole(Path(sys.argv[1]), b'x' * 100_000)"
)


@pytest.mark.parametrize("name", ["-", "/dev/stdout", "/dev/fd/1"])
def test_standard_output_is_written_to_under_every_name_it_has(name: str) -> None:
    done = subprocess.run([sys.executable, "-c", WRITE, name], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == b"x" * 100_000


def test_a_pipe_is_written_to_as_it_stands(tmp_path: Path) -> None:
    pipe, read = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()))
    reader.start()
    check_outputs([pipe])
    write_whole(pipe, b"whole")
    reader.join(10)
    assert read == [b"whole"]
    assert pipe.is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["pipe"]


def test_a_device_that_takes_nothing_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as raised:
        write_whole(Path("/dev/full"), b"x")
    assert raised.value.exit_code == 5
    assert capsys.readouterr().err == "/dev/full: cannot be written: No space left on device.\n"


def test_a_file_is_not_standard_output(tmp_path: Path) -> None:
    assert is_stdout(Path("-"))
    assert not is_stdout(tmp_path / "none")
    assert not is_stdout(tmp_path)


def test_an_output_takes_no_place_of_an_input_or_of_another(tmp_path: Path) -> None:
    read, new, link = tmp_path / "read.toml", tmp_path / "new.json", tmp_path / "link.json"
    read.write_text("")
    link.symlink_to(new)
    check_outputs([new, STDOUT], [read, None, STDOUT])
    for output in (read, tmp_path / ".." / tmp_path.name / "read.toml"):
        with pytest.raises(typer.Exit) as caught:
            check_outputs([output], [read])
        assert caught.value.exit_code == ExitCode.USAGE
    with pytest.raises(typer.Exit):
        check_outputs([new, link])
