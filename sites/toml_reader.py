"""A TOML file as plain values, or the one fault that makes it unreadable."""

import re
import tomllib
from pathlib import Path
from typing import cast

from pathbudget.probes.errors import ConfigError, Fault

POSITION = re.compile(r" \(at (?P<place>.*)\)$")
LARGEST_FILE = 16 * 1024 * 1024


def read_toml(path: Path) -> dict[str, object]:
    """The tables of a file. Raises ConfigError where it cannot be read, or is not TOML."""
    faults: list[Fault] = []
    text = read_text(path, faults)
    values = None if text is None else parse_toml(text, str(path), faults)
    if values is None:
        raise ConfigError(faults)
    return values


def read_text(path: Path, faults: list[Fault]) -> str | None:
    """Text of a UTF-8 file, with or without byte-order mark; None when there is a fault."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        faults.append(Fault(str(path), "", f"cannot be read: {reason}", "a file to read"))
        return None
    if len(content) > LARGEST_FILE:
        faults.append(Fault(str(path), "", "over 16 MiB", "a file of a few thousand lines"))
        return None
    return decode(content, str(path), faults)


def decode(content: bytes, file: str, faults: list[Fault]) -> str | None:
    """`content` as text; None when it is not UTF-8."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        utf_16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        problem = "is UTF-16" if utf_16 else f"byte 0x{content[error.start]:02x} is not UTF-8"
        faults.append(Fault(file, f"line {line}", problem, "a file saved as UTF-8"))
        return None


def parse_toml(text: str, file: str, faults: list[Fault]) -> dict[str, object] | None:
    """The tables of `text`; None when it is not TOML. tomllib stops at the first error."""
    try:
        return cast("dict[str, object]", tomllib.loads(text))
    except RecursionError:
        faults.append(Fault(file, "", "is nested too deeply", "TOML of a few levels"))
    except ValueError as error:  # TOMLDecodeError, and integers of thousands of digits
        message = str(error)
        found = POSITION.search(message)
        place = found["place"] if found else ""
        problem = f"not TOML: {message[: found.start()] if found else message}"
        faults.append(Fault(file, place, problem, "TOML 1.0 (docs/ has examples)"))
    return None
