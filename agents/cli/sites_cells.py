"""Numbers, notes and tables of the siting commands, as text, JSON and CSV."""

import csv
import os
import sys
from collections.abc import Sequence

import msgspec
from rich.console import Console
from rich.table import Table

from pathbudget.agents.cli.wording import harmless
from pathbudget.analysis.report.words import share
from pathbudget.analysis.siting.decision import Decision
from pathbudget.analysis.siting.words import may_be_better

UNKNOWN = "-"


def figure(value: float | None, unit: str) -> str:
    """The value of a choice: a share, or milliseconds."""
    if value is None:
        return UNKNOWN
    return share(value) if unit == "share" else f"{value:,.2f} ms"


def fine(value: float, unit: str) -> str:
    """A difference of such values, to two digits."""
    if unit == "share":
        return f"{100 * value:.2g} %" if value >= 1e-4 else "under 0.01 %"
    return f"{value:.2g} ms" if value >= 1e-3 else "under 0.001 ms"


def ms(value: float | None) -> str:
    """``12.30 ms``, or that nobody knows."""
    return UNKNOWN if value is None else f"{value:,.2f} ms"


def number(value: float | None) -> str:
    """With one digit behind the point."""
    return UNKNOWN if value is None else f"{value:,.1f}"


def whole(value: float | None) -> str:
    """Without one."""
    return UNKNOWN if value is None else f"{value:,.0f}"


def amount(value: float | None) -> str:
    """As it was given."""
    return UNKNOWN if value is None else f"{value:,.10g}"


def print_notes(notes: Sequence[str]) -> None:
    """One line for each."""
    for text in notes:
        show(f"Note: {text}")


def new_table(columns: Sequence[str], right: Sequence[str] = ()) -> Table:
    """A plain table; numbers stand to the right."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(
            column,
            justify="right" if column in right else "left",
            overflow="fold",
            no_wrap=column in right,
        )
    return table


def show(what: str | Table) -> None:
    """Print for people, without what a name may do to a terminal."""
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else 80
    console = Console(width=width, highlight=False, markup=False, emoji=False)
    console.print(harmless(what) if isinstance(what, str) else what)


def print_json(answer: object) -> None:
    """Print for programs."""
    text = msgspec.json.format(msgspec.json.encode(answer), indent=2)
    sys.stdout.write(text.decode() + "\n")


def print_csv(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print for spreadsheets."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([["" if cell is None else cell for cell in row] for row in rows])


def cell(value: object) -> object:
    """Several words as one."""
    return " ".join(value) if isinstance(value, tuple) else value


def print_rivals(decision: Decision) -> None:
    """Whether the data can tell, as a report says it."""
    if decision.decided is None:
        return
    if decision.decided:
        show("Decided: no other choice is as good within the intervals.")
        return
    show(f"Undecided: {decision.why_undecided}.")
    if decision.may_be_better > 0:
        show(may_be_better(decision.objective, decision.may_be_better))
    if decision.would_change:
        show("It hangs on:")
    for pair in decision.would_change:
        show(f"  {pair}")
