"""A route report as text of a terminal's width: incidents first, then what is stable. Pure."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap

from rich.text import Text

from pathbudget.analysis.report.route_words import (
    breaches,
    briefly,
    by_name,
    cause_words,
    evidence_words,
    incident_cost,
    is_open,
    lasting,
    line_words,
    over_words,
    rate_words,
    reason_words,
    route_text,
    series_detail,
    series_name,
    window_words,
    worst_first,
)
from pathbudget.analysis.report.words import counted, utc
from pathbudget.analysis.routes.model import (
    FeedState,
    FeedStatus,
    Granularity,
    Incident,
    PathSeries,
    RouteStability,
)
from pathbudget.analysis.routes.route_report import RouteReport

NARROWEST = 60
MOST_SERIES = 3
"""Series of an incident that are named; the rest are counted."""
MOST_EVIDENCE = 6
MOST_LINES = 4
"""Budget lines of an incident that are spelt out, those whose verdict changed first."""
COLUMNS = {"seen": 6, "dominant": 8, "stays": 8, "changes/day": 16, "bits": 5, "flutter": 7}
GIVEN_UP = ("flutter", "bits", "stays", "seen")
"""Columns that a narrow terminal lacks, the first one first."""
FEWEST_NAME = 16
LEVELS = {Granularity.ADDRESS: "address", Granularity.ROUTER: "router", Granularity.AS: "AS"}
FEED_STYLES = {FeedState.LIVE: "green", FeedState.STALE: "yellow", FeedState.DOWN: "bold red"}


def report_lines(report: RouteReport, width: int, *, paths: bool = False) -> Iterator[Text]:
    """All of it. `paths` adds every route of a series, hop by hop."""
    width = max(width, NARROWEST)
    yield from _wrapped(summary_words(report), width, "bold")
    for caution in report.cautions:
        yield from _wrapped(f"Caution: {caution}", width, "yellow")
    yield from _incidents(report.incidents, width)
    yield from _feeds(report.feeds, width)
    yield from _stability(report.stability, width, paths=paths)


def summary_words(report: RouteReport) -> str:
    """``6 series, 4 changes of route, 233 flutters; 3 incidents, 1 still so.``"""
    when, calm, incidents = summary_parts(report)
    return f"{when}: {calm}; {incidents}."


def summary_parts(report: RouteReport) -> tuple[str, str, str]:
    """How much and when, what load balancers and routes did, what happened."""
    times = [one.first_unix_ns for one in report.stability]
    times += [one.last_unix_ns for one in report.stability]
    changes = sum(one.changes for one in report.stability)
    still = sum(map(is_open, report.incidents))
    when = f", {utc(min(times))[:-7]} to {utc(max(times))[:-7]} UTC" if times else ""
    flutters = counted(sum(one.flutters for one in report.stability), "flutter")
    return (
        f"{counted(len(report.stability), 'series', 'series')}{when}",
        f"{counted(changes, 'change')} of route, {flutters}",
        f"{counted(len(report.incidents), 'incident')}, {still} still so",
    )


def _wrapped(
    text: str, width: int, style: str = "", *, indent: int = 0, hang: int = 0
) -> Iterator[Text]:
    first, later = " " * indent, " " * (indent + hang)
    for line in wrap(
        text, width, initial_indent=first, subsequent_indent=later, break_on_hyphens=False
    ):
        yield Text(line, style)


def _incidents(incidents: Sequence[Incident], width: int) -> Iterator[Text]:
    if not incidents:
        yield Text("No incident.")
        return
    yield Text("")
    yield Text("Incidents (UTC)", "bold")
    for one in sorted(incidents, key=lambda one: one.window.by_unix_ns):
        yield from incident_lines(one, width)


def incident_lines(one: Incident, width: int) -> Iterator[Text]:
    """One incident: when, what, cost; who and why; lines that moved; evidence."""
    cost = f", {incident_cost(one)}" if one.cost is not None else ""
    head = f"{window_words(one.window)}  {cause_words(one.cause)}{cost}, {over_words(one)}"
    yield from _wrapped(head, width, "bold red" if is_open(one) else "bold", hang=4)
    if one.series:
        yield from _wrapped(_whose(one.series), width, indent=2)
    blamed = f"Blamed: {one.blamed}. " if one.blamed else ""
    yield from _wrapped(f"{blamed}{reason_words(one)}", width, indent=2)
    for line in worst_first(one.lines)[:MOST_LINES]:
        style = "red" if breaches(line) else ""
        yield from _wrapped(f"budget: {line_words(line)}", width, style, indent=2, hang=2)
    left = len(one.lines) - MOST_LINES
    if left > 0:
        yield from _wrapped(f"budget: {left} more lines moved", width, indent=2)
    for evidence in one.evidence[:MOST_EVIDENCE]:
        yield from _wrapped(f"- {evidence_words(evidence)}", width, "dim", indent=2, hang=2)
    left = len(one.evidence) - MOST_EVIDENCE
    if left > 0:
        yield from _wrapped(f"- and {left} more; --json has all of them", width, "dim", indent=2)


def _whose(series: Sequence[PathSeries]) -> str:
    names = [f"{series_name(one)} ({one.address})" for one in series[:MOST_SERIES]]
    left = len(series) - MOST_SERIES
    return ", ".join(names) + (f" and {left} more" if left > 0 else "")


def _feeds(feeds: Sequence[FeedStatus], width: int) -> Iterator[Text]:
    if not feeds:
        return
    yield Text("")
    yield Text("BGP feeds", "bold")
    for one in feeds:
        age = "never" if one.age_ns is None else f"{lasting(one.age_ns)} ago"
        text = (
            f"{one.feed} ({one.kind}): {one.state}, last message {age}, "
            f"{one.peers_live} of {counted(one.peers, 'peer')}, "
            f"{counted(one.prefixes, 'prefix', 'prefixes')}"
        )
        if one.quarantined:
            text += f", {one.quarantined} quarantined"
        yield from _wrapped(text, width, FEED_STYLES.get(one.state, ""), indent=2)


def _stability(stability: Sequence[RouteStability], width: int, *, paths: bool) -> Iterator[Text]:
    if not stability:
        return
    columns = dict(COLUMNS)
    for name in GIVEN_UP:
        if _taken(columns) + FEWEST_NAME > width:
            del columns[name]
    names = max(len(series_name(one.series)) for one in stability)
    room = min(names, width - _taken(columns))
    yield Text("")
    yield Text("Stability of routes", "bold")
    heads = "".join(f" {name:>{size}}" for name, size in columns.items())
    yield Text(f"{'series':<{room}}{heads}", "bold")
    for one in sorted(stability, key=lambda one: by_name(one.series)):
        yield from _stability_lines(one, room, columns, width, paths=paths)
    yield from _wrapped(_legend(stability, columns), width, "dim")


def _stability_lines(
    one: RouteStability,
    room: int,
    columns: Mapping[str, int],
    width: int,
    *,
    paths: bool,
) -> Iterator[Text]:
    first = one.routes[0] if one.routes else None
    cells = {
        "seen": f"{one.observations}",
        "dominant": f"{100 * first.prevalence:.1f}%" if first else "-",
        "stays": briefly(first.mean_sojourn_ns) if first else "-",
        "changes/day": _changes(one),
        "bits": f"{one.entropy_bits:.2f}",
        "flutter": f"{one.flutters}",
    }
    name = series_name(one.series)
    shown = name if len(name) <= room else f"{name[: room - 1]}…"
    line = Text(f"{shown:<{room}}")
    for head, size in columns.items():
        style = "yellow" if head == "changes/day" and one.changes else ""
        line.append(f" {cells[head]:>{size}}", style)
    yield line
    yield from _wrapped(series_detail(one.series), width, "dim", indent=2)
    if paths:
        yield from _routes(one, width)


def _routes(one: RouteStability, width: int) -> Iterator[Text]:
    for number, route in enumerate(one.routes):
        share = f"{100 * route.prevalence:.1f}% {counted(route.observations, 'time')}"
        known = one.as_paths[number] if number < len(one.as_paths) else ()
        as_path = f" [{' '.join(known)}]" if known else ""
        yield from _wrapped(f"{share}{as_path}: {route_text(route.paths)}", width, indent=4)


def _taken(columns: Mapping[str, int]) -> int:
    return sum(size + 1 for size in columns.values())


def _changes(one: RouteStability) -> str:
    """Per day, with the interval: ``0.57 (0.16-1.46)``."""
    low, high = rate_words(one.changes_low), rate_words(one.changes_high)
    return f"{rate_words(one.changes_per_day)} ({low}-{high})"


MEANINGS = {
    "dominant": "share of the most common route",
    "stays": "how long it lasts on average",
    "bits": "entropy",
    "flutter": "load balancers, no change",
}


def _legend(stability: Sequence[RouteStability], columns: Mapping[str, int]) -> str:
    gap = max(one.gap_ns for one in stability)
    levels = sorted({LEVELS[one.granularity] for one in stability})
    meanings = "; ".join(f"{word}: {text}" for word, text in MEANINGS.items() if word in columns)
    return (
        f"Routes by {' and '.join(levels)}. {meanings}. "
        f"What left and came back within {lasting(gap)} is unseen."
    )
