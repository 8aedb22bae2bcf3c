"""Phases of HTTP requests, and what credentials cost at the gateway."""

from pathbudget.analysis.report.connections import bounded_cell, connection_words, place_cells
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
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import (
    NOT_KNOWN,
    bare_ms,
    counted,
    counts,
    fine_ms,
    signed_interval,
)
from pathbudget.analysis.request_results import Gateway, HttpPhases
from pathbudget.analysis.stream_results import Bounded
from pathbudget.probes.record import Metric

ROWS = 1000

STEPS = (
    (Metric.RESOLVE, "Look-up"),
    (Metric.CONNECT, "Connect"),
    (Metric.TLS_HANDSHAKE, "Handshake"),
    (Metric.SEND, "Send"),
    (Metric.WAIT, "Wait"),
    (Metric.RECEIVE, "Receive"),
)


def http_section(lookup: Lookup) -> tuple[Section, ...]:
    """Requests step by step; nothing where none was made."""
    requests = lookup.evaluation.requests
    if not requests.http:
        return ()
    blocks: list[Block] = [
        Paragraph(
            "Steps of a request, each at its median, in ms. Medians do not add up; the time to the "
            "first byte does stand for the whole: from the first byte of the request to the first "
            "of the answer (TTFB), and from the very beginning of the shot (first byte)."
        ),
        _phase_table(lookup, requests.http),
    ]
    if any(one.server_timing or one.statuses for one in requests.http):
        blocks.append(_server_table(lookup, requests.http))
    if requests.gateways:
        blocks += _gateway_blocks(lookup, requests.gateways)
    return (Section("http", "HTTP requests, step by step", tuple(blocks)),)


def _name(version: str, transport: str | None, mode: str) -> Cell:
    words = connection_words(transport, mode)
    return Cell(
        f"HTTP/{version}" if version.replace(".", "").isdigit() else version or "HTTP", (words,)
    )


def _phase_table(lookup: Lookup, http: tuple[HttpPhases, ...]) -> Table:
    shown, note = shortened(tuple(_phase_row(lookup, one) for one in http), ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site", "Requests")),
        number("Sent"),
        *(number(word) for _, word in STEPS),
        number("TTFB, p50"),
        number("First byte, p50"),
        number("First byte, p95"),
    )
    return Table("Steps of HTTP requests (ms)", heads, shown, note)


def _phase_row(lookup: Lookup, one: HttpPhases) -> Row:
    phases = {phase.phase: phase for phase in one.phases}
    if Metric.QUIC_HANDSHAKE in phases:
        phases[Metric.TLS_HANDSHAKE] = phases[Metric.QUIC_HANDSHAKE]
    last = phases.get(Metric.FIRST_BYTE) or phases.get(Metric.TTFB)

    def middle(metric: str) -> str:
        return bare_ms(phases[metric].p50_ms) if metric in phases else "-"

    return (
        *place_cells(lookup, one.region, one.site, one.target),
        _name(one.version, one.transport, one.mode),
        Cell(f"{last.n:,}", (f"{last.losses:,} failed",)) if last else "0",
        *(middle(metric) for metric, _ in STEPS),
        middle(Metric.TTFB),
        middle(Metric.FIRST_BYTE),
        bounded_cell(phases[Metric.FIRST_BYTE].p95_ms) if Metric.FIRST_BYTE in phases else "-",
    )


def _server_table(lookup: Lookup, http: tuple[HttpPhases, ...]) -> Table:
    rows: tuple[Row, ...] = tuple(
        (
            *place_cells(lookup, one.region, one.site, one.target),
            _name(one.version, one.transport, one.mode),
            counts(one.statuses),
            ", ".join(f"{name} {fine_ms(ms)}" for name, ms in one.server_timing.items()) or "none",
        )
        for one in http
    )
    shown, note = shortened(rows, ROWS, "rows")
    heads = tuple(
        column(word) for word in ("Region", "Site", "Requests", "Status", "Server-Timing, median")
    )
    return Table("What the servers said", heads, shown, note, folded=True)


def _gateway_blocks(lookup: Lookup, gateways: tuple[Gateway, ...]) -> list[Block]:
    rows = tuple(_gateway_row(lookup, one) for one in gateways)
    shown, note = shortened(rows, ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site", "Requests")),
        number("Pairs"),
        number("TTFB with, p50 (ms)"),
        number("TTFB without, p50 (ms)"),
        number("Difference, p50"),
        number("Difference, p95"),
        column("Credentials"),
    )
    return [
        Paragraph(
            "The same request with and without credentials, one right after the other: the path is "
            "the same, so the difference of each pair is what the gateway takes to check them. Of "
            "the gateway's other work it says nothing."
        ),
        Table("What credentials cost", heads, shown, note, stacked=True),
    ]


def _gateway_row(lookup: Lookup, one: Gateway) -> Row:
    unpaired = (f"{counted(one.unpaired, 'shot')} without a pair",) if one.unpaired else ()
    return (
        *place_cells(lookup, one.region, one.site, one.target),
        _name(one.version, one.transport, one.mode),
        Cell(f"{one.pairs:,}", unpaired),
        NOT_KNOWN if one.with_p50_ms is None else bare_ms(one.with_p50_ms),
        NOT_KNOWN if one.without_p50_ms is None else bare_ms(one.without_p50_ms),
        _difference(one.difference_p50_ms),
        _difference(one.difference_p95_ms),
        credential_verdict(one),
    )


def _difference(found: Bounded) -> Cell:
    return Cell(
        fine_ms(found.value_ms), (signed_interval(found.value_ms, found.low_ms, found.high_ms),)
    )


def credential_verdict(one: Gateway) -> str:
    """Whether the interval of the median lies on one side of nothing."""
    low, high = one.difference_p50_ms.low_ms, one.difference_p50_ms.high_ms
    if low is not None and low > 0:
        return "cost time"
    if high is not None and high < 0:
        return "save time: refusing costs the gateway more"
    return "undecided"
