"""One pass over measurements: each kind of evidence gets what it needs, no more is kept."""

from pathbudget.analysis.routes import felt
from pathbudget.analysis.routes.black_holes import SizeFinding
from pathbudget.analysis.routes.episodes import Clean
from pathbudget.analysis.routes.felt import FeltTrack, SizeWatch
from pathbudget.analysis.routes.member_watch import MemberWatch
from pathbudget.analysis.routes.model import (
    MemberFinding,
    Outage,
    PathObservation,
    PathSeries,
)
from pathbudget.analysis.routes.observations import observations_of
from pathbudget.analysis.routes.outages import OutageWatch
from pathbudget.analysis.series import SeriesCollector
from pathbudget.probes.record import Measurement, Metric, Sample

PATIENCE_NS = 5_000_000_000
"""Timeouts of probes are shorter: samples are in order within this."""


class RouteIntake:
    """One pass over the measurements."""

    def __init__(self) -> None:
        self.collector = SeriesCollector()
        self.traces: dict[PathSeries, list[PathObservation]] = {}
        self.addresses: dict[str, str] = {}
        """Address to site."""
        self.last_unix_ns = 0
        self.repeated = 0
        self._seen: set[tuple[str, int, int]] = set()
        self._outages: dict[PathSeries, OutageWatch] = {}
        self._found: list[Outage] = []
        self._sweeps: dict[PathSeries, MemberWatch] = {}
        self._tracks: dict[tuple[PathSeries, str], FeltTrack] = {}
        self._sizes: dict[PathSeries, SizeWatch] = {}

    def add(self, measurement: Measurement) -> None:
        """Sort out one measurement; the same record again counts once."""
        first = measurement.samples[0].sent_unix_ns if measurement.samples else 0
        identity = (measurement.id, len(measurement.samples), first)
        if identity in self._seen:
            self.repeated += 1
            return
        self._seen.add(identity)
        self.last_unix_ns = max([self.last_unix_ns, *_ends(measurement)])
        if measurement.address:
            site = measurement.target.site or measurement.target.name
            self.addresses[measurement.address] = site
        for observation in observations_of(measurement):
            self.traces.setdefault(observation.series, []).append(observation)
        sized = felt.felt_series(measurement)._replace(protocol="")
        self._sizes.setdefault(sized, SizeWatch(sized)).see(measurement)
        if felt.is_felt(measurement):
            self.collector.add(measurement)
            self._feel(measurement)

    def _feel(self, measurement: Measurement) -> None:
        series = felt.felt_series(measurement)
        watch = self._outages.setdefault(series, OutageWatch(series, PATIENCE_NS))
        sweep = self._sweeps.setdefault(series, MemberWatch(series))
        sweep.on_host(measurement.noise)
        dense = not felt.is_trace(measurement)
        for sample in sorted(measurement.samples, key=_sent):
            value = felt.felt_value(sample, measurement.address)
            if value is None:
                continue
            if dense:
                self._found += watch.see(sample)
                sweep.see(sample)
            if felt.tells_level(sample):
                self._track(series, sample.metric, measurement).add(sample.sent_unix_ns, value)

    def _track(self, series: PathSeries, metric: str, measurement: Measurement) -> FeltTrack:
        track = self._tracks.get((series, metric))
        if track is None:
            track = self._tracks[series, metric] = FeltTrack(metric)
        if measurement.noise is not None:
            track.floor_ns = max(track.floor_ns, float(measurement.noise.floor_ns))
        return track

    def tracks(self) -> dict[PathSeries, FeltTrack]:
        """The round trips of each series; those of traces only where nothing else looks."""
        looked = {(path.vantage, path.address) for path, _ in self._tracks if not _is_trace(path)}
        return {
            path: track
            for (path, metric), track in self._tracks.items()
            if (metric == Metric.RTT or (path, Metric.RTT) not in self._tracks)
            and (not _is_trace(path) or (path.vantage, path.address) not in looked)
        }

    def outages(self) -> list[Outage]:
        """All outages; one that is told as it begins is told again with its end."""
        for watch in self._outages.values():
            self._found += watch.finish()
        return self._found

    def members(self) -> list[MemberFinding]:
        """Sick members of all sweeps."""
        for sweep in self._sweeps.values():
            sweep.finish()
        return [one for sweep in self._sweeps.values() for one in sweep.findings]

    def clean(self) -> Clean:
        """When members that were sick were well again."""
        return {series: sweep.clean for series, sweep in self._sweeps.items()}

    def holes(self) -> list[SizeFinding]:
        """Paths that large packets vanish on."""
        return [one for watch in self._sizes.values() if (one := watch.finding()) is not None]

    def cautions(self) -> list[str]:
        """What a reader has to know of the data."""
        late = sum(watch.late for watch in self._outages.values())
        found: list[str] = []
        if late:
            found.append(f"{late} samples came out of order and are not looked at for outages.")
        if self.repeated:
            found.append(f"{self.repeated} measurements came twice and count once.")
        return found


def _is_trace(path: PathSeries) -> bool:
    return path.protocol == "trace"


def _sent(sample: Sample) -> int:
    return sample.sent_unix_ns


def _ends(measurement: Measurement) -> list[int]:
    samples = measurement.samples
    return [max(one.sent_unix_ns for one in samples)] if samples else []
