"""Finding things in an `Evaluation`: titles, headline lines, the choice to show for a tier."""

from collections.abc import Mapping, Sequence
from functools import cached_property

from pathbudget.analysis.report.words import share
from pathbudget.analysis.results import (
    BudgetLine,
    Evaluation,
    Objective,
    Pair,
    Quantile,
    Recommendation,
    RegionInfo,
    SiteInfo,
    Summary,
    TierInfo,
    Verdict,
)
from pathbudget.analysis.routes.route_report import RouteReport
from pathbudget.analysis.siting.serving import serving

PairKey = tuple[str, str]

METRIC_ORDER = ("rtt", "connect", "connect_refused", "tls_handshake", "quic_handshake", "setup")
"""Which series stands for a pair: the one nearest to the bare path."""


class Lookup:
    """One evaluation, indexed. Regions come heaviest first, sites in the order of the catalogue."""

    def __init__(self, evaluation: Evaluation, routes: RouteReport | None = None) -> None:
        self.evaluation = evaluation
        self.routes = routes
        """What is known of routes; None where nobody traced."""

    @cached_property
    def regions(self) -> tuple[RegionInfo, ...]:
        """Regions, heaviest first."""
        return tuple(sorted(self.evaluation.regions, key=lambda region: -region.weight))

    @property
    def sites(self) -> tuple[SiteInfo, ...]:
        """Sites in the order of the catalogue."""
        return self.evaluation.sites

    @property
    def tiers(self) -> tuple[TierInfo, ...]:
        """Tiers in the order of the catalogue."""
        return self.evaluation.tiers

    @cached_property
    def _region_titles(self) -> dict[str, str]:
        return {region.name: region.title or region.name for region in self.evaluation.regions}

    @cached_property
    def _site_titles(self) -> dict[str, str]:
        places = {plain(region.title or region.name) for region in self.evaluation.regions}
        return {site.name: site_title(site, places) for site in self.evaluation.sites}

    def region(self, name: str) -> str:
        """What a person calls the region."""
        return self._region_titles.get(name, name)

    def site(self, name: str) -> str:
        """What a person calls the site."""
        return self._site_titles.get(name, name)

    @cached_property
    def total_weight(self) -> float:
        """Weight of all regions together."""
        return sum(region.weight for region in self.evaluation.regions)

    @property
    def confidence(self) -> str:
        """Confidence of every interval, ``95 %``."""
        return share(self.evaluation.provenance.confidence)

    @cached_property
    def pairs(self) -> dict[PairKey, Pair]:
        """Distance, floor and inflation by (region, site)."""
        return {(pair.region, pair.site): pair for pair in self.evaluation.pairs}

    @cached_property
    def _headlines(self) -> dict[tuple[str, str, str], BudgetLine]:
        lines = (line for line in self.evaluation.lines if line.headline)
        return {(line.tier, line.region, line.site): line for line in lines}

    def headline(self, tier: str, region: str, site: str) -> BudgetLine | None:
        """The line that the tier's own mode and percentile single out; None if not measured."""
        return self._headlines.get((tier, region, site))

    @cached_property
    def _series(self) -> dict[PairKey, Summary]:
        lines = {(line.region, line.site): line for line in self._headlines.values() if line.n}

        def rank(summary: Summary) -> tuple[bool, bool, int, bool, int, str]:
            line = lines.get((summary.region, summary.site))
            return not is_of(summary, line), *preference(summary)

        best: dict[PairKey, Summary] = {}
        for summary in self.evaluation.summaries:
            key = (summary.region, summary.site)
            if key not in best or rank(summary) < rank(best[key]):
                best[key] = summary
        return best

    def series(self, region: str, site: str) -> Summary | None:
        """The one series that charts draw for a pair: that of its budget lines if there are any."""
        return self._series.get((region, site))

    def recommendations(self, tier: str) -> tuple[Recommendation, ...]:
        """All choices computed for the tier."""
        return tuple(r for r in self.evaluation.recommendations if r.tier == tier)

    def chosen(self, tier: str) -> Recommendation | None:
        """The choice that the report opens with; `chosen` below says which that is."""
        return chosen(self.recommendations(tier), self.evaluation.regions)

    def serving(
        self,
        tier: str,
        *,
        among: Sequence[str] | None = None,
        usual: Mapping[str, str] | None = None,
    ) -> dict[str, str]:
        """The site that each region of the tier is held to; none for what was not measured."""
        lines = (line for (name, _, _), line in self._headlines.items() if name == tier)
        return serving(self.chosen(tier), lines, among=among, usual=usual)

    def no_recommendation(self, tier: str) -> str:
        """Why no site is recommended for the tier; the empty word where one is."""
        return no_recommendation(self.chosen(tier))


def no_recommendation(choice: Recommendation | None) -> str:
    """Why no site is recommended; the empty word where one is."""
    if choice is None or choice.sites:
        return ""
    return choice.reasons[0] if choice.reasons else "there is no data."


def plain(name: str) -> str:
    """Letters and digits alone, to tell whether two names read alike."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def site_title(site: SiteInfo, places: set[str]) -> str:
    """What a person calls a site, with its key where the title does not tell it from a place."""
    title = plain(site.title)
    if not title or site.title == site.name:
        return site.name
    if plain(site.name) in title and title not in places:
        return site.title
    return f"{site.title} ({site.name})"


SERIES_OF = {"connect": "connect", "tls": "tls_handshake", "quic": "quic_handshake"}
"""Metric of the series by what a line says that its round trips are from; else a probe's rtt."""


def is_of(summary: Summary, line: BudgetLine | None) -> bool:
    """Whether the round trips of the line are those of the series."""
    if line is None or summary.loaded:
        return False
    if (summary.target, summary.family) != (line.target, line.family):
        return False
    if metric := SERIES_OF.get(line.round_trips_from):
        return summary.metric == metric
    return summary.metric == "rtt" and summary.probe in line.round_trips_from.split(" and ")


def preference(summary: Summary) -> tuple[bool, int, bool, int, str]:
    """Sort key: the smallest one stands for its pair. An idle path before a loaded one."""
    known = summary.metric in METRIC_ORDER
    rank = METRIC_ORDER.index(summary.metric) if known else len(METRIC_ORDER)
    return summary.loaded, rank, summary.n == summary.losses, -summary.n, summary.target


def chosen(
    recommendations: tuple[Recommendation, ...], regions: tuple[RegionInfo, ...]
) -> Recommendation | None:
    """The fewest sites that surely keep the allowance for the most traffic, by p-median if any.

    A further site is worth its price only when it brings more traffic within the allowance, and
    that is what a reader wants to see first; the table of all choices stands below it.
    """

    def rank(choice: Recommendation) -> tuple[bool, float, int, bool]:
        kept = {one.region for one in choice.assignments if one.verdict is Verdict.PASS}
        outside = [region.weight for region in regions if region.name not in kept]
        uncovered = round(sum(outside), 9)
        second = choice.objective is not Objective.P_MEDIAN
        return not choice.sites, uncovered, choice.k, second

    return min(recommendations, key=rank, default=None)


def quantile(summary: Summary | None, percentile: float) -> Quantile | None:
    """The quantile of that percentile, where the summary has it."""
    if summary is None:
        return None
    return next((q for q in summary.quantiles if q.percentile == percentile), None)
