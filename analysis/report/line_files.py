"""Selected budget lines as JSON and CSV, for a pipeline to read (docs/report.md)."""

import csv
import io

import msgspec

from pathbudget.analysis.report.selection import Missing, Selected
from pathbudget.analysis.report.words import UNBOUNDED
from pathbudget.analysis.results import (
    REPORT_SCHEMA_VERSION,
    BudgetLine,
    Result,
    Verdict,
)
from pathbudget.probes.spreadsheet import harmless

COLUMNS = (*(name for name in BudgetLine.__struct_fields__ if name != "reason"), "reason")
"""Of the CSV; names ending in ``_ms`` are milliseconds, `percentile` is out of 100."""

MAY_BE_UNBOUNDED = ("value_ms", "low_ms", "high_ms")


class LineFile(Result, frozen=True):
    """What ``pathbudget budget --format json`` prints."""

    confidence: float
    counts: dict[str, int]
    """``pass``, ``fail``, ``undecided``, ``not measured`` and ``missing``, of the lines that have
    an allowance."""
    verdict: Verdict
    """Of all together, before ``--undecided`` says what an undecided one is worth."""
    lines: tuple[BudgetLine, ...]
    missing: tuple[Missing, ...]
    schema: int = REPORT_SCHEMA_VERSION


def lines_json(selected: Selected, confidence: float) -> bytes:
    """The lines and their summary, indented, with a newline at the end."""
    counts = {str(verdict): selected.counts[verdict] for verdict in Verdict}
    content = LineFile(
        confidence=confidence,
        counts=counts | {"missing": len(selected.missing)},
        verdict=selected.verdict,
        lines=selected.lines,
        missing=selected.missing,
    )
    return msgspec.json.format(msgspec.json.encode(content), indent=1) + b"\n"


def lines_csv(selected: Selected) -> str:
    """One row per line, RFC 4180. A number without limit is the words ``no limit``, so that no
    reader takes it for a gap; what was not measured, or an allowance that is none, is empty."""
    sheet = io.StringIO()
    writer = csv.writer(sheet)
    writer.writerow(COLUMNS)
    for line in selected.lines:
        writer.writerow([_field(line, name) for name in COLUMNS])
    return sheet.getvalue()


def _field(line: BudgetLine, name: str) -> str:
    value = getattr(line, name)
    if value is None:
        return UNBOUNDED if name in MAY_BE_UNBOUNDED and line.n else ""
    if isinstance(value, bool):
        return str(value).lower()
    return harmless(value) if isinstance(value, str) else str(value)
