"""Where a command writes: a file, whole or not at all, a pipe, or standard output."""

import os
import secrets
from pathlib import Path

import typer

from pathbudget.agents.cli.exits import ExitCode, fail

STDOUT = Path("-")
STANDARD_OUTPUT = 1


def is_stdout(path: Path) -> bool:
    """Whether it is ``-``, or a file by which standard output is reached (/dev/stdout)."""
    if path == STDOUT:
        return True
    try:
        return os.path.samestat(path.stat(), os.fstat(STANDARD_OUTPUT))
    except OSError:
        return False


def check_folders(outputs: list[Path]) -> None:
    """Complain about an output before the long work, not after it."""
    for path in outputs:
        if is_stdout(path):
            continue
        if not path.parent.is_dir():
            message = f"{path}: cannot be written: there is no folder {path.parent}"
            raise fail(message, ExitCode.USAGE)
        if path.is_dir():
            raise fail(f"{path}: cannot be written: it is a folder", ExitCode.USAGE)


def write_whole(path: Path, content: bytes) -> None:
    """Write all of it or nothing: a reader never sees half a file. What is no regular file (a pipe,
    a device, standard output) is written to as it stands. Exits with a message.
    """
    if is_stdout(path):
        typer.echo(content, nl=False)
        return
    is_stream = path.exists() and not path.is_file()
    try:
        if is_stream:
            path.write_bytes(content)
        else:
            _write_beside(path.resolve(), content)
    except OSError as error:
        kept = "." if is_stream else "; what stood there is unchanged."
        message = f"{path}: cannot be written: {error.strerror}{kept}"
        raise fail(message, ExitCode.TROUBLE) from None


def _write_beside(path: Path, content: bytes) -> None:
    beside = path.with_name(f".{path.name[:80]}.{secrets.token_hex(4)}")
    try:
        with beside.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
