"""The whole way for routes: measurements and BGP updates in, one `RouteReport` out.

    measurements -> traces                -> route events, stability
                 -> round trips           -> level shifts, outages, sick members, black holes
    updates      -> state of BGP          -> BGP events, feed events
    all of these -> incidents (join)      -> budget lines that moved

The measurements are read once. What is kept of a sample is what `evaluate` keeps: 32 octets.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from pathbudget.analysis.places import tiers_of
from pathbudget.analysis.routes import felt
from pathbudget.analysis.routes.bgp_peers import FeedRules
from pathbudget.analysis.routes.bgp_state import RouteTable
from pathbudget.analysis.routes.bgp_watch import Watch
from pathbudget.analysis.routes.incidents import JoinOptions, join
from pathbudget.analysis.routes.level_shifts import BATCH, ShiftOptions, level_shifts
from pathbudget.analysis.routes.model import (
    BgpEvent,
    Evidence,
    FeedEvent,
    Granularity,
    PathObservation,
    PathSeries,
    RouteEvent,
    RouteStability,
)
from pathbudget.analysis.routes.moved_lines import Lines, with_lines
from pathbudget.analysis.routes.route_events import FLAP_NS, route_events
from pathbudget.analysis.routes.route_intake import RouteIntake
from pathbudget.analysis.routes.route_report import RouteReport, Timeline
from pathbudget.analysis.routes.stability import stability_of
from pathbudget.analysis.routes.timelines import bucket_of, timeline
from pathbudget.analysis.series import Series, SeriesKey
from pathbudget.analysis.track import Track
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.record import AddressFamily, Measurement
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.prefixes import Origins
from pathbudget.sites.rpki import VrpTable


@dataclass(frozen=True, slots=True)
class RouteOptions:
    """How to judge. `settle_ns`: BGP has converged after so much quiet."""

    join: JoinOptions = field(default_factory=JoinOptions)
    shifts: ShiftOptions = BATCH
    granularity: Granularity = Granularity.ADDRESS
    flap_ns: int = FLAP_NS
    settle_ns: int = 60_000_000_000
    confidence: float = 0.95
    vrps: VrpTable | None = None
    """For RPKI states of BGP events."""
    feeds: Mapping[str, FeedRules] = field(default_factory=dict[str, FeedRules])
    """What is expected of BGP feeds by name."""

    def table(self, watch: Watch) -> RouteTable:
        """A BGP state that goes by these options."""
        return RouteTable(watch, feeds=self.feeds, settle_ns=self.settle_ns, vrps=self.vrps)


def evaluate_routes(
    measurements: Iterable[Measurement],
    updates: Iterable[RouteUpdate] = (),
    *,
    catalogue: Catalogue | None = None,
    tiers: tuple[str, ...] | None = None,
    origins: Origins | None = None,
    options: RouteOptions | None = None,
) -> RouteReport:
    """Everything that measurements and updates say about routes.

    Measurements in any order, but those of one series in order of time; updates in order of time.
    `tiers` None means all of the catalogue. Raises ConfigError for a tier that it does not have.
    """
    options = options or RouteOptions()
    chosen = tiers_of(catalogue, tiers) if catalogue is not None else ()
    intake = RouteIntake()
    for measurement in measurements:
        intake.add(measurement)
    series, vantages = intake.collector.finish()
    tracks = felt_tracks(series, vantages)
    events = _route_events(intake.traces, origins, options)
    table = options.table(watch_of(catalogue, intake.addresses))
    bgp, last_unix_ns = _bgp_events(updates, table, intake.last_unix_ns)
    evidence: list[Evidence] = [*events, *bgp, *intake.outages()]
    for path, (metric, track, least_ns) in tracks.items():
        evidence += _shifts(path, metric, track, least_ns, options.shifts)
    evidence += intake.members()
    incidents = join(evidence, options.join, holes=intake.holes(), clean=intake.clean())
    if chosen:
        incidents = list(with_lines(incidents, Lines(series, chosen, options.confidence)))
    return RouteReport(
        stability=tuple(_stability(intake.traces, origins, options)),
        paths=tuple(rows[-1] for rows in intake.traces.values()),
        events=tuple(events),
        incidents=tuple(incidents),
        feeds=tuple(table.status(last_unix_ns)),
        timelines=tuple(_timelines(tracks)),
        hop_names=hop_names((rows[-1] for rows in intake.traces.values()), origins),
        cautions=tuple(intake.cautions()),
    )


FeltTracks = dict[PathSeries, tuple[str, Track, float]]
"""Metric, numbers, and the noise floor in ns, of each series that says how a path is."""


def felt_tracks(series: dict[SeriesKey, Series], vantages: Sequence[str]) -> FeltTracks:
    """Round trips and connects by vantage. Those of traces where nothing else looks."""
    found: FeltTracks = {}
    for key, one in series.items():
        if key.loaded or key.metric not in felt.FELT_METRICS:
            continue
        for number in np.unique(one.track.vantages):
            mine = one.track.vantages == number
            track = Track(
                one.track.sent_unix_ns[mine], one.track.values_ns[mine], one.track.vantages[mine]
            )
            path = _path(key, vantages[int(number)])
            if path not in found or key.metric == "rtt":
                found[path] = key.metric, track, float(one.noise_floor_ns or 0)
    looked = {(path.vantage, path.address) for path in found if path.protocol != "trace"}
    return {
        path: rest
        for path, rest in found.items()
        if path.protocol != "trace" or (path.vantage, path.address) not in looked
    }


def _path(key: SeriesKey, vantage: str) -> PathSeries:
    family = None if key.family is None else AddressFamily(key.family)
    return PathSeries(vantage, key.region, key.site, key.target, key.address, family, key.probe)


def _shifts(
    path: PathSeries, metric: str, track: Track, floor_ns: float, options: ShiftOptions
) -> list[Evidence]:
    finest = replace(options, least_ns=max(options.least_ns, floor_ns))
    return [*level_shifts(path, metric, track.sent_unix_ns, track.values_ns, finest)]


def _route_events(
    traces: dict[PathSeries, list[PathObservation]], origins: Origins | None, options: RouteOptions
) -> list[RouteEvent]:
    everything = [one for rows in traces.values() for one in rows]
    return route_events(everything, origins, flap_ns=options.flap_ns)


def _stability(
    traces: dict[PathSeries, list[PathObservation]], origins: Origins | None, options: RouteOptions
) -> list[RouteStability]:
    return [stability_of(rows, options.granularity, origins) for rows in traces.values()]


def watch_of(catalogue: Catalogue | None, addresses: dict[str, str]) -> Watch:
    """Prefixes of the sites of the catalogue; of other sites whatever covers their addresses."""
    stated = {site.name: site.prefixes for site in (catalogue.sites.values() if catalogue else ())}
    pairs = [(name, prefix) for name, prefixes in stated.items() for prefix in prefixes]
    pairs += [(site, address) for address, site in addresses.items() if not stated.get(site)]
    return Watch.of_sites(pairs)


def _bgp_events(
    updates: Iterable[RouteUpdate], table: RouteTable, last_unix_ns: int
) -> tuple[list[BgpEvent | FeedEvent], int]:
    """All events, and until when: a feed may be silent while measurements go on."""
    found: list[BgpEvent | FeedEvent] = []
    for update in updates:
        found += table.see(update)
        last_unix_ns = max(last_unix_ns, update.arrived_unix_ns)
    return [*found, *table.advance(last_unix_ns), *table.finish()], last_unix_ns


def _timelines(tracks: FeltTracks) -> list[Timeline]:
    if not tracks:
        return []
    first = min(int(track.sent_unix_ns[0]) for _, track, _ in tracks.values())
    last = max(int(track.sent_unix_ns[-1]) for _, track, _ in tracks.values())
    bucket = bucket_of(first, last)
    return [timeline(path, metric, track, bucket) for path, (metric, track, _) in tracks.items()]


def hop_names(paths: Iterable[PathObservation], origins: Origins | None) -> dict[str, str]:
    """What is known of every address on the latest paths."""
    if origins is None:
        return {}
    addresses = {one for path in paths for flow in path.flows for hop in flow.hops for one in hop}
    known = {address: origins.look_up(address) for address in sorted(addresses)}
    return {address: origin.text for address, origin in known.items() if origin is not None}
