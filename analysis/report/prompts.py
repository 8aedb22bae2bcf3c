"""Uploads of prompts: measured, and what the model of slow start makes of them."""

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
from pathbudget.analysis.report.words import NOT_KNOWN, bare_ms, counted, fine_ms, signed_interval
from pathbudget.analysis.request_results import UploadSummary
from pathbudget.analysis.variants import BYTES_PER_TOKEN

ROWS = 1000


def upload_section(lookup: Lookup) -> tuple[Section, ...]:
    """Uploads beside the model; nothing where none was made."""
    uploads = lookup.evaluation.requests.uploads
    if not uploads:
        return ()
    blocks: tuple[Block, ...] = (
        Paragraph(
            "From the first byte of the prompt to the answer that its last byte was read, without "
            "the time that the server took to answer. The model counts flights: an initial window "
            "that doubles with each round trip (RFC 6928), and no other limit. Budget lines take "
            "what was measured for the same size, transport and mode, and the model elsewhere. "
            "An error above zero says that the model is too short."
        ),
        _table(lookup, uploads),
    )
    return (Section("uploads", "What the prompt costs on its way up", blocks),)


def _table(lookup: Lookup, uploads: tuple[UploadSummary, ...]) -> Table:
    shown, note = shortened(tuple(_row(lookup, one) for one in uploads), ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site", "Connection")),
        number("Bytes"),
        number("Sent"),
        number("Measured, p50 (ms)"),
        number("Measured, p95 (ms)"),
        number("Model, p50 (ms)"),
        number("Measured less model"),
        number("Round trips"),
        number("Waited for a window"),
    )
    return Table("Uploads against the model", heads, shown, note, stacked=True)


def _row(lookup: Lookup, one: UploadSummary) -> Row:
    error = one.model_error_ms
    took = "not counted" if one.round_trips_measured is None else f"{one.round_trips_measured:.2f}"
    flights: tuple[str, ...] = (f"model {one.flights_model}",)
    if one.flights_seen is not None:
        flights = (f"{counted(one.flights_seen, 'flight')} seen", *flights)
    return (
        *place_cells(lookup, one.region, one.site, one.target),
        Cell(
            connection_words(one.transport, one.mode),
            (f"HTTP/{one.version}",) if one.version else (),
        ),
        Cell(f"{one.bytes:,}", (f"{one.bytes / BYTES_PER_TOKEN:,.0f} tokens",)),
        Cell(f"{one.n:,}", (f"{one.losses:,} failed",)),
        bounded_cell(one.measured_p50_ms),
        bounded_cell(one.measured_p95_ms),
        NOT_KNOWN if one.model_p50_ms is None else bare_ms(one.model_p50_ms),
        NOT_KNOWN
        if error is None
        else Cell(
            fine_ms(error.value_ms), (signed_interval(error.value_ms, error.low_ms, error.high_ms),)
        ),
        Cell(took, flights),
        Cell(f"{one.flow_stalls:,}", (f"{one.retransmitted:,} retransmitted",)),
    )
