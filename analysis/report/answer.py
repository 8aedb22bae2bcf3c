"""The answer in plain language, tier by tier: which sites, at what cost, how sure, what if."""

from collections import Counter

from pathbudget.analysis.report.document import (
    Block,
    Bullets,
    Cell,
    Facts,
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
    NOT_KNOWN,
    OBJECTIVE_WORDS,
    VERDICT_TONES,
    VERDICT_WORDS,
    amount,
    bare_ms,
    counted,
    given,
    interval,
    listed,
    ms,
    percentile,
    share,
)
from pathbudget.analysis.results import (
    Assignment,
    Failover,
    Objective,
    Recommendation,
    TierInfo,
    Verdict,
)


def answer_section(lookup: Lookup) -> Section:
    """One card per tier, then who is served from where, then the other choices."""
    if not lookup.tiers:
        return _nothing("There is no tier to recommend sites for.")
    if not lookup.evaluation.lines:
        return _nothing("Nothing was measured that a recommendation could rest on.")
    blocks: list[Block] = [_glance_table(lookup)] if len(lookup.tiers) > 1 else []
    for tier in lookup.tiers:
        blocks.extend(_tier_blocks(lookup, tier))
    return Section("answer", "The answer", tuple(blocks))


def _nothing(text: str) -> Section:
    return Section("answer", "The answer", (Paragraph(text, Tone.LEAD),))


def _glance_table(lookup: Lookup) -> Table:
    return Table(
        caption="At a glance",
        columns=(
            column("Tier"),
            column("Take"),
            number("Traffic surely within the allowance"),
            number("Cost"),
            number("Margin to the next best"),
            column("Can the data tell?"),
        ),
        rows=tuple(_glance_row(lookup, tier) for tier in lookup.tiers),
        note="Cost: weighted mean over the regions of the upper interval end, or covered traffic.",
    )


def _glance_row(lookup: Lookup, tier: TierInfo) -> Row:
    head = Cell(tier.title or tier.name, (f"network {given(tier.network_allowance_ms)} ms",))
    choice = lookup.chosen(tier.name)
    if choice is None or not choice.sites:
        return (head, "no site can be recommended", *("none" for _ in range(3)), "no")
    return (
        head,
        listed((lookup.site(name) for name in choice.sites), none="no site"),
        share(_weight(choice, Verdict.PASS) / (lookup.total_weight or 1.0)),
        _short(choice, choice.value),
        _short(choice, choice.margin) if choice.margin is not None else "no other choice",
        "yes" if choice.decided else Cell("? undecided", tone=Tone.UNDECIDED),
    )


def _short(choice: Recommendation, value: float | None) -> str:
    if choice.objective is Objective.COVERING:
        return NOT_KNOWN if value is None else share(value)
    return ms(value)


def _weight(choice: Recommendation, verdict: Verdict) -> float:
    return sum(a.weight for a in choice.assignments if a.verdict is verdict)


def _tier_blocks(lookup: Lookup, tier: TierInfo) -> list[Block]:
    choice = lookup.chosen(tier.name)
    if choice is None:
        text = f"{tier.title}: no choice of sites could be computed from what was measured."
        return [Paragraph(text, Tone.LEAD)]
    blocks: list[Block] = [_card(lookup, tier, choice)]
    if choice.reasons:
        blocks.append(Bullets("Why:", choice.reasons))
    if choice.would_change:
        blocks.append(Bullets("What would change this answer:", choice.would_change))
    if choice.assignments:
        blocks.append(_assignment_table(lookup, tier, choice))
    return [*blocks, _choices_table(lookup, tier, choice)]


def _card(lookup: Lookup, tier: TierInfo, choice: Recommendation) -> Facts:
    line = f"{percentile(tier.percentile)}, {tier.mode} connections"
    allowed, target = given(tier.network_allowance_ms), given(tier.target_ms)
    allowance = f"{allowed} ms of {target} ms ({line})"
    pairs = [
        ("Network allowance", allowance),
        ("Cost of this choice", _value(choice, choice.value)),
        ("Within the allowance", _coverage(lookup, choice)),
        ("Next best", _next_best(lookup, choice)),
        ("Margin", _margin(choice)),
        ("Price", amount(choice.price_per_month)),
    ]
    if choice.uncovered:
        pairs.append(("Not served within it", _some(lookup, choice.uncovered)))
    pairs.extend(failover_facts(lookup, choice))
    tone = Tone.PASS if choice.decided else Tone.UNDECIDED
    return Facts(tier.title or tier.name, _sentence(lookup, choice), tone, tuple(pairs))


def _sentence(lookup: Lookup, choice: Recommendation) -> str:
    sites = listed((lookup.site(name) for name in choice.sites), none="no site")
    if not choice.sites:
        return "No site can be recommended on these measurements."
    if choice.decided:
        return f"Take {sites}."
    others = listed((lookup.site(name) for name in choice.next_best_sites), none="the next choice")
    return f"{sites} for now: the data cannot tell this choice from {others}."


def _value(choice: Recommendation, value: float | None) -> str:
    if not choice.sites:
        return "none: there is no choice"
    if choice.objective is Objective.COVERING:
        return NOT_KNOWN if value is None else f"{share(value)} of the traffic is covered"
    return f"{ms(value)}, weighted mean over the regions (upper interval ends)"


def _coverage(lookup: Lookup, choice: Recommendation) -> str:
    counts = Counter(assignment.verdict for assignment in choice.assignments)
    whole = lookup.total_weight or 1.0
    words = [
        f"{counts[verdict]} {verdict} ({share(_weight(choice, verdict) / whole)} of traffic)"
        for verdict in Verdict
        if counts[verdict]
    ]
    missing = len(lookup.regions) - len({a.region for a in choice.assignments})
    if missing > 0:
        words.append(f"{missing} without any measured site")
    return f"of {counted(len(lookup.regions), 'region')}: {listed(words)}"


def _next_best(lookup: Lookup, choice: Recommendation) -> str:
    if not choice.sites:
        return "there is no choice to compare with"
    if not choice.next_best_sites:
        return "there is no other choice of this many sites"
    sites = listed(lookup.site(name) for name in choice.next_best_sites)
    return f"{sites}: {_value(choice, choice.next_best_value)}"


def _margin(choice: Recommendation) -> str:
    if not choice.sites:
        return "none: there is no choice"
    if choice.margin is None:
        return NOT_KNOWN if choice.next_best_sites else "no other choice to compare with"
    size = share(choice.margin) if choice.objective is Objective.COVERING else ms(choice.margin)
    verdict = "decided" if choice.decided else "undecided: the intervals of the two choices overlap"
    return f"{size} ({verdict})"


def failover_facts(lookup: Lookup, choice: Recommendation) -> list[tuple[str, str]]:
    """What happens when a site of the choice is lost."""
    if not choice.sites:
        return []
    if len(choice.sites) == 1:
        text = f"{lookup.site(choice.sites[0])} is the only site of this choice: nothing is left"
        return [("When a site is down", text)]
    return [
        (f"Without {lookup.site(lost.lost_site)}", _failover(lookup, choice, lost))
        for lost in choice.failover
    ]


def _failover(lookup: Lookup, choice: Recommendation, lost: Failover) -> str:
    if not lost.unserved:
        return f"{_value(choice, lost.value)}; every region is still served"
    names = _some(lookup, lost.unserved)
    return f"{_value(choice, lost.value)} where still served; not served: {names}"


def _some(lookup: Lookup, regions: tuple[str, ...], limit: int = 12) -> str:
    rest = len(regions) - limit
    names = listed(lookup.region(name) for name in regions[:limit])
    return names + (f", and {rest} more" if rest > 0 else "")


def _assignment_table(lookup: Lookup, tier: TierInfo, choice: Recommendation) -> Table:
    quantile = percentile(tier.percentile)
    ordered = sorted(choice.assignments, key=lambda a: -a.weight)
    return Table(
        caption=f"{tier.title}: which site serves whom",
        columns=(
            column("Region"),
            number("Share of traffic"),
            column("Site"),
            number(f"{quantile} (ms)"),
            number(f"{lookup.confidence} interval (ms)"),
            number("Samples"),
            column("Verdict"),
        ),
        rows=tuple(_assignment_row(lookup, tier, a) for a in ordered),
        folded=True,
    )


def _assignment_row(lookup: Lookup, tier: TierInfo, assignment: Assignment) -> Row:
    line = lookup.headline(tier.name, assignment.region, assignment.site)
    verdict = assignment.verdict
    return (
        lookup.region(assignment.region),
        share(assignment.weight / (lookup.total_weight or 1.0)),
        lookup.site(assignment.site),
        bare_ms(assignment.value_ms),
        interval(assignment.low_ms, assignment.cost_ms),
        f"{line.n:,}" if line else "0",
        Cell(VERDICT_WORDS[verdict], tone=VERDICT_TONES[verdict]),
    )


def _choices_table(lookup: Lookup, tier: TierInfo, shown: Recommendation) -> Table:
    choices = sorted(lookup.recommendations(tier.name), key=lambda c: (c.k, c.objective))
    return Table(
        caption=f"{tier.title}: fewer or more sites",
        columns=(
            number("Sites"),
            column("Choice"),
            column("Objective"),
            column("Value"),
            column("Margin to the next best"),
            number("Regions not covered"),
            column("Price"),
        ),
        rows=tuple(_choice_row(lookup, choice, choice is shown) for choice in choices),
        folded=True,
    )


def _choice_row(lookup: Lookup, choice: Recommendation, shown: bool) -> Row:
    names = listed((lookup.site(name) for name in choice.sites), none="no site")
    return (
        str(choice.k),
        Cell(names, ("shown above",), Tone.CHOSEN) if shown else names,
        OBJECTIVE_WORDS[choice.objective],
        _value(choice, choice.value),
        _margin(choice),
        str(len(choice.uncovered)),
        amount(choice.price_per_month),
    )
