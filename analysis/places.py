"""Regions, sites and tiers as an evaluation uses them: catalogue and measurements together."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from pathbudget.analysis.floor import Point
from pathbudget.analysis.line_place import headline_carriage
from pathbudget.analysis.results import Carrier, Mode, RegionInfo, SiteInfo, TierInfo
from pathbudget.analysis.series import place_of
from pathbudget.probes.errors import ConfigError, Fault
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue, Region, Site, Tier


@dataclass(slots=True)
class PlaceCollector:
    """Which regions, vantages, sites and targets the measurements name."""

    vantages: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    targets: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    points: dict[str, Point] = field(default_factory=dict[str, Point])
    """Where the vantages are that say so."""

    def add(self, measurement: Measurement) -> None:
        """Note the places of one measurement."""
        region, site = place_of(measurement)
        vantage = measurement.vantage
        self.vantages.setdefault(region, set()).add(vantage.name)
        self.targets.setdefault(site, set()).add(measurement.target.name)
        if vantage.latitude is not None and vantage.longitude is not None:
            point = (vantage.latitude, vantage.longitude)
            self.points[vantage.name] = min(point, self.points.get(vantage.name, point))

    def regions(self, catalogue: Catalogue) -> tuple[RegionInfo, ...]:
        """Those of the catalogue in its order, then the unknown ones by name."""
        unknown = sorted(set(self.vantages) - set(catalogue.regions))
        known = [self._region(region) for region in catalogue.regions.values()]
        return (*known, *(self._unknown_region(name) for name in unknown))

    def sites(self, catalogue: Catalogue) -> tuple[SiteInfo, ...]:
        """Those of the catalogue in its order, then the unknown ones by name."""
        unknown = sorted(set(self.targets) - set(catalogue.sites))
        known = [self._site(site) for site in catalogue.sites.values()]
        return (*known, *(self._unknown_site(name) for name in unknown))

    def _region(self, region: Region) -> RegionInfo:
        return RegionInfo(
            name=region.name,
            title=region.title or region.name,
            latitude=region.latitude,
            longitude=region.longitude,
            weight=region.weight,
            vantages=tuple(sorted(self.vantages.get(region.name, ()))),
        )

    def _unknown_region(self, name: str) -> RegionInfo:
        """Of weight 1, where the first of its vantages is that says where."""
        vantages = sorted(self.vantages[name])
        places = [self.points[vantage] for vantage in vantages if vantage in self.points]
        latitude, longitude = places[0] if places else (None, None)
        return RegionInfo(
            name=name,
            title=name,
            latitude=latitude,
            longitude=longitude,
            weight=1.0,
            vantages=tuple(vantages),
        )

    def _site(self, site: Site) -> SiteInfo:
        measured = self.targets.get(site.name, set())
        return SiteInfo(
            name=site.name,
            title=site.title or site.name,
            operator=site.operator,
            metro=site.metro,
            latitude=site.latitude,
            longitude=site.longitude,
            price_per_month=site.price_per_month,
            capacity=site.capacity,
            targets=tuple(sorted(measured | {target.name for target in site.targets})),
            power_kw=site.power_kw,
            exchanges=site.exchanges,
            networks=site.networks,
        )

    def _unknown_site(self, name: str) -> SiteInfo:
        return SiteInfo(
            name=name,
            title=name,
            operator="",
            metro="",
            latitude=None,
            longitude=None,
            price_per_month=None,
            capacity=None,
            targets=tuple(sorted(self.targets[name])),
        )


def point_of(place: RegionInfo | SiteInfo) -> Point | None:
    """Coordinates of a place, if they are known."""
    if place.latitude is None or place.longitude is None:
        return None
    return place.latitude, place.longitude


def tiers_of(catalogue: Catalogue, names: Iterable[str] | None) -> tuple[Tier, ...]:
    """The tiers that were asked for, in the order of the catalogue; all where none was named.

    Raises ConfigError that names every tier that is not there.
    """
    if names is None:
        return tuple(catalogue.tiers.values())
    wanted = set(names)
    known = ", ".join(catalogue.tiers) or "a tier in the catalogue, which has none"
    faults = [
        Fault("tiers", name, "no such tier", f"one of: {known}")
        for name in sorted(wanted - set(catalogue.tiers))
    ]
    if faults:
        raise ConfigError(faults)
    return tuple(tier for name, tier in catalogue.tiers.items() if name in wanted)


def tier_info(tier: Tier) -> TierInfo:
    """A tier as it was used."""
    return TierInfo(
        name=tier.name,
        title=tier.title or tier.name,
        target_ms=tier.target_ms,
        network_allowance_ms=tier.network_allowance_ms,
        components=dict(tier.components),
        percentile=tier.percentile,
        mode=Mode(tier.mode),
        prompt_bytes=tier.prompt_bytes,
        mixture=dict(tier.mixture),
        transport=Carrier(tier.transport),
        further_prompt_bytes=tier.further_prompt_bytes,
        headline_transport=headline_carriage(tier)[0],
    )
