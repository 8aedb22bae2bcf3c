"""Where a command writes: a file, whole or not at all, a pipe, or standard output."""

import os
import secrets
from collections.abc import Iterable, Sequence
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


def check_outputs(outputs: Sequence[Path], inputs: Iterable[Path | None] = ()) -> None:
    """Complain about an output before the long work, not after it.

    Two outputs in one place would overwrite each other, and an output must not take the place of
    what the command reads.
    """
    places = [_place(path) for path in outputs]
    read = {_place(path) for path in inputs if path is not None and path != STDOUT}
    for path, place in zip(outputs, places, strict=True):
        if places.count(place) > 1:
            raise fail(f"{path}: two outputs cannot go there", ExitCode.USAGE)
        if place in read and place != STDOUT:
            raise fail(f"{path}: cannot be written: it is read, and would be lost", ExitCode.USAGE)
    for path in outputs:
        if is_stdout(path):
            continue
        if not path.parent.is_dir():
            message = f"{path}: cannot be written: there is no folder {path.parent}"
            raise fail(message, ExitCode.USAGE)
        if path.is_dir():
            raise fail(f"{path}: cannot be written: it is a folder", ExitCode.USAGE)


def _place(path: Path) -> Path:
    """Where a path leads: links are followed."""
    return STDOUT if is_stdout(path) else path.resolve()


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
