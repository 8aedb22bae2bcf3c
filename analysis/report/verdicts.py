"""Region x site, tier by tier: does the headline line keep the allowance?"""

from pathbudget.analysis.report.document import (
    Block,
    Cell,
    Column,
    Figure,
    Paragraph,
    Row,
    Section,
    Table,
    Tone,
    column,
    number,
)
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import (
    NO_LIMIT_MEANS,
    NOT_MEASURED,
    UNBOUNDED,
    VERDICT_TONES,
    VERDICT_WORDS,
    bare_ms,
    connections,
    effective,
    given,
    interval,
    ms,
    percentile,
    share,
)
from pathbudget.analysis.results import BudgetLine, RegionInfo, SiteInfo, TierInfo

REGIONS_OPEN = 24
"""A longer matrix is folded after this many regions; nothing is left out."""


def verdict_section(lookup: Lookup) -> Section:
    """One matrix per tier."""
    blocks: list[Block] = [
        Paragraph(
            "Each cell compares one budget line with the network allowance of the tier: the "
            f"verdict, the value, its {lookup.confidence} interval, the number of samples. "
            "Undecided means that the data cannot tell, not that it is close enough. "
            f"Where it says “{UNBOUNDED}”, {NO_LIMIT_MEANS}."
        )
    ]
    for tier in lookup.tiers:
        blocks.extend(_matrices(lookup, tier))
    return Section("verdicts", "Who keeps the budget from where", tuple(blocks))


def _matrices(lookup: Lookup, tier: TierInfo) -> list[Table]:
    parts = (lookup.regions[:REGIONS_OPEN], lookup.regions[REGIONS_OPEN:])
    tables: list[Table] = []
    for part, regions in enumerate(parts):
        if regions and lookup.sites:
            tables.append(_matrix(lookup, tier, regions, folded=part > 0))
    return tables


def _matrix(
    lookup: Lookup, tier: TierInfo, regions: tuple[RegionInfo, ...], *, folded: bool
) -> Table:
    rest = ", the lighter regions" if folded else ""
    chosen = lookup.chosen(tier.name)
    picked = {(a.region, a.site) for a in chosen.assignments} if chosen else set[tuple[str, str]]()
    return Table(
        caption=f"{tier.title}: {percentile(tier.percentile)} on "
        f"{connections(tier.headline_transport, tier.mode)} connections against "
        f"{given(tier.network_allowance_ms)} ms{rest}",
        columns=(column("Region"), *(Column(lookup.site(site.name)) for site in lookup.sites)),
        rows=tuple(_matrix_row(lookup, tier, region, picked) for region in regions),
        note="● marks the site that the recommendation gives to the region." if picked else "",
        folded=folded,
    )


def _matrix_row(
    lookup: Lookup, tier: TierInfo, region: RegionInfo, picked: set[tuple[str, str]]
) -> Row:
    weight = share(region.weight / (lookup.total_weight or 1.0))
    head = Cell(lookup.region(region.name), (f"{weight} of traffic",))
    return (head, *(_verdict_cell(lookup, tier, region, site, picked) for site in lookup.sites))


def _verdict_cell(
    lookup: Lookup,
    tier: TierInfo,
    region: RegionInfo,
    site: SiteInfo,
    picked: set[tuple[str, str]],
) -> Cell:
    line = lookup.headline(tier.name, region.name, site.name)
    if line is None:
        return Cell(NOT_MEASURED, ("n 0",))
    mark = " ●" if (region.name, site.name) in picked else ""
    return line_cell(line, mark)


def line_cell(line: BudgetLine, mark: str = "") -> Cell:
    """Verdict, value, interval and n of one line."""
    if line.n == 0:
        return Cell(NOT_MEASURED, (line.reason, "n 0"))
    details = (ms(line.value_ms), interval(line.low_ms, line.high_ms), f"n {line.n:,}")
    return Cell(VERDICT_WORDS[line.verdict] + mark, details, VERDICT_TONES[line.verdict])


def waterfall_section(lookup: Lookup) -> Section:
    """The whole budget of each tier, with the network part as it was measured."""
    blocks: list[Block] = [
        Paragraph(
            "Every term but the network is the tier's own allowance; the network term is the "
            "headline line from the recommended site. The total is a sum of allowances with one "
            "measured term in it: it says what is left, and is no percentile of the whole request."
        ),
        Figure(
            "waterfall",
            "Budget of one request against the target of the tier, by region",
            "Stacked bars, one per region: the terms of the budget in ms, with the measured "
            "network term first, beside the target of the tier. The tables below have the numbers.",
        ),
    ]
    blocks.extend(_waterfall_table(lookup, tier) for tier in lookup.tiers)
    return Section("waterfall", "What the network leaves of the whole budget", tuple(blocks))


def _waterfall_table(lookup: Lookup, tier: TierInfo) -> Table:
    parts = ", ".join(f"{name} {given(allowed)}" for name, allowed in tier.components.items())
    chosen = lookup.chosen(tier.name)
    assignments = sorted(chosen.assignments, key=lambda a: -a.weight) if chosen else []
    lines = ((a.region, a.site, lookup.headline(tier.name, a.region, a.site)) for a in assignments)
    return Table(
        caption=f"{tier.title}: total against {given(tier.target_ms)} ms",
        columns=(
            column("Region"),
            column("Site"),
            number("Network (ms)"),
            number("Interval (ms)"),
            number("Samples"),
            number("Network allowance (ms)"),
            number("Other terms (ms)"),
            number("Total (ms)"),
            number("Left of the target (ms)"),
        ),
        rows=tuple(
            _waterfall_row(lookup, tier, region, site, line)
            for region, site, line in lines
            if line is not None and line.n
        ),
        note=f"Allowances in ms: {parts}.",
        folded=True,
    )


def other_terms_ms(tier: TierInfo) -> float:
    """Sum of the allowances of everything but the network."""
    return sum(allowed for name, allowed in tier.components.items() if name != "network")


def _waterfall_row(lookup: Lookup, tier: TierInfo, region: str, site: str, line: BudgetLine) -> Row:
    others = other_terms_ms(tier)
    total = None if line.value_ms is None else others + line.value_ms
    left = "none: no limit" if total is None else bare_ms(tier.target_ms - total)
    tone = Tone.FAIL if total is None or total > tier.target_ms else Tone.PLAIN
    return (
        lookup.region(region),
        lookup.site(site),
        bare_ms(line.value_ms),
        interval(line.low_ms, line.high_ms),
        effective(line.n, line.n_effective),
        given(tier.network_allowance_ms),
        given(others),
        bare_ms(total),
        Cell(left, tone=tone),
    )
