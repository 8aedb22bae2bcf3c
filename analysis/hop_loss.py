"""Loss at a hop of a trace: real, or a router that answers only so many probes a second.

A router forwards in hardware and answers in software, slowly and under a limit (RFC 1812 section
4.3.2.8). What it does not answer says nothing of what it forwards: loss is real only if every later
hop, to the destination, loses at least as much.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from pathbudget.analysis.proportion import clopper_pearson
from pathbudget.analysis.routes.model import PathObservation, PathSeries


class HopVerdict(StrEnum):
    """What the missing answers of a hop mean."""

    CLEAN = "clean"
    """It answered everything."""
    RATE_LIMITED = "rate-limited responder"
    """It answered less than a later hop, which every packet had to reach through it."""
    SILENT = "silent"
    """It never answered, and later hops did."""
    LOSS = "loss"
    """All later hops miss at least as much, to the destination: packets are lost up to here."""
    UNDECIDED = "undecided"
    """The destination never answered, or the intervals cannot tell."""


@dataclass(frozen=True, slots=True)
class Hop:
    """How many probes were sent with this hop limit, and how many it answered."""

    ttl: int
    sent: int
    answered: int

    @property
    def missing(self) -> int:
        """Probes without an answer."""
        return self.sent - self.answered


@dataclass(frozen=True, slots=True)
class JudgedHop:
    """A hop and what its missing answers mean."""

    hop: Hop
    verdict: HopVerdict
    lost_at_least: float
    """Share of the packets that is surely lost on the way up to this hop and back."""


def judge_hops(
    hops: Sequence[Hop], *, reached: bool, confidence: float = 0.95
) -> tuple[JudgedHop, ...]:
    """One verdict per hop, in order of hop limit. `reached`: the last hop is the destination.

    The loss up to a hop is at most the upper end of the loss of any later hop. A hop whose own
    lower end lies above that does not answer all that it forwards.
    """
    return tuple(
        _judged(hop, hops[i + 1 :], reached=reached, confidence=confidence)
        for i, hop in enumerate(hops)
    )


def _judged(hop: Hop, later: Sequence[Hop], *, reached: bool, confidence: float) -> JudgedHop:
    low, _ = clopper_pearson(hop.missing, hop.sent, confidence)
    bounds = [clopper_pearson(one.missing, one.sent, confidence) for one in later if one.sent]
    if hop.missing == 0 or not hop.sent:
        return JudgedHop(hop, HopVerdict.CLEAN if hop.sent else HopVerdict.UNDECIDED, 0.0)
    if bounds and low > min(high for _, high in bounds):
        silent = hop.answered == 0
        return JudgedHop(hop, HopVerdict.SILENT if silent else HopVerdict.RATE_LIMITED, 0.0)
    persists = [low, *(its_low for its_low, _ in bounds)]
    if reached and min(persists) > 0:
        return JudgedHop(hop, HopVerdict.LOSS, min(persists))
    return JudgedHop(hop, HopVerdict.UNDECIDED, 0.0)


@dataclass(frozen=True, slots=True)
class HopsToDestination:
    """The hops of one series while its destination was at this hop limit (None: never reached)."""

    series: PathSeries
    destination: int | None
    first_unix_ns: int
    last_unix_ns: int
    hops: tuple[JudgedHop, ...]


def hop_verdicts(
    observations: Iterable[PathObservation], confidence: float = 0.95
) -> list[HopsToDestination]:
    """What missing answers of each hop mean, counted over all flows, the series in their order.

    Traces are judged together as long as the destination is at one hop limit: on a longer way a
    packet with the old one dies before it, which is no loss. A trace that reached nobody counts
    with those before it, whose destination it did not reach.
    """
    counts: dict[PathSeries, dict[int | None, _Counts]] = {}
    distance: dict[PathSeries, int | None] = {}
    for observation in sorted(observations, key=lambda one: one.started_unix_ns):
        series = observation.series
        reached = [len(one.hops) for one in observation.flows if one.reached and one.gap is None]
        distance[series] = max(reached) if reached else distance.get(series)
        by_distance = counts.setdefault(series, {})
        known = by_distance.setdefault(distance[series], _Counts(observation.started_unix_ns))
        known.add(observation)
    return [
        known.judged(series, destination, confidence)
        for series, by_distance in counts.items()
        for destination, known in by_distance.items()
    ]


@dataclass(slots=True)
class _Counts:
    first_unix_ns: int
    last_unix_ns: int = 0
    hops: dict[int, tuple[int, int]] = field(default_factory=dict[int, tuple[int, int]])
    """Packets sent and answered by hop limit."""

    def add(self, observation: PathObservation) -> None:
        self.last_unix_ns = observation.ended_unix_ns
        for flow in observation.flows:
            packets = zip(flow.sent, flow.answered, strict=False)
            for limit, (sent, answered) in enumerate(packets, 1):
                if flow.gap is not None and limit == len(flow.hops):
                    continue  # a last try from far away: nobody knows at which hop
                before = self.hops.get(limit, (0, 0))
                self.hops[limit] = (before[0] + sent, before[1] + answered)

    def judged(
        self, series: PathSeries, destination: int | None, confidence: float
    ) -> HopsToDestination:
        hops = [
            Hop(limit, sent, answered)
            for limit, (sent, answered) in sorted(self.hops.items())
            if sent and (destination is None or limit <= destination)
        ]
        return HopsToDestination(
            series,
            destination,
            self.first_unix_ns,
            self.last_unix_ns,
            judge_hops(hops, reached=destination is not None, confidence=confidence),
        )
