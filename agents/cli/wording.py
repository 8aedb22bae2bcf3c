"""What goes to a terminal in words: none of it steers the terminal, and lines fit its width."""

import os
import shutil
import sys
import textwrap

NARROWEST = 20
"""Columns; a terminal that claims less (or nothing at all) is not believed."""
KEPT = "\n"
"""The one control character that a message of ours is made of."""


def harmless(text: str) -> str:
    """`text` with what is invisible written out (``\\x1b``): words of users and of the network
    stand in our messages, and must not colour, move or erase anything.
    """
    return "".join(
        letter if letter in KEPT or letter.isprintable() else _written_out(letter)
        for letter in text
    )


def in_a_line(text: str) -> str:
    """A name as `harmless` has it, line ends written out too: a line of its own could be a command
    to whoever reads the log (``::error::`` of GitHub).
    """
    return harmless(text).replace("\n", "\\n")


def fitted(text: str) -> str:
    """`text` harmless, and wrapped where a terminal reads it; paths and addresses stay whole.

    In a file or a pipe a fault stays on its one line, so that it can be searched for.
    """
    columns = _columns()
    lines = harmless(text).split("\n")
    return "\n".join(lines if columns is None else (_wrapped(line, columns) for line in lines))


def _written_out(letter: str) -> str:
    return letter.encode("unicode_escape").decode("ascii")


def _wrapped(line: str, columns: int) -> str:
    if len(line) <= columns:
        return line
    return textwrap.fill(
        line,
        columns,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
        drop_whitespace=True,
    )


def _columns() -> int | None:
    """Width of the terminal that reads standard error, or the one that COLUMNS asks for."""
    try:
        is_terminal = sys.stderr.isatty()
    except (AttributeError, ValueError):  # closed
        return None
    if not is_terminal and not os.environ.get("COLUMNS", "").isdecimal():
        return None
    columns = _asked_for() or (_of_terminal() if is_terminal else 0)
    return columns if columns >= NARROWEST else shutil.get_terminal_size().columns


def _asked_for() -> int:
    asked = os.environ.get("COLUMNS", "")
    return int(asked) if asked.isdecimal() else 0


def _of_terminal() -> int:
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns
    except (OSError, ValueError):
        return 0
