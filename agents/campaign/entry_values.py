"""Values of a campaign file that a catalogue does not know: durations and lists of words."""

from collections.abc import Iterable

from pathbudget.agents.units import parse_duration_ns
from pathbudget.sites.entry import Entry, did_you_mean, plain_number, show

LONGEST_NS = 366 * 86_400 * 1_000_000_000


def duration_ns(entry: Entry, key: str, default: str | None, *, shortest_ns: int = 1) -> int | None:
    """A duration of at least `shortest_ns` and at most a year; None when it is wrong."""
    number = plain_number(entry.values.get(key))
    text = "" if number is not None else entry.text(key, default)
    if number is not None:
        expected = f'a unit: "{show(entry.values[key])}s"?'
        entry.fault(key, f"{show(entry.values[key])} is no duration", expected)
    if not text:
        return None
    try:
        value = parse_duration_ns(text)
    except ValueError as error:
        unit = f"a unit: {show(text + 's')}?" if "no unit" in str(error) else ""
        expected = unit or "one such as 250ms, 1.5s, 10m or 2h"
        entry.fault(key, f"{show(text)} is no duration", expected)
        return None
    if not shortest_ns <= value <= LONGEST_NS:
        least = "longer than nothing, " if shortest_ns else ""
        entry.fault(key, f"{show(text)} is out of range", f"{least}at most a year")
        return None
    return value


def words(entry: Entry, key: str, known: Iterable[str]) -> tuple[str, ...]:
    """One word out of `known`, or a list of them; empty when the key is absent."""
    known = list(known)
    found: list[str] = []
    for number, word in enumerate(texts(entry, key)):
        if word in known:
            found.append(word)
        else:
            problem = f"{show(word)} is unknown"
            entry.fault(f"{key}[{number}]", problem, did_you_mean(word, known))
    return tuple(found)


def texts(entry: Entry, key: str) -> tuple[str, ...]:
    """One text or a list of texts, each once; empty when the key is absent.

    Empty means "all" to whoever reads it: anything that is no text must therefore be a fault.
    """
    value = entry.values.get(key)
    if value is None:
        return ()
    listed: list[object] = [value] if isinstance(value, str) else as_list(value)
    if not listed:
        problem = "an empty list" if value == [] else f"{show(value)} is no list"
        entry.fault(key, problem, 'a list like ["one", "two"], or no such key for all')
    found: list[str] = []
    for number, word in enumerate(listed):
        if isinstance(word, str):
            found.append(word)
        else:
            problem = f"{show(word)} is no text"
            entry.fault(f"{key}[{number}]", problem, 'text in quotation marks, like "dallas"')
    return tuple(dict.fromkeys(found))


def as_list(value: object) -> list[object]:
    """A list of a file; empty for anything else."""
    return list(value) if isinstance(value, list) else []
