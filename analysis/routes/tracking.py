"""Which route each trace of one series shows, and when it became another one.

The route stays the same as long as what a trace shows can be the same set of paths, seen by other
flows: members not enumerated this time, members never enumerated before, hops that are silent now,
flows that a balancer sends another way. It is another one

- when a flow that was traced before passes what no flow of this route ever passed, unless packets
  of one flow are balanced there too, or may be as far as is known;
- when a member has not been seen by so many flows since, or a new one not by so many before, that
  chance does not explain it.

Two routes turn out to be one when packets of one flow are seen to take both, or when the only flow
that is traced goes there and back between them all the time.

A trace that reaches nobody says nothing of the route once traces have reached the destination:
`route_events` tells such outages.
"""

import itertools
from collections import deque
from dataclasses import dataclass

from pathbudget.analysis.routes.as_paths import as_path
from pathbudget.analysis.routes.canonical import Canonical, Sight, Words, representatives
from pathbudget.analysis.routes.model import PathObservation, Window
from pathbudget.analysis.routes.route_memory import Passage, PathRow, RouteMemory

MOST_ROUTES = 16
"""Routes kept to be known again when the path returns."""
ALTERNATIONS, WITHIN = 4, 12
"""So many turns between two routes in so many traces of one flow are those of a balancer."""
RECENT = 32
"""Traces kept so as to begin a new route with those since the old one was last seen."""


@dataclass(frozen=True, slots=True)
class Route:
    """One route as it is known at some moment."""

    number: int
    """Counts routes of the series in the order in which they were first seen."""
    paths: frozenset[Words]
    as_path: Words
    """Of the path that most flows take; empty without a table of prefixes."""
    dominant: Canonical


@dataclass(frozen=True, slots=True)
class Step:
    """What one trace says. `before` is the route that was left in `window`, None where none was."""

    number: int
    """Of the route that the trace shows."""
    flutter: bool
    before: Route | None = None
    window: Window | None = None
    traces: int = 1
    """How many traces, up to this one, show the route that was entered."""
    joined: int | None = None
    """A route that turned out to be this one."""


@dataclass(slots=True)
class _Trace:
    started_ns: int
    ended_ns: int
    passages: tuple[Passage, ...]


class RouteTracker:
    """One series, in the order of time. Memory is bounded."""

    def __init__(self, sight: Sight | None = None) -> None:
        self._sight = sight or Sight()
        self._current: RouteMemory | None = None
        self._known: dict[int, RouteMemory] = {}
        self._recent: deque[_Trace] = deque(maxlen=RECENT)
        self._numbers: deque[int] = deque(maxlen=WITHIN)
        self._made = 0

    def see(self, observation: PathObservation) -> Step:
        """Take the next trace."""
        trace = self._reduced(observation)
        current = self._current
        if current is None:
            current = self._enter(self._route_for([trace]))
        elif (moved_after := self._moved(current, trace)) is not None:
            other = self._route_for([trace], other_than=current)
            if not self._alternates(current, other, trace):
                return self._change(current, other, Window(moved_after, trace.ended_ns), [trace])
            other.absorb(current)
            return self._joined(current, other, trace)
        flutter = current.take(trace.passages, trace.ended_ns)
        self._note(trace, current)
        if (changed := current.change()) is not None:
            since = [one for one in self._recent if one.ended_ns >= changed.first_ns]
            other = self._route_for(since, other_than=current)
            window = Window(changed.after_ns, changed.by_ns)
            return self._change(current, other, window, since)
        held = self._held(current)
        return Step(current.number, flutter, joined=None if held is None else held.number)

    def route(self) -> Route | None:
        """The one that the path takes now, with all its paths."""
        return None if self._current is None else _described(self._current, None)

    def _moved(self, current: RouteMemory, trace: _Trace) -> int | None:
        """When the route that this trace cannot show was last seen; None where it can."""
        moves = [current.elsewhere(passage) for passage in trace.passages]
        return max((after for after in moves if after is not None), default=None)

    def _change(
        self, left: RouteMemory, entered: RouteMemory, window: Window, since: list[_Trace]
    ) -> Step:
        before = _described(left, window.after_unix_ns)
        left.rewind(window.after_unix_ns)
        entered.resume()
        self._enter(entered)
        for trace in since:
            entered.take(trace.passages, trace.ended_ns)
        if since[-1] not in self._recent:
            self._note(since[-1], entered)
        return Step(entered.number, flutter=False, before=before, window=window, traces=len(since))

    def _alternates(self, current: RouteMemory, other: RouteMemory, trace: _Trace) -> bool:
        """Whether the one flow that is traced went there and back between these two all along."""
        if len(trace.passages) > 1 or len(self._numbers) < WITHIN:
            return False
        numbers = [*self._numbers, other.number]
        turns = sum(one != following for one, following in itertools.pairwise(numbers))
        return set(numbers) == {current.number, other.number} and turns >= ALTERNATIONS

    def _held(self, current: RouteMemory) -> RouteMemory | None:
        """A known route that turned out to be this one; it is known no more."""
        others = (one for one in self._known.values() if one is not current)
        held = next((one for one in others if current.holds(one)), None)
        if held is not None:
            del self._known[held.number]
            current.absorb(held)
        return held

    def _joined(self, left: RouteMemory, entered: RouteMemory, trace: _Trace) -> Step:
        self._known.pop(left.number, None)
        self._enter(entered)
        entered.take(trace.passages, trace.ended_ns)
        self._note(trace, entered)
        return Step(entered.number, flutter=True, joined=left.number)

    def _note(self, trace: _Trace, route: RouteMemory) -> None:
        self._recent.append(trace)
        self._numbers.append(route.number)

    def _route_for(
        self, traces: list[_Trace], other_than: RouteMemory | None = None
    ) -> RouteMemory:
        """The latest known route that these traces can show, else a new one."""
        for known in reversed(self._known.values()):
            if known is not other_than and all(known.fits(one.passages) for one in traces):
                return known
        self._made += 1
        return RouteMemory(self._made)

    def _enter(self, route: RouteMemory) -> RouteMemory:
        self._known.pop(route.number, None)
        self._known[route.number] = route
        while len(self._known) > MOST_ROUTES:
            del self._known[next(iter(self._known))]
        self._current = route
        return route

    def _reduced(self, observation: PathObservation) -> _Trace:
        origins = self._sight.origins
        passages = tuple(
            Passage(
                flow.flow,
                self._sight.canonical(flow),
                flow.answered,
                as_path(flow, origins) if origins is not None else (),
            )
            for flow in observation.flows
        )
        return _Trace(observation.started_unix_ns, observation.ended_unix_ns, passages)


def _described(route: RouteMemory, until_ns: int | None) -> Route:
    """The route with the paths seen until then; without those that reached nobody, if any did."""
    rows = list(route.paths.values())
    rows = [row for row in rows if until_ns is None or row.first_ns <= until_ns] or rows
    rows = [row for row in rows if row.path.reached] or rows
    counted = representatives((row.path, row.count) for row in rows)
    dominant = next(iter(counted))
    return Route(
        number=route.number,
        paths=frozenset(path.words for path in counted),
        as_path=_as_path(rows, dominant),
        dominant=dominant,
    )


def _as_path(rows: list[PathRow], dominant: Canonical) -> Words:
    return next((row.as_path for row in rows if row.path == dominant), ())
