"""Changes of the path set as events: flutter, flap, shift, lost, found.

    watch = RouteWatch(origins=table)
    for observation in observe(measurements):
        for event in watch.see(observation):
            ...

A change is told once, when it is known what it was: another route that has been there for `flap_ns`
is a shift; one that was gone again before it was seen for so long is a flap. `pending` has what is
not decided yet. `route_events` gives the same events of stored observations, all at once.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field

from pathbudget.analysis.routes.canonical import Sight, Words
from pathbudget.analysis.routes.model import (
    PathObservation,
    PathSeries,
    RouteEvent,
    RouteEventKind,
    Window,
)
from pathbudget.analysis.routes.tracking import Route, RouteTracker, Step
from pathbudget.sites.prefix_table import Origins

FLAP_NS = 600 * 10**9
"""Ten minutes: a route seen for less and left again was a flap."""

CERTAIN_PACKETS = 6
"""So many packets in one trace that the destination should have answered are no accident: at a loss
of one in ten, one in a million. Fewer are confirmed by the next trace."""


MOST_TOLD = 16
"""So many events of a series are not told again: a route that is left and entered by turns may come
to the same change from the same traces."""


def route_events(
    observations: Iterable[PathObservation],
    origins: Origins | None = None,
    *,
    sight: Sight | None = None,
    flap_ns: int = FLAP_NS,
) -> list[RouteEvent]:
    """Every event of all series in these observations, by time.

    What is undecided at the end counts as it stands: another route is a shift.
    """
    watch = RouteWatch(origins=origins, sight=sight, flap_ns=flap_ns)
    ordered = sorted(observations, key=_time)
    events = [event for observation in ordered for event in watch.see(observation)]
    events += watch.finish()
    return sorted(events, key=lambda event: (event.window, event.kind, event.series))


def _time(observation: PathObservation) -> tuple[int, int, str]:
    return observation.started_unix_ns, observation.ended_unix_ns, observation.measurement


class RouteWatch:
    """All series at once, in the order of time within each. Memory is bounded for each series."""

    def __init__(
        self,
        *,
        origins: Origins | None = None,
        sight: Sight | None = None,
        flap_ns: int = FLAP_NS,
    ) -> None:
        self._sight = sight or Sight(origins=origins)
        self._flap_ns = flap_ns
        self._series: dict[PathSeries, _SeriesWatch] = {}
        self.late = 0
        """Observations older than what was seen of their series: not taken."""

    def see(self, observation: PathObservation) -> list[RouteEvent]:
        """Take the next observation; what it decides."""
        series = observation.series
        watch = self._series.get(series)
        if watch is None:
            watch = self._series[series] = _SeriesWatch(series, self._sight, self._flap_ns)
        if observation.started_unix_ns < watch.latest_ns:
            self.late += 1
            return []
        return watch.see(observation)

    def finish(self) -> list[RouteEvent]:
        """Nothing more comes: what is undecided counts as it stands."""
        return [event for watch in self._series.values() for event in watch.finish()]

    def pending(self) -> list[RouteEvent]:
        """Changes that were seen and may still turn out to be flaps, as shifts."""
        return [event for watch in self._series.values() for event in watch.pending()]

    def forget(self, series: PathSeries) -> None:
        """Drop a series that is measured no more."""
        self._series.pop(series, None)


@dataclass(slots=True)
class _Change:
    """Another route that may still be a flap."""

    left: Route
    window: Window
    first_seen_ns: int


@dataclass(slots=True)
class _Silence:
    """Traces that reach nobody, from the first on."""

    first_ended_ns: int
    traces: int = 1
    told: bool = False
    paths: frozenset[Words] = frozenset()


@dataclass(slots=True)
class _SeriesWatch:
    series: PathSeries
    sight: Sight
    flap_ns: int
    latest_ns: int = 0
    tracker: RouteTracker = field(init=False)
    change: _Change | None = None
    silence: _Silence | None = None
    reached_ns: int | None = None
    """End of the last trace that reached the destination."""
    ended_ns: int = 0
    """End of the last trace."""
    fluttering: set[int] = field(default_factory=set[int])
    told: deque[RouteEvent] = field(default_factory=lambda: deque[RouteEvent](maxlen=MOST_TOLD))

    def __post_init__(self) -> None:
        self.tracker = RouteTracker(self.sight)

    def see(self, observation: PathObservation) -> list[RouteEvent]:
        self.latest_ns = observation.started_unix_ns
        reached = any(flow.reached for flow in observation.flows)
        events = self._found(observation) if reached else self._lost(observation)
        if reached or self.reached_ns is None:
            events += self._step(self.tracker.see(observation), observation)
        if reached:
            self.reached_ns = observation.ended_unix_ns
        self.ended_ns = observation.ended_unix_ns
        news = [one for one in events if one not in self.told]
        self.told.extend(news)
        return news

    def finish(self) -> list[RouteEvent]:
        events, self.change = self.pending(), None
        return events

    def pending(self) -> list[RouteEvent]:
        return [] if self.change is None else [self._shift(self.change)]

    def _lost(self, observation: PathObservation) -> list[RouteEvent]:
        """Whether the destination is lost; before it was ever reached there is nothing to lose."""
        silence = self.silence
        if silence is None:
            silence = self.silence = _Silence(observation.ended_unix_ns)
        else:
            silence.traces += 1
        canonical = (self.sight.canonical(flow) for flow in observation.flows)
        silence.paths = frozenset(path.words for path in canonical)
        route, reached_ns = self.tracker.route(), self.reached_ns
        certain = silence.traces > 1 or (
            route is not None
            and sent_as_far(observation, len(route.dominant.hops)) >= CERTAIN_PACKETS
        )
        if silence.told or not certain or route is None or reached_ns is None:
            return []
        silence.told = True
        window = Window(reached_ns, silence.first_ended_ns)
        return [self._event(RouteEventKind.LOST, window, route.paths, silence.paths, route.as_path)]

    def _found(self, observation: PathObservation) -> list[RouteEvent]:
        silence, self.silence = self.silence, None
        if silence is None or not (silence.told or self.reached_ns is None):
            return []
        window = Window(self.ended_ns, observation.ended_unix_ns)
        canonical = [self.sight.canonical(flow) for flow in observation.flows]
        after = frozenset(path.words for path in canonical if path.reached)
        return [self._event(RouteEventKind.FOUND, window, silence.paths, after)]

    def _step(self, step: Step, observation: PathObservation) -> list[RouteEvent]:
        if self.change is not None and step.joined == self.change.left.number:
            self.change = None  # two routes that are one: nothing had changed
        if step.before is None or step.window is None:
            return [*self._settled(observation), *self._flutter(step, observation)]
        change = self.change
        if change is None:
            self.change = _Change(step.before, step.window, observation.ended_unix_ns)
            return []
        if step.number != change.left.number:  # on the way from one route to another
            change.first_seen_ns = observation.ended_unix_ns
            return []
        self.change = None
        event = self._event(
            RouteEventKind.FLAP, change.window, change.left.paths, step.before.paths,
            change.left.as_path, step.before.as_path, back=step.window,
        )  # fmt: skip
        return [event]

    def _settled(self, observation: PathObservation) -> list[RouteEvent]:
        change = self.change
        if change is None or observation.started_unix_ns - change.first_seen_ns < self.flap_ns:
            return []
        self.change = None
        return [self._shift(change)]

    def _shift(self, change: _Change) -> RouteEvent:
        route = self.tracker.route()
        assert route is not None
        return self._event(
            RouteEventKind.SHIFT, change.window, change.left.paths, route.paths,
            change.left.as_path, route.as_path,
        )  # fmt: skip

    def _flutter(self, step: Step, observation: PathObservation) -> list[RouteEvent]:
        """Told once for each stay on a route, or it would be told with every trace."""
        if not step.flutter or step.number in self.fluttering:
            return []
        self.fluttering = {step.number}
        route = self.tracker.route()
        assert route is not None
        window = Window(self.ended_ns or observation.started_unix_ns, observation.ended_unix_ns)
        return [
            self._event(
                RouteEventKind.FLUTTER, window, route.paths, route.paths, route.as_path,
                route.as_path,
            )
        ]  # fmt: skip

    def _event(
        self,
        kind: RouteEventKind,
        window: Window,
        before: frozenset[Words],
        after: frozenset[Words],
        as_before: Words = (),
        as_after: Words = (),
        back: Window | None = None,
    ) -> RouteEvent:
        return RouteEvent(
            kind=kind,
            series=self.series,
            window=_in_order(window),
            granularity=self.sight.granularity,
            before=before,
            after=after,
            as_before=as_before,
            as_after=as_after,
            back=back,
            first_difference=first_difference(before, after),
        )


def _in_order(window: Window) -> Window:
    """Traces may overlap: what showed the route before may have ended after what shows it gone."""
    return Window(min(window), max(window))


def sent_as_far(observation: PathObservation, distance: int) -> int:
    """Packets that reach the destination if it is at this hop limit; many flows ask hops alone."""
    return sum(
        max(1, flow.sent[limit]) if limit < len(flow.sent) else 1
        for flow in observation.flows
        for limit in range(max(0, distance - 1), len(flow.hops))
    )


def first_difference(before: frozenset[Words], after: frozenset[Words]) -> int | None:
    """Hop limit from which on two path sets have different hops; None where they are the same."""
    if before == after:
        return None
    longest = max(map(len, before | after), default=0)
    for index in range(longest):
        one, other = ({path[: index + 1] for path in paths} for paths in (before, after))
        if _words_at(one, index) != _words_at(other, index):
            return index + 1
    return None


def _words_at(paths: set[Words], index: int) -> set[str]:
    return {path[index] for path in paths if len(path) > index} - {"*"}
