"""The route page: incidents, delay over time with them, path graphs, stability, feeds."""

from collections.abc import Iterable, Sequence
from typing import TypeVar

from pathbudget.analysis.report.chart_route_timeline import in_order
from pathbudget.analysis.report.document import (
    Block,
    Cell,
    Drawing,
    Drawings,
    Figure,
    Paragraph,
    Row,
    Section,
    Table,
    Tone,
    column,
    number,
    shortened,
)
from pathbudget.analysis.report.route_graph import PathGraph, path_graph
from pathbudget.analysis.report.route_svg import path_svg
from pathbudget.analysis.report.route_words import (
    CAUSE_MEANINGS,
    breaches,
    by_name,
    cause_words,
    evidence_words,
    incident_cost,
    lasting,
    line_words,
    over_words,
    prevalence_words,
    rate_words,
    reason_words,
    route_text,
    series_detail,
    series_name,
    window_words,
    worst_first,
)
from pathbudget.analysis.report.words import counted, fine_ms, listed, utc
from pathbudget.analysis.routes.model import (
    FeedState,
    FeedStatus,
    Granularity,
    Incident,
    PathObservation,
    RouteStability,
)
from pathbudget.analysis.routes.route_report import RouteReport

ROWS = 500
MOST_DRAWN = 24
MOST_SERIES, MOST_EVIDENCE, MOST_LINES = 4, 5, 4
LEVELS = {Granularity.ADDRESS: "address", Granularity.ROUTER: "router", Granularity.AS: "AS"}
FEED_TONES = {FeedState.LIVE: Tone.PASS, FeedState.STALE: Tone.UNDECIDED}


def route_section(report: RouteReport | None) -> tuple[Section, ...]:
    """All of it as one section of a larger report; nothing where nobody traced."""
    if report is None or not (report.stability or report.incidents or report.feeds):
        return ()
    blocks = tuple(block for section in route_sections(report) for block in section.blocks)
    return (Section("routes", "Routes", blocks),)


def route_sections(report: RouteReport) -> tuple[Section, ...]:
    """The same as a page of its own."""
    parts = (
        Section("incidents", "What happened", (*_lead(report), *_incident_blocks(report))),
        Section("delay", "Delay over time", _timeline_blocks(report)),
        Section("paths", "Paths", _path_blocks(report)),
        Section("stability", "Stability", _stability_blocks(report)),
        Section("feeds", "BGP feeds", _feed_blocks(report.feeds)),
    )
    return tuple(one for one in parts if one.blocks)


def _lead(report: RouteReport) -> tuple[Block, ...]:
    still = [one for one in report.incidents if one.over is None]
    changes = sum(one.changes for one in report.stability)
    flutters = sum(one.flutters for one in report.stability)
    lead = (
        f"{counted(len(report.incidents), 'incident')} on "
        f"{counted(len(report.stability), 'path')}, {len(still)} of them still so."
    )
    calm = (
        f"Routes changed {counted(changes, 'time')}. Load balancers sent flows another way "
        f"{counted(flutters, 'time')} among the same addresses (flutter); that is no change."
    )
    cautions = [Paragraph(" ".join(report.cautions), Tone.CAUTION)] if report.cautions else []
    return (Paragraph(lead, Tone.LEAD), Paragraph(calm), *cautions)


def _incident_blocks(report: RouteReport) -> tuple[Block, ...]:
    if not report.incidents:
        return ()
    ordered = in_order(report.incidents)
    rows = tuple(_incident_row(n, one) for n, one in enumerate(ordered, 1))
    shown, note = shortened(rows, ROWS, "incidents")
    heads = (
        column("What"),
        column("When (UTC)"),
        column("Cost"),
        column("Where"),
        column("Blamed, and why"),
        column("Budget lines moved"),
    )
    table = Table("Incidents", heads, shown, note, stacked=True)
    return (table, _evidence_table(ordered)) if any(i.evidence for i in ordered) else (table,)


def _incident_row(number: int, one: Incident) -> Row:
    series = [series_name(series) for series in one.series[:MOST_SERIES]]
    left = len(one.series) - MOST_SERIES
    more = (f"and {left} more",) if left > 0 else ()
    broken = any(breaches(line) for line in one.lines)
    lines = tuple(line_words(line) for line in worst_first(one.lines)[:MOST_LINES])
    unsaid = len(one.lines) - len(lines)
    lines += (f"and {counted(unsaid, 'more line')}",) if unsaid > 0 else ()
    return (
        Cell(f"{number}. {cause_words(one.cause)}", (CAUSE_MEANINGS.get(one.cause, ""),)),
        Cell(window_words(one.window), (over_words(one),)),
        incident_cost(one),
        Cell(series[0], (*series[1:], *more)) if series else "-",
        Cell(one.blamed or "nobody named", (reason_words(one),)),
        Cell(
            f"✕ {counted(len(one.lines), 'line')}" if broken else counted(len(one.lines), "line"),
            lines,
            Tone.FAIL if broken else Tone.PLAIN,
        )
        if lines
        else "none",
    )


def _evidence_table(ordered: Sequence[Incident]) -> Table:
    rows: list[Row] = []
    for index, one in enumerate(ordered, 1):
        texts = [evidence_words(piece) for piece in one.evidence[:MOST_EVIDENCE]]
        left = len(one.evidence) - MOST_EVIDENCE
        more = (f"and {left} more in the JSON",) if left > 0 else ()
        if texts:
            head = f"{index}. {cause_words(one.cause)}"
            rows.append((head, Cell(texts[0], (*texts[1:], *more))))
    heads = (column("Incident"), column("What was seen"))
    return Table("Evidence of each incident", heads, tuple(rows), folded=True)


def _timeline_blocks(report: RouteReport) -> tuple[Block, ...]:
    if not report.timelines:
        return ()
    return (
        Figure(
            "route-timeline",
            "Round trip and loss of each path, with the incidents that touched it",
            "Median and 95th percentile of the round trip over time, loss below; "
            "incidents are marked by the numbers of the table.",
        ),
    )


def _path_blocks(report: RouteReport) -> tuple[Block, ...]:
    if not report.paths:
        return ()
    graphs = [path_graph(one, report.events) for one in _sorted(report.paths)[:MOST_DRAWN]]
    drawings = tuple(_drawing(one, report) for one in graphs)
    left = len(report.paths) - len(graphs)
    words = (
        "The latest trace of each, all flows merged; a link is as wide as the share of the flows "
        "that take it. Dashed circles did not answer, a square is the destination."
    )
    if any(one.changed_unix_ns for one in graphs):
        words += " Orange is new since the last change of path, grey and dashed is gone."
    if left > 0:
        words += f" {counted(left, 'more path')} in the JSON."
    return (
        Drawings("Path graphs", drawings, words),
        _hop_table(report),
    )


Named = TypeVar("Named", PathObservation, RouteStability)


def _sorted(things: Iterable[Named]) -> list[Named]:
    return sorted(things, key=lambda one: by_name(one.series))


def _drawing(graph: PathGraph, report: RouteReport) -> Drawing:
    flows = counted(graph.flows, "flow")
    said = f"{series_name(graph.series)}: {graph.rows} hops, {flows}"
    svg, width = path_svg(graph, report.hop_names, f"Path graph, {said}; the table has the hops.")
    detail = f"{series_detail(graph.series)}, {flows}"
    if graph.changed_unix_ns:
        detail += f", changed {utc(graph.changed_unix_ns)}"
    return Drawing(series_name(graph.series), detail, svg, width)


def _hop_table(report: RouteReport) -> Table:
    rows = tuple(row for one in _sorted(report.paths) for row in _hop_rows(one, report))
    shown, note = shortened(rows, ROWS, "hops")
    heads = (
        column("Path"),
        number("Hop"),
        column("Address"),
        column("AS"),
        number("Flows"),
        number("Least round trip"),
        column("MPLS"),
    )
    return Table("Hops of the latest traces", heads, shown, note, folded=True)


def _hop_rows(one: PathObservation, report: RouteReport) -> list[Row]:
    graph = path_graph(one)
    name = series_name(one.series)
    return [
        (
            Cell(name, (one.series.address,)),
            str(node.limit),
            node.address or "no answer",
            report.hop_names.get(node.address, "-"),
            f"{node.flows} of {graph.flows}",
            "-" if node.rtt_ns is None else fine_ms(node.rtt_ns / 1e6),
            " ".join(label.split("/")[0] for label in node.labels.split()) or "-",
        )
        for node in graph.nodes
    ]


def _stability_blocks(report: RouteReport) -> tuple[Block, ...]:
    if not report.stability:
        return ()
    shown, note = shortened(tuple(map(_stability_row, _sorted(report.stability))), ROWS, "paths")
    heads = (
        column("Path"),
        number("Traces"),
        column("Dominant route"),
        number("Routes"),
        number("Stays on average"),
        number("Changes a day"),
        number("Entropy (bits)"),
        number("Flutters"),
    )
    gap = max(one.gap_ns for one in report.stability)
    levels = listed(sorted({LEVELS[one.granularity] for one in report.stability}))
    words = (
        f"Routes by {levels}. Prevalence is the share of traces that saw a route; how long it "
        f"stays is known to {lasting(gap)}, the usual time between two traces: what left and came "
        f"back within that is unseen."
    )
    return (
        Paragraph(words),
        Table("How stable each path is", heads, shown, note, stacked=True),
        _route_table(_sorted(report.stability)),
    )


def _stability_row(one: RouteStability) -> Row:
    first = one.routes[0] if one.routes else None
    low, high = rate_words(one.changes_low), rate_words(one.changes_high)
    return (
        Cell(series_name(one.series), (series_detail(one.series),)),
        f"{one.observations:,}",
        Cell(prevalence_words(first), _as_path(one, 0)) if first else "-",
        f"{len(one.routes)}",
        lasting(first.mean_sojourn_ns) if first else "-",
        Cell(rate_words(one.changes_per_day), (f"{low} to {high}",)),
        f"{one.entropy_bits:.2f}",
        f"{one.flutters:,}",
    )


def _as_path(one: RouteStability, index: int) -> tuple[str, ...]:
    known = one.as_paths[index] if index < len(one.as_paths) else ()
    return (" ".join(known),) if known else ()


def _route_table(stability: Sequence[RouteStability]) -> Table:
    rows = tuple(
        (
            Cell(series_name(one.series), (one.series.address,)),
            Cell(route_text(route.paths), _as_path(one, index)),
            prevalence_words(route),
            f"{route.sojourns:,}",
            lasting(route.mean_sojourn_ns),
            utc(route.last_unix_ns)[:-4],
        )
        for one in stability
        for index, route in enumerate(one.routes)
    )
    shown, note = shortened(rows, ROWS, "routes")
    heads = (
        column("Path"),
        column("Route"),
        column("Prevalence"),
        number("Entered"),
        number("Stays on average"),
        column("Last seen (UTC)"),
    )
    return Table("Every route that was seen", heads, shown, note, folded=True)


def _feed_blocks(feeds: Sequence[FeedStatus]) -> tuple[Block, ...]:
    if not feeds:
        return ()
    heads = (
        column("Feed"),
        column("State"),
        column("Last message"),
        number("Peers live"),
        number("Prefixes"),
        number("Updates"),
        number("Quarantined"),
    )
    rows = tuple(
        (
            Cell(one.feed, (str(one.kind).replace("_", " "),)),
            Cell(str(one.state), (one.detail,) * bool(one.detail), _feed_tone(one)),
            "never" if one.age_ns is None else f"{lasting(one.age_ns)} ago",
            f"{one.peers_live} of {one.peers}",
            f"{one.prefixes:,}",
            f"{one.updates:,}",
            f"{one.quarantined:,}",
        )
        for one in feeds
    )
    words = "Silence of a feed that is stale or down is no news of stability."
    return (Paragraph(words), Table("What each feed is worth", heads, rows, stacked=True))


def _feed_tone(one: FeedStatus) -> Tone:
    return FEED_TONES.get(one.state, Tone.FAIL)
