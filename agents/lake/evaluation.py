"""What a lake says, in the form of an `Evaluation`: places, lines, and which sites to recommend.

Only what budget lines need. Series, findings and whole budgets want samples that nobody keeps here;
they are empty.
"""

from collections.abc import Iterable, Iterator, Sequence

from pathbudget.agents.lake.lines import LakeLines
from pathbudget.agents.lake.pairs import PairLines
from pathbudget.analysis.budget import NAME_NOT_FOUND, unmeasured_headline
from pathbudget.analysis.evaluate import EvaluationOptions
from pathbudget.analysis.floor import pair_of
from pathbudget.analysis.places import PlaceCollector, point_of, tier_info
from pathbudget.analysis.results import (
    BudgetLine,
    Evaluation,
    Objective,
    Pair,
    Provenance,
    Recommendation,
    RegionInfo,
    SiteInfo,
)
from pathbudget.analysis.siting.ground import ground_of
from pathbudget.analysis.siting.recommend import recommend
from pathbudget.sites.catalogue import Catalogue, Tier


def evaluation_of(
    found: LakeLines, catalogue: Catalogue, tiers: Sequence[Tier], options: EvaluationOptions
) -> Evaluation:
    """The evaluation of these lines, which were made for these tiers."""
    places = PlaceCollector()
    for envelope in found.envelopes:
        places.add(envelope)
    regions, sites = places.regions(catalogue), places.sites(catalogue)
    lines = tuple(_lines(found, regions, sites, tiers))
    pairs = tuple(_pairs(regions, sites))
    return Evaluation(
        title=options.title,
        generated_unix_ns=options.generated_unix_ns,
        provenance=_provenance(found, options.confidence),
        regions=regions,
        sites=sites,
        tiers=tuple(tier_info(tier) for tier in tiers),
        vantages=(),
        pairs=pairs,
        summaries=(),
        lines=lines,
        recommendations=tuple(_choices(lines, pairs, regions, sites, tiers, options.choose)),
        findings=(),
        exclusions=(),
        alternatives=tuple(line for one in found.pairs for line in one.alternatives),
    )


def _lines(
    found: LakeLines,
    regions: Iterable[RegionInfo],
    sites: Sequence[SiteInfo],
    tiers: Sequence[Tier],
) -> Iterator[BudgetLine]:
    """In the order of the places; a headline without numbers where nobody measured."""
    measured: dict[tuple[str, str], PairLines] = {one.pair: one for one in found.pairs}
    for region in regions:
        for site in sites:
            pair = region.name, site.name
            if pair in measured and measured[pair].lines:
                yield from measured[pair].lines
                continue
            why = (NAME_NOT_FOUND,) if pair in found.unresolved else ()
            for tier in tiers:
                yield unmeasured_headline(*pair, tier, *why)


def _pairs(regions: Iterable[RegionInfo], sites: Sequence[SiteInfo]) -> Iterator[Pair]:
    """How far they are from each other; what was measured stands in the lines."""
    for region in regions:
        for site in sites:
            yield pair_of(
                region.name,
                site.name,
                (),
                region_at=point_of(region),
                site_at=point_of(site),
                vantages_at={},
            )[0]


def _choices(
    lines: Iterable[BudgetLine],
    pairs: Iterable[Pair],
    regions: Sequence[RegionInfo],
    sites: Sequence[SiteInfo],
    tiers: Iterable[Tier],
    choose: Sequence[int],
) -> Iterator[Recommendation]:
    """As `evaluate` chooses, without a resampling of what else might be chosen."""
    floors = {(pair.region, pair.site): pair.floor_rtt_ms for pair in pairs}
    headlines = [line for line in lines if line.headline]
    for tier in tiers:
        mine = {(line.region, line.site): line for line in headlines if line.tier == tier.name}
        ground = ground_of(tier.name, tier.network_allowance_ms, regions, sites, mine, floors)
        sizes = sorted({k for k in choose if k <= len(ground.sites)})
        for objective in Objective:
            for k in sizes or [min(choose, default=1)]:
                yield recommend(ground, objective, k)


def _provenance(found: LakeLines, confidence: float) -> Provenance:
    """How many samples, and how sure; envelopes stand for groups, so they are not counted."""
    envelopes = found.envelopes
    return Provenance(
        campaigns=(),
        software=(),
        started_unix_ns=0,
        ended_unix_ns=0,
        measurements=0,
        samples=found.samples,
        losses=0,
        probes=tuple(sorted({envelope.probe for envelope in envelopes})),
        schedules=(),
        confidence=confidence,
        counters={},
        imported_from=(),
    )
