"""Set-ups of connections: what each mode costs over each transport, and which the server takes."""

import math
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.request import beside
from pathbudget.analysis.request_numbers import (
    median_ms,
    middle,
    quantile_ms,
    share_of,
    signed_quantile,
)
from pathbudget.analysis.request_results import Range, Resumption, SetupSummary, TicketAge
from pathbudget.analysis.results import Carrier, Mode
from pathbudget.analysis.series import NOT_OF_THE_PATH, OTHER_MODE
from pathbudget.analysis.shots import Shot, ShotKey, whole_note, word_note
from pathbudget.analysis.stream_results import Bounded
from pathbudget.analysis.summary import milliseconds
from pathbudget.analysis.track import Track
from pathbudget.analysis.under_load import added_by_load
from pathbudget.probes.record import FailureKind, Flag, Measurement, Metric

NEW = (Mode.COLD, Mode.RESUMED, Mode.EARLY_DATA)
AGE_LIMITS_S = (0.0, 1.0, 10.0, 60.0, 600.0, 3600.0, 86_400.0)
"""Tickets are counted by these ages."""

EXTRA_FLIGHTS = (Flag.HELLO_RETRY, Flag.SECOND_FLIGHT, Flag.RETRY, Flag.VERSION_NEGOTIATION)
"""Each is one more round trip."""

SHORTEST_NS = 1_000_000
"""Beside a shorter round trip it is computing that takes the time, and counts no round trips."""
LARGEST_REST = 0.5
"""Round trips by which a set-up may differ from the whole flights that were seen."""

RoundTrips = Callable[[ShotKey], Track | None]
"""The round trips of the path to a target."""


@dataclass(slots=True)
class SetupGroup:
    """Set-ups of one mode to one target, while they are counted."""

    key: ShotKey
    mode: Mode
    sent: "array[int]" = field(default_factory=lambda: array("q"))
    setups: "array[float]" = field(default_factory=lambda: array("d"))
    look_ups: "array[float]" = field(default_factory=lambda: array("d"))
    vantages: list[str] = field(default_factory=list[str])
    counts: Counter[str] = field(default_factory=Counter[str])
    flags: Counter[str] = field(default_factory=Counter[str])
    groups: Counter[str] = field(default_factory=Counter[str])
    reasons: Counter[str] = field(default_factory=Counter[str])
    ages: list[tuple[float, bool]] = field(default_factory=list[tuple[float, bool]])
    certificate_bytes: list[int] = field(default_factory=list[int])
    flight_bytes: list[int] = field(default_factory=list[int])
    compute: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, shot: Shot, vantage: str) -> None:
        """Count one set-up."""
        self.counts["asked"] += 1
        sample, value = shot.samples[Metric.SETUP], shot.value_ns(Metric.SETUP)
        notes = shot.notes()
        failure = sample.failure
        kind = "" if failure is None else _kind_word(failure.kind)
        if failure is not None and kind:
            self.counts[kind] += 1
            self.reasons[word_note(notes, "reason") or failure.detail or str(failure.kind)] += 1
        answered = value is not None and math.isfinite(value)
        age = whole_note(notes, "ticket_age_ms")
        if age is not None and (answered or kind == "other_mode"):
            self.ages.append((age / 1000, answered))
        if value is None:
            return
        self.sent.append(shot.sent_unix_ns)
        self.setups.append(value)
        self.look_ups.append(shot.value_ns(Metric.RESOLVE) or 0.0)
        self.vantages.append(vantage)
        if answered:
            self._note(shot, notes)

    def _note(self, shot: Shot, notes: dict[str, str | int | float | bool]) -> None:
        self.flags.update(shot.samples[Metric.SETUP].flags)
        if group := word_note(notes, "group", "key_exchange"):
            self.groups[group] += 1
        for kept, names in (
            (self.certificate_bytes, ("certificate_bytes",)),
            (self.flight_bytes, ("flight_bytes", "server_flight_bytes", "server_bytes")),
        ):
            if (size := whole_note(notes, *names)) is not None:
                kept.append(size)
        compute = shot.value_ns(Metric.CLIENT_COMPUTE)
        if compute is not None:
            self.compute.append(compute)

    def track(self, vantages: Mapping[str, int]) -> Track:
        """Set-ups in order of time."""
        return _ordered(self, np.array(self.setups), vantages)

    def beside(
        self, vantages: Mapping[str, int], round_trips: Track | None
    ) -> tuple[Values, Values]:
        """Set-ups without the look-up of the name, and the round trips beside them; of those that
        were answered.
        """
        if round_trips is None or not len(self.sent):
            return np.array([]), np.array([])
        arrived = np.isfinite(round_trips.values_ns)
        known = Track(
            round_trips.sent_unix_ns[arrived],
            round_trips.values_ns[arrived],
            round_trips.vantages[arrived],
        )
        track = _ordered(self, np.array(self.setups) - np.array(self.look_ups), vantages)
        nearest = beside(track, known)
        both = np.isfinite(track.values_ns) & np.isfinite(nearest)
        return track.values_ns[both], nearest[both]


def _ordered(group: SetupGroup, values: Values, vantages: Mapping[str, int]) -> Track:
    sent = np.array(group.sent, dtype=np.int64)
    numbers = np.array([vantages[name] for name in group.vantages], dtype=np.int64)
    order = np.lexsort((values, numbers, sent))
    return Track(sent[order], values[order], numbers[order])


def _kind_word(kind: FailureKind) -> str:
    """How a failure of the mode itself is counted; empty for any other failure."""
    if kind in OTHER_MODE:
        return "other_mode"
    return "unavailable" if kind is FailureKind.UNAVAILABLE else ""


class SetupCollector:
    """Takes measurements one at a time and keeps set-ups of new connections."""

    def __init__(self) -> None:
        self._groups: dict[tuple[ShotKey, Mode], SetupGroup] = {}

    def add(self, measurement: Measurement, key: ShotKey, shots: Sequence[Shot]) -> None:
        """Take the set-ups of a measurement, but for those of a name server."""
        if measurement.probe in NOT_OF_THE_PATH:
            return
        key = key._replace(transport=key.transport or Carrier.TLS)
        for shot in shots:
            mode = _mode(shot, measurement)
            if mode is not None and mode in NEW and Metric.SETUP in shot.samples:
                group = self._groups.setdefault((key, mode), SetupGroup(key, mode))
                group.add(shot, measurement.vantage.name)

    def groups(self) -> tuple[SetupGroup, ...]:
        """All groups in their order."""
        order = sorted(self._groups, key=lambda one: (*one[0].sort_key(), NEW.index(one[1])))
        return tuple(self._groups[key] for key in order)


def _mode(shot: Shot, measurement: Measurement) -> Mode | None:
    """The mode that a set-up is of, or was meant to be of."""
    sample = shot.samples.get(Metric.SETUP)
    if sample is None:
        return None
    kind = sample.failure.kind if sample.failure is not None else None
    if kind is FailureKind.NOT_RESUMED and sample.mode is None:
        return Mode.RESUMED
    if kind is FailureKind.EARLY_DATA_REJECTED:
        return Mode.EARLY_DATA
    word = sample.mode or measurement.options.get("mode")
    return Mode(str(word)) if word in list(Mode) else None


def summarise_setups(
    groups: Iterable[SetupGroup],
    vantages: Mapping[str, int],
    round_trips: RoundTrips,
    confidence: float,
) -> tuple[SetupSummary, ...]:
    """One summary for each group."""
    return tuple(_summary(one, vantages, round_trips(one.key), confidence) for one in groups)


def _summary(
    group: SetupGroup, vantages: Mapping[str, int], round_trips: Track | None, confidence: float
) -> SetupSummary:
    track, counts, flags = group.track(vantages), group.counts, group.flags
    key = group.key
    answered = track.n - track.losses
    offered = answered + counts["other_mode"]
    setups, trips = group.beside(vantages, round_trips)
    expected = flights_of(
        key.transport or Carrier.TLS, group.mode, answered, (flags[one] for one in EXTRA_FLIGHTS)
    )
    return SetupSummary(
        region=key.region,
        site=key.site,
        target=key.target,
        family=key.family,
        probe=key.probe + (f" {key.variant}" if key.variant else ""),
        transport=key.transport or "",
        mode=group.mode,
        asked=counts["asked"],
        n=track.n,
        losses=track.losses,
        other_mode=counts["other_mode"],
        unavailable=counts["unavailable"],
        reasons=dict(group.reasons.most_common(8)),
        accepted_share=None if group.mode is Mode.COLD else share_of(answered, offered, confidence),
        ticket_ages=_ticket_ages(group.ages),
        setup_p50_ms=quantile_ms(track, 0.5, confidence) if track.n else None,
        setup_p95_ms=quantile_ms(track, 0.95, confidence) if track.n else None,
        round_trips_p50=_ratio(setups, trips, expected, confidence),
        round_trip_p50_ms=median_ms(trips),
        hello_retries=flags[Flag.HELLO_RETRY],
        second_flights=flags[Flag.SECOND_FLIGHT],
        retries=flags[Flag.RETRY],
        version_negotiations=flags[Flag.VERSION_NEGOTIATION],
        amplification_stalls=flags[Flag.AMPLIFICATION_STALL],
        groups=dict(sorted(group.groups.items())),
        certificate_bytes=middle(group.certificate_bytes),
        flight_bytes=middle(group.flight_bytes),
        client_compute_p50_ms=median_ms(np.array(group.compute)),
    )


def _ratio(setups: Values, round_trips: Values, expected: int, confidence: float) -> Range | None:
    """Set-ups in round trips, where those are what set-ups consist of. Beside short ones the host
    and the server take so long that the ratio counts nothing.
    """
    if not len(setups) or float(np.median(round_trips)) < SHORTEST_NS:
        return None
    found = signed_quantile(setups / round_trips, 0.5, confidence)
    middle = None if found is None else found.value
    return found if middle is not None and abs(middle - expected) <= LARGEST_REST else None


def flights_of(transport: str, mode: str, answered: int, extras: Iterable[int]) -> int:
    """Round trips by what was seen on the wire: those of the protocol, and each extra one that most
    set-ups had. A ratio of times cannot tell a round trip from computing where both are short.
    """
    base = (2 if transport == Carrier.TLS else 1) - (mode == Mode.EARLY_DATA)
    return base + sum(2 * n > answered for n in extras)


def _ticket_ages(ages: Iterable[tuple[float, bool]]) -> tuple[TicketAge, ...]:
    """Tickets offered and taken, by age."""
    every = list(ages)
    ends = (*AGE_LIMITS_S[1:], None)
    found: list[TicketAge] = []
    for low, high in zip(AGE_LIMITS_S, ends, strict=True):
        inside = [taken for age, taken in every if age >= low and (high is None or age < high)]
        if inside:
            found.append(
                TicketAge(at_least_s=low, below_s=high, offered=len(inside), accepted=sum(inside))
            )
    return tuple(found)


def resumptions(
    groups: Iterable[SetupGroup],
    summaries: Iterable[SetupSummary],
    vantages: Mapping[str, int],
    confidence: float,
) -> tuple[Resumption, ...]:
    """Every mode that offers a ticket, against cold set-ups of the same probe and target."""
    every = list(zip(groups, summaries, strict=True))
    cold = {group.key: (group, summary) for group, summary in every if group.mode is Mode.COLD}
    return tuple(
        _resumption(*cold[group.key], group, summary, vantages, confidence)
        for group, summary in every
        if group.mode is not Mode.COLD and group.key in cold and summary.n and cold[group.key][1].n
    )


def _resumption(
    cold_group: SetupGroup,
    cold: SetupSummary,
    group: SetupGroup,
    summary: SetupSummary,
    vantages: Mapping[str, int],
    confidence: float,
) -> Resumption:
    saved = added_by_load(
        group.track(vantages).values_ns, cold_group.track(vantages).values_ns, 0.5, confidence
    )
    assert saved is not None  # both have samples
    return Resumption(
        region=summary.region,
        site=summary.site,
        target=summary.target,
        family=summary.family,
        probe=summary.probe,
        transport=summary.transport,
        mode=summary.mode,
        saved_ms=Bounded(
            value_ms=milliseconds(saved.value),
            low_ms=milliseconds(saved.low),
            high_ms=milliseconds(saved.high),
        ),
        saved_round_trips=_less(_middle(cold.round_trips_p50), _middle(summary.round_trips_p50)),
        saved_bytes=_saved_bytes(cold, summary),
        saved_compute_ms=_less(cold.client_compute_p50_ms, summary.client_compute_p50_ms),
    )


def _middle(found: Range | None) -> float | None:
    return None if found is None else found.value


def _less(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first - second


def _saved_bytes(cold: SetupSummary, other: SetupSummary) -> int | None:
    if cold.flight_bytes is not None and other.flight_bytes is not None:
        return cold.flight_bytes - other.flight_bytes
    if cold.certificate_bytes is None:
        return None
    return cold.certificate_bytes - (other.certificate_bytes or 0)
