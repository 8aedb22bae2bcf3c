"""The request as a whole: does it hold, what it is made of, what to fix first, what may TTFT be."""

from collections.abc import Iterable

from pathbudget.analysis.report.document import (
    Block,
    Bullets,
    Cell,
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
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import (
    bare_ms,
    effective,
    figure,
    given,
    interval,
    listed,
    ms,
    percentile,
    share,
)
from pathbudget.analysis.results import TierInfo
from pathbudget.analysis.whole_budget.results import WholeBudget, WholeTerm, WholeVerdict

ROWS = 500

TERM_WORDS = {
    "network": "network, both ways",
    "network_in": "network in",
    "network_out": "network out",
    "gateway_and_auth": "gateway and auth",
    "ttft": "time to first token",
    "first_10_tokens": "first 10 tokens",
    "other": "other components",
}
VERDICT_WORDS = {
    WholeVerdict.PASS: "✓ pass",
    WholeVerdict.FAIL: "✕ fail",
    WholeVerdict.UNDECIDED: "? undecided",
}
VERDICT_TONES = {
    WholeVerdict.PASS: Tone.PASS,
    WholeVerdict.FAIL: Tone.FAIL,
    WholeVerdict.UNDECIDED: Tone.UNDECIDED,
}
METHOD_WORDS = {
    "independent": "independent (convolution)",
    "joint": "joint, request by request",
    "bound": "bound, whatever the dependence",
    "sum_of_quantiles": "sum of each term's own",
}


def term_words(name: str) -> str:
    """What a person calls a term."""
    return TERM_WORDS.get(name, name.replace("_", " "))


def shown_budgets(lookup: Lookup, tier: str) -> list[WholeBudget]:
    """Whole budgets of the choice that the report opens with, heaviest region first."""
    choice = lookup.chosen(tier)
    served = {(a.region, a.site): a.weight for a in choice.assignments} if choice else {}
    found = [
        one
        for one in lookup.evaluation.whole_budgets
        if one.tier == tier and (one.region, one.site) in served
    ]
    return sorted(found, key=lambda one: -served[one.region, one.site])


def whole_section(lookup: Lookup) -> tuple[Section, ...]:
    """The section; nothing for an evaluation without whole budgets."""
    if not lookup.evaluation.whole_budgets:
        return ()
    blocks: list[Block] = [
        Paragraph(
            "The distributions of all terms are combined, not their percentiles, which do not add "
            "up. A bar is the mean of its term in requests about as slow as the percentile, so "
            "the bars add up to it. Hatched terms stand at the tier's allowance: nobody measured "
            "them, and a pass holds only as far as they do."
        ),
        Figure(
            "whole-budget",
            "The request as a whole against the target of the tier, by region",
            "Stacked bars, one per region at its recommended site: what each term contributes at "
            "the tier's percentile, with the interval of the whole and the target. The tables "
            "below have the numbers.",
        ),
    ]
    for tier in lookup.tiers:
        blocks += _tier_blocks(lookup, tier, shown_budgets(lookup, tier.name))
    return (Section("whole-budget", "The whole budget", tuple(blocks)),)


def _tier_blocks(lookup: Lookup, tier: TierInfo, budgets: list[WholeBudget]) -> list[Block]:
    if not budgets:
        return []
    return [
        _glance(lookup, tier, budgets),
        *_to_fix(lookup, tier, budgets),
        _terms(lookup, tier, budgets),
        _ways(lookup, tier, budgets),
    ]


def _glance(lookup: Lookup, tier: TierInfo, budgets: list[WholeBudget]) -> Table:
    p = percentile(tier.percentile)
    rows, note = shortened(tuple(_glance_row(lookup, one) for one in budgets), ROWS, "regions")
    assumed = listed(term_words(name) for name in dict.fromkeys(_assumed(budgets)))
    return Table(
        caption=f"{tier.title or tier.name}: {p} of the whole request against "
        f"{given(tier.target_ms)} ms",
        columns=(
            column("Region"),
            column("Site"),
            number(f"{p} (ms)"),
            number("Above the target"),
            column("Verdict"),
            column("Why"),
            column("Fix first"),
            number("First token by (ms)"),
        ),
        rows=rows,
        note=f"Assumed at the allowance of the tier, not measured: {assumed}. First token by: the "
        f"{p} of the time to first token with which the whole still keeps its target, and below "
        f"it the same for the upper interval end. {note}".rstrip(),
        stacked=True,
    )


def _assumed(budgets: Iterable[WholeBudget]) -> Iterable[str]:
    return (name for one in budgets for name in one.assumed)


def _glance_row(lookup: Lookup, one: WholeBudget) -> Row:
    # What is assumed is the same for all rows and stands in the note.
    why = one.reason.partition(" Assumed, not measured:")[0]
    return (
        lookup.region(one.region),
        lookup.site(one.site),
        Cell(bare_ms(one.value_ms), (interval(one.low_ms, one.high_ms),)),
        Cell(share(one.breach), (f"{share(one.breach_low)} to {share(one.breach_high)}",)),
        Cell(VERDICT_WORDS[one.verdict], (), VERDICT_TONES[one.verdict]),
        "within the target" if one.verdict is WholeVerdict.PASS else why,
        term_words(one.fix_first) if one.fix_first else "no term more than another",
        _deadline(one),
    )


def _deadline(one: WholeBudget) -> Cell | str:
    if one.deadline is None:
        return "none in this tier"
    value, safe = one.deadline.at_percentile_ms, one.deadline.at_percentile_safe_ms
    if value is None:
        return "none that is enough"
    return Cell(figure(value), ("none to be safe" if safe is None else f"{figure(safe)} safe",))


def _to_fix(lookup: Lookup, tier: TierInfo, budgets: list[WholeBudget]) -> list[Block]:
    """What to fix first where a term is worth more than others, the slowest region first."""
    found = [one for one in budgets if one.fix_first and one.verdict is not WholeVerdict.PASS]
    if not found:
        return []
    items = [
        f"{lookup.region(one.region)} from {lookup.site(one.site)}: "
        f"{term_words(one.fix_first)}: {one.fix_reason}"
        for one in sorted(found, key=lambda one: -one.breach)[:5]
    ]
    return [Bullets(f"To fix first in {tier.title or tier.name}:", tuple(items))]


def _terms(lookup: Lookup, tier: TierInfo, budgets: list[WholeBudget]) -> Table:
    p = percentile(tier.percentile)
    every = tuple(_term_row(lookup, one, term) for one in budgets for term in one.terms)
    rows, note = shortened(every, ROWS, "rows")
    return Table(
        caption=f"{tier.title or tier.name}: term by term",
        columns=(
            column("Region"),
            column("Term"),
            column("From"),
            number("Requests"),
            number(f"Its own {p} (ms)"),
            number("Allowance (ms)"),
            number(f"At the {p} of the whole (ms)"),
            number("May reach (ms)"),
            number("Per ms"),
        ),
        rows=rows,
        note=f"May reach: its own {p}, all of its times longer by the factor that just keeps the "
        f"target. Per ms: what the {p} of the whole falls by for each ms off the mean of the term, "
        f"all of its times by the same factor. {note}".rstrip(),
        folded=True,
        stacked=True,
    )


def _term_row(lookup: Lookup, one: WholeBudget, term: WholeTerm) -> Row:
    is_assumed = term.source == "tier"
    reach = "no limit"
    if term.headroom_ms is not None and term.value_ms is not None:
        reach = figure(max(0.0, term.value_ms + term.headroom_ms))
    return (
        lookup.region(one.region),
        term_words(term.name),
        Cell("assumed", (term.origin,)) if is_assumed else Cell(term.source, (term.origin,)),
        "0" if is_assumed else effective(term.n, term.n_effective or term.n),
        Cell(bare_ms(term.value_ms), () if is_assumed else (interval(term.low_ms, term.high_ms),)),
        "none" if term.allowance_ms is None else given(term.allowance_ms),
        "no limit" if term.contribution_ms is None else figure(term.contribution_ms),
        reach,
        f"{term.leverage:.2f}",
    )


def _ways(lookup: Lookup, tier: TierInfo, budgets: list[WholeBudget]) -> Table:
    every = tuple(_way_row(lookup, one) for one in budgets)
    rows, note = shortened(every, ROWS, "regions")
    methods = [one.method for one in budgets[0].combinations]
    return Table(
        caption=f"{tier.title or tier.name}: the same by every way of combining",
        columns=(column("Region"), *(number(f"{METHOD_WORDS[one]} (ms)") for one in methods)),
        rows=tuple(row for row in rows if len(row) == len(methods) + 1),
        note="The sum of each term's own percentile is there for comparison alone: it is neither "
        f"an estimate nor a bound. {note}".rstrip(),
        folded=True,
        stacked=True,
    )


def _way_row(lookup: Lookup, one: WholeBudget) -> Row:
    cells = [
        Cell(
            ms(way.value_ms).removesuffix(" ms"),
            () if way.method == "sum_of_quantiles" else (interval(way.low_ms, way.high_ms),),
        )
        for way in one.combinations
    ]
    return (lookup.region(one.region), *cells)
