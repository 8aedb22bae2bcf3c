"""Findings, how it was measured, what was left out, and what the words mean."""

from pathbudget.analysis.finding_kinds import FindingKind
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
    counts,
    listed,
    share,
    utc,
)
from pathbudget.analysis.results import Finding, Provenance, VantageInfo

ROWS = 500
PLACES = 3
"""Places named of the findings of one kind."""

FINDING_WORDS = {
    FindingKind.IMPOSSIBLE_RTT: "faster than light",
    FindingKind.MIDDLEBOX: "something answers in between",
    FindingKind.CLOCK_STEP: "clock stepped",
    FindingKind.SYN_RETRANSMITTED: "SYN sent again",
    FindingKind.ADDRESS_CHANGED: "address changed",
    FindingKind.UNREACHABLE: "unreachable",
    FindingKind.NAME_NOT_FOUND: "name not found",
    FindingKind.REFUSED: "connection refused",
    FindingKind.UNKNOWN_PLACE: "place not known",
    FindingKind.UNMEASURED: "not measured",
    FindingKind.USER_CLOCK: "timed in user space",
    FindingKind.CAPACITY: "capacity",
    FindingKind.ICMP_FILTERED: "ICMP filtered",
    FindingKind.NOT_RESUMED: "ticket not taken",
    FindingKind.OUTAGE: "outage",
    FindingKind.REORDERED: "out of order",
    FindingKind.DUPLICATED: "answered twice",
    FindingKind.ECMP_SPREAD: "flows differ",
    FindingKind.TIMER_ARTEFACT: "a timer, not the path",
    FindingKind.PATH_CHANGED: "path changed",
    FindingKind.CLOCK_CONTRADICTED: "clock is wrong",
    FindingKind.HOST_BUSY: "measuring host busy",
    FindingKind.ADDED_BY_LOAD: "slower under load",
    FindingKind.QUIC_BLOCKED: "QUIC blocked",
    FindingKind.EARLY_DATA_REJECTED: "early data not taken",
    FindingKind.MODE_UNAVAILABLE: "could not be tried",
    FindingKind.HELLO_RETRY: "another ClientHello asked for",
    FindingKind.CERTIFICATE_ROUND_TRIP: "certificates cost a round trip",
    FindingKind.RETRY: "address to be proved",
    FindingKind.VERSION_NEGOTIATION: "another version of QUIC",
    FindingKind.BUFFERING_PROXY: "a proxy holds the stream back",
    FindingKind.STREAM_STALLS: "stream stalls",
    FindingKind.EDGES_DIFFER: "regions sent to different edges",
    FindingKind.FLOW_STALL: "upload waits for a window",
    FindingKind.UPLOAD_FAILED: "uploads fail",
    FindingKind.CERTIFICATE_NOT_TRUSTED: "certificate not trusted",
    FindingKind.STATUS_UNEXPECTED: "unexpected status",
    FindingKind.LOOK_UPS_FAILED: "questions to a name server fail",
    FindingKind.BUSY_HOURS_MISSING: "evening not measured",
}

DEFINITIONS = (
    ("Region", "Where users are, with its share of the traffic."),
    ("Vantage", "One place that was measured from, standing for a region."),
    ("Site", "A candidate facility."),
    ("RTT", "Round-trip time of one packet (RFC 2681). A lost packet counts as infinitely long."),
    ("p50, p95, p99", "The time that 50, 95 or 99 of 100 probes did not exceed."),
    (
        "Interval",
        (
            "Where the true percentile lies with the stated confidence; from the order of the "
            "samples alone, with no assumption on their distribution."
        ),
    ),
    ("n, samples", "Probes sent, answered or not. Worth: fewer, when neighbours resemble."),
    (
        "No limit",
        "So many probes were lost, or so few sent, that the data sets no limit there.",
    ),
    ("Ingress, egress", "What the network adds to a request on its way in, and to its answer."),
    (
        "Cold, resumed, early data, idle, warm",
        (
            "State of the connection when the request comes: new; new with a TLS 1.3 ticket, which "
            "saves certificate bytes and computing but takes as many round trips; sent with the "
            "first packet of such a handshake (0-RTT); open but unused for long; open."
        ),
    ),
    ("Allowance", "What the tier grants the network, both directions together."),
    ("Pass, fail", "The whole interval lies at or below the allowance; or above it."),
    ("Undecided", "The interval straddles the allowance, or there are too few samples."),
    ("Light floor", "Round trip of light in fibre over the shortest way on the ground."),
    ("Inflation", "Smallest RTT over the light floor. Below 1 a place is wrong."),
    ("PDV", "Delay of a packet over the smallest one of the same path (RFC 5481)."),
    ("IPDV", "Delay of a packet less that of the one sent before it, signed (RFC 3393)."),
    ("One-way delay", "Between two clocks, and as good as they are (RFC 7679)."),
    ("Noise floor", "Differences below it are noise of the measuring host."),
    (
        "Cost",
        "Upper interval end of the headline line: a choice is made on what is sure, not on luck.",
    ),
)


def finding_section(lookup: Lookup) -> Section:
    """What a person must know before using the numbers."""
    findings = lookup.evaluation.findings
    if not findings:
        return Section("findings", "Findings", (Paragraph("Nothing unusual was noticed."),))
    kinds = tuple(dict.fromkeys(finding.kind for finding in findings))
    rows = tuple(_kind_row(lookup, [f for f in findings if f.kind is kind]) for kind in kinds)
    heads = (column("Finding"), number("Times"), column("Where"), column("What was seen"))
    table = Table("What to know before using the numbers", heads, rows)
    more = () if len(kinds) == len(findings) else (_every_finding(lookup, findings),)
    return Section("findings", "Findings", (table, *more))


def _kind_row(lookup: Lookup, alike: list[Finding]) -> Row:
    """All findings of one kind; the first one speaks for the others."""
    first = alike[0]
    places = list(dict.fromkeys(_place(lookup, finding) for finding in alike))
    where = "; ".join(places[:PLACES])
    if len(places) > PLACES:
        where += f"; and {len(places) - PLACES} more"
    example = Cell(first.text, ("as the first of them; all are below",) * (len(alike) > 1))
    return (_word(first), f"{len(alike):,}", where, example)


def _word(finding: Finding) -> str:
    return FINDING_WORDS.get(finding.kind, finding.kind.replace("_", " "))


def _place(lookup: Lookup, finding: Finding) -> str:
    names = (lookup.region(finding.region), lookup.site(finding.site))
    return " to ".join(name for name in names if name) or "all"


def _every_finding(lookup: Lookup, findings: tuple[Finding, ...]) -> Table:
    rows: tuple[Row, ...] = tuple(
        (
            _word(finding),
            lookup.region(finding.region) or "all",
            lookup.site(finding.site) or "all",
            finding.text,
        )
        for finding in findings
    )
    shown, note = shortened(rows, ROWS, "findings")
    heads = (column("Finding"), column("Region"), column("Site"), column("What was seen"))
    return Table("Every finding", heads, shown, note, folded=True)


def method_section(lookup: Lookup) -> Section:
    """Campaigns, probes, schedules, software, clocks."""
    blocks: list[Block] = [_provenance_table(lookup.evaluation.provenance)]
    vantages = lookup.evaluation.vantages
    if vantages:
        rows = tuple(_vantage_row(lookup, vantage) for vantage in vantages)
        shown, note = shortened(rows, ROWS, "vantages")
        blocks.append(_vantage_table(shown, note))
    return Section("method", "How it was measured", tuple(blocks))


def _provenance_table(facts: Provenance) -> Table:
    rows: tuple[Row, ...] = (
        ("Time", f"{utc(facts.started_unix_ns)} to {utc(facts.ended_unix_ns)}"),
        ("Campaigns", _some(facts.campaigns)),
        ("Imported from", _some(facts.imported_from)),
        ("Measurements", f"{facts.measurements:,}"),
        ("Samples", f"{facts.samples:,}, of which {facts.losses:,} without a number"),
        ("Probes", _some(facts.probes)),
        ("Schedules", _some(facts.schedules)),
        ("Confidence of intervals", _confidence(facts)),
        ("Software", _some(facts.software)),
        ("Replies that are no samples", counts(facts.counters)),
    )
    return Table("Campaigns, probes and schedules", (column("What"), column("As it was")), rows)


def _confidence(facts: Provenance) -> str:
    words = share(facts.confidence)
    return f"{words}; those of lines hold at every look together" if facts.always_valid else words


def _some(items: tuple[str, ...], limit: int = 20) -> str:
    rest = len(items) - limit
    return listed(items[:limit]) + (f", and {rest:,} more" if rest > 0 else "")


def _vantage_table(rows: tuple[Row, ...], note: str) -> Table:
    return Table(
        caption="Clock quality and noise floor of every vantage",
        columns=(
            column("Vantage"),
            column("Region"),
            column("Software"),
            column("Wall clock"),
            number("Largest clock error (ms)"),
            number("Clock steps"),
            column("Stamps"),
            number("Noise floor (ms)"),
            number("Timer lateness p99 (ms)"),
            number("Send lateness p99 (ms)"),
            number("CPU time stolen"),
        ),
        rows=rows,
        note=note,
        folded=len(rows) > 12,
    )


def _optional(value: float | None) -> str:
    return NOT_KNOWN if value is None else bare_ms(value)


def _vantage_row(lookup: Lookup, vantage: VantageInfo) -> Row:
    steps = (f"largest {bare_ms(vantage.largest_step_ms)} ms",) if vantage.clock_steps else ()
    source = f" (says {vantage.clock_source})" if vantage.clock_source else ""
    return (
        vantage.name,
        lookup.region(vantage.region) or "none",
        vantage.software or NOT_KNOWN,
        (vantage.sync_state or NOT_KNOWN) + source,
        _optional(vantage.offset_bound_ms),
        Cell(str(vantage.clock_steps), steps),
        vantage.stamp_mode or NOT_KNOWN,
        _optional(vantage.noise_floor_ms),
        _optional(vantage.timer_lateness_p99_ms),
        _optional(vantage.lateness_p99_ms),
        NOT_KNOWN if vantage.steal_ratio is None else share(vantage.steal_ratio),
    )


def exclusion_section(lookup: Lookup) -> Section:
    """Samples in no summary or line."""
    exclusions = lookup.evaluation.exclusions
    if not exclusions:
        text = "Nothing was left out: every stored sample is in a number above."
        return Section("excluded", "What was left out", (Paragraph(text),))
    rows: tuple[Row, ...] = tuple((e.what, f"{e.n:,}", e.why) for e in exclusions)
    shown, note = shortened(rows, ROWS, "kinds")
    heads = (column("What"), number("Samples"), column("Why"))
    table = Table("Samples in no number of this report, and why", heads, shown, note)
    return Section("excluded", "What was left out", (table,))


def definition_section() -> Section:
    """The words, in one line each."""
    heads = (column("Word"), column("Meaning"))
    note = "Times are in UTC."
    return Section("words", "What the words mean", (Table("Words", heads, DEFINITIONS, note),))
