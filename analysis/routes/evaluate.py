"""The whole way for routes: measurements and BGP updates in, one `RouteReport` out.

    measurements -> traces                -> route events, stability
                 -> round trips           -> level shifts, outages, sick members, black holes
    updates      -> state of BGP          -> BGP events, feed events
    all of these -> incidents (join)      -> budget lines that moved

The measurements are read once. What is kept of a sample is 48 octets.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from pathbudget.analysis.places import tiers_of
from pathbudget.analysis.routes.bgp_peers import FeedRules
from pathbudget.analysis.routes.bgp_state import RouteTable
from pathbudget.analysis.routes.bgp_watch import Watch
from pathbudget.analysis.routes.canonical import Sight
from pathbudget.analysis.routes.felt import FeltTrack
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
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.prefixes import Origins
from pathbudget.sites.rpki import VrpTable


@dataclass(frozen=True, slots=True)
class RouteOptions:
    """How to judge. `settle_ns`: BGP has converged after so much quiet."""

    join: JoinOptions = field(default_factory=JoinOptions)
    shifts: ShiftOptions = BATCH
    granularity: Granularity = Granularity.ADDRESS
    routers: Mapping[str, str] = field(default_factory=dict[str, str])
    """Router by address, for that granularity."""
    flap_ns: int = FLAP_NS
    settle_ns: int = 60_000_000_000
    confidence: float = 0.95
    vrps: VrpTable | None = None
    """For RPKI states of BGP events."""
    feeds: Mapping[str, FeedRules] = field(default_factory=dict[str, FeedRules])
    """What is expected of BGP feeds by name."""

    def sight(self, origins: Origins | None) -> Sight:
        """What hops are called."""
        return Sight(self.granularity, origins, self.routers)

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
    tracks = intake.tracks()
    events = _route_events(intake.traces, origins, options)
    table = options.table(watch_of(catalogue, intake.addresses))
    bgp, last_unix_ns = _bgp_events(updates, table, intake.last_unix_ns)
    evidence: list[Evidence] = [*events, *bgp, *intake.outages()]
    for path, track in tracks.items():
        evidence += _shifts(path, track, options.shifts)
    evidence += intake.members()
    incidents = join(evidence, options.join, holes=intake.holes(), clean=intake.clean())
    if chosen:
        series, _ = intake.collector.finish()
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


def _shifts(path: PathSeries, felt: FeltTrack, options: ShiftOptions) -> list[Evidence]:
    track = felt.track()
    finest = options.on_host(felt.floor_ns)
    return [*level_shifts(path, felt.metric, track.sent_unix_ns, track.values_ns, finest)]


def _route_events(
    traces: dict[PathSeries, list[PathObservation]], origins: Origins | None, options: RouteOptions
) -> list[RouteEvent]:
    everything = [one for rows in traces.values() for one in rows]
    return route_events(everything, sight=options.sight(origins), flap_ns=options.flap_ns)


def _stability(
    traces: dict[PathSeries, list[PathObservation]], origins: Origins | None, options: RouteOptions
) -> list[RouteStability]:
    sight = options.sight(origins)
    return [stability_of(rows, sight=sight) for rows in traces.values()]


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


def _timelines(tracks: Mapping[PathSeries, FeltTrack]) -> list[Timeline]:
    rows = {path: (felt.metric, felt.track()) for path, felt in tracks.items()}
    if not rows:
        return []
    first = min(int(track.sent_unix_ns[0]) for _, track in rows.values())
    last = max(int(track.sent_unix_ns[-1]) for _, track in rows.values())
    bucket = bucket_of(first, last)
    return [timeline(path, metric, track, bucket) for path, (metric, track) in rows.items()]


def hop_names(paths: Iterable[PathObservation], origins: Origins | None) -> dict[str, str]:
    """What is known of every address on the latest paths."""
    if origins is None:
        return {}
    addresses = {one for path in paths for flow in path.flows for hop in flow.hops for one in hop}
    known = {address: origins.look_up(address) for address in sorted(addresses)}
    return {address: origin.text for address, origin in known.items() if origin is not None}
