"""One table of a catalogue file while it is being read.

An `Entry` hands out its values by type and notes what is wrong with them instead of raising, so
that a file gets all its faults in one go. It does not care whether it came from TOML or CSV: a
reader gives it the values, a way to say where each stands, and a way to read a number.
"""

import datetime
import difflib
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from pathbudget.probes.errors import Fault

ALIASES = {
    "id": "name",
    "lat": "latitude",
    "lng": "longitude",
    "lon": "longitude",
    "long": "longitude",
    "price": "price_per_month",
    "address": "host",
    "sni": "server_name",
    "target": "target_ms",
    "parts": "components",
}
"""Words people write for a key; only ever used for "did you mean"."""

LONGEST_TEXT = 200
MOST_TO_LIST = 16


@dataclass(frozen=True, slots=True)
class Interval:
    """Which numbers are right. `open_low` and `open_high` leave the ends out."""

    low: float
    high: float
    expected: str
    open_low: bool = False
    open_high: bool = False

    def holds(self, value: float) -> bool:
        """Whether `value` is in; NaN never is."""
        low = value > self.low if self.open_low else value >= self.low
        high = value < self.high if self.open_high else value <= self.high
        return low and high


def show(value: object) -> str:
    """`value` as a person wrote it, cut to fit a line."""
    if isinstance(value, str):
        text = f'"{value}"'
    elif isinstance(value, bool):
        text = str(value).lower()
    elif isinstance(value, dict):
        text = "a table"
    elif isinstance(value, list):
        text = "a list"
    elif isinstance(value, int) and value.bit_length() > 100:
        text = "a huge integer"
    else:
        text = str(value)
    text = "".join(
        letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text
    )
    return text if len(text) <= 60 else text[:57] + "..."


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """What was probably meant by `word`, as the words for `Fault.expected`."""
    known = list(known)
    alias = ALIASES.get(word.lower(), "")
    near = [alias] if alias in known else difflib.get_close_matches(word, known, n=1)
    if near:
        return f'"{near[0]}" (did you mean that?)'
    if len(known) > MOST_TO_LIST:
        return "a name that pathbudget catalogue list shows"
    return "one of " + ", ".join(known) if known else "no such thing here"


def plain_number(value: object) -> float | None:
    """A number of a TOML file; None for anything else (true and false are no numbers)."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf


class Entry:
    """Values by key, with faults noted as they are read."""

    def __init__(
        self,
        file: str,
        values: Mapping[str, object],
        where: Callable[[str], str],
        faults: list[Fault],
        *,
        read_number: Callable[[object], float | None] = plain_number,
        of_cells: bool = False,
    ) -> None:
        self.file = file
        self.values = values
        self.where = where
        self.faults = faults
        self.read_number = read_number
        self.of_cells = of_cells
        """Whether the values are cells of a spreadsheet: text throughout, no tables."""
        self._faults_before = len(faults)

    @property
    def sound(self) -> bool:
        """Whether nothing was wrong so far."""
        return len(self.faults) == self._faults_before

    def fault(self, key: str, problem: str, expected: str) -> None:
        """Note one thing wrong at `key` (empty: with the entry as a whole)."""
        self.faults.append(Fault(self.file, self.where(key), problem, expected))

    def only(self, known: Iterable[str]) -> None:
        """Note every key that is not in `known`."""
        known = list(known)
        for key in self.values:
            if key not in known:
                self.fault(key, f"unknown key {show(key)}", did_you_mean(key, known))

    def text(self, key: str, default: str | None = "") -> str:
        """Text on one line. `default` None means that the key must be there."""
        value = self.values.get(key)
        if value is None:
            return self._absent(key, default, "text") or ""
        if not isinstance(value, str):
            self.fault(key, f"{show(value)} is no text", 'text in quotation marks, like "dallas"')
            return ""
        if not value.strip() or value != value.strip(" "):
            self.fault(key, f"{show(value)} is not usable", "text without blanks at its ends")
            return ""
        if not value.isprintable():
            odd = next(letter for letter in value if not letter.isprintable())
            problem = f"{show(value)} holds the invisible character U+{ord(odd):04X}"
            self.fault(key, problem, "visible text on one line")
            return ""
        if len(value) > LONGEST_TEXT:
            self.fault(key, f"{len(value)} characters", f"at most {LONGEST_TEXT} characters")
            return ""
        return value

    def word(self, key: str, choices: Iterable[str], default: str) -> str:
        """One of `choices`."""
        value = self.text(key, default)
        choices = list(choices)
        if value and value not in choices:
            self.fault(key, f"{show(value)} is unknown", did_you_mean(value, choices))
        return value

    def number(self, key: str, rule: Interval, *, required: bool = False) -> float | None:
        """A number within `rule`; None when it is absent or wrong."""
        value = self.values.get(key)
        if value is None:
            if required:
                self._absent(key, None, rule.expected)
            return None
        number = self.read_number(value)
        if number is None:
            self.fault(key, f"{show(value)} is no number", rule.expected)
        elif not math.isfinite(number) or not rule.holds(number):
            self.fault(key, f"{show(value)} is out of range", rule.expected)
        else:
            return number
        return None

    def whole_number(self, key: str, rule: Interval, *, required: bool = False) -> int | None:
        """Like `number`, without a fraction."""
        number = self.number(key, rule, required=required)
        if number is None:
            return None
        if number != int(number):
            self.fault(key, f"{show(self.values[key])} has a fraction", rule.expected)
            return None
        return int(number)

    def whole_numbers(self, key: str, rule: Interval) -> tuple[int, ...]:
        """A list of whole numbers within `rule`; empty when absent. Wrong ones are left out."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list):
            self.fault(key, f"{show(value)} is no list", f"a list of numbers, each {rule.expected}")
            return ()
        values = {f"[{at}]": one for at, one in enumerate(value)}
        inner = Entry(self.file, values, lambda at: self.where(f"{key}{at}"), self.faults)
        numbers = [inner.whole_number(at, rule, required=True) for at in values]
        return tuple(number for number in numbers if number is not None)

    def date(self, key: str) -> str:
        """A day as ISO text; TOML dates and text are both fine."""
        value = self.values.get(key)
        if isinstance(value, datetime.date) and not isinstance(value, datetime.datetime):
            return value.isoformat()
        text = self.text(key)
        try:
            return datetime.date.fromisoformat(text).isoformat() if text else ""
        except ValueError:
            self.fault(key, f"{show(text)} is no day", "a date like 2026-07-31")
            return ""

    def shares(self, key: str, rule: Interval) -> dict[str, float]:
        """A table of names to numbers, all within `rule`, in the order of the file."""
        value = self.values.get(key)
        if not isinstance(value, dict):
            problem = "is missing" if value is None else f"{show(value)} is no table"
            self.fault(key, problem, f"a table of names, each with {rule.expected}")
            return {}
        inner = Entry(self.file, value, lambda name: self.where(f"{key}.{name}"), self.faults)
        numbers = {str(name): inner.number(name, rule, required=True) for name in value}
        return {name: number for name, number in numbers.items() if number is not None}

    def _absent(self, key: str, default: str | None, expected: str) -> str | None:
        if default is None:
            self.fault(key, "is missing", expected)
        return default
