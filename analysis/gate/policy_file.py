"""A policy in TOML (docs/gate.md). Every fault is found in one go, each with its line."""

from collections.abc import Iterable
from enum import StrEnum
from typing import TypeVar

from pathbudget.analysis.gate.policy import Policy, Severity, TierRules, Treatment
from pathbudget.analysis.gate.toml_lines import key_lines, line_of
from pathbudget.analysis.report.selection import Sites
from pathbudget.analysis.results import Carrier, Mode
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import Entry, Interval, show
from pathbudget.sites.toml_reader import parse_toml

Word = TypeVar("Word", bound=StrEnum)

POLICY_SCHEMA = 1
TREATMENT_KEYS = ("undecided", "not_measured")
LINE_KEYS = ("modes", "transports", "prompts", "percentiles")
POLICY_KEYS = (
    "schema",
    "tiers",
    "regions",
    "sites",
    *LINE_KEYS,
    *TREATMENT_KEYS,
    "regression",
    "whole",
    "siting",
    "tier",
)
TIER_KEYS = (
    "severity",
    "allowance_ms",
    "allowances_ms",
    "target_ms",
    *LINE_KEYS,
    *TREATMENT_KEYS,
    "tolerance_ms",
    "expected_sites",
)
ALLOWANCE = Interval(0, 1e9, "milliseconds above 0", open_low=True)
TOLERANCE = Interval(0, 1e9, "milliseconds, 0 or more")
PERCENTILE = Interval(
    0, 100, "a percentile above 0 and below 100, like 95", open_low=True, open_high=True
)
PROMPT = Interval(1, 1e12, "a whole number of bytes, 1 or more")


def parse_policy(text: str, file: str = "policy") -> Policy:
    """The policy in a text. Raises ConfigError."""
    faults: list[Fault] = []
    policy = _policy_of(text, file, faults)
    if faults:
        raise ConfigError(faults)
    return policy


def _policy_of(text: str, file: str, faults: list[Fault]) -> Policy:
    content = parse_toml(text, file, faults)
    if content is None:
        return Policy()
    lines = key_lines(text)
    top = _entry(file, content, "", lines, faults)
    top.only(POLICY_KEYS)
    _check_schema(top)
    which, sites = _sites(top)
    regression = _table(top, "regression", lines)
    regression.only(("tolerance_ms", "simultaneous"))
    simultaneous = _truth(regression, "simultaneous")
    return Policy(
        tiers=_names(top, "tiers"),
        regions=_names(top, "regions"),
        sites=sites,
        which=which,
        modes=_words(top, "modes", Mode),
        transports=_words(top, "transports", Carrier),
        prompts=_prompts(top),
        percentiles=_percentiles(top),
        undecided=_treatment(top, "undecided") or Treatment.MEASURE_MORE,
        not_measured=_treatment(top, "not_measured") or Treatment.MEASURE_MORE,
        tolerance_ms=regression.number("tolerance_ms", TOLERANCE) or 0.0,
        simultaneous=simultaneous is not False,
        whole=_truth(top, "whole") is True,
        siting=_truth(top, "siting"),
        tier=_tiers(top, lines),
        file=file,
        lines=lines,
    )


def _entry(
    file: str, values: dict[str, object], prefix: str, lines: dict[str, int], faults: list[Fault]
) -> Entry:
    """A table whose faults say their line."""

    def where(key: str) -> str:
        path = f"{prefix}.{key}" if prefix and key else prefix or key
        line = line_of(lines, path)
        return f"line {line}, {path}" if line else path

    return Entry(file, values, where, faults)


def _table(outer: Entry, key: str, lines: dict[str, int], prefix: str = "") -> Entry:
    """A table within a table; an empty one where there is none."""
    value = outer.values.get(key, {})
    if not isinstance(value, dict):
        outer.fault(key, f"{show(value)} is no table", f"a table like [{prefix}{key}]")
        value = {}
    return _entry(outer.file, value, f"{prefix}{key}", lines, outer.faults)


def _check_schema(top: Entry) -> None:
    value = top.values.get("schema", POLICY_SCHEMA)
    if value != POLICY_SCHEMA or isinstance(value, bool):
        top.fault("schema", f"{show(value)} is not known", f"{POLICY_SCHEMA}, or no such key")


def _tiers(top: Entry, lines: dict[str, int]) -> dict[str, TierRules]:
    table = _table(top, "tier", lines)
    return {name: _tier(_table(table, name, lines, "tier.")) for name in table.values}


def _tier(entry: Entry) -> TierRules:
    entry.only(TIER_KEYS)
    severity = _word(entry, "severity", Severity)
    return TierRules(
        severity=severity or Severity.ERROR,
        allowance_ms=entry.number("allowance_ms", ALLOWANCE),
        allowances_ms=_allowances(entry),
        target_ms=entry.number("target_ms", ALLOWANCE),
        percentiles=_percentiles(entry),
        modes=_words(entry, "modes", Mode),
        transports=_words(entry, "transports", Carrier),
        prompts=_prompts(entry),
        undecided=_treatment(entry, "undecided"),
        not_measured=_treatment(entry, "not_measured"),
        tolerance_ms=entry.number("tolerance_ms", TOLERANCE),
        expected_sites=_names(entry, "expected_sites"),
    )


def _allowances(entry: Entry) -> dict[str, float]:
    """``{ p95 = 25, "p99.9" = 60 }``, by the usual name of each percentile."""
    if "allowances_ms" not in entry.values:
        return {}
    found: dict[str, float] = {}
    for word, value in entry.shares("allowances_ms", ALLOWANCE).items():
        percentile = _percentile_of(word)
        if percentile is None:
            entry.fault(f"allowances_ms.{word}", f"{show(word)} is no percentile", 'one like "p95"')
        elif (usual := f"p{percentile:g}") in found:
            problem = f"a second allowance of {usual}"
            entry.fault(f"allowances_ms.{word}", problem, "each percentile once")
        else:
            found[usual] = value
    return found


def _percentile_of(word: str) -> float | None:
    try:
        number = float(word.removeprefix("p"))
    except ValueError:
        return None
    return number if word.startswith("p") and PERCENTILE.holds(number) else None


def _sites(top: Entry) -> tuple[Sites, tuple[str, ...]]:
    """A word that says which sites of each region count, or their names."""
    if isinstance(top.values.get("sites"), list):
        return Sites.ALL, _names(top, "sites")
    return _word(top, "sites", Sites) or Sites.RECOMMENDED, ()


def _treatment(entry: Entry, key: str) -> Treatment | None:
    return _word(entry, key, Treatment)


def _word(entry: Entry, key: str, kind: type[Word]) -> Word | None:
    before = len(entry.faults)
    word = entry.word(key, [one.value for one in kind], "")
    return kind(word) if word and len(entry.faults) == before else None


def _truth(entry: Entry, key: str) -> bool | None:
    value = entry.values.get(key)
    if value is None or isinstance(value, bool):
        return value
    entry.fault(key, f"{show(value)} is neither", "true or false")
    return None


def _list(entry: Entry, key: str) -> Entry:
    """The items of a list as an entry of their own; none where there is no such key."""
    value = entry.values.get(key, [])
    if not isinstance(value, list):
        entry.fault(key, f"{show(value)} is no list", f'a list like {key} = ["..."]')
        value = []
    elif key in entry.values and not value:
        entry.fault(key, "is empty, and would check nothing", "a list, or no such key")
    items = {f"[{at}]": one for at, one in enumerate(value)}
    return Entry(entry.file, items, lambda at: entry.where(f"{key}{at}"), entry.faults)


def _names(entry: Entry, key: str) -> tuple[str, ...]:
    items = _list(entry, key)
    return _distinct(items.text(at, None) for at in items.values)


def _words(entry: Entry, key: str, kind: type[Word]) -> tuple[Word, ...]:
    items = _list(entry, key)
    return _distinct(word for at in items.values if (word := _word(items, at, kind)))


def _percentiles(entry: Entry) -> tuple[float, ...]:
    items = _list(entry, "percentiles")
    numbers = (items.number(at, PERCENTILE, required=True) for at in items.values)
    return _distinct(number for number in numbers if number is not None)


def _prompts(entry: Entry) -> tuple[int, ...]:
    items = _list(entry, "prompts")
    numbers = (items.whole_number(at, PROMPT, required=True) for at in items.values)
    return _distinct(number for number in numbers if number is not None)


Item = TypeVar("Item")


def _distinct(items: Iterable[Item]) -> tuple[Item, ...]:
    return tuple(dict.fromkeys(items))
