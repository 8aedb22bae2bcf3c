"""What a store holds, from the measurement table alone (no sample is read)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pathbudget.agents.store.reading import Selection
from pathbudget.agents.store.table_files import envelope_counts
from pathbudget.probes.record import AddressFamily, Measurement


@dataclass(frozen=True, slots=True)
class SeriesSummary:
    """All measurements of one campaign, vantage, target, probe and family together."""

    campaign: str
    region: str
    vantage: str
    site: str
    target: str
    probe: str
    family: AddressFamily | None
    measurements: int
    samples: int
    failures: int
    first_unix_ns: int
    last_unix_ns: int
    """End of the last one."""


@dataclass(frozen=True, slots=True)
class CampaignSummary:
    """One campaign as a whole. `name` is empty for measurements that belong to none."""

    name: str
    vantages: tuple[str, ...]
    targets: tuple[str, ...]
    probes: tuple[str, ...]
    measurements: int
    samples: int
    failures: int
    first_unix_ns: int
    last_unix_ns: int


Key = tuple[str, str, str, str, str, str, str]


def summarise(files: Iterable[Path], selection: Selection) -> list[SeriesSummary]:
    """One entry per series, sorted by campaign, region, vantage, site, target, probe, family."""
    found: dict[Key, SeriesSummary] = {}
    for path in files:
        for envelope, samples, failures in envelope_counts(path):
            if selection.takes(envelope):
                one = _of_one(envelope, samples, failures)
                key = _key(one)
                found[key] = _joined(found[key], one) if key in found else one
    return [found[key] for key in sorted(found)]


def campaigns(series: Sequence[SeriesSummary]) -> list[CampaignSummary]:
    """One entry per campaign, in the order in which they began."""
    by_name: dict[str, list[SeriesSummary]] = {}
    for one in series:
        by_name.setdefault(one.campaign, []).append(one)
    found = [_campaign(name, parts) for name, parts in by_name.items()]
    return sorted(found, key=lambda campaign: campaign.first_unix_ns)


def _of_one(envelope: Measurement, samples: int, failures: int) -> SeriesSummary:
    return SeriesSummary(
        campaign=envelope.campaign,
        region=envelope.vantage.region,
        vantage=envelope.vantage.name,
        site=envelope.target.site,
        target=envelope.target.name,
        probe=envelope.probe,
        family=envelope.family,
        measurements=1,
        samples=samples,
        failures=failures,
        first_unix_ns=envelope.started_unix_ns,
        last_unix_ns=envelope.started_unix_ns + envelope.duration_ns,
    )


def _key(one: SeriesSummary) -> Key:
    place = (one.region, one.vantage, one.site, one.target)
    return (one.campaign, *place, one.probe, one.family or "")


def _joined(one: SeriesSummary, other: SeriesSummary) -> SeriesSummary:
    return SeriesSummary(
        campaign=one.campaign,
        region=one.region,
        vantage=one.vantage,
        site=one.site,
        target=one.target,
        probe=one.probe,
        family=one.family,
        measurements=one.measurements + other.measurements,
        samples=one.samples + other.samples,
        failures=one.failures + other.failures,
        first_unix_ns=min(one.first_unix_ns, other.first_unix_ns),
        last_unix_ns=max(one.last_unix_ns, other.last_unix_ns),
    )


def _campaign(name: str, parts: Sequence[SeriesSummary]) -> CampaignSummary:
    return CampaignSummary(
        name=name,
        vantages=tuple(sorted({part.vantage for part in parts})),
        targets=tuple(sorted({part.target for part in parts})),
        probes=tuple(sorted({part.probe for part in parts})),
        measurements=sum(part.measurements for part in parts),
        samples=sum(part.samples for part in parts),
        failures=sum(part.failures for part in parts),
        first_unix_ns=min(part.first_unix_ns for part in parts),
        last_unix_ns=max(part.last_unix_ns for part in parts),
    )
