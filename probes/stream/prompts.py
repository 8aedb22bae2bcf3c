"""Prompts of drawn length: fixed, log-normal, or from a file of real ones.

A prompt of n tokens is n common words, drawn anew each time: tokenizers of today make about one
token of each, and no two prompts begin alike, so that no cache of prefixes answers.
"""

import csv
import math
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from pathbudget.probes.errors import ConfigError, Fault

COLUMNS = ("ContextTokens", "input_length", "prompt_tokens", "tokens", "length")
"""Names that a column of lengths has, where none was named."""
MOST_TOKENS = 1_000_000
WORDS = [
    "time",
    "year",
    "people",
    "way",
    "day",
    "man",
    "thing",
    "woman",
    "life",
    "child",
    "world",
    "school",
    "state",
    "family",
    "student",
    "group",
    "country",
    "problem",
    "hand",
    "part",
    "place",
    "case",
    "week",
    "company",
    "system",
    "program",
    "question",
    "work",
    "number",
    "night",
    "point",
    "home",
    "water",
    "room",
    "mother",
    "area",
    "money",
    "story",
    "fact",
    "month",
    "lot",
    "right",
    "study",
    "book",
    "eye",
    "job",
    "word",
    "business",
    "issue",
    "side",
    "kind",
    "head",
    "house",
    "service",
    "friend",
    "father",
    "power",
    "hour",
    "game",
    "line",
    "end",
    "member",
    "law",
    "car",
    "city",
    "name",
    "team",
    "minute",
    "idea",
    "body",
    "back",
    "parent",
    "face",
    "level",
    "office",
    "door",
    "health",
    "person",
    "art",
    "war",
    "history",
    "party",
    "result",
    "change",
    "morning",
    "reason",
    "research",
    "girl",
    "guy",
    "moment",
    "air",
    "teacher",
    "force",
    "order",
]

Draw = Callable[[random.Random], int]


def prompt_of(tokens: int, rng: random.Random) -> str:
    """That many words."""
    return " ".join(rng.choices(WORDS, k=tokens))


def fixed(tokens: int) -> Draw:
    """Always the same length."""
    return lambda _: tokens


def lognormal(median: int, sigma: float, most: int) -> Draw:
    """Lengths whose logarithm is normal, from 1 to `most`: those beyond are drawn again."""

    def draw(rng: random.Random) -> int:
        for _ in range(1_000):
            tokens = round(rng.lognormvariate(math.log(median), sigma))
            if 1 <= tokens <= most:
                return tokens
        return min(median, most)

    return draw


def from_file(path: str, column: str, most: int) -> Draw:
    """Lengths as often as a file has them: CSV or JSON lines with a column of them, or one a line.
    Those beyond `most` are left out.

    Raises:
        ConfigError: the file cannot be read, or holds no lengths.
    """
    lengths = [length for length in read_lengths(path, column) if 1 <= length <= most]
    if not lengths:
        expected = f"lengths from 1 to {most}"
        raise ConfigError([Fault(path, column, "no length that can be used", expected)])
    return lambda rng: rng.choice(lengths)


def read_lengths(path: str, column: str = "") -> list[int]:
    """All lengths of a file. Raises ConfigError."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as error:
        problem = (error.strerror or str(error)).lower()
        raise ConfigError([Fault(path, "", problem, "a readable file of lengths")]) from error
    except UnicodeDecodeError:
        raise ConfigError([Fault(path, "", "no text", "CSV, JSON lines or numbers")]) from None
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    words = _json_column(lines, column, path) if first.startswith("{") else None
    if words is None:
        words = _csv_column(lines, column, path)
    return [_length(word, path, number) for number, word in words]


def _csv_column(lines: list[str], column: str, path: str) -> Iterator[tuple[int, str]]:
    rows = [(number, row) for number, row in enumerate(csv.reader(lines), 1) if row]
    if not rows:
        return
    header = [word.strip() for word in rows[0][1]]
    if len(header) == 1 and header[0].isdecimal() and not column:
        place = 0
    else:
        place = _place(header, column, path)
        rows = rows[1:]
    for number, row in rows:
        yield number, row[place] if place < len(row) else ""


def _json_column(lines: list[str], column: str, path: str) -> Iterator[tuple[int, str]]:
    name = column
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            known = msgspec.json.decode(line, type=dict[str, object])
        except (msgspec.DecodeError, RecursionError) as error:
            fault = Fault(path, f"line {number}", str(error), "a JSON object")
            raise ConfigError([fault]) from error
        name = name or list(known)[_place(list(known), "", path)]
        yield number, str(known.get(name, ""))


def _place(header: list[str], column: str, path: str) -> int:
    wanted = (column,) if column else COLUMNS
    for name in wanted:
        if name in header:
            return header.index(name)
    problem = f"columns {', '.join(header)[:100]}"
    raise ConfigError([Fault(path, "", problem, f"a column {' or '.join(wanted)}")])


def _length(word: str, path: str, line: int) -> int:
    text = word.strip()
    if not (text.isascii() and text.isdecimal() and len(text) < 12):
        raise ConfigError([Fault(path, f"line {line}", repr(word[:40]), "a whole number")])
    return int(text)
