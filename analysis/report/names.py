"""Look-ups of names: what a hit and a miss cost, and which edge each region is sent to."""

from pathbudget.analysis.name_lookups import OVER
from pathbudget.analysis.report.connections import bounded_cell, server_connections
from pathbudget.analysis.report.document import (
    Block,
    Cell,
    Paragraph,
    Row,
    Section,
    Table,
    column,
    number,
    shortened,
)
from pathbudget.analysis.report.lookup import Lookup, quantile
from pathbudget.analysis.report.measured import quantile_cell
from pathbudget.analysis.report.words import counts, share
from pathbudget.analysis.request_results import Edge, LookUp
from pathbudget.analysis.results import Summary
from pathbudget.probes.record import Metric

ROWS = 1000
ANSWERS = 4
"""Different answers shown of one name."""

KINDS = {Metric.DNS_HIT: "hit", Metric.DNS_MISS: "miss"}


def name_section(lookup: Lookup) -> tuple[Section, ...]:
    """Hits and misses, and the addresses given; nothing where nobody asked."""
    requests = lookup.evaluation.requests
    if not requests.look_ups:
        return ()
    blocks: list[Block] = [
        Paragraph(
            "A hit is a name that the name server has at hand, a miss one that nobody asked for "
            "before, so that it must ask others. Which of the two a user pays depends on the name; "
            "neither is in a budget line."
        ),
        _look_up_table(lookup, requests.look_ups),
    ]
    if server_connections(lookup):
        blocks.append(_connection_table(lookup))
    if requests.edges:
        blocks.append(_edge_table(lookup, requests.edges))
    return (Section("names", "Look-ups of names", tuple(blocks)),)


def _look_up_table(lookup: Lookup, look_ups: tuple[LookUp, ...]) -> Table:
    shown, note = shortened(tuple(_row(lookup, one) for one in look_ups), ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Name server", "Over", "Kind")),
        number("Asked"),
        number("Failed"),
        number("p50 (ms)"),
        number("p95 (ms)"),
        number("Cut short"),
        number("Asked again"),
    )
    return Table("Look-ups, hit and miss", heads, shown, note, stacked=True)


def _row(lookup: Lookup, one: LookUp) -> Row:
    mode = (f"{one.mode} connections",) if one.mode and one.over != "udp" else ()
    return (
        lookup.region(one.region),
        Cell(lookup.site(one.site), (f"to {one.target}",)),
        Cell(OVER.get(one.over, one.over), mode),
        KINDS[Metric(one.metric)],
        f"{one.n:,}",
        f"{one.losses:,}",
        bounded_cell(one.p50_ms),
        bounded_cell(one.p95_ms),
        f"{one.truncated:,}",
        f"{one.retried:,}",
    )


def _connection_table(lookup: Lookup) -> Table:
    """Set-ups of connections that carry questions; a question waits for one once."""
    rows = tuple(_connection_row(lookup, one) for one in server_connections(lookup))
    shown, note = shortened(rows, ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Name server", "Connection")),
        number("Tried"),
        number("Failed"),
        number("p50 (ms)"),
        number("p95 (ms)"),
    )
    return Table("Set-up of connections to name servers", heads, shown, note, stacked=True)


def _connection_row(lookup: Lookup, one: Summary) -> Row:
    over = OVER.get(one.variant, one.variant)
    return (
        lookup.region(one.region),
        Cell(lookup.site(one.site), (f"to {one.target}",)),
        Cell(f"{over}, {one.mode}" if one.mode else over, (one.family,) if one.family else ()),
        f"{one.n:,}",
        f"{one.losses:,}",
        *(quantile_cell(quantile(one, p)) for p in (50.0, 95.0)),
    )


def _edge_table(lookup: Lookup, edges: tuple[Edge, ...]) -> Table:
    shown, note = shortened(tuple(_edge_row(lookup, one) for one in edges), ROWS, "rows")
    heads = tuple(
        column(word) for word in ("Name", "Region", "Asked", "Addresses", "Name servers (NSID)")
    )
    return Table("Where each region is sent", heads, shown, note)


def _edge_row(lookup: Lookup, one: Edge) -> Row:
    total = sum(one.addresses.values())
    answers = [f"{words} ({share(n / total)})" for words, n in one.addresses.items()]
    left = len(answers) - ANSWERS
    more = (f"and {left} other answers",) if left > 0 else ()
    asked = f"{lookup.site(one.site)} over {OVER.get(one.over, one.over)}"
    subnet = (f"on behalf of {one.subnet}",) if one.subnet else ()
    return (
        Cell(one.name, (one.kind,)),
        lookup.region(one.region),
        Cell(asked, subnet),
        Cell(answers[0], (*answers[1:ANSWERS], *more)),
        counts(one.servers),
    )
