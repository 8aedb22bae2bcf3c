"""A look at a fleet as a table of at most 80 columns, and sentences for what is wrong."""

from collections.abc import Iterator, Sequence

from pathbudget.agents.cli.wording import harmless
from pathbudget.agents.collector.status import CollectorStatus
from pathbudget.agents.watch.fleet_look import (
    HEARTBEAT_S,
    NS,
    SILENT_AFTER,
    AgentLook,
    FleetLook,
)

WIDTH = 80
_HEAD = ("agent", "state", "seen", "series", "waiting", "dropped", "clock", "version")
_RIGHT = frozenset({"seen", "series", "waiting", "dropped"})
_WIDEST = (18, 13, 6, 6, 9, 9, 14, 8)
"""Columns; what is longer is cut. Together with a space between them at most 90: see `table`."""


def table(look: FleetLook) -> str:
    """Everything that is to be known, in order of importance of what is wrong."""
    if not look.agents:
        return "".join(f"{line}\n" for line in _sentences(look))
    rows = [_HEAD, *(_cells(one) for one in look.agents)]
    widths = [min(max(len(row[n]) for row in rows), most) for n, most in enumerate(_WIDEST)]
    while sum(widths) + len(widths) - 1 > WIDTH:
        widths[0 if widths[0] > 10 else widths.index(max(widths))] -= 1
    lines = [_line(row, widths) for row in rows]
    lines += _sentences(look)
    return "\n".join(lines) + "\n"


def ago(ns: int) -> str:
    """``8s``, ``12m``, ``5h``, ``9d``."""
    seconds = ns // NS
    for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length}{unit}"
    return f"{seconds}s"


def _cells(one: AgentLook) -> tuple[str, ...]:
    status = one.status
    if status is None or one.age_ns is None:
        return (harmless(one.agent), one.state, *("-",) * (len(_HEAD) - 2))
    return (
        harmless(one.agent),
        one.state,
        ago(one.age_ns),
        f"{status.series:,}",
        f"{status.spool.waiting_samples:,}",
        f"{sum(status.spool.dropped_samples.values()):,}",
        one.clock,
        harmless(status.software.removeprefix("pathbudget ")),
    )


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    placed = [
        (cell[: width - 1] + "+" if len(cell) > width else cell).rjust(width)
        if name in _RIGHT
        else (cell[: width - 1] + "+" if len(cell) > width else cell).ljust(width)
        for name, cell, width in zip(_HEAD, cells, widths, strict=True)
    ]
    return " ".join(placed).rstrip()


def _sentences(look: FleetLook) -> Iterator[str]:
    for one in look.agents:
        yield from _about(one)
    bus = look.bus
    if bus is not None:
        yield (
            f"{bus.waiting:,} results wait on the bus ({bus.waiting_bytes / 1e6:,.1f} MB), "
            f"{bus.with_collectors:,} of them with collectors"
        )

    for collector in look.collectors:
        yield from _about_collector(collector, look.at_unix_ns)


def _about_collector(one: CollectorStatus, now_unix_ns: int) -> Iterator[str]:
    age_ns = now_unix_ns - one.at_unix_ns
    if age_ns > SILENT_AFTER * HEARTBEAT_S * NS:
        yield f"collector: silent since {ago(age_ns)}"
    wrote = one.written_unix_ns
    when = "nothing" if wrote is None else f"the last {ago(max(0, now_unix_ns - wrote))} ago"
    rejected = sum(one.rejected.values())
    yield (
        f"collector: {one.measurements:,} measurements stored, {when}; {one.duplicates:,} came "
        f"twice, {rejected:,} rejected"
    )
    if one.trouble:
        yield f"collector: {harmless(one.trouble)}"


def _about(one: AgentLook) -> Iterator[str]:
    status = one.status
    if status is None or one.age_ns is None:
        if one.state != "never seen":
            yield f"{harmless(one.agent)}: says something that this version does not know"
        return
    name = harmless(one.agent)
    if one.state == "silent":
        waited = f", {status.spool.waiting_samples:,} samples waited there"
        yield f"{name}: silent since {ago(one.age_ns)}{waited}"
    oldest = status.spool.oldest_unix_ns
    if status.trouble:
        since = "" if oldest is None else f" since {ago(max(0, status.at_unix_ns - oldest))}"
        yield f"{name}: nothing is handed on{since}: {harmless(status.trouble)}"
    for problem in status.problems:
        yield f"{name}: {harmless(problem)}".replace("\n", "; ")
