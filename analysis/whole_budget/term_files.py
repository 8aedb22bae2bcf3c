"""A user's own terms out of a file: samples, quantiles, or a named distribution.

TOML has ``[[term]]`` tables, CSV one row per sample (``value_ms``) or per term (``p50``, ``p95``
...), JSON is a list of results of llmperf. docs/telemetry.md has an example of each.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from pathbudget.analysis.whole_budget.llmperf import read_llmperf
from pathbudget.analysis.whole_budget.term_csv import read_csv_terms
from pathbudget.analysis.whole_budget.term_shapes import NAMED, QUANTILE_KEYS, Shape, shape_of
from pathbudget.analysis.whole_budget.term_values import Reader, Row, milliseconds
from pathbudget.analysis.whole_budget.terms import Term
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import Entry, show
from pathbudget.sites.toml_reader import decode, parse_toml

SAMPLE_KEYS = ("samples_ms", "requests", "times")
PLACE_KEYS = ("name", "region", "site", "tier")


class TermFile(Protocol):
    """A path, as far as it is needed here."""

    @property
    def suffix(self) -> str:
        """Its ending, with the dot."""
        ...

    def read_bytes(self) -> bytes:
        """All of it. Raises OSError."""
        ...


def read_terms(path: TermFile) -> tuple[Term, ...]:
    """The terms of one file, one per term and scope, in the order of the budget.

    Raises ConfigError with every fault (file and line or key), OSError.
    """
    return parse_terms(path.read_bytes(), str(path), path.suffix)


def parse_terms(content: bytes, file: str, suffix: str) -> tuple[Term, ...]:
    """Like `read_terms`; `suffix` says the form, `file` is for the faults."""
    faults: list[Fault] = []
    kind = suffix.lower()
    if kind == ".json":
        return read_llmperf(content, file).terms
    if kind not in (".toml", ".csv"):
        problem = f"cannot tell what {show(suffix)} holds" if suffix else "has no ending"
        faults.append(Fault(file, "", problem, "a file that ends in .toml, .csv or .json"))
        raise ConfigError(faults)
    text = decode(content, file, faults)
    reader = Reader(file, faults)
    if text is not None and kind == ".csv":
        read_csv_terms(text, reader)
    elif text is not None:
        tables = parse_toml(text, file, faults)
        if tables is not None:
            _read_toml(tables, reader)
    terms = reader.terms()
    if faults:
        raise ConfigError(faults)
    return terms


def _read_toml(content: Mapping[str, object], reader: Reader) -> None:
    top = Entry(reader.file, content, lambda key: key, reader.faults)
    top.only(("term",))
    tables = content.get("term", [])
    if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
        top.fault("term", f"{show(tables)} is no list of tables", "[[term]] tables")
        return
    for at, table in enumerate(tables):
        name = table.get("name")
        of = f" (of {show(name)})" if isinstance(name, str) else ""
        _read_table(Entry(reader.file, table, _place(at, of), reader.faults), reader)


def _place(at: int, of: str) -> Callable[[str], str]:
    return lambda key: f"term[{at}].{key}{of if key != 'name' else ''}"


def _read_table(entry: Entry, reader: Reader) -> None:
    entry.only((*PLACE_KEYS, *SAMPLE_KEYS, "quantiles_ms", *NAMED, "n", "failed"))
    forms = [key for key in ("samples_ms", "quantiles_ms", *NAMED) if key in entry.values]
    name = reader.term_name(entry)
    scope = reader.scope(entry)
    if len(forms) != 1:
        problem = f"has {' and '.join(forms)}" if forms else "has no values"
        entry.fault("samples_ms", problem, "one of samples_ms, quantiles_ms, " + ", ".join(NAMED))
        return
    if forms[0] != "samples_ms":
        for key in ("requests", "times"):
            if key in entry.values:
                entry.fault(key, "stands without samples_ms", "requests and times of samples")
        shape = shape_of(entry, forms[0])
        if shape is not None and name is not None:
            reader.add_shape(name, scope, shape, entry.where("name"))
        return
    for key in ("n", "failed"):
        if key in entry.values:
            entry.fault(key, "stands beside samples_ms", "inf among the samples for a failure")
    for where, row in _samples(entry):
        if name is not None:
            reader.add_row(name, scope, row, where)


def _samples(entry: Entry) -> list[tuple[str, Row]]:
    values = entry.values["samples_ms"]
    if not isinstance(values, list) or not values:
        entry.fault("samples_ms", f"{show(values)} is no list of numbers", "one number at least")
        return []
    beside = [_beside(entry, key, len(values)) for key in ("requests", "times")]
    rows: list[tuple[str, Row]] = []
    for at, value in enumerate(values):
        where = entry.where(f"samples_ms[{at}]")
        told = [other[at] if other else None for other in beside]
        row = milliseconds(value, *told, file=entry.file, where=where, faults=entry.faults)
        if row is not None:
            rows.append((where, row))
    return rows


def _beside(entry: Entry, key: str, count: int) -> list[object]:
    """A list parallel to the samples; empty where there is none, or with a fault."""
    other = entry.values.get(key)
    if other is None:
        return []
    if isinstance(other, list) and len(other) == count:
        return other
    many = f"{len(other)} entries" if isinstance(other, list) else show(other)
    entry.fault(key, many, f"{count}, as many as samples_ms")
    return []


__all__ = ["QUANTILE_KEYS", "Shape", "parse_terms", "read_terms"]
