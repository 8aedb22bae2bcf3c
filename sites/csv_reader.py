"""A table as spreadsheets save it: rows as `Entry` objects, or faults with line and column.

Commas, semicolons and tabs separate; a decimal comma is understood where it cannot be mistaken for
a separator. Which of the two tables it is (regions or sites) shows in its columns.
"""

import csv
import io
import re
from collections.abc import Callable
from pathlib import PurePath

from pathbudget.probes.errors import Fault
from pathbudget.sites.entry import Entry, did_you_mean, show
from pathbudget.sites.region_reader import REGION_KEYS
from pathbudget.sites.site_reader import CSV_SITE_KEYS

NUMBERS = ("latitude", "longitude", "weight", "price_per_month", "capacity", "power_kw")
ONLY_REGIONS = frozenset(REGION_KEYS) - frozenset(CSV_SITE_KEYS)
ONLY_SITES = frozenset(CSV_SITE_KEYS) - frozenset(REGION_KEYS)
POINT = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
EXCEL_HINT = re.compile(r"sep=([,;\t])")
COMMA = re.compile(r"[+-]?\d+,\d+", re.ASCII)
ONE_MARK = "decimal points throughout, or semicolons between columns and only decimal commas"

Row = tuple[int, list[str]]
"""Line on which a row begins, and its cells."""


def read_csv(text: str, file: str, faults: list[Fault]) -> tuple[str, list[Entry]]:
    """``region`` or ``site`` and the rows; an empty kind when the table cannot be used."""
    rows = _rows(text, file, faults)
    if rows is None:
        return "", []
    if not rows:
        faults.append(Fault(file, "line 1", "is empty", "a line with the column names"))
        return "", []
    (line, cells), *rest = rows
    header = [re.sub(r"[\s_-]+", "_", cell.strip().lower()) for cell in cells]
    kind = _kind(header, file, faults)
    if not kind or not _header_is_right(header, kind, line, file, faults):
        return "", []
    delimiter = _delimiter(text)
    full = [row for row in rest if _has_right_length(row, header, file, faults)]
    read_number = _number_reader(delimiter, full, header, file, faults)
    return kind, [_entry(row, header, file, faults, read_number) for row in full]


def _delimiter(text: str) -> str:
    """What Excel's line ``sep=;`` says, else what the line of column names has most of."""
    header = next((line for line in text.splitlines() if line.strip()), "")
    told = EXCEL_HINT.fullmatch(header)
    return told[1] if told else max(",;\t", key=header.count)


def _rows(text: str, file: str, faults: list[Fault]) -> list[Row] | None:
    """All rows that are not blank; None when quotation marks do not match up."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    rows: list[Row] = []
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((line, [cell.strip() for cell in cells]))
            line = reader.line_num + 1
    except csv.Error as error:
        told = "".join(
            letter if letter.isprintable() else repr(letter)[1:-1] for letter in str(error)
        )
        problem = f"not CSV: {told}"
        faults.append(Fault(file, f"line {line}", problem, "quotation marks in pairs"))
        return None
    return rows[1:] if rows and rows[0][1][0] == "sep=" else rows


def _kind(header: list[str], file: str, faults: list[Fault]) -> str:
    """By the columns that only one of the tables has, else by the name of the file."""
    regions, sites = ONLY_REGIONS & set(header), ONLY_SITES & set(header)
    if regions and not sites:
        return "region"
    if sites and not regions:
        return "site"
    name = PurePath(file).stem.lower()
    for kind in ("region", "site"):
        if kind in name and not (regions and sites):
            return kind
    if regions and sites:
        problem = f"has the columns {', '.join(sorted(regions | sites))}"
        expected = "regions (with weight) and sites in two files"
    else:
        problem = "could hold regions or sites"
        expected = "a column weight (regions) or targets (sites), or a name like regions.csv"
    faults.append(Fault(file, "line 1", problem, expected))
    return ""


def _header_is_right(
    header: list[str], kind: str, line: int, file: str, faults: list[Fault]
) -> bool:
    known = REGION_KEYS if kind == "region" else CSV_SITE_KEYS
    before = len(faults)
    for index, name in enumerate(header):
        where = f"line {line}, column {index + 1}"
        if not name:
            faults.append(Fault(file, where, "has no name", "a name for each column"))
        elif name in header[:index]:
            faults.append(Fault(file, where, f"a second {show(name)}", "each column once"))
        elif name not in known:
            problem = f"unknown column {show(name)}"
            faults.append(Fault(file, where, problem, did_you_mean(name, known)))
    if "name" not in header:
        faults.append(Fault(file, f"line {line}", "has no column name", "a column name"))
    return len(faults) == before


def _has_right_length(row: Row, header: list[str], file: str, faults: list[Fault]) -> bool:
    line, cells = row
    surplus = [cell for cell in cells[len(header) :] if cell]
    if not surplus:
        return True
    problem = f"{len(cells)} cells under {len(header)} columns"
    expected = "one cell per column (a cell with a comma in it needs quotation marks)"
    faults.append(Fault(file, f"line {line}", problem, expected))
    return False


def _entry(
    row: Row,
    header: list[str],
    file: str,
    faults: list[Fault],
    read_number: Callable[[object], float | None],
) -> Entry:
    """One row; an empty cell is an absent key."""
    line, cells = row
    values = {name: cell for name, cell in zip(header, cells, strict=False) if cell}
    where: Callable[[str], str] = lambda key: f"line {line}, column {key}"  # noqa: E731
    return Entry(file, values, where, faults, read_number=read_number, of_cells=True)


def _number_reader(
    delimiter: str, rows: list[Row], header: list[str], file: str, faults: list[Fault]
) -> Callable[[object], float | None]:
    """How numbers are written in this table: one decimal mark for the whole of it."""
    columns = [index for index, name in enumerate(header) if name in NUMBERS]
    commas = _first(rows, columns, lambda cell: bool(COMMA.fullmatch(cell)))
    points = _first(rows, columns, lambda cell: "." in cell and bool(POINT.fullmatch(cell)))
    if commas and (points or delimiter == ","):
        line, column, cell = commas
        where = f"line {line}, column {header[column]}"
        other = f"{points[2]} in line {points[0]}" if points else "commas between columns"
        problem = f"{show(cell)} has a decimal comma, beside {other}"
        faults.append(Fault(file, where, problem, ONE_MARK))
        return lambda value: _number(str(value), comma=True)
    return lambda value: _number(str(value), comma=bool(commas))


def _first(
    rows: list[Row], columns: list[int], matches: Callable[[str], bool]
) -> tuple[int, int, str] | None:
    """Line, column index and text of the first cell of `columns` that matches."""
    for line, cells in rows:
        for column in columns:
            if column < len(cells) and matches(cells[column]):
                return line, column, cells[column]
    return None


def _number(text: str, *, comma: bool) -> float | None:
    if comma and COMMA.fullmatch(text):
        text = text.replace(",", ".")
    return float(text) if POINT.fullmatch(text) else None
