"""Feeds, prefixes and events as tables of 80 columns and as JSON lines."""

import dataclasses
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from pathbudget.agents.bgp.importing import FileCounts
from pathbudget.analysis.routes.bgp_prefixes import PrefixStatus
from pathbudget.analysis.routes.model import BgpEvent, BgpEventKind, FeedEvent, FeedStatus

STYLES = {"live": "green", "stale": "bold yellow", "down": "bold red", "never": "yellow"}
_STEPS = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
_WORDS = {
    BgpEventKind.PATH: "path changed",
    BgpEventKind.WITHDRAWN: "withdrawn",
    BgpEventKind.ANNOUNCED: "announced",
    BgpEventKind.ORIGIN: "another origin",
    BgpEventKind.INVALID: "RPKI-invalid origin",
}


def screen(
    feeds: Sequence[FeedStatus],
    prefixes: Sequence[PrefixStatus],
    events: Iterable[BgpEvent | FeedEvent],
    notes: dict[str, str],
) -> Group:
    """All of it, the latest event last."""
    parts: list[RenderableType] = [feed_table(feeds)]
    parts += [Text(f"  {name}: {note}", "dim") for name, note in sorted(notes.items()) if note]
    if prefixes:
        parts += [Text(""), prefix_table(prefixes)]
    lines = [Text(event_line(event), event_style(event)) for event in events]
    if lines:
        parts += [Text(""), Text("Events (UTC)", "bold"), *lines]
    return Group(*parts)


def feed_table(feeds: Sequence[FeedStatus]) -> Table:
    """One line per feed: what it is worth now."""
    table = _table(("feed", "kind", "state"), ("age", "lag", "peers", "prefixes", "updates", "bad"))
    for one in feeds:
        table.add_row(
            one.feed,
            one.kind,
            Text(one.state, STYLES.get(one.state, "")),
            short(one.age_ns),
            short(one.lag_ns),
            f"{one.peers_live}/{one.peers}",
            str(one.prefixes),
            str(one.updates),
            str(one.quarantined),
        )
    return table


def prefix_table(prefixes: Sequence[PrefixStatus]) -> Table:
    """One line per prefix: how many live peers have it, and by which path most of them."""
    with_rpki = any(one.rpki for one in prefixes)
    table = _table(("site", "prefix"), ("peers",))
    table.add_column("most common AS path", overflow="fold")
    if with_rpki:
        table.add_column("RPKI", no_wrap=True)
    table.add_column("changed (UTC)", no_wrap=True)
    table.add_column("/day", justify="right", no_wrap=True)
    for one in prefixes:
        rate = "-" if one.changes_per_day is None else f"{one.changes_per_day:.1f}"
        gone = Text(
            "no live peer: not known" if not one.peers_live else "nobody has it", "bold red"
        )
        path = Text(one.path) if one.peers_with else gone
        table.add_row(
            one.site or "-",
            one.prefix,
            f"{one.peers_with}/{one.peers_live}",
            path,
            *([one.rpki or "-"] if with_rpki else []),
            minute(one.last_change_unix_ns),
            rate,
        )
    return table


def event_line(event: BgpEvent | FeedEvent) -> str:
    """One event in one line (which a terminal may fold)."""
    when = second(event.window.by_unix_ns)
    if isinstance(event, FeedEvent):
        who = f"{event.feed} {event.peer}".strip()
        why = f" ({event.detail})" if event.detail else ""
        return f"{when}  {who}: {event.before} -> {event.after}{why}"
    what = _WORDS[event.kind] + (" and back" if event.back else "")
    site = f" ({event.site})" if event.site else ""
    rpki = f", RPKI {event.rpki}" if event.rpki else ""
    return (
        f"{when}  {event.prefix}{site}: {what}, {event.peers_changed} of {event.peers_live} live "
        f"peers: {event.before or 'no route'} -> {event.after or 'no route'}{rpki}"
    )


def event_style(event: BgpEvent | FeedEvent) -> str:
    """How it is drawn."""
    if isinstance(event, FeedEvent):
        return STYLES.get(event.after, "")
    bad = {BgpEventKind.WITHDRAWN, BgpEventKind.INVALID, BgpEventKind.ORIGIN}
    return "bold red" if event.kind in bad and event.back is None else ""


def import_table(counts: Sequence[FileCounts]) -> Table:
    """One line per file that was imported."""
    table = _table(("file", "format"), ("updates", "left out", "unreadable"))
    for one in counts:
        row = (str(one.updates), str(one.left_out), str(one.set_aside))
        table.add_row(one.path.name, one.kind or "-", *row)
    return table


def event_json(event: BgpEvent | FeedEvent) -> bytes:
    """An event as one line of JSON; ``event`` says which kind of record it is."""
    kind = "feed" if isinstance(event, FeedEvent) else "bgp"
    return line({"event": kind, **dataclasses.asdict(event)})


def status_json(
    feeds: Sequence[FeedStatus], prefixes: Sequence[PrefixStatus], now_unix_ns: int
) -> bytes:
    """Everything that the tables show, as one line of JSON."""
    return line(
        {
            "event": "status",
            "time_unix_ns": now_unix_ns,
            "feeds": [dataclasses.asdict(one) for one in feeds],
            "prefixes": [dataclasses.asdict(one) for one in prefixes],
        }
    )


def line(content: dict[str, Any]) -> bytes:
    """One line of JSON."""
    return msgspec.json.encode(content) + b"\n"


def short(ns: int | None) -> str:
    """``3 min``: whole units, the largest that fits; ``-`` for None."""
    if ns is None:
        return "-"
    seconds = ns // 1_000_000_000
    for unit, size in _STEPS:
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return "0 s"


def minute(unix_ns: int | None) -> str:
    """A time in UTC, down to the minute, or the day where it is of another year; ``-`` for None."""
    if unix_ns is None:
        return "-"
    moment = _moment(unix_ns)
    this_year = moment.year == datetime.now(UTC).year
    return f"{moment:%m-%d %H:%M}" if this_year else f"{moment:%Y-%m-%d}"


def second(unix_ns: int) -> str:
    """A time in UTC, down to the second."""
    return f"{_moment(unix_ns):%Y-%m-%d %H:%M:%S}"


def _moment(unix_ns: int) -> datetime:
    return datetime.fromtimestamp(unix_ns // 1_000_000_000, UTC)


def _table(words: Sequence[str], numbers: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 1, 0, 0))
    for heading in words:
        table.add_column(heading, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", no_wrap=True)
    return table
