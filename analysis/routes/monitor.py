"""Routes watched as measurements and updates come: each incident once as it begins, once when over.

The same evidence and the same `join` as in a batch; what differs is that level shifts come from
`LevelWatch`, whose window is shorter. Memory: per path a window of samples and the state of its
watches; evidence of what is not over, and of the last half hour.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np

from pathbudget.analysis.places import tiers_of
from pathbudget.analysis.routes import felt
from pathbudget.analysis.routes.evaluate import RouteOptions, watch_of
from pathbudget.analysis.routes.felt import SizeWatch
from pathbudget.analysis.routes.incidents import join
from pathbudget.analysis.routes.level_shifts import WATCH, LevelWatch
from pathbudget.analysis.routes.member_watch import MemberWatch
from pathbudget.analysis.routes.model import (
    BgpEvent,
    Evidence,
    FeedEvent,
    FeedStatus,
    Incident,
    LevelShift,
    MemberFinding,
    Outage,
    PathSeries,
    RouteEvent,
)
from pathbudget.analysis.routes.moved_lines import Lines
from pathbudget.analysis.routes.observations import Observer
from pathbudget.analysis.routes.outages import OutageWatch
from pathbudget.analysis.routes.route_events import RouteWatch
from pathbudget.analysis.routes.route_intake import PATIENCE_NS
from pathbudget.analysis.series import Series, SeriesKey
from pathbudget.analysis.track import Track
from pathbudget.probes.bgp.record import RouteUpdate
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Catalogue
from pathbudget.sites.prefixes import Origins

MOST_EVIDENCE = 10_000
"""The oldest goes first."""

JOINS = 30
"""So often at most is all evidence joined within the time for which what packets felt waits."""


@dataclass(slots=True)
class _Path:
    """Watches of one series."""

    levels: LevelWatch
    outages: OutageWatch
    sweeps: MemberWatch
    metric: str = ""


@dataclass(slots=True)
class _Told:
    """What has been said of an incident."""

    incident: Incident
    evidence: set[Evidence] = field(default_factory=set[Evidence])
    before: Incident | None = None
    """As it was told."""


class RouteMonitor:
    """Every method returns the incidents that are news: those that begin, and those that are over.

    An incident is told a while after it began, so that what noticed it later is in it: what packets
    felt after `JoinOptions.together_ns`, what BGP or traces alone say after `before_ns`, because
    packets may feel it so much later. With `with_changes` it is told again when it becomes another
    cause or somebody else's.
    """

    def __init__(
        self,
        *,
        catalogue: Catalogue | None = None,
        tiers: tuple[str, ...] | None = None,
        origins: Origins | None = None,
        options: RouteOptions | None = None,
        with_changes: bool = False,
    ) -> None:
        self.options = options or RouteOptions(shifts=WATCH)
        self.with_changes = with_changes
        self._catalogue = catalogue
        self._tiers = tiers_of(catalogue, tiers) if catalogue is not None else ()
        self._traces = Observer()
        self._routes = RouteWatch(sight=self.options.sight(origins), flap_ns=self.options.flap_ns)
        self._addresses: dict[str, str] = {}
        self._table = self.options.table(watch_of(catalogue, {}))
        self._watch_is_old = False
        self._paths: dict[PathSeries, _Path] = {}
        self._sick: dict[PathSeries, MemberWatch] = {}
        """Paths on which members were found sick."""
        self._sizes: dict[PathSeries, SizeWatch] = {}
        self._evidence: list[Evidence] = []
        self._pending: list[RouteEvent] = []
        """Moves that may turn out to be flaps."""
        self._stale = False
        self._joined_unix_ns = 0
        self._told: list[_Told] = []
        self._now_unix_ns = 0

    def see(self, measurement: Measurement) -> list[Incident]:
        """Take a measurement, or the next samples of one. Those of a series in order of time."""
        self._know(measurement)
        for observation in self._traces.see(measurement):
            self._take(self._routes.see(observation))
            pending = self._routes.pending()
            self._stale |= pending != self._pending
            self._pending = pending
        path = felt.felt_series(measurement)._replace(protocol="")
        if felt.is_large(measurement):
            self._sizes.setdefault(path, SizeWatch(path))
        if (sizes := self._sizes.get(path)) is not None:
            sizes.see(measurement)
            self._stale = True
        if felt.is_felt(measurement) and not felt.is_trace(measurement):
            self._feel(measurement)
        latest = max((one.sent_unix_ns for one in measurement.samples), default=0)
        return self.advance(max(self._now_unix_ns, latest))

    def hear(self, update: RouteUpdate) -> list[Incident]:
        """Take a BGP update."""
        if self._watch_is_old:
            self._watch_is_old = False
            self._table.watch = watch_of(self._catalogue, self._addresses)
        self._take(self._table.see(update))
        return self.advance(max(self._now_unix_ns, update.arrived_unix_ns))

    see_update = hear

    def advance(self, now_unix_ns: int) -> list[Incident]:
        """It is so late now."""
        self._now_unix_ns = max(self._now_unix_ns, now_unix_ns)
        self._take(self._table.advance(self._now_unix_ns))
        step_ns = self.options.join.together_ns // JOINS
        if self._stale and self._now_unix_ns >= self._joined_unix_ns + step_ns:
            self._join()
        return self._news()

    def finish(self) -> list[Incident]:
        """Nothing more will come: what waits is told as it stands."""
        for series, path in self._paths.items():
            self._take(path.levels.finish())
            self._take(path.outages.finish())
            self._note_sick(series, path.sweeps.finish())
        self._take(self._table.finish())
        self._join()
        rules = self.options.join
        self._now_unix_ns += rules.before_ns + rules.together_ns
        return self._news()

    def incidents(self) -> list[Incident]:
        """All incidents that are still remembered, as they are known now."""
        if self._stale:
            self._join()
        return [one.incident for one in self._told]

    def feeds(self) -> list[FeedStatus]:
        """What each BGP feed is worth."""
        return self._table.status(self._now_unix_ns)

    def _know(self, measurement: Measurement) -> None:
        """A site's prefix may be known by its addresses alone."""
        site = measurement.target.site or measurement.target.name
        if measurement.address and self._addresses.get(measurement.address) != site:
            if not self._addresses:  # until now every prefix counted
                self._evidence = [one for one in self._evidence if not _is_of_nobody(one)]
            self._addresses[measurement.address] = site
            self._watch_is_old = True

    def _feel(self, measurement: Measurement) -> None:
        series = felt.felt_series(measurement)
        path = self._paths.get(series)
        if path is None:
            path = self._paths[series] = self._new_path(series, measurement)
        path.sweeps.on_host(measurement.noise)
        ordered = sorted(measurement.samples, key=lambda one: one.sent_unix_ns)
        for sample in ordered:
            value = felt.felt_value(sample, measurement.address)
            if value is None or path.metric not in ("", sample.metric):
                continue
            path.metric = sample.metric
            if felt.tells_level(sample):
                self._take(path.levels.see(sample.sent_unix_ns, value))
            self._take(path.outages.see(sample))
            self._note_sick(series, path.sweeps.see(sample))

    def _new_path(self, series: PathSeries, measurement: Measurement) -> _Path:
        shifts = self.options.shifts
        if measurement.noise is not None:
            shifts = shifts.on_host(float(measurement.noise.floor_ns))
        levels = LevelWatch(series, "rtt", shifts)
        return _Path(levels, OutageWatch(series, PATIENCE_NS), MemberWatch(series))

    def _take(self, evidence: Iterable[Evidence]) -> None:
        for one in evidence:
            if self._addresses and _is_of_nobody(one):
                continue
            if isinstance(one, Outage):  # told as it begins, and again with its end
                self._evidence = [old for old in self._evidence if not _replaces(one, old)]
            self._evidence.append(one)
            self._stale = True

    def _note_sick(self, series: PathSeries, found: list[MemberFinding]) -> None:
        """Findings are kept by the watch that makes them: those of months are few there."""
        if found:
            self._sick[series] = self._paths[series].sweeps
            self._stale = True

    def _join(self) -> None:
        self._stale, self._joined_unix_ns = False, self._now_unix_ns
        clean = {series: sweeps.clean for series, sweeps in self._sick.items()}
        sick = [one for sweeps in self._sick.values() for one in sweeps.findings]
        holes = [one for watch in self._sizes.values() if (one := watch.finding()) is not None]
        evidence = [*self._evidence, *self._pending, *sick]
        found = join(evidence, self.options.join, holes=holes, clean=clean)
        known = [*self._told]
        self._told = [self._recognised(one, known) for one in found]
        self._forget()

    def _recognised(self, incident: Incident, known: list[_Told]) -> _Told:
        """The same incident as before, with what is known of it now."""
        evidence = set(incident.evidence)
        before = next((one for one in known if _same(one, incident, evidence)), None)
        if before is None:
            return _Told(incident, evidence)
        known.remove(before)
        lines = before.incident.lines
        return _Told(replace(incident, lines=lines), evidence, before.before)

    def _forget(self) -> None:
        """Drop evidence of what is over and past."""
        past = [one for one in self._told if self._is_past(one)]
        gone = {one for told in past for one in told.evidence}
        if gone:
            self._told = [one for one in self._told if one not in past]
            self._evidence = [one for one in self._evidence if one not in gone]
            for sweeps in self._sick.values():
                sweeps.forget(gone)
        self._begin_anew()
        del self._evidence[: max(0, len(self._evidence) - MOST_EVIDENCE)]

    def _is_past(self, told: _Told) -> bool:
        incident = told.incident
        if told.before is None or told.before.over is None:
            return False
        return incident.over is not None and self._is_old(incident.over.by_unix_ns)

    def _is_old(self, unix_ns: int) -> bool:
        rules = self.options.join
        keep = 2 * (rules.before_ns + rules.after_ns + 2 * rules.flap_ns)
        return unix_ns + keep < self._now_unix_ns

    def _begin_anew(self) -> None:
        """What is of no incident is of a move, and will be news when the move is forgotten: what
        round trips are since then is what later ones are held against.
        """
        told = {one for each in self._told for one in each.evidence}
        for series, sweeps in list(self._sick.items()):
            left = [one for one in sweeps.delays.findings if one not in told]
            if any(self._is_old(one.window.by_unix_ns) for one in left):
                sweeps.delays.begin_anew()
            if not sweeps.findings:
                del self._sick[series]

    def _news(self) -> list[Incident]:
        return [one for told in self._told if (one := self._new_of(told)) is not None]

    def _new_of(self, told: _Told) -> Incident | None:
        incident, before = told.incident, told.before
        if before is None:
            if self._now_unix_ns < incident.window.by_unix_ns + self._hold_ns(incident):
                return None
        elif not self._is_news(before, incident):
            return None
        told.incident = told.before = self._with_lines(incident)
        return told.incident

    def _is_news(self, before: Incident, now: Incident) -> bool:
        if before.over is None and now.over is not None:
            return True
        same = (before.cause, before.blamed) == (now.cause, now.blamed)
        return self.with_changes and not same

    def _hold_ns(self, incident: Incident) -> int:
        felt = LevelShift | Outage | MemberFinding | FeedEvent
        is_felt = any(isinstance(one, felt) for one in incident.evidence)
        return self.options.join.together_ns if is_felt else self.options.join.before_ns

    def _with_lines(self, incident: Incident) -> Incident:
        if not self._tiers:
            return incident
        lines = Lines(self._recent_series(incident), self._tiers, self.options.confidence)
        others = [told.incident for told in self._told]
        return replace(incident, lines=lines.moved_by(incident, others) or incident.lines)

    def _recent_series(self, incident: Incident) -> dict[SeriesKey, Series]:
        pairs = {(series.region, series.site) for series in incident.series}
        return {
            _key(series, path.metric): _series(series, path)
            for series, path in self._paths.items()
            if (series.region, series.site) in pairs
        }


def _is_of_nobody(one: Evidence) -> bool:
    """Whether BGP says something of a prefix of no site."""
    return isinstance(one, BgpEvent) and not one.site


def _replaces(outage: Outage, old: Evidence) -> bool:
    return (
        isinstance(old, Outage)
        and old.series == outage.series
        and old.began.by_unix_ns >= outage.began.by_unix_ns
    )


def _same(told: _Told, incident: Incident, evidence: set[Evidence]) -> bool:
    return bool(told.evidence & evidence) or (
        told.incident.cause is incident.cause
        and told.incident.window == incident.window
        and told.incident.series == incident.series
    )


def _key(series: PathSeries, metric: str) -> SeriesKey:
    family = None if series.family is None else str(series.family)
    return SeriesKey(
        series.region, series.site, series.target, series.address, series.protocol,
        metric, None, family,
    )  # fmt: skip


def _series(series: PathSeries, path: _Path) -> Series:
    times, values = path.levels.recent()
    track = Track(times, values, np.zeros(len(times), dtype=np.int64))
    return Series(
        _key(series, path.metric), track, Counter(), Counter(), Counter(), None, Counter()
    )
