"""Incidents held against what was injected. One incident answers for one event, and no more."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from pathbudget.analysis.routes.model import Cause, Incident


class Injected(NamedTuple):
    """One event of the truth. `causes`: words that are right for it; empty: nothing to report.

    `cost_ns`: what it cost each of the pairs that it met, where that can be told.
    """

    name: str
    at_unix_ns: int
    until_unix_ns: int | None
    causes: frozenset[Cause]
    cost_ns: tuple[float, ...] = ()
    done_unix_ns: int | None = None
    """Where it took a while: when it had happened altogether."""
    cost_error_ns: float = 0.0
    """The truth itself is known no better than this."""
    slow: bool = False
    """It swells: its beginning is when anybody can notice it, within its first half."""


class Stalled(NamedTuple):
    """A time in which the network stood still or dragged by itself: it may be told, or not."""

    began_unix_ns: int
    ended_unix_ns: int


DELAYED = frozenset({Cause.LEVEL, Cause.QUEUE, Cause.LOSS, Cause.OUTAGE})
"""What packets that come late may be called; nobody moves or withdraws a route by it."""


@dataclass
class Score:
    """What came of a run. `late`, `wrong_cause` and `wrong_cost` are of those that were found."""

    injected: int = 0
    found: list[str] = field(default_factory=list[str])
    missed: list[str] = field(default_factory=list[str])
    twice: list[str] = field(default_factory=list[str])
    false: list[str] = field(default_factory=list[str])
    late: list[str] = field(default_factory=list[str])
    wrong_cause: list[str] = field(default_factory=list[str])
    wrong_cost: list[str] = field(default_factory=list[str])
    stalled: list[str] = field(default_factory=list[str])
    """Incidents that are true of a stall: neither right nor wrong about what was injected."""

    @property
    def recall(self) -> float:
        """Share of the injected events that were reported."""
        return len(self.found) / self.injected if self.injected else 1.0

    @property
    def precision(self) -> float:
        """Share of the incidents that stand for an event of their own, stalls apart."""
        said = len(self.found) + len(self.twice) + len(self.false)
        return len(self.found) / said if said else 1.0

    @property
    def is_perfect(self) -> bool:
        """Every event once, in time, by its right name and cost, and nothing else."""
        faults = (self.missed, self.twice, self.false, self.late, self.wrong_cause, self.wrong_cost)
        return not any(faults)

    def add(self, other: "Score") -> None:
        """Take the numbers of another run."""
        self.injected += other.injected
        names = "found", "missed", "twice", "false", "late", "wrong_cause", "wrong_cost", "stalled"
        for name in names:
            getattr(self, name).extend(getattr(other, name))


def score(
    truth: Sequence[Injected],
    incidents: Sequence[Incident],
    interval_ns: int,
    stalls: Sequence[Stalled] = (),
) -> Score:
    """Each incident belongs to the event whose time is nearest its own.

    One that is called what such an event may not be called, or that would be the second about it,
    belongs to the stall at its time where there is one.
    """
    events = [one for one in truth if one.causes]
    result, taken = Score(injected=len(events)), set[int]()
    for incident in incidents:
        near = [(_off(one, incident), n) for n, one in enumerate(events)]
        near = [(off, n) for off, n in near if off <= _reach(events[n], interval_ns)]
        right = [pair for pair in near if incident.cause in events[pair[1]].causes]
        if _in_stall(incident, stalls, interval_ns) and (not right or min(right)[1] in taken):
            result.stalled.append(f"{incident.cause}: {incident.reason}")
            continue
        right = right or near
        if not right:
            result.false.append(f"{incident.cause}: {incident.reason}")
            continue
        off, number = min(right)
        event = events[number]
        if number in taken:
            result.twice.append(f"{event.name} as {incident.cause}: {incident.reason}")
            continue
        taken.add(number)
        result.found.append(event.name)
        _judge(result, event, incident, off, interval_ns)
    result.missed += [one.name for n, one in enumerate(events) if n not in taken]
    return result


def _judge(result: Score, event: Injected, incident: Incident, off: int, interval_ns: int) -> None:
    if off > _tolerance(event, interval_ns):
        result.late.append(f"{event.name} by {off / 1e9:.2f} s")
    if incident.cause not in event.causes:
        result.wrong_cause.append(f"{event.name} as {incident.cause}")
    cost, error = incident.cost, event.cost_error_ns
    if event.cost_ns and (
        cost is None
        or not any(cost.low_ns - error <= one <= cost.high_ns + error for one in event.cost_ns)
    ):
        said = "nothing" if cost is None else f"{cost.low_ns / 1e6:.3f} to {cost.high_ns / 1e6:.3f}"
        result.wrong_cost.append(f"{event.name}: {said} ms")


def _in_stall(incident: Incident, stalls: Sequence[Stalled], interval_ns: int) -> bool:
    first, last = incident.window
    return incident.cause in DELAYED and any(
        one.began_unix_ns - interval_ns <= last and first <= one.ended_unix_ns + interval_ns
        for one in stalls
    )


def _off(event: Injected, incident: Incident) -> int:
    """By how much the window of the incident misses the time of the event; 0: it holds it."""
    first, last = incident.window
    done = event.at_unix_ns if event.done_unix_ns is None else event.done_unix_ns
    return max(0, first - done, event.at_unix_ns - last)


def _reach(event: Injected, interval_ns: int) -> int:
    """So far from an event an incident may be and still be a late word about it."""
    return _tolerance(event, interval_ns) + 10 * interval_ns


def _tolerance(event: Injected, interval_ns: int) -> int:
    if event.slow and event.until_unix_ns is not None:
        return (event.until_unix_ns - event.at_unix_ns) // 2
    return interval_ns
