"""What a store holds of BGP: one entry per feed, as a table for a terminal and as JSON."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
from rich.console import Console
from rich.table import Table

from pathbudget.agents.store.layout import BGP_UPDATES, Layout
from pathbudget.agents.store.listing_text import minute, plain
from pathbudget.agents.store.table_files import row_groups
from pathbudget.agents.store.update_files import EVERYTHING, UpdateSelection
from pathbudget.probes.errors import StoreError

_COLUMNS = ("id", "feed", "feed_kind", "collector", "peer_address", "prefix", "kind",
            "time_unix_ns")  # fmt: skip


@dataclass(frozen=True, slots=True)
class FeedSummary:
    """All updates of one feed together."""

    feed: str
    kind: str
    peers: int
    prefixes: int
    updates: int
    first_unix_ns: int
    last_unix_ns: int


@dataclass(slots=True)
class _Counts:
    kind: str
    first: int
    last: int
    updates: int = 0
    peers: set[tuple[str, str]] = dataclasses.field(default_factory=set[tuple[str, str]])
    prefixes: set[str] = dataclasses.field(default_factory=set[str])


def summarise_updates(layout: Layout, selection: UpdateSelection = EVERYTHING) -> list[FeedSummary]:
    """One entry per feed, by name. Raises StoreError."""
    found: dict[str, _Counts] = {}
    for date in layout.dates(BGP_UPDATES):
        for path in layout.files(BGP_UPDATES, date) if selection.takes_date(date) else ():
            for table in row_groups(path, _COLUMNS):
                try:
                    rows = selection.rows(table).to_pylist()
                except (KeyError, ValueError) as error:
                    raise StoreError(f"{path}: {error}") from None
                for row in rows:
                    _count(found, row)
    return [
        FeedSummary(name, one.kind, len(one.peers), len(one.prefixes), one.updates, one.first,
                    one.last)
        for name, one in sorted(found.items())
    ]  # fmt: skip


def _count(found: dict[str, _Counts], row: dict[str, object]) -> None:
    time = int(str(row["time_unix_ns"]))
    one = found.setdefault(str(row["feed"]), _Counts(str(row["feed_kind"]), time, time))
    one.updates += 1
    one.first, one.last = min(one.first, time), max(one.last, time)
    if row["peer_address"]:
        one.peers.add((str(row["collector"]), str(row["peer_address"])))
    if row["prefix"]:
        one.prefixes.add(str(row["prefix"]))


def print_feeds(feeds: Sequence[FeedSummary], console: Console) -> None:
    """One line per feed."""
    if not feeds:
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    table.add_column("BGP feed", overflow="fold", min_width=20)
    for heading in ("kind", "peers", "prefixes", "updates", "last (UTC)"):
        table.add_column(heading, justify="left" if "UTC" in heading else "right", no_wrap=True)
    for one in feeds:
        counts = (str(one.peers), str(one.prefixes), str(one.updates))
        table.add_row(plain(one.feed), one.kind, *counts, minute(one.last_unix_ns))
    console.print(table)


def feeds_as_json(feeds: Sequence[FeedSummary]) -> bytes:
    """An array of objects with the fields of `FeedSummary`."""
    return msgspec.json.format(msgspec.json.encode([dataclasses.asdict(one) for one in feeds]))
