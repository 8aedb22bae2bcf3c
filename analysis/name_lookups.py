"""Look-ups of names: hits and misses by transport, and to which edge each region is sent."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.request_numbers import quantile_ms
from pathbudget.analysis.request_results import Edge, LookUp
from pathbudget.analysis.results import Finding
from pathbudget.analysis.series import Series
from pathbudget.analysis.shots import Shot, ShotKey, word_note
from pathbudget.probes.record import Flag, Measurement, Metric

OVER = {
    "udp": "UDP",
    "tcp": "TCP",
    "dot": "TLS (DoT)",
    "doh": "HTTPS (DoH)",
    "doq": "QUIC (DoQ)",
}
"""What questions travel over."""

LISTED = 6
"""Regions and addresses that one sentence names."""
MOST_ANSWERS = 64
"""Different answers kept of one name; a name with more is balanced over all of them."""


class EdgeKey(NamedTuple):
    """One question from one region."""

    name: str
    kind: str
    region: str
    site: str
    over: str
    subnet: str


@dataclass(slots=True)
class _Said:
    addresses: Counter[str] = field(default_factory=Counter[str])
    servers: Counter[str] = field(default_factory=Counter[str])


class LookUpCollector:
    """Takes measurements one at a time and keeps what name servers said."""

    def __init__(self) -> None:
        self._said: dict[EdgeKey, _Said] = {}

    def add(self, measurement: Measurement, key: ShotKey, shots: Sequence[Shot]) -> None:
        """Take the answers of a `dns` measurement to the name that servers have at hand."""
        if measurement.probe != "dns":
            return
        options = measurement.options
        name, kind, subnet = (str(options.get(x) or "") for x in ("name", "type", "client_subnet"))
        said = None
        for shot in shots:
            sample = shot.samples.get(Metric.DNS_HIT)
            notes = (sample.notes if sample is not None else None) or {}
            addresses, server = word_note(notes, "addresses"), word_note(notes, "nsid")
            if addresses or server:
                at = EdgeKey(name, kind or "A", key.region, key.site, key.variant, subnet)
                said = said or self._said.setdefault(at, _Said())
                _count(said.addresses, addresses)
                _count(said.servers, server)

    def edges(self) -> tuple[Edge, ...]:
        """All answers in their order; those without an address are no edge."""
        return tuple(
            Edge(
                **key._asdict(),
                addresses=dict(said.addresses.most_common()),
                servers=dict(said.servers.most_common()),
            )
            for key, said in sorted(self._said.items())
            if said.addresses
        )


def _count(counter: Counter[str], word: str) -> None:
    if word and (word in counter or len(counter) < MOST_ANSWERS):
        counter[word] += 1


def look_ups(series: Iterable[Series], confidence: float) -> tuple[LookUp, ...]:
    """Every series of hits or misses on an idle path."""
    return tuple(
        LookUp(
            region=one.key.region,
            site=one.key.site,
            target=one.key.target,
            family=one.key.family,
            over=one.key.variant or "udp",
            mode=one.key.mode,
            metric=one.key.metric,
            n=one.track.n,
            losses=one.track.losses,
            p50_ms=quantile_ms(one.track, 0.5, confidence),
            p95_ms=quantile_ms(one.track, 0.95, confidence),
            truncated=one.flags[Flag.TRUNCATED],
            retried=one.flags[Flag.RETRIED],
        )
        for one in series
        if one.key.metric in (Metric.DNS_HIT, Metric.DNS_MISS) and not one.key.loaded
    )


def edge_findings(edges: Iterable[Edge]) -> list[Finding]:
    """Names that send two regions to addresses that have none in common."""
    by_name: dict[tuple[str, str, str], dict[str, set[str]]] = {}
    for edge in edges:
        regions = by_name.setdefault((edge.name, edge.kind, edge.subnet), {})
        found = {address for answer in edge.addresses for address in answer.split()}
        regions.setdefault(edge.region, set()).update(found)
    return [
        Finding(kind=FindingKind.EDGES_DIFFER, region="", site="", text=_differ(name, regions))
        for (name, _, _), regions in sorted(by_name.items())
        if _any_disjoint(list(regions.values()))
    ]


def _any_disjoint(sets: Sequence[set[str]]) -> bool:
    return any(a.isdisjoint(b) for i, a in enumerate(sets) for b in sets[i + 1 :])


def _differ(name: str, regions: dict[str, set[str]]) -> str:
    words = [
        f"{region} to {', '.join(sorted(found)[:LISTED])}"
        for region, found in sorted(regions.items())[:LISTED]
    ]
    more = f" and {len(regions) - LISTED} more regions" if len(regions) > LISTED else ""
    return (
        f"{name} sends regions to different addresses ({'; '.join(words)}{more}): a number of one "
        "region says nothing of another's edge."
    )
