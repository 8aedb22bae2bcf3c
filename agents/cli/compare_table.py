"""Comparisons as one table of 80 columns, and what a reader must know of it."""

from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from pathbudget.analysis.intervals.compared import Compared
from pathbudget.analysis.intervals.comparison import Order
from pathbudget.analysis.report.words import figure, percentile

STYLES = {Order.FIRST_FASTER: "green", Order.SECOND_FASTER: "green", Order.UNDECIDED: "yellow"}
FEWEST_FOR_A_WARNING = 10
"""Rows from which on some look different by chance alone."""


def print_table(
    rows: Sequence[Compared], confidence: float, width: int | None, *, color: bool
) -> None:
    """Print every row, then the notes that some of them need."""
    console = Console(
        width=width, highlight=False, markup=False, emoji=False, no_color=not color or None
    )
    first, second = rows[0].first, rows[0].second
    console.print(f"Round trips: {second} less {first}, ms, {confidence:.0%} intervals")
    table = Table(box=None, pad_edge=False)
    table.add_column("region" if not rows[0].site else "region to site", overflow="fold")
    for title in ("at", first, second, "difference", "interval"):
        table.add_column(title, justify="right", overflow="fold")
    table.add_column("faster", overflow="fold")
    for row in rows:
        table.add_row(*_cells(row))
    console.print(table)
    for note in _notes(rows, confidence):
        console.print(note)


def _cells(row: Compared) -> list[str | Text]:
    where = f"{row.region} to {row.site}" if row.site else row.region
    if row.reason:
        return [where, percentile(row.percentile), "", "", "", "", Text(row.reason, style="dim")]
    return [
        where,
        percentile(row.percentile),
        _figure(row.first_ms, "lost"),
        _figure(row.second_ms, "lost"),
        _signed(row),
        f"{_end(row.low_ms, 'no limit')} to {_end(row.high_ms, 'no limit')}",
        Text(_faster(row), style=STYLES[row.order]),
    ]


def _faster(row: Compared) -> str:
    if row.order is Order.UNDECIDED:
        return "undecided"
    return row.first if row.order is Order.FIRST_FASTER else row.second


def _signed(row: Compared) -> str:
    if row.difference_ms is None or row.first_ms is None or row.second_ms is None:
        return ""
    share = "" if row.relative is None else f" ({row.relative:+.0%})"
    return f"{_end(row.difference_ms, '')}{share}"


def _figure(value: float | None, word: str) -> str:
    return word if value is None else figure(value)


def _end(value: float | None, word: str) -> str:
    if value is None:
        return word
    return f"{'+' if value > 0 else ''}{figure(value)}"


def _notes(rows: Sequence[Compared], confidence: float) -> list[str]:
    notes: list[str] = []
    left_out = sum(row.left_out_first + row.left_out_second for row in rows)
    if left_out:
        notes.append("Samples at hours of the day that only one of the two measured are left out.")
    if any(row.uneven_hours for row in rows):
        notes.append("Some are spread unevenly over the hours of the day: part of a difference")
        notes.append("may be the hour.")
    decided = [row for row in rows if row.order is not Order.UNDECIDED]
    if len(rows) >= FEWEST_FOR_A_WARNING and decided:
        chance = (1 - confidence) * len(rows)
        notes.append(
            f"Of {len(rows)} rows without any difference, {chance:.1g} would show one by chance."
        )
    return notes
