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
from pathbudget.analysis.report.siting import measure_next, robust_facts, site_table
from pathbudget.analysis.report.words import (
    NOT_KNOWN,
    OBJECTIVE_WORDS,
    VERDICT_TONES,
    VERDICT_WORDS,
    amount,
    bare_ms,
    connections,
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

WHOLE = 1e-9
"""Shares of the traffic nearer to each other than this are the same."""


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
        note="Cost: weighted mean over the regions of the upper interval end, or covered traffic. "
        "Means over different shares of the traffic are not comparable.",
        stacked=True,
    )


def _glance_row(lookup: Lookup, tier: TierInfo) -> Row:
    head = Cell(tier.title or tier.name, (f"network {given(tier.network_allowance_ms)} ms",))
    choice = lookup.chosen(tier.name)
    if choice is None or not choice.sites:
        why = (choice.reasons[0].partition(". ")[0],) if choice and choice.reasons else ()
        return (head, Cell("no recommendation", why), *("none" for _ in range(3)), "no")
    return (
        head,
        listed((lookup.site(name) for name in choice.sites), none="no site"),
        share(_weight(choice, Verdict.PASS) / (lookup.total_weight or 1.0)),
        _short_cost(choice),
        _short_margin(lookup, choice),
        f"yes{_only(choice)}" if choice.decided else _undecided(choice),
    )


def _undecided(choice: Recommendation) -> Cell:
    why = (choice.why_undecided,) if choice.why_undecided else ()
    return Cell("? undecided", why, Tone.UNDECIDED)


def _only(choice: Recommendation) -> str:
    """What part of the traffic an answer is for, where that is not all of it."""
    if choice.measured_share < 1 - WHOLE:
        if choice.served_share > choice.measured_share - WHOLE:
            return f", for the {share(choice.measured_share)} measured"
    elif choice.served_share > 1 - WHOLE:
        return ""
    return f", for the {share(choice.served_share)} with an upper limit"


def _short_cost(choice: Recommendation) -> Cell | str:
    cost = _short(choice, choice.value)
    if choice.objective is Objective.COVERING or choice.served_share > 1 - WHOLE:
        return cost
    return Cell(cost, (f"mean of the {share(choice.served_share)} served",))


def _short_margin(lookup: Lookup, choice: Recommendation) -> Cell | str:
    if choice.margin is not None:
        return _short(choice, choice.margin)
    if not choice.next_best_sites:
        return "no other choice"
    names = listed(lookup.site(name) for name in choice.next_best_sites)
    return Cell("not comparable", (_unlike(choice, names),))


def _unlike(choice: Recommendation, other: str) -> str:
    """Why there is no margin."""
    theirs, ours = share(choice.next_best_served_share), share(choice.served_share)
    if theirs == ours:
        return f"{other} serves other regions"
    return f"{other} serves {theirs} of the traffic, not {ours}"


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
    reasons = choice.reasons if choice.sites else choice.reasons[1:]  # the card has the first
    if reasons:
        blocks.append(Bullets("Why:", reasons))
    if choice.would_change:
        blocks.append(Bullets("What would change this answer:", choice.would_change))
    blocks += measure_next(choice)
    blocks += site_table(lookup, tier.title, choice)
    if choice.assignments:
        blocks.append(_assignment_table(lookup, tier, choice))
    return [*blocks, _choices_table(lookup, tier, choice)]


def _card(lookup: Lookup, tier: TierInfo, choice: Recommendation) -> Facts:
    kind = connections(tier.headline_transport, tier.mode)
    line = f"{percentile(tier.percentile)}, {kind} connections"
    allowed, target = given(tier.network_allowance_ms), given(tier.target_ms)
    allowance = f"{allowed} ms of {target} ms ({line})"
    pairs = [
        ("Network allowance", allowance),
        ("Cost of this choice", _value(choice, choice.value, choice.served_share)),
        ("Within the allowance", _coverage(lookup, choice)),
        ("Next best", _next_best(lookup, choice)),
        ("Margin", _margin(lookup, choice)),
        ("Price", amount(choice.price_per_month)),
    ]
    if choice.uncovered:
        pairs.append(("Not served within it", _some(lookup, choice.uncovered)))
    pairs.extend(robust_facts(lookup, choice))
    pairs.extend(failover_facts(lookup, choice))
    tone = Tone.PASS if choice.decided else Tone.UNDECIDED
    return Facts(tier.title or tier.name, _sentence(lookup, choice), tone, tuple(pairs))


def _sentence(lookup: Lookup, choice: Recommendation) -> str:
    sites = listed((lookup.site(name) for name in choice.sites), none="no site")
    if not choice.sites:
        return f"No recommendation: {choice.reasons[0] if choice.reasons else 'no data.'}"
    if choice.decided:
        return f"Take {sites}{_only(choice)}."
    others = listed((lookup.site(name) for name in choice.next_best_sites), none="the next choice")
    return f"{sites} for now: the data cannot tell this choice from {others}."


def _value(choice: Recommendation, value: float | None, served: float | None = 1.0) -> str:
    """The value with what it is a mean of; `served` is the share, None where it is not known."""
    if not choice.sites:
        return "none: there is no choice"
    if choice.objective is Objective.COVERING:
        return NOT_KNOWN if value is None else f"{share(value)} of the traffic is covered"
    if served is not None and served < WHOLE:
        return "none: no region has an upper limit from there"
    if served is not None and served < 1 - WHOLE:
        return f"{ms(value)}, mean of the {share(served)} served (upper interval ends)"
    return f"{ms(value)}, weighted mean over the regions (upper interval ends)"


def _coverage(lookup: Lookup, choice: Recommendation) -> str:
    if not choice.sites:
        return "none: there is no choice"
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
    return f"{sites}: {_value(choice, choice.next_best_value, choice.next_best_served_share)}"


def _margin(lookup: Lookup, choice: Recommendation) -> str:
    if not choice.sites:
        return "none: there is no choice"
    if choice.margin is None:
        if not choice.next_best_sites:
            return "no other choice to compare with"
        names = listed(lookup.site(name) for name in choice.next_best_sites)
        return f"not comparable: {_unlike(choice, names)}"
    size = share(choice.margin) if choice.objective is Objective.COVERING else ms(choice.margin)
    verdict = (
        "decided"
        if choice.decided
        else "undecided" + (f": {choice.why_undecided}" if choice.why_undecided else "")
    )
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
    if lost.value is None:
        return f"no region is served then: {names}"
    if choice.objective is Objective.COVERING:
        return f"{_value(choice, lost.value)}; not served: {names}"
    weights = {a.region: a.weight for a in choice.assignments}
    left = 1 - sum(weights.get(name, 0.0) for name in lost.unserved) / (lookup.total_weight or 1.0)
    return f"{_value(choice, lost.value, left)}; not served: {names}"


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
        _value(choice, choice.value, choice.served_share),
        _margin(lookup, choice),
        str(len(choice.uncovered)),
        amount(choice.price_per_month),
    )
