"""Terms as a table: one row per sample, or one per term with its quantiles."""

import csv
import io
import re

from pathbudget.analysis.whole_budget.term_shapes import quantile_shape, share_of
from pathbudget.analysis.whole_budget.term_values import (
    SCOPE_KEYS,
    Reader,
    meant,
    milliseconds,
)
from pathbudget.analysis.whole_budget.terms import Scope, TermName
from pathbudget.probes.errors import Fault
from pathbudget.sites.entry import Entry, did_you_mean, show

SAMPLE_COLUMNS = ("term", "value_ms", "request", "time", *SCOPE_KEYS)
QUANTILE_COLUMNS = ("term", "n", "failed", *SCOPE_KEYS)
MOST_FAULTS = 50
"""A file that has more is of another kind; then nobody reads on."""

Cells = dict[str, str]


def read_csv_terms(text: str, reader: Reader) -> None:
    """Hand every row of `text` to `reader`."""
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    header: list[str] = []
    at = 0
    try:
        for row in lines:
            line, at = at + 1, lines.line_num
            if not any(cell.strip() for cell in row):
                continue
            if not header:
                header = _header(row, line, reader)
                if not header:
                    return
            elif not _read_row(row, header, line, reader):
                return
    except csv.Error as error:
        reader.fault(f"line {at + 1}", f"not CSV: {error}", "quotation marks in pairs")
    if not header:
        reader.fault("line 1", "is empty", "a line with the column names")


def _header(row: list[str], line: int, reader: Reader) -> list[str]:
    """The names of the columns; none with faults."""
    names = [re.sub(r"[\s-]+", "_", cell.strip().lower()) for cell in row]
    quantiles = [name for name in names if share_of(name) is not None]
    known = QUANTILE_COLUMNS if quantiles else SAMPLE_COLUMNS
    before = len(reader.faults)
    if len(names) == 1 and ";" in names[0]:
        reader.fault(f"line {line}", "semicolons between the columns", "commas")
        return []
    for number, name in enumerate(names):
        where = f"line {line}, column {number + 1}"
        if name in names[:number]:
            reader.fault(where, f"a second {show(name)}", "each column once")
        elif name not in known and name not in quantiles:
            reader.fault(where, f"unknown column {show(name)}", did_you_mean(name, known))
    for name in ("term", "n") if quantiles else ("term", "value_ms"):
        if name not in names:
            reader.fault(f"line {line}", f"has no column {name}", f"a column {name}")
    return names if len(reader.faults) == before else []


def _read_row(row: list[str], header: list[str], line: int, reader: Reader) -> bool:
    """Whether reading on is worth it."""
    if len(row) != len(header):
        problem = f"{len(row)} cells under {len(header)} columns"
        reader.fault(f"line {line}", problem, "one cell per column")
    elif "value_ms" in header:
        _sample(dict(zip(header, (cell.strip() for cell in row), strict=True)), line, reader)
    else:
        _quantiles(dict(zip(header, (cell.strip() for cell in row), strict=True)), line, reader)
    return len(reader.faults) < MOST_FAULTS


def _sample(cells: Cells, line: int, reader: Reader) -> None:
    where = f"line {line}, column value_ms"
    name = _term(cells, line, reader)
    row = milliseconds(
        cells["value_ms"],
        cells.get("request"),
        cells.get("time"),
        file=reader.file,
        where=where,
        faults=reader.faults,
    )
    if name is not None and row is not None:
        reader.add_row(name, _scope(cells), row, f"line {line}")


def _quantiles(cells: Cells, line: int, reader: Reader) -> None:
    name = _term(cells, line, reader)
    entry = _entry({key: cells[key] for key in ("n", "failed") if cells.get(key)}, line, reader)
    told = {key: cell for key, cell in cells.items() if share_of(key) is not None and cell}
    shape = quantile_shape(_entry(told, line, reader), entry)
    if name is not None and shape is not None:
        reader.add_shape(name, _scope(cells), shape, f"line {line}")


def _entry(cells: Cells, line: int, reader: Reader) -> Entry:
    return Entry(
        reader.file,
        cells,
        lambda key: f"line {line}, column {key}",
        reader.faults,
        read_number=_number,
        of_cells=True,
    )


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None


def _term(cells: Cells, line: int, reader: Reader) -> TermName | None:
    try:
        return TermName(cells["term"])
    except ValueError:
        where, word = f"line {line}, column term", cells["term"]
        reader.faults.append(
            Fault(reader.file, where, f"{show(word)} is no term of the budget", meant(word))
        )
        return None


def _scope(cells: Cells) -> Scope:
    return Scope(*(cells.get(key, "") for key in SCOPE_KEYS))
