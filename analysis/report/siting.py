"""How a choice of sites stands up to its measurements, and what is known of the sites."""

from collections.abc import Sequence

from pathbudget.analysis.report.document import (
    Block,
    Bullets,
    Row,
    Table,
    column,
    number,
)
from pathbudget.analysis.report.lookup import Lookup
from pathbudget.analysis.report.words import NOT_KNOWN, amount, listed, ms, share
from pathbudget.analysis.results import Objective, Recommendation
from pathbudget.analysis.siting.decision_results import Robustness, SiteFact

COLUMNS = ("exchanges", "networks", "power_kw", "price_per_month")
"""What a catalogue may know of a site; a column is there where it does."""

SHOWN = 5
"""Pairs that are named as worth measuring next."""


def robust_facts(lookup: Lookup, choice: Recommendation) -> list[tuple[str, str]]:
    """How often resampling picks it, what else it picks, and the regret."""
    robust = choice.robustness
    if robust is None:
        return []
    among = "" if robust.method == "all choices" else f", looking at {robust.looked_at} choices"
    often = (
        f"best in {share(robust.share_of_best)} of {robust.resamples} resamplings of the "
        f"measurements{among}"
    )
    others = [
        f"{listed(lookup.site(name) for name in one.sites)} in {share(one.share)}"
        for one in robust.choices
        if one.sites != choice.sites and one.share > 0
    ]
    text = f"{often}; {'; '.join(others[:2])}" if others else often
    return [("When resampled", text), ("Expected regret", _regret(choice, robust))]


def _regret(choice: Recommendation, robust: Robustness) -> str:
    if robust.regret_p95 <= 0 and robust.regret_mean <= 0:
        return "none: no resampling prefers another choice"
    mean, most = _size(choice, robust.regret_mean), _size(choice, robust.regret_p95)
    return f"{mean} more than the best choice on average, {most} or less in 95 % of resamplings"


def _size(choice: Recommendation, value: float) -> str:
    return share(value) if choice.objective is Objective.COVERING else ms(value)


def measure_next(choice: Recommendation) -> list[Block]:
    """The pairs whose measurement lowers the expected regret most."""
    robust = choice.robustness
    if robust is None or not robust.measure_next:
        return []
    texts = [one.text for one in robust.measure_next[:SHOWN]]
    if robust.prior:
        texts.append(f"Unmeasured pairs are taken here as {robust.prior}; no choice rests on that.")
    if robust.not_ranked:
        texts.append(f"Of {robust.not_ranked} unmeasured pairs nothing can be said beforehand.")
    return [Bullets("Measure here next:", tuple(texts))]


def site_table(lookup: Lookup, title: str, choice: Recommendation) -> list[Block]:
    """Distance, exchanges and networks of the chosen sites, where the catalogue knows them."""
    if all(one.mean_distance_km is None and not one.exchanges for one in choice.facts):
        return []
    told = [one for one in COLUMNS if any(_known(fact, one) for fact in choice.facts)]
    heads = {"exchanges": column("Exchanges"), "networks": column("Networks")}
    heads |= {"power_kw": number("Power (kW)"), "price_per_month": column("Price")}
    return [
        Table(
            caption=f"{title}: the chosen sites",
            columns=(
                column("Site"),
                number("Traffic"),
                number("Mean distance (km)"),
                number("Farthest (km)"),
                *(heads[name] for name in told),
            ),
            rows=tuple(_row(lookup, fact, told) for fact in choice.facts),
            note="Distance: great circle to the regions that the site serves. The rest is as the "
            "catalogue says.",
            folded=True,
        )
    ]


def _known(fact: SiteFact, name: str) -> bool:
    return getattr(fact, name) not in (None, ())


def _row(lookup: Lookup, fact: SiteFact, told: Sequence[str]) -> Row:
    words = {
        "exchanges": listed(fact.exchanges, none=NOT_KNOWN),
        "networks": listed((f"AS{one}" for one in fact.networks), none=NOT_KNOWN),
        "power_kw": _whole(fact.power_kw),
        "price_per_month": amount(fact.price_per_month),
    }
    return (
        lookup.site(fact.site),
        share(fact.share),
        _whole(fact.mean_distance_km),
        _whole(fact.farthest_km),
        *(words[name] for name in told),
    )


def _whole(value: float | None) -> str:
    return NOT_KNOWN if value is None else f"{value:,.0f}"
