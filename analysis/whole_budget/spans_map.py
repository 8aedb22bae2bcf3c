"""The table that says which span is which term: its words, and how it is read from TOML."""

import fnmatch
import importlib.resources
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Protocol

from pathbudget.analysis.whole_budget.spans_model import Span, SpanKind, Value
from pathbudget.analysis.whole_budget.terms import TermName
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import Entry, did_you_mean, show
from pathbudget.sites.toml_reader import decode, parse_toml

MODEL = "model"
"""One call of a model: it gives two terms, to the first token and the tokens after it."""
OUTSIDE = "outside"
"""Belongs to no term, and to none above it either."""

CONDITIONS = ("names", "services", "kinds", "attributes")
RULE_KEYS = ("term", *CONDITIONS, "entry", "time", "several")
MODEL_KEYS = (
    "first_token", "first_token_events", "per_token", "output_tokens", "input_tokens", "stream",
    "no_first_token",
)  # fmt: skip
UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}


class Several(StrEnum):
    """What several spans of one term in one trace amount to."""

    UNION = "union"
    SUM = "sum"
    FIRST = "first"
    LAST = "last"


class NoFirstToken(StrEnum):
    """What a streamed call is that ended well and tells no first token."""

    AUTO = "auto"
    LOSS = "loss"
    LEFT_OUT = "left out"


class Pattern:
    """Alternatives with ``*`` and ``?``, without regard to capitals."""

    def __init__(self, globs: Iterable[str]) -> None:
        self.globs = tuple(globs)
        words = "|".join(fnmatch.translate(glob) for glob in self.globs)
        self._match = re.compile(words, re.IGNORECASE).match

    def fits(self, text: str) -> bool:
        """Whether one of them is the whole of `text`."""
        return self._match(text) is not None


@dataclass(frozen=True, slots=True)
class Rule:
    """All conditions must hold; those that are None always do."""

    term: str
    """A `TermName`, `MODEL` or `OUTSIDE`."""
    names: Pattern | None = None
    services: Pattern | None = None
    kinds: frozenset[SpanKind] = frozenset()
    attributes: Mapping[str, Pattern] = field(default_factory=dict[str, Pattern])
    entry: bool = False
    own: bool = False
    several: Several = Several.UNION

    def fits(self, span: Span) -> bool:
        """Whether the span is one of these, wherever it stands in its trace."""
        if self.kinds and span.kind not in self.kinds:
            return False
        if self.names is not None and not self.names.fits(span.name):
            return False
        if self.services is not None and not self.services.fits(span.service):
            return False
        return all(
            (value := found(span, key)) is not None and pattern.fits(_text(value))
            for key, pattern in self.attributes.items()
        )


@dataclass(frozen=True, slots=True)
class ModelWords:
    """Where a call of a model tells its times. Units are nanoseconds per unit of the attribute."""

    first_token: Mapping[str, float] = field(default_factory=dict[str, float])
    first_token_events: frozenset[str] = frozenset()
    per_token: Mapping[str, float] = field(default_factory=dict[str, float])
    output_tokens: tuple[str, ...] = ()
    input_tokens: tuple[str, ...] = ()
    stream: tuple[str, ...] = ()
    no_first_token: NoFirstToken = NoFirstToken.AUTO


@dataclass(frozen=True, slots=True)
class SpanMap:
    """The whole table."""

    rules: tuple[Rule, ...]
    model: ModelWords = ModelWords()
    failure: tuple[str, ...] = ()
    """Attributes that say that a span failed."""
    scope: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """``region``, ``site``, ``tier``: attributes that say which."""


class BytesFile(Protocol):
    """A path, as far as it is needed here."""

    def read_bytes(self) -> bytes:
        """All of it. Raises OSError."""
        ...


def default_map_text() -> str:
    """The shipped table as TOML: what ``pathbudget telemetry map`` prints."""
    data = importlib.resources.files("pathbudget.analysis.whole_budget")
    return (data / "span_map.toml").read_text(encoding="utf-8")


def default_map() -> SpanMap:
    """The shipped table."""
    return parse_span_map(default_map_text(), "span_map.toml")


def read_span_map(path: BytesFile) -> SpanMap:
    """A user's table: its rules come before the shipped ones unless it says ``shipped = false``.

    Raises ConfigError with every fault, OSError.
    """
    faults: list[Fault] = []
    text = decode(path.read_bytes(), str(path), faults)
    if text is None:
        raise ConfigError(faults)
    return parse_span_map(text, str(path))


def parse_span_map(text: str, file: str) -> SpanMap:
    """The table in `text`; `file` is for the faults. Raises ConfigError with every fault."""
    faults: list[Fault] = []
    content = parse_toml(text, file, faults)
    made = _read(content, file, faults) if content is not None else None
    if faults or made is None or content is None:
        raise ConfigError(faults)
    return made if content.get("shipped") is False else _before(made, default_map())


def found(span: Span, key: str) -> Value:
    """An attribute of the span, or else of what made it; None where neither has it."""
    value = span.attributes.get(key)
    return span.resource.get(key) if value is None else value


def _text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _before(own: SpanMap, shipped: SpanMap) -> SpanMap:
    mine, theirs = own.model, shipped.model
    model = replace(
        mine,
        first_token={**mine.first_token, **_new(theirs.first_token, mine.first_token)},
        first_token_events=mine.first_token_events | theirs.first_token_events,
        per_token={**mine.per_token, **_new(theirs.per_token, mine.per_token)},
        output_tokens=mine.output_tokens + theirs.output_tokens,
        input_tokens=mine.input_tokens + theirs.input_tokens,
        stream=mine.stream + theirs.stream,
    )
    failure = own.failure + shipped.failure
    return SpanMap(own.rules + shipped.rules, model, failure, own.scope or shipped.scope)


def _new(more: Mapping[str, float], known: Mapping[str, float]) -> dict[str, float]:
    return {key: unit for key, unit in more.items() if key not in known}


def _read(content: Mapping[str, object], file: str, faults: list[Fault]) -> SpanMap:
    top = Entry(file, content, lambda key: key, faults)
    top.only(("shipped", "rule", "model", "failure", "scope"))
    if not isinstance(content.get("shipped", True), bool):
        top.fault("shipped", f"{show(content['shipped'])} is not true or false", "true or false")
    rules = [
        _rule(Entry(file, table, _place_of_rule(at), faults))
        for at, table in enumerate(_tables(top))
    ]
    if not rules and content.get("shipped") is False:
        top.fault("rule", "is missing", "[[rule]] tables, or shipped = true")
    model = _section(top, "model", MODEL_KEYS)
    failure = _section(top, "failure", ("attributes",))
    scope = _section(top, "scope", ("region", "site", "tier"))
    return SpanMap(
        tuple(rule for rule in rules if rule is not None),
        _model(model),
        _words(failure, "attributes"),
        {key: words for key in ("region", "site", "tier") if (words := _words(scope, key))},
    )


def _place_of_rule(at: int) -> Callable[[str], str]:
    return lambda key: f"rule[{at}].{key}"


def _tables(top: Entry) -> Sequence[Mapping[str, object]]:
    tables = top.values.get("rule", [])
    if isinstance(tables, list) and all(isinstance(table, dict) for table in tables):
        return tables
    top.fault("rule", f"{show(tables)} is no list of tables", "[[rule]] tables")
    return ()


def _section(top: Entry, key: str, known: Sequence[str]) -> Entry:
    table = top.values.get(key, {})
    if not isinstance(table, dict):
        top.fault(key, f"{show(table)} is no table", f"[{key}]")
        table = {}
    entry = Entry(top.file, table, lambda name: f"{key}.{name}", top.faults)
    entry.only(known)
    return entry


def _rule(entry: Entry) -> Rule | None:
    entry.only(RULE_KEYS)
    term = entry.text("term", None)
    known = (*TermName, MODEL, OUTSIDE)
    if term and term not in known:
        entry.fault("term", f"{show(term)} is no term", did_you_mean(term, known))
    if not any(key in entry.values for key in CONDITIONS):
        entry.fault("names", "is missing", f"one condition at least: {', '.join(CONDITIONS)}")
    entry_only = entry.values.get("entry", False)
    if not isinstance(entry_only, bool):
        entry.fault("entry", f"{show(entry_only)} is not true or false", "true or false")
    choices = (Several.FIRST, Several.LAST) if term == MODEL else tuple(Several)
    usual = Several.LAST if term == MODEL else Several.UNION
    several = entry.word("several", choices, usual)
    time = entry.word("time", ("whole", "own"), "whole")
    if term == MODEL and time == "own":
        entry.fault("time", '"own" is not for calls of a model', '"whole", or nothing')
    kinds = [kind for kind in _words(entry, "kinds") if _is_kind(kind, entry)]
    attributes = _attributes(entry)
    if not entry.sound:
        return None
    return Rule(
        term,
        _pattern(entry, "names"),
        _pattern(entry, "services"),
        frozenset(SpanKind(kind) for kind in kinds),
        attributes,
        entry=entry_only is True,
        own=time == "own",
        several=Several(several),
    )


def _is_kind(kind: str, entry: Entry) -> bool:
    if kind in list(SpanKind):
        return True
    entry.fault("kinds", f"{show(kind)} is no kind of span", did_you_mean(kind, list(SpanKind)))
    return False


def _pattern(entry: Entry, key: str) -> Pattern | None:
    words = _words(entry, key)
    return Pattern(words) if words else None


def _attributes(entry: Entry) -> dict[str, Pattern]:
    table = entry.values.get("attributes", {})
    if not isinstance(table, dict):
        entry.fault("attributes", f"{show(table)} is no table", "a table of names to patterns")
        return {}
    inner = Entry(entry.file, table, lambda key: entry.where(f"attributes.{key}"), entry.faults)
    return {key: Pattern(words) for key in table if (words := _words(inner, key))}


def _words(entry: Entry, key: str) -> tuple[str, ...]:
    """One text or a list of them."""
    value = entry.values.get(key, [])
    words = [value] if isinstance(value, str) else value
    if isinstance(words, list) and all(isinstance(word, str) and word for word in words):
        return tuple(words)
    entry.fault(
        key, f"{show(value)} is neither text nor a list of texts", 'like ["auth", "auth.*"]'
    )
    return ()


def _model(entry: Entry) -> ModelWords:
    choice = entry.word("no_first_token", NoFirstToken, NoFirstToken.AUTO)
    return ModelWords(
        _units(entry, "first_token"),
        frozenset(_words(entry, "first_token_events")),
        _units(entry, "per_token"),
        _words(entry, "output_tokens"),
        _words(entry, "input_tokens"),
        _words(entry, "stream"),
        NoFirstToken(choice) if choice in list(NoFirstToken) else NoFirstToken.AUTO,
    )


def _units(entry: Entry, key: str) -> dict[str, float]:
    table = entry.values.get(key, {})
    if not isinstance(table, dict):
        entry.fault(key, f"{show(table)} is no table", 'attributes with units, like { x = "ms" }')
        return {}
    for name, unit in table.items():
        if not isinstance(unit, str) or unit not in UNITS:
            entry.fault(f"{key}.{name}", f"{show(unit)} is no unit", "one of s, ms, us, ns")
    return {name: UNITS[unit] for name, unit in table.items() if unit in list(UNITS)}
