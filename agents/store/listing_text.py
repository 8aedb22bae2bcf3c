"""The list of a store as a table for a terminal, and as JSON."""

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby

import msgspec
from rich.console import Console
from rich.table import Table

from pathbudget.agents.store.listing import SeriesSummary

NOTHING = "The store is empty, or nothing in it matches."


def print_table(series: Sequence[SeriesSummary], console: Console) -> None:
    """One block per campaign: which vantage probed which target how often, and when."""
    if not series:
        console.print(NOTHING)
    for name, group in groupby(series, key=lambda one: one.campaign):
        parts = list(group)
        title = f"campaign {name}" if name else "measurements that belong to no campaign"
        console.print(f"{title}, {_span(parts)}", markup=False, highlight=False)
        console.print(_table(parts))


def as_json(series: Sequence[SeriesSummary]) -> bytes:
    """An array of objects with the fields of `SeriesSummary`."""
    return msgspec.json.format(msgspec.json.encode([dataclasses.asdict(one) for one in series]))


def _table(series: Sequence[SeriesSummary]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for heading in ("vantage", "target", "site", "probe"):
        table.add_column(heading, overflow="fold")
    for heading in ("samples", "failed", "%"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in series:
        probe = f"{one.probe} {one.family or '-'}"
        share = f"{100 * one.failures / one.samples:.1f}" if one.samples else "-"
        names = (one.vantage, one.target, one.site or "-", probe)
        table.add_row(*map(plain, names), str(one.samples), str(one.failures), share)
    return table


def plain(text: str) -> str:
    """A name as it is: square brackets are no markup."""
    return text.replace("[", "\\[")


def _span(series: Sequence[SeriesSummary]) -> str:
    first = minute(min(one.first_unix_ns for one in series))
    last = minute(max(one.last_unix_ns for one in series))
    end = last[11:] if last[:10] == first[:10] else last
    return f"{first} to {end} UTC"


def minute(unix_ns: int) -> str:
    """A time in UTC, down to the minute."""
    return f"{datetime.fromtimestamp(unix_ns // 1_000_000_000, UTC):%Y-%m-%d %H:%M}"
