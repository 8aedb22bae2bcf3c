"""A scene from a plain matrix of round trips, without any store."""

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pathbudget.analysis.results import RegionInfo, SiteInfo
from pathbudget.analysis.siting.filling_known import floors_between
from pathbudget.analysis.siting.scene import Row, Scene, empty_scene, put
from pathbudget.sites.catalogue import Catalogue, Region, Site
from pathbudget.sites.pair_files import PairRow

MOST_NAMES = 10
EXACT = "The matrix gives no intervals: its numbers are taken as exact."


def scene_of_matrix(
    pairs: Sequence[PairRow],
    catalogue: Catalogue | None = None,
    *,
    tier: str = "matrix",
    allowance_ms: float | None = None,
    percentile: float = 50.0,
) -> Scene:
    """The scene of a matrix; a catalogue lends weights, coordinates, prices and powers by name.

    Only what the matrix names takes part. A pair without an interval is exact. Raises ValueError
    when no region has a weight.
    """
    places = catalogue or Catalogue()
    weights = {pair.region: pair.weight for pair in pairs if pair.weight is not None}
    names = dict.fromkeys(pair.region for pair in pairs)
    regions = [_region(name, places.regions.get(name), weights.get(name)) for name in names]
    regions = [region for region in regions if region.weight > 0]
    if not regions:
        raise ValueError("all weights are 0: nobody is served")
    sites = [_site(name, places.sites.get(name)) for name in sorted({p.site for p in pairs})]
    rows = tuple(Row(region, tier, 1.0, allowance_ms) for region in regions)
    scene = empty_scene(rows, tuple(sites), percentile)
    at_row = {region.name: i for i, region in enumerate(regions)}
    at_site = {site.name: j for j, site in enumerate(sites)}
    for pair in pairs:
        if pair.region in at_row:
            put(scene, (at_row[pair.region], at_site[pair.site]), _ends(pair), pair.n or 1)
    return replace(scene, floors=_floors(regions, sites))


def _ends(pair: PairRow) -> tuple[float, float, float]:
    low = pair.rtt_ms if pair.low_ms is None else pair.low_ms
    high = pair.rtt_ms if pair.high_ms is None else pair.high_ms
    return pair.rtt_ms, low, high


def exact_notes(pairs: Sequence[PairRow]) -> tuple[str, ...]:
    """What is to be said of pairs that do not say how far they can be trusted."""
    exact = sum(pair.low_ms is None and pair.high_ms is None for pair in pairs)
    if not exact:
        return ()
    if exact == len(pairs):
        return (EXACT,)
    return (f"{exact} of {len(pairs)} pairs give no interval: their numbers are taken as exact.",)


def strangers(pairs: Sequence[PairRow], catalogue: Catalogue) -> tuple[str, ...]:
    """Regions of a matrix that the catalogue does not know, where it knows others."""
    if not catalogue.regions:
        return ()
    weighted = {pair.region for pair in pairs if pair.weight is not None}
    names = dict.fromkeys(pair.region for pair in pairs)
    unknown = [name for name in names if name not in catalogue.regions and name not in weighted]
    if not unknown:
        return ()
    some = ", ".join(unknown[:MOST_NAMES])
    more = f" and {len(unknown) - MOST_NAMES} more" if len(unknown) > MOST_NAMES else ""
    are = "is" if len(unknown) == 1 else "are"
    return (f"{some}{more} {are} no region of the catalogue: the weight is 1.",)


def _region(name: str, known: Region | None, weight: float | None) -> RegionInfo:
    given = 1.0 if known is None else known.weight
    return RegionInfo(
        name=name,
        title=known.title if known else name,
        latitude=known.latitude if known else None,
        longitude=known.longitude if known else None,
        weight=given if weight is None else weight,
        vantages=(),
    )


def _site(name: str, known: Site | None) -> SiteInfo:
    if known is None:
        known = Site(name, math.nan, math.nan)
    has_place = not math.isnan(known.latitude)
    return SiteInfo(
        name=name,
        title=known.title or name,
        operator=known.operator,
        metro=known.metro,
        latitude=known.latitude if has_place else None,
        longitude=known.longitude if has_place else None,
        price_per_month=known.price_per_month,
        capacity=known.capacity,
        targets=(),
        power_kw=known.power_kw,
        exchanges=known.exchanges,
        networks=known.networks,
    )


def _floors(
    regions: Sequence[RegionInfo], sites: Sequence[SiteInfo]
) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]] | None:
    """Light floors; ``nan`` for places without coordinates."""
    if not regions or not sites:
        return None
    spots = [
        np.array([(p.latitude, p.longitude) for p in places], dtype=np.float64)
        for places in (regions, sites)
    ]
    return floors_between(*spots)
