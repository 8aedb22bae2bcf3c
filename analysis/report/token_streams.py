"""Streams of tokens: how evenly they come, what holds them back, and the time to the first one."""

from pathbudget.analysis.report.connections import bounded_cell, place_cells
from pathbudget.analysis.report.document import (
    Block,
    Cell,
    Paragraph,
    Row,
    Section,
    Table,
    Tone,
    column,
    number,
    shortened,
)
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import CARRIER_WORDS, NOT_KNOWN, NOT_MEASURED, interval, share
from pathbudget.analysis.request_results import Completions, Range, TokenStreams
from pathbudget.analysis.stream_results import Bounded

ROWS = 1000

BUFFERING_WORDS = {
    "bursts": "yes: in bursts",
    "smooths": "yes: smoothed",
    "no": "no",
    "undecided": "undecided",
}


def token_section(lookup: Lookup) -> tuple[Section, ...]:
    """Streams and endpoints; nothing where none was measured."""
    requests = lookup.evaluation.requests
    blocks: list[Block] = []
    if requests.token_streams:
        blocks += [
            Paragraph(
                "Each chunk carries when it was sent, so what the way back added to it is told "
                "apart from what the sender did. Variation is over the quickest chunk of the same "
                "stream; that of first chunks is how late they came on their way. How long they "
                "were waited for is the time to first token (TTFT), the server's time included. "
                "The buffer is what a player must hold back for all but the stated share "
                "of chunks to be in time. A proxy that buffers makes gaps look better than they "
                "are: that is tested for, and undecided where the data cannot tell."
            ),
            _stream_table(lookup, requests.token_streams),
        ]
    if requests.completions:
        blocks += [
            Paragraph(
                "Time to first token (TTFT) of endpoints. The server's part lies between the two "
                "values, whatever its dependence on the network; no mean is taken off."
            ),
            _completion_table(lookup, requests.completions),
        ]
    return (Section("token-streams", "Streams of tokens", tuple(blocks)),) if blocks else ()


def _stream_table(lookup: Lookup, streams: tuple[TokenStreams, ...]) -> Table:
    shown, note = shortened(tuple(_stream_row(lookup, one) for one in streams), ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site", "Streams")),
        number("Chunks that came"),
        number("Variation, p50 (ms)"),
        number("Variation, p95 (ms)"),
        number("Variation, p99 (ms)"),
        number("Variation of first chunks, p95 (ms)"),
        number("TTFT, p50 (ms)"),
        number("TTFT, p95 (ms)"),
        number("Buffer (ms)"),
        number("Stalls"),
        column("Held back on the way"),
    )
    return Table("How evenly streams come", heads, shown, note, stacked=True)


def _stream_row(lookup: Lookup, one: TokenStreams) -> Row:
    over = CARRIER_WORDS.get(one.transport or "", one.transport or NOT_KNOWN)
    held = f"{one.releases_held:,} of {one.releases:,} releases held"
    tone = Tone.CAUTION if one.buffering in ("bursts", "smooths") else Tone.PLAIN
    return (
        *place_cells(lookup, one.region, one.site, one.target),
        Cell(f"{one.streams:,}", tuple(word for word in (one.variant, over) if word)),
        Cell(f"{one.chunks_received:,}", (f"of {one.chunks_expected:,}",)),
        bounded_cell(one.pdv_p50_ms),
        bounded_cell(one.pdv_p95_ms),
        bounded_cell(one.pdv_p99_ms),
        bounded_cell(one.first_chunk_pdv_p95_ms),
        bounded_cell(one.ttft_p50_ms),
        bounded_cell(one.ttft_p95_ms),
        _buffer_cell(one),
        Cell(share(one.stall_share.value or 0.0), (_ends(one.stall_share), _limit(one))),
        Cell(BUFFERING_WORDS.get(one.buffering, one.buffering), (held,), tone),
    )


def _buffer_cell(one: TokenStreams) -> Cell:
    cell = bounded_cell(one.playout_buffer_ms)
    return Cell(cell.text, (*cell.details, f"for {share(one.underrun_rate)} late"))


def _ends(found: Range) -> str:
    return f"{share(found.low or 0.0)} to {share(1.0 if found.high is None else found.high)}"


def _limit(one: TokenStreams) -> str:
    return f"gaps over {one.stall_limit_ms:.0f} ms"


def _completion_table(lookup: Lookup, completions: tuple[Completions, ...]) -> Table:
    rows = tuple(_completion_row(lookup, one) for one in completions)
    shown, note = shortened(rows, ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site")),
        number("Requests"),
        number("Failed"),
        number("TTFT, p50 (ms)"),
        number("TTFT, p95 (ms)"),
        number("Server's part of p50 (ms)"),
        number("Server's part of p95 (ms)"),
    )
    return Table("Time to first token", heads, shown, note, stacked=True)


def _completion_row(lookup: Lookup, one: Completions) -> Row:
    return (
        *place_cells(lookup, one.region, one.site, one.target),
        f"{one.n:,}",
        f"{one.losses:,}",
        bounded_cell(one.ttft_p50_ms),
        bounded_cell(one.ttft_p95_ms),
        _between(one.server_p50_ms),
        _between(one.server_p95_ms),
    )


def _between(found: Bounded | None) -> str:
    return NOT_MEASURED if found is None else interval(found.low_ms, found.high_ms)
