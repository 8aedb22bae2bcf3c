"""Samples of a user's terms, one by one, and the terms made of them."""

import datetime
import math
import re
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from pathbudget.analysis.quantiles import independent_size
from pathbudget.analysis.whole_budget.term_shapes import Shape
from pathbudget.analysis.whole_budget.terms import Scope, Term, TermName, TermSource
from pathbudget.probes.errors import Fault
from pathbudget.sites.entry import Entry, did_you_mean, show

MILLISECOND = 1e6
LONGEST_MS = 1e9
FAILED_WORDS = ("failed", "fail", "inf", "infinity", "lost", "timeout", "error")
TIME = re.compile(
    r"(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:[.,](\d{1,9})\d*)?\s*(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
EXPECTED = "milliseconds from 0 on, or failed"
EXPECTED_TIME = "a time like 2026-12-01T09:30:00.25Z"
OTHER_NAMES = {
    "gateway": TermName.GATEWAY,
    "auth": TermName.GATEWAY,
    "tokenize": TermName.TOKENIZATION,
    "prefill": TermName.TTFT,
    "tpot": TermName.FIRST_TOKENS,
    "first_tokens": TermName.FIRST_TOKENS,
    "guardrails": TermName.GUARDRAIL,
}
"""Words people write for a term; only ever used for "did you mean"."""


class Row(NamedTuple):
    """One request of one term."""

    value_ns: float
    request: str
    unix_ns: int | None


@dataclass(slots=True)
class _Samples:
    rows: list[Row] = field(default_factory=list[Row])
    seen: set[str] = field(default_factory=set[str])


class Reader:
    """What a file says, gathered term by term; faults are noted and nothing is raised."""

    def __init__(self, file: str, faults: list[Fault]) -> None:
        self.file = file
        self.faults = faults
        self._samples: dict[tuple[Scope, TermName], _Samples] = {}
        self._shapes: dict[tuple[Scope, TermName], Shape] = {}

    def term_name(self, entry: Entry, key: str = "name") -> TermName | None:
        """Which term; None with a fault where it is none."""
        word = entry.text(key, None)
        try:
            return TermName(word)
        except ValueError:
            if word:
                entry.fault(key, f"{show(word)} is no term of the budget", meant(word))
            return None

    def scope(self, entry: Entry) -> Scope:
        """For which region, site and tier."""
        return Scope(entry.text("region"), entry.text("site"), entry.text("tier"))

    def add_shape(self, name: TermName, scope: Scope, shape: Shape, where: str) -> None:
        """Take a whole distribution; a second one of the same term and scope is a fault."""
        if (scope, name) in self._shapes or (scope, name) in self._samples:
            self.fault(where, f"a second {name} of {of_scope(scope)}", "each term once")
            return
        self._shapes[scope, name] = shape

    def add_row(self, name: TermName, scope: Scope, row: Row, where: str) -> None:
        """Take one sample; a second one of the same request is a fault."""
        samples = self._samples.setdefault((scope, name), _Samples())
        if row.request:
            if row.request in samples.seen:
                self.fault(where, f"a second {name} of request {show(row.request)}", "one each")
                return
            samples.seen.add(row.request)
        samples.rows.append(row)

    def fault(self, where: str, problem: str, expected: str) -> None:
        """Note one thing wrong."""
        self.faults.append(Fault(self.file, where, problem, expected))

    def terms(self) -> tuple[Term, ...]:
        """All of them, in the order of the budget; a fault where there are none."""
        order = list(TermName)
        both = {*self._samples, *self._shapes}
        for key in self._samples.keys() & self._shapes.keys():
            problem = f"{key[1]} of {of_scope(key[0])} has samples and a distribution"
            self.fault("", problem, "one of them")
        if not both and not self.faults:
            self.fault("", "has no terms", "one [[term]], or one row under the column names")
        if self.faults:
            return ()
        keys = sorted(both, key=lambda key: (*_words(key[0]), order.index(key[1])))
        return tuple(self._term(scope, name) for scope, name in keys)

    def _term(self, scope: Scope, name: TermName) -> Term:
        shape = self._shapes.get((scope, name))
        if shape is not None:
            origin = f"{self.file}: {shape.description}"
            return Term(
                name,
                TermSource.FILE,
                shape.values_ns,
                shape.n_effective,
                origin=origin,
                scope=scope,
                stated=shape.stated,
            )
        rows = self._samples[scope, name].rows
        timed = all(row.unix_ns is not None for row in rows)
        if timed:
            rows = sorted(rows, key=lambda row: row.unix_ns or 0)
        values = np.array([row.value_ns for row in rows])
        named = all(row.request for row in rows)
        return Term(
            name,
            TermSource.FILE,
            values,
            independent_size(values),
            tuple(row.request for row in rows) if named else (),
            f"{self.file}: samples",
            scope,
            tuple(row.unix_ns or 0 for row in rows) if timed else (),
        )


def milliseconds(
    value: object, request: object, time: object, *, file: str, where: str, faults: list[Fault]
) -> Row | None:
    """One sample; None with a fault where it is none."""
    number = value_ns(value)
    if number is None:
        faults.append(Fault(file, where, f"{show(value)} is no time of a request", EXPECTED))
    moment = None if time in (None, "") else unix_ns(time)
    if moment is None and time not in (None, ""):
        faults.append(Fault(file, where, f"{show(time)} is no time", EXPECTED_TIME))
        return None
    name = "" if request is None else str(request)
    return None if number is None else Row(number, name, moment)


def value_ns(value: object) -> float | None:
    """Milliseconds as ns; +inf for a failure; None for anything else."""
    if isinstance(value, str):
        if value.lower() in FAILED_WORDS:
            return math.inf
        try:
            value = float(value)
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if value == math.inf:
        return math.inf
    return float(value) * MILLISECOND if 0 <= value <= LONGEST_MS else None


def unix_ns(value: object) -> int | None:
    """Nanoseconds since 1970 of a time in ISO 8601, UTC where it says no zone; TOML times too."""
    if isinstance(value, datetime.datetime):
        value = value.isoformat()
    if not isinstance(value, str) or (found := TIME.fullmatch(value)) is None:
        return None
    day, clock, fraction, zone = found.groups()
    try:
        moment = datetime.datetime.fromisoformat(f"{day}T{clock}{zone or '+00:00'}")
    except ValueError:
        return None
    epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
    seconds = (moment - epoch) // datetime.timedelta(seconds=1)
    return seconds * 10**9 + int((fraction or "").ljust(9, "0"))


def meant(word: str) -> str:
    """What was probably meant by a word that is no term."""
    near = OTHER_NAMES.get(word.lower())
    if word.lower() == "network":
        return "network_in and network_out, each by itself"
    return f'"{near}" (did you mean that?)' if near else did_you_mean(word, list(TermName))


def of_scope(scope: Scope) -> str:
    """For a message."""
    told = [f"{key} {word}" for key, word in zip(SCOPE_KEYS, _words(scope), strict=True) if word]
    return ", ".join(told) or "every region, site and tier"


SCOPE_KEYS = ("region", "site", "tier")


def _words(scope: Scope) -> tuple[str, str, str]:
    return scope.region, scope.site, scope.tier
