"""What was measured: round trips per pair, distributions, distance and floor, every series."""

from pathbudget.analysis.report.document import (
    Block,
    Cell,
    Figure,
    Paragraph,
    Row,
    Section,
    Table,
    column,
    number,
    shortened,
)
from pathbudget.analysis.report.lookup import Lookup, quantile
from pathbudget.analysis.report.words import (
    DIRECTION_WORDS,
    METHOD_WORDS,
    NOT_KNOWN,
    NOT_MEASURED,
    UNBOUNDED,
    VERDICT_TONES,
    VERDICT_WORDS,
    bare_ms,
    connections,
    counts,
    effective,
    fine_ms,
    given,
    interval,
    known,
    percentile,
    share,
)
from pathbudget.analysis.results import BudgetLine, Pair, Quantile, Summary

ROWS = 2000
"""Longest table in a page; the JSON report is never shortened."""


def round_trip_section(lookup: Lookup) -> Section:
    """Heat map and distributions, with one table for both."""
    rows = tuple(
        _series_row(lookup, series)
        for region in lookup.regions
        for site in lookup.sites
        if (series := lookup.series(region.name, site.name)) is not None
    )
    shown, note = shortened(rows, ROWS, "pairs")
    blocks: tuple[Block, ...] = (
        Paragraph(
            "One series stands for each pair, in both charts and in the table, which names it: the "
            "one whose round trips are in the budget lines. Those add set-up and further round "
            "trips where the tier has them. A lost probe counts as infinitely slow, so a "
            f"percentile above the share that arrived has {UNBOUNDED}."
        ),
        Figure(
            "heatmap",
            "Round-trip time by region and site",
            "Heat map of the round-trip time in ms, regions as rows, sites as columns. "
            "The table below has the numbers.",
        ),
        Figure(
            "distributions",
            "Distribution of the round-trip time from each region to its recommended site",
            "Cumulative distribution curves: share of the probes answered within a time. A curve "
            "that ends below 100 % lost the rest. The table below has the percentiles.",
        ),
        Table(
            caption="Round-trip time by region and site",
            columns=(
                column("Region"),
                column("Site"),
                column("Series"),
                number("Samples"),
                number("Lost"),
                number("Minimum (ms)"),
                number("p50 (ms)"),
                number("p95 (ms)"),
                number("p99 (ms)"),
            ),
            rows=shown,
            note=note,
            folded=True,
        ),
    )
    return Section("round-trips", "Round-trip times", blocks)


def series_words(summary: Summary) -> str:
    """``icmp rtt, ipv4, to dallas-edge``."""
    kind = f"{summary.probe} {summary.metric}" + (
        f" ({summary.variant})" if summary.variant else ""
    )
    parts = [kind, summary.mode, summary.family]
    load = ", under load" if summary.loaded else ""
    return ", ".join(part for part in parts if part) + f", to {summary.target}{load}"


def _series_row(lookup: Lookup, series: Summary) -> Row:
    return (
        lookup.region(series.region),
        lookup.site(series.site),
        series_words(series),
        f"{series.n:,}",
        loss_cell(series),
        minimum(series)
        if series.minimum_ms is None
        else metro(series.minimum_ms, series.noise_floor_ms),
        *(quantile_cell(quantile(series, p)) for p in (50.0, 95.0, 99.0)),
    )


def minimum(series: Summary) -> str:
    """Smallest number of the series, or why there is none."""
    return "no reply" if series.minimum_ms is None else bare_ms(series.minimum_ms)


def metro(value_ms: float | None, floor_ms: float | None) -> Cell | str:
    """A value; below a millisecond in microseconds too, with the noise floor beside it."""
    if value_ms is None or not 0 <= value_ms < 1:
        return bare_ms(value_ms)
    floor = "not known" if floor_ms is None else fine_ms(floor_ms)
    return Cell(bare_ms(value_ms), (fine_ms(value_ms), f"noise floor {floor}"))


def loss_cell(series: Summary) -> Cell:
    """Share lost with its interval."""
    if not series.n:
        return Cell(NOT_MEASURED)
    return Cell(
        share(series.loss_ratio), (f"{share(series.loss_low)} to {share(series.loss_high)}",)
    )


def quantile_cell(q: Quantile | None) -> Cell:
    """One quantile with its interval."""
    if q is None or q.n == 0:
        return Cell(NOT_MEASURED)
    if q.value_ms is None and q.low_ms is None and q.high_ms is None:
        return Cell(UNBOUNDED)
    return Cell(bare_ms(q.value_ms), (interval(q.low_ms, q.high_ms),))


def pair_section(lookup: Lookup) -> Section:
    """Map, and the table of distance, light floor and inflation."""
    rows = tuple(
        _pair_row(lookup, pair)
        for region in lookup.regions
        for site in lookup.sites
        if (pair := lookup.pairs.get((region.name, site.name))) is not None
    )
    shown, note = shortened(rows, ROWS, "pairs")
    blocks: tuple[Block, ...] = (
        Figure(
            "map",
            "Regions, sites, and which site serves whom",
            "Map: regions as circles sized by their traffic, sites as diamonds, and a line from "
            "each region to its recommended site. The table below has the distances.",
        ),
        Table(
            caption="Distance, light floor and inflation",
            columns=(
                column("Region"),
                column("Site"),
                number("Distance (km)"),
                number("Light floor, round trip (ms)"),
                number("Minimum RTT (ms)"),
                number("Samples"),
                number("Inflation (minimum over floor)"),
            ),
            rows=shown,
            note=note,
            folded=True,
        ),
    )
    return Section("places", "Where they are", blocks)


def _pair_row(lookup: Lookup, pair: Pair) -> Row:
    series = lookup.series(pair.region, pair.site)
    lowest = "no reply" if series and series.n else NOT_MEASURED
    return (
        lookup.region(pair.region),
        lookup.site(pair.site),
        known(pair.distance_km),
        NOT_KNOWN if pair.floor_rtt_ms is None else bare_ms(pair.floor_rtt_ms),
        lowest if pair.minimum_rtt_ms is None else bare_ms(pair.minimum_rtt_ms),
        f"{series.n:,}" if series else "0",
        known(pair.inflation),
    )


def table_section(lookup: Lookup) -> Section:
    """Every series and every budget line, as far as a page can carry them."""
    tables = [_summary_table(lookup), _line_table(lookup.evaluation.lines, "Budget lines", lookup)]
    if lookup.evaluation.alternatives:
        title = "Headline lines of sites with more than one target or address family"
        tables.append(_line_table(lookup.evaluation.alternatives, title, lookup))
    return Section("tables", "All numbers", tuple(tables))


def _summary_table(lookup: Lookup) -> Table:
    rows = tuple(_summary_row(lookup, s) for s in lookup.evaluation.summaries[: ROWS + 1])
    left = len(lookup.evaluation.summaries) - ROWS
    note = f"{left:,} more series are left out here; the JSON report has all of them."
    return Table(
        caption="Every series of samples",
        columns=(
            column("Region"),
            column("Site"),
            column("Series"),
            number("Samples"),
            number("Lost"),
            number("Minimum (ms)"),
            number("p50 (ms)"),
            number("p95 (ms)"),
            number("p99 (ms)"),
            number("Maximum (ms)"),
            column("Failures"),
            column("Clock sources"),
            number("Noise floor (ms)"),
        ),
        rows=rows[:ROWS],
        note=note if left > 0 else "",
        folded=True,
    )


def _summary_row(lookup: Lookup, series: Summary) -> Row:
    return (
        *_series_row(lookup, series),
        "no reply" if series.maximum_ms is None else bare_ms(series.maximum_ms),
        counts(series.failures),
        counts(series.clock_sources),
        NOT_KNOWN if series.noise_floor_ms is None else bare_ms(series.noise_floor_ms),
    )


def _line_table(every: tuple[BudgetLine, ...], caption: str, lookup: Lookup) -> Table:
    lines = sorted(every, key=lambda line: not line.headline)
    left = len(lines) - ROWS
    note = f"{left:,} more lines are left out here, headline lines last; the JSON report has all."
    return Table(
        caption=caption,
        columns=(
            column("Region"),
            column("Site"),
            column("Tier"),
            column("Line"),
            column("Measured at"),
            number("Value (ms)"),
            number(f"{lookup.confidence} interval (ms)"),
            number("Samples"),
            number("Lost"),
            column("Method"),
            number("Allowance (ms)"),
            column("Verdict"),
        ),
        rows=tuple(_line_row(lookup, line) for line in lines[:ROWS]),
        note=note if left > 0 else "",
        folded=True,
    )


def _line_row(lookup: Lookup, line: BudgetLine) -> Row:
    kind = connections(line.transport, line.mode)
    words = f"{DIRECTION_WORDS[line.direction]}, {kind}, {percentile(line.percentile)}"
    if line.prompt_bytes:
        words += f", {line.prompt_bytes:,} B" + (f" ({line.upload})" if line.upload else "")
    none = line.allowance_ms is None
    verdict: Cell | str = "no allowance of its own"
    if not none:
        tone = VERDICT_TONES[line.verdict]
        verdict = Cell(VERDICT_WORDS[line.verdict], (line.reason,), tone)
    return (
        lookup.region(line.region),
        lookup.site(line.site),
        line.tier,
        words + (" (headline)" if line.headline else ""),
        ", ".join(p for p in (line.target, line.family, line.round_trips_from) if p) or NOT_KNOWN,
        NOT_MEASURED if line.n == 0 else bare_ms(line.value_ms),
        interval(line.low_ms, line.high_ms) if line.n else "none",
        effective(line.n, line.n_effective),
        f"{line.losses:,}",
        "none" if line.method is None else METHOD_WORDS[line.method],
        "none" if line.allowance_ms is None else given(line.allowance_ms),
        verdict,
    )
