"""What a new connection costs, by mode and transport, and what taking a ticket changes."""

import statistics
from collections.abc import Iterable

from pathbudget.analysis.report.document import (
    Block,
    Bullets,
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
    CARRIER_WORDS,
    MODE_WORDS,
    NOT_KNOWN,
    NOT_MEASURED,
    TOO_FEW,
    bare_ms,
    counted,
    counts,
    fine_ms,
    interval,
    listed,
    share,
)
from pathbudget.analysis.request_results import Resumption, SetupSummary, TicketAge
from pathbudget.analysis.results import Mode, Summary
from pathbudget.analysis.series import NOT_OF_THE_PATH
from pathbudget.analysis.setups import flights_of
from pathbudget.analysis.stream_results import Bounded
from pathbudget.probes.record import Metric

ROWS = 1000

WHAT_TICKETS_DO = (
    "A ticket (TLS 1.3 resumption) saves the certificates' bytes and processor time, and no round "
    "trip, unless the chain was so long that it cost one. What saves round trips is early data "
    "(0-RTT), QUIC, or a connection that stays open. Measured here:"
)


TO_NAME_SERVERS = (
    "Connections to name servers (DoT, DoH, DoQ) are not among these: they stand under look-ups of "
    "names."
)


def server_connections(lookup: Lookup) -> tuple[Summary, ...]:
    """Series of set-ups of connections to name servers."""
    return tuple(
        one
        for one in lookup.evaluation.summaries
        if one.probe in NOT_OF_THE_PATH and one.metric == Metric.SETUP and not one.loaded
    )


def setup_section(lookup: Lookup) -> tuple[Section, ...]:
    """Set-ups in every mode; nothing where none was measured."""
    setups = _shown(lookup.evaluation.requests.setups)
    if not setups:
        return ()
    saved = what_was_saved(lookup)
    blocks: list[Block] = [
        Paragraph(
            "What a request waits for before it may leave, when no connection is open. Round trips "
            "are the set-up without the look-up of the name, over the round trip nearest in time: "
            "2 for TLS over TCP, 1 with early data; 1 for QUIC, 0 with early data. "
            "What is beyond that is the server's own time, or one of the extra round trips. They "
            "are not counted where a round trip is under 1 ms, or computing takes over half of one."
        ),
        *((Paragraph(TO_NAME_SERVERS),) if server_connections(lookup) else ()),
        *((Bullets(WHAT_TICKETS_DO, saved),) if saved else ()),
        _setup_table(lookup, setups),
        _detail_table(lookup, setups),
    ]
    return (Section("setups", "What a new connection costs", tuple(blocks)),)


def _shown(setups: tuple[SetupSummary, ...]) -> tuple[SetupSummary, ...]:
    """TLS before QUIC. Set-ups that other probes needed only where no probe was made for them."""

    def what(one: SetupSummary) -> tuple[str, str, str, str | None, str, str]:
        return one.region, one.site, one.target, one.family, one.transport, one.mode

    made_for = {what(one) for one in setups if one.probe == one.transport}
    kept = [one for one in setups if one.probe == one.transport or what(one) not in made_for]
    return tuple(sorted(kept, key=lambda one: (one.region, one.site, one.transport == "quic")))


def what_was_saved(lookup: Lookup) -> tuple[str, ...]:
    """One sentence for each transport and mode that was measured against cold ones."""
    found: dict[tuple[str, str], list[Resumption]] = {}
    for one in lookup.evaluation.requests.resumptions:
        found.setdefault((one.transport, one.mode), []).append(one)
    order = sorted(found, key=lambda key: key[0] == "quic")
    return tuple(_saved(lookup, *key, found[key]) for key in order)


def _saved(lookup: Lookup, transport: str, mode: str, alike: list[Resumption]) -> str:
    size = _median(one.saved_bytes for one in alike)
    compute = _median(one.saved_compute_ms for one in alike)
    parts = (
        "" if size is None else f"{size:,.0f} bytes from the server",
        "" if compute is None else f"{fine_ms(compute)} of our processor time",
    )
    less = listed((part for part in parts if part), "how many bytes was not noted")
    less += f" less than cold (median of {counted(len(alike), 'target')})" if any(parts) else ""
    before = _round_trips(lookup, transport, Mode.COLD)
    after = _round_trips(lookup, transport, Mode(mode))
    name = f"{CARRIER_WORDS.get(transport, transport)}, {MODE_WORDS[Mode(mode)]}"
    flights = _flights(lookup, transport, Mode.COLD) - _flights(lookup, transport, Mode(mode))
    saved = _round_trips_saved(flights)
    if before is None or after is None:
        return f"{name}: {less}; by the flights that were seen {saved}."
    return f"{name}: {less}; {after:.2f} round trips of set-up, {before:.2f} when cold: {saved}."


def _flights(lookup: Lookup, transport: str, mode: Mode) -> int:
    """Round trips by what was seen on the wire."""
    alike = [
        one
        for one in lookup.evaluation.requests.setups
        if (one.transport, one.mode) == (transport, mode)
    ]
    extras = (
        sum(one.hello_retries for one in alike),
        sum(one.second_flights for one in alike),
        sum(one.retries for one in alike),
        sum(one.version_negotiations for one in alike),
    )
    return flights_of(transport, mode, sum(one.n - one.losses for one in alike), extras)


def _round_trips_saved(saved: int) -> str:
    if saved <= 0:
        return "no round trip is saved"
    return "one round trip is saved" if saved == 1 else f"{saved} round trips are saved"


def _round_trips(lookup: Lookup, transport: str, mode: Mode) -> float | None:
    return _median(
        one.round_trips_p50.value
        for one in lookup.evaluation.requests.setups
        if one.transport == transport and one.mode == mode and one.round_trips_p50 is not None
    )


def _median(numbers: Iterable[float | None]) -> float | None:
    known = [number for number in numbers if number is not None]
    return statistics.median(known) if known else None


def connection_words(transport: str | None, mode: str) -> str:
    """``TLS over TCP, cold``."""
    over = CARRIER_WORDS.get(transport or "", transport or NOT_KNOWN)
    return f"{over}, {MODE_WORDS[Mode(mode)]}"


def place_cells(lookup: Lookup, region: str, site: str, target: str) -> tuple[Cell, Cell]:
    """Region and site, with the target below."""
    return Cell(lookup.region(region)), Cell(lookup.site(site), (f"to {target}",))


def bounded_cell(found: Bounded | None) -> Cell:
    """Milliseconds with their interval below."""
    if found is None:
        return Cell(NOT_MEASURED)
    return Cell(bare_ms(found.value_ms), (interval(found.low_ms, found.high_ms),))


def _round_trips_cell(one: SetupSummary) -> Cell:
    """How many, with the interval; none where they are too short to count by time."""
    found = one.round_trips_p50
    if found is None or found.value is None:
        if one.round_trip_p50_ms is None:
            return Cell(NOT_MEASURED)
        return Cell("not counted", (f"beside {fine_ms(one.round_trip_p50_ms)}",))
    if found.low is None or found.high is None:
        return Cell(f"{found.value:.2f}", (TOO_FEW,))
    return Cell(f"{found.value:.2f}", (f"{found.low:.2f} to {found.high:.2f}",))


def _setup_table(lookup: Lookup, setups: tuple[SetupSummary, ...]) -> Table:
    shown, note = shortened(tuple(_setup_row(lookup, one) for one in setups), ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site", "Connection")),
        number("Tried"),
        number("Failed"),
        number("p50 (ms)"),
        number("p95 (ms)"),
        number("Round trips, p50"),
        number("Taken by the server"),
    )
    return Table("Set-up of new connections", heads, shown, note, stacked=True)


def _setup_row(lookup: Lookup, one: SetupSummary) -> Row:
    return (
        *place_cells(lookup, one.region, one.site, one.target),
        _connection_cell(one),
        f"{one.asked:,}",
        f"{one.losses:,}",
        bounded_cell(one.setup_p50_ms),
        bounded_cell(one.setup_p95_ms),
        _round_trips_cell(one),
        _taken_cell(one),
    )


def _connection_cell(one: SetupSummary) -> Cell:
    by = "" if one.probe == one.transport else f"by {one.probe}"
    details = tuple(word for word in (one.family, by) if word)
    return Cell(connection_words(one.transport, one.mode), details)


def _taken_cell(one: SetupSummary) -> Cell:
    """Which share of the tickets, or of the early data; and why not, where it says."""
    unavailable = f"{one.unavailable:,} could not be tried" if one.unavailable else ""
    reasons = tuple(f"{word}: {n:,}" for word, n in list(one.reasons.items())[:3])
    details = tuple(word for word in (unavailable, *reasons) if word)
    found = one.accepted_share
    if found is None or found.value is None:
        return Cell("none offered" if one.mode == Mode.COLD else NOT_MEASURED, details)
    ends = f"{share(found.low or 0.0)} to {share(1.0 if found.high is None else found.high)}"
    return Cell(share(found.value), (ends, *details))


def _detail_table(lookup: Lookup, setups: tuple[SetupSummary, ...]) -> Table:
    shown, note = shortened(tuple(_detail_row(lookup, one) for one in setups), ROWS, "rows")
    heads = (
        *(column(word) for word in ("Region", "Site", "Connection")),
        column("Extra round trips"),
        number("Server's flight (bytes)"),
        number("Certificates (bytes)"),
        column("Groups"),
        number("Our processor time, p50"),
        column("Tickets taken, by age"),
    )
    caption = "Bytes, groups, extra round trips and ages of tickets"
    return Table(caption, heads, shown, note, folded=True)


def _detail_row(lookup: Lookup, one: SetupSummary) -> Row:
    compute = one.client_compute_p50_ms
    return (
        *place_cells(lookup, one.region, one.site, one.target),
        _connection_cell(one),
        _extra_words(one),
        *(NOT_KNOWN if x is None else f"{x:,}" for x in (one.flight_bytes, one.certificate_bytes)),
        counts(one.groups),
        NOT_KNOWN if compute is None else fine_ms(compute),
        Cell("; ".join(_age_words(age) for age in one.ticket_ages) or "none offered"),
    )


def _extra_words(one: SetupSummary) -> str:
    found = {
        "HelloRetryRequest": one.hello_retries,
        "second flight": one.second_flights,
        "Retry": one.retries,
        "Version Negotiation": one.version_negotiations,
        "stopped at three times what had come": one.amplification_stalls,
    }
    return counts({word: n for word, n in found.items() if n})


def _age_words(age: TicketAge) -> str:
    """``under 1 s: 20 of 20``."""
    low, high = (_seconds(end) for end in (age.at_least_s, age.below_s))
    words = f"from {low}" if high is None else f"under {high}" if not age.at_least_s else ""
    return f"{words or f'{low} to {high}'}: {age.accepted:,} of {age.offered:,}"


def _seconds(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    for size, unit in ((3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"
