"""On which line of a TOML file each key stands; tomllib does not say.

Only for pointing: a key that is not found (it stands within an inline table) has no line of its
own, and nothing else depends on it.
"""

import re
import tomllib

HEADER = re.compile(r"^\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?$")
KEY = re.compile(r"""^\s*((?:[\w\-.\s]|"[^"\\]*"|'[^']*')+?)\s*=""")


def key_lines(text: str) -> dict[str, int]:
    """Line (from 1) of every key and table header by its dotted path; the first one counts."""
    found: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        if header := HEADER.match(line):
            table = _path(header[1])
            found.setdefault(table, number)
        elif (key := KEY.match(line)) and (path := _path(key[1])):
            found.setdefault(f"{table}.{path}" if table else path, number)
    found.pop("", None)
    return found


def line_of(lines: dict[str, int], path: str) -> int | None:
    """Line of a path, or of the nearest thing around it that has one."""
    while path:
        bare = re.sub(r"(\[\d+\])+$", "", path)
        if bare in lines:
            return lines[bare]
        path = bare.rpartition(".")[0]
    return None


def _path(key: str) -> str:
    """A key as written to its dotted path, read by tomllib itself; empty when it is none."""
    try:
        inner: object = tomllib.loads(f"{key} = 0")
    except ValueError:
        return ""
    words: list[str] = []
    while isinstance(inner, dict):
        (word, inner), *_ = inner.items()
        words.append(str(word))
    return ".".join(words)
