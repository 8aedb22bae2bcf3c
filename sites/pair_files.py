"""Plain tables about region and site: a matrix of round trips, and who answers whom.

    region,site,rtt_ms[,n][,low_ms][,high_ms][,weight]      a matrix, one pair per line
    region,site,share  or  region,site,n                    which site answers a region

A square table with the sites in its first line is understood as a matrix, too. Nothing is skipped
silently: every line is a pair, a blank cell, or a fault with its line.
"""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.sites.entry import LONGEST_TEXT, show
from pathbudget.sites.toml_reader import read_text

LARGEST_MS = 1e7
MOST_PAIRS = 5_000_000
LONG = {"region", "site"}
MATRIX_COLUMNS = ("region", "site", "rtt_ms", "n", "low_ms", "high_ms", "weight")
STEERING_COLUMNS = ("region", "site", "share", "n")


@dataclass(frozen=True, slots=True)
class PairRow:
    """One measured pair of a matrix, in ms. `n` is the number of samples, where it is told."""

    region: str
    site: str
    rtt_ms: float
    n: int | None = None
    low_ms: float | None = None
    high_ms: float | None = None
    weight: float | None = None
    """Of the region."""


def read_matrix(path: Path) -> tuple[PairRow, ...]:
    """The pairs of a matrix file. Raises ConfigError with every fault of it."""
    rows, faults = _table(path)
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    if rows and set(header) >= LONG:
        found = _long(rows, header, str(path), faults)
    else:
        found = _square(rows, str(path), faults)
    _each_once(found, str(path), faults)
    _one_weight(found, str(path), faults)
    if not found and not faults:
        faults.append(Fault(str(path), "", "has no pair", "lines of region, site, rtt_ms"))
    if faults:
        raise ConfigError(faults)
    return tuple(row for _, row in found)


def read_steering(path: Path) -> dict[str, dict[str, float]]:
    """Region to site to share (sums to 1). Raises ConfigError with every fault of the file."""
    rows, faults = _table(path)
    header = [cell.strip().lower() for cell in rows[0][1]] if rows else []
    file, found = str(path), dict[str, dict[str, float]]()
    wanted = "share" if "share" in header else "n"
    if rows and not {*LONG, wanted} <= set(header):
        problem = f"has the columns {', '.join(header) or 'none'}"
        faults.append(Fault(file, "line 1", problem, "region, site and share (or n)"))
    else:
        for line, cells in rows[1:]:
            _answer(_cells(header, cells, line, file, faults), wanted, line, file, faults, found)
    for region, shares in found.items():
        if not math.fsum(shares.values()) > 0:
            faults.append(
                Fault(file, "", f"{show(region)} is answered by nobody", "a share above 0")
            )
    if not found and not faults:
        faults.append(Fault(file, "", "has no line", "lines of region, site, share"))
    if faults:
        raise ConfigError(faults)
    return {
        region: {site: share / math.fsum(shares.values()) for site, share in shares.items()}
        for region, shares in found.items()
    }


def _answer(
    cells: dict[str, str] | None,
    wanted: str,
    line: int,
    file: str,
    faults: list[Fault],
    found: dict[str, dict[str, float]],
) -> None:
    if cells is None:
        return
    region, site = cells["region"], cells["site"]
    share = _number(cells[wanted], wanted, line, file, faults, low=0.0)
    if not _named(region, site, line, file, faults) or share is None:
        return
    answers = found.setdefault(region, {})
    if site in answers:
        problem = f"{show(region)} to {show(site)} stands there twice"
        faults.append(Fault(file, f"line {line}", problem, "each pair once"))
    answers[site] = share


def _table(path: Path) -> tuple[list[tuple[int, list[str]]], list[Fault]]:
    """Rows with the line on which each begins; blank ones left out."""
    faults: list[Fault] = []
    text = read_text(path, faults)
    if text is None:
        return [], faults
    head = next((line for line in text.splitlines() if line.strip()), "")
    delimiter = max(",;\t", key=head.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[tuple[int, list[str]]] = []
    line = 1
    try:
        for cells in reader:
            if any(cell.strip() for cell in cells):
                rows.append((line, [cell.strip() for cell in cells]))
            line = reader.line_num + 1
    except csv.Error as error:
        faults.append(Fault(str(path), f"line {line}", f"not CSV: {error}", "quotation in pairs"))
        return [], faults
    if not rows:
        faults.append(Fault(str(path), "", "is empty", "a line with the column names"))
    return rows, faults


def _cells(
    header: Sequence[str], cells: Sequence[str], line: int, file: str, faults: list[Fault]
) -> dict[str, str] | None:
    if len(cells) != len(header):
        problem = f"{len(cells)} cells under {len(header)} columns"
        faults.append(Fault(file, f"line {line}", problem, "as many cells as columns"))
        return None
    return dict(zip(header, cells, strict=True))


def _long(
    rows: list[tuple[int, list[str]]], header: list[str], file: str, faults: list[Fault]
) -> list[tuple[int, PairRow]]:
    unknown = [name for name in header if name not in MATRIX_COLUMNS]
    if unknown or "rtt_ms" not in header or len(set(header)) < len(header):
        problem = f"has the columns {', '.join(header)}"
        expected = "region, site, rtt_ms and perhaps n, low_ms, high_ms, weight"
        faults.append(Fault(file, "line 1", problem, expected))
        return []
    found: list[tuple[int, PairRow]] = []
    for line, cells in rows[1:]:
        values = _cells(header, cells, line, file, faults)
        row = None if values is None else _pair(values, line, file, faults)
        if row is not None:
            found.append((line, row))
    return found


def _pair(cells: dict[str, str], line: int, file: str, faults: list[Fault]) -> PairRow | None:
    before = len(faults)
    named = _named(cells["region"], cells["site"], line, file, faults)
    if not cells["rtt_ms"] and len(faults) == before and named:
        return None  # a blank cell: the pair was not measured
    rtt = _number(cells["rtt_ms"], "rtt_ms", line, file, faults, above=True)
    others = {
        name: _number(cells[name], name, line, file, faults, low=0.0)
        for name in ("n", "low_ms", "high_ms", "weight")
        if cells.get(name)
    }
    low, high, count = others.get("low_ms"), others.get("high_ms"), others.get("n")
    if rtt is not None and ((low or 0.0) > rtt or (high is not None and high < rtt)):
        problem = f"{rtt:g} ms is outside its interval"
        faults.append(Fault(file, f"line {line}", problem, "low_ms <= rtt_ms <= high_ms"))
    if count is not None and (count < 1 or count != int(count)):
        faults.append(
            Fault(file, f"line {line}", f"{count:g} samples", "a whole number, 1 or more")
        )
    if len(faults) > before or rtt is None:
        return None
    return PairRow(
        region=cells["region"],
        site=cells["site"],
        rtt_ms=rtt,
        n=None if count is None else int(count),
        low_ms=low,
        high_ms=high,
        weight=others.get("weight"),
    )


def _square(
    rows: list[tuple[int, list[str]]], file: str, faults: list[Fault]
) -> list[tuple[int, PairRow]]:
    """Sites in the first line, a region at the head of every other one; a blank is not measured."""
    found: list[tuple[int, PairRow]] = []
    if not rows:
        return found
    _, header = rows[0]
    if len(header) < 2 or any(not name or _is_number(name) for name in header[1:]):
        expected = "columns region, site, rtt_ms; or the sites' names in the first line"
        faults.append(Fault(file, "line 1", "is no header of a matrix", expected))
        return found
    for line, cells in rows[1:]:
        if len(cells) != len(header):
            problem = f"{len(cells)} cells under {len(header)} columns"
            faults.append(Fault(file, f"line {line}", problem, "as many cells as columns"))
            continue
        for site, cell in zip(header[1:], cells[1:], strict=True):
            if not cell or not _named(cells[0], site, line, file, faults):
                continue
            rtt = _number(cell, site, line, file, faults, above=True)
            if rtt is not None:
                found.append((line, PairRow(cells[0], site, rtt)))
    return found


def _named(region: str, site: str, line: int, file: str, faults: list[Fault]) -> bool:
    for kind, name in (("region", region), ("site", site)):
        if not name or not name.isprintable() or len(name) > LONGEST_TEXT:
            problem = f"{show(name)} is no name of a {kind}"
            faults.append(Fault(file, f"line {line}", problem, "visible text, 1 to 200 characters"))
            return False
    return True


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number(
    text: str,
    name: str,
    line: int,
    file: str,
    faults: list[Fault],
    *,
    low: float = 0.0,
    above: bool = False,
) -> float | None:
    """A finite number from `low` on, beyond it with `above`; None when it is noted as a fault."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    beyond = number > low if above else number >= low
    if not beyond or number > LARGEST_MS * 1e8 or (name.endswith("_ms") and number > LARGEST_MS):
        expected = f"a number above {low:g}" if above else f"a number, {low:g} or more"
        faults.append(Fault(file, f"line {line}, {name}", f"{show(text)}", expected))
        return None
    return number


def _each_once(found: list[tuple[int, PairRow]], file: str, faults: list[Fault]) -> None:
    seen: dict[tuple[str, str], int] = {}
    for line, row in found:
        first = seen.setdefault((row.region, row.site), line)
        if first != line:
            problem = f"{show(row.region)} to {show(row.site)} is on line {first} already"
            faults.append(Fault(file, f"line {line}", problem, "each pair once"))


def _one_weight(found: list[tuple[int, PairRow]], file: str, faults: list[Fault]) -> None:
    """A region has one weight, on as many of its lines as you like."""
    seen: dict[str, tuple[int, float]] = {}
    for line, row in found:
        if row.weight is None:
            continue
        first, weight = seen.setdefault(row.region, (line, row.weight))
        if weight != row.weight:
            problem = f"{row.weight:g} for {show(row.region)}, which has {weight:g} on line {first}"
            faults.append(Fault(file, f"line {line}, weight", problem, "one weight per region"))
