"""Samples, streamed from measurements into one series of numbers per group.

A series is (region, site, target, address, probe, metric, mode, family, loaded, transport,
variant): IPv4 and IPv6, two addresses, two connection modes, TLS and QUIC, two versions of HTTP, an
idle path and one that our own traffic loads are never mixed here. What is in no series is in
`excluded`, with the reason; nothing else is left out, but for two kinds of numbers that may be
below zero: one-way transit times, whose level is the offset of two clocks (`packets` reads them),
and the chunks of streams (`token_streams`); and for packets that routers on the way answered
(`routes.observations`). A refused connect is in two series: a loss among the
connects, and a number among the refusals.
"""

import bisect
from array import array
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from pathbudget.analysis.track import Track
from pathbudget.analysis.variants import variant_of
from pathbudget.probes.record import (
    ClockSource,
    Failure,
    FailureKind,
    Flag,
    Measurement,
    Metric,
    Sample,
    Stage,
    Transport,
)

NS_PER_MS = 1_000_000.0
LOST = float("inf")

WALL_CLOCKS = frozenset({ClockSource.KERNEL, ClockSource.KERNEL_RECEIVE, ClockSource.FOREIGN})
"""Sources whose number a step of the wall clock spoils. The others read a monotonic clock."""

APART = frozenset(
    {
        *(Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE),
        *(Metric.DELIVERY_GAP, Metric.DELIVERY_VARIATION),
        Metric.HOP_RTT,
    }
)
"""Numbers that are no distribution of a delay to the target: others read them.

Most may be below zero. Round trips to routers on the way are delays to somebody else, and their
silence is no loss (`routes.observations`).
"""

MOST_DETAILS = 64
"""Different words of failures kept for one series; the rest is counted by kind alone."""

REFUSALS = "connect_refused"
"""Metric of the series of refused connects: SYN to RST, a round trip and no connection."""

NOT_SENT = frozenset(
    {
        *(FailureKind.PERMISSION, FailureKind.LOCAL, FailureKind.NO_ROUTE),
        FailureKind.UNAVAILABLE,
    }
)
"""Failures of this host: the network was not asked, so they are no loss (RFC 7680).

A host without IPv6 says nothing of a site over IPv6. Routers without a route are `UNREACHABLE`.
"""

NO_NAME = frozenset({FailureKind.NAME_NOT_FOUND, FailureKind.NO_ADDRESS, FailureKind.RESOLVER})
"""Failures of a name server: there was no address, so nothing was sent to the target.

They are losses of look-ups (metric `resolve`) and of nothing else.
"""


NOT_OF_THE_PATH = frozenset({"dns"})
"""Probes of something beside the service: their connections go to a name server."""

OTHER_MODE = {
    FailureKind.NOT_RESUMED: (
        "of handshakes that were not resumed",
        "the server made a full handshake, which says nothing of this mode",
    ),
    FailureKind.EARLY_DATA_REJECTED: (
        "of early data that was rejected",
        "the request had to be sent again, which says nothing of this mode",
    ),
}
"""Connections that turned out to be of another mode than the one asked for: what, and why."""


class SeriesKey(NamedTuple):
    """What all samples of one series have in common."""

    region: str
    site: str
    target: str
    address: str
    probe: str
    metric: str
    mode: str | None
    family: str | None
    loaded: bool = False
    """Measured while our own traffic loaded the path."""
    transport: str | None = None
    """What carries the requests of the probe."""
    variant: str = ""
    """What else tells series of one probe apart."""

    def sort_key(self) -> tuple[str, ...]:
        """Order of the series in every result; None sorts as the empty word, idle before loaded."""
        return tuple(str(part or "") for part in self)


@dataclass(slots=True)
class Series:
    """One series: its numbers and what is known of how they were read."""

    key: SeriesKey
    track: Track
    failures: Counter[str]
    clock_sources: Counter[str]
    flags: Counter[str]
    noise_floor_ns: int | None
    details: Counter[tuple[str, str]]
    """Failures by ``kind/stage`` and by the words of who noticed, the commonest first."""


@dataclass(slots=True)
class SeriesBuilder:
    """A series that grows. Vantages are numbered in the order they come, until `finish`."""

    key: SeriesKey
    sent: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))
    vantages: "array[int]" = field(default_factory=lambda: array("q"))
    sequence: "array[int]" = field(default_factory=lambda: array("q"))
    failures: Counter[str] = field(default_factory=Counter[str])
    clock_sources: Counter[str] = field(default_factory=Counter[str])
    flags: Counter[str] = field(default_factory=Counter[str])
    noise_floor_ns: int | None = None
    details: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    def finish(self, renumber: npt.NDArray[np.int64]) -> Series:
        """Sort by time; equal times by vantage, sequence, value: no order of arrival shows.

        Tools that stamp several packets with one time still number them, and neighbours matter.
        """
        sent = np.array(self.sent, dtype=np.int64)
        values = np.array(self.values, dtype=np.float64)
        vantages = renumber[np.array(self.vantages, dtype=np.int64)]
        sequence = np.array(self.sequence, dtype=np.int64)
        order = np.lexsort((values, sequence, vantages, sent))
        return Series(
            key=self.key,
            track=Track(sent[order], values[order], vantages[order]),
            failures=self.failures,
            clock_sources=self.clock_sources,
            flags=self.flags,
            noise_floor_ns=self.noise_floor_ns,
            details=self.details,
        )


def largest_known(known: int | None, new: int | None) -> int | None:
    """The larger of two numbers that may be unknown."""
    return new if known is None else known if new is None else max(known, new)


def loaded_samples(measurement: Measurement) -> Sequence[bool]:
    """For each sample, whether our own traffic loaded the path.

    A loss that does not say so itself goes with the sample that was sent nearest to it: the losses
    of a loaded path are no losses of the idle one.
    """
    samples = measurement.samples
    marked = [Flag.LOADED in sample.flags for sample in samples]
    if any(marked) and not all(marked):
        answered = sorted(
            (sample.sent_unix_ns, mark)
            for sample, mark in zip(samples, marked, strict=True)
            if sample.failure is None
        )
        for i, sample in enumerate(samples):
            if sample.failure is not None and not marked[i]:
                marked[i] = _nearest_mark(answered, sample.sent_unix_ns)
    return marked


def _nearest_mark(answered: Sequence[tuple[int, bool]], sent: int) -> bool:
    place = bisect.bisect(answered, (sent, False))
    near = answered[max(0, place - 1) : place + 1]
    return min(near, key=lambda one: abs(one[0] - sent))[1] if near else True


def place_of(measurement: Measurement) -> tuple[str, str]:
    """Region and site of a measurement; the vantage and the target stand in where none is given."""
    vantage, target = measurement.vantage, measurement.target
    return vantage.region or vantage.name, target.site or target.name


def transport_of(measurement: Measurement, metric: str = "") -> Transport | None:
    """What carried the requests. Records before version 4 do not say: TLS was all there was."""
    if measurement.transport is not None:
        return measurement.transport
    if measurement.probe == "tls" or metric in (Metric.SETUP, Metric.TLS_HANDSHAKE):
        return Transport.TLS
    return None


class SeriesCollector:
    """Takes measurements one at a time and keeps numbers alone."""

    def __init__(self) -> None:
        self.excluded: Counter[tuple[str, str]] = Counter()
        """(what, why) to how many samples."""
        self.unresolved: Counter[tuple[str, str, str]] = Counter()
        """(region, site, target) to how many samples had no address to be sent to."""
        self._builders: dict[SeriesKey, SeriesBuilder] = {}
        self._vantages: dict[str, int] = {}

    def add(self, measurement: Measurement) -> None:
        """Sort the samples of one measurement into their series."""
        vantage = self._vantages.setdefault(measurement.vantage.name, len(self._vantages))
        builders: _Builders = {}
        for sample, loaded in zip(measurement.samples, loaded_samples(measurement), strict=True):
            if sample.metric in APART:
                continue
            value = self._value_ns(sample, measurement)
            if value is None:
                continue
            metric = sample.metric
            refused = metric == Metric.CONNECT and Flag.REFUSED in sample.flags
            word = (REFUSALS if refused else metric, sample.mode, loaded)
            builder = builders.get(word)
            if builder is None:
                builder = builders[word] = self._builder(measurement, *word)
            _append(builder, sample, value, vantage)
            if refused:
                word = (metric, sample.mode, loaded)
                builder = builders.get(word) or self._builder(measurement, *word)
                builders[word] = builder
                _append(builder, _as_loss(sample), LOST, vantage)

    def finish(self) -> tuple[dict[SeriesKey, Series], tuple[str, ...]]:
        """All series in their order, and the names of the vantages by number."""
        names = tuple(sorted(self._vantages))
        renumber = np.zeros(max(1, len(names)), dtype=np.int64)
        for number, name in enumerate(names):
            renumber[self._vantages[name]] = number
        keys = sorted(self._builders, key=SeriesKey.sort_key)
        return {key: self._builders.pop(key).finish(renumber) for key in keys}, names

    def _builder(
        self, measurement: Measurement, metric: str, mode: str | None, loaded: bool
    ) -> SeriesBuilder:
        transport = transport_of(measurement, metric)
        key = SeriesKey(
            *place_of(measurement),
            target=measurement.target.name,
            address=measurement.address,
            probe=measurement.probe,
            metric=metric,
            mode=None if mode is None else str(mode),
            family=None if measurement.family is None else str(measurement.family),
            loaded=loaded,
            transport=None if transport is None else str(transport),
            variant=variant_of(measurement),
        )
        builder = self._builders.setdefault(key, SeriesBuilder(key))
        if measurement.noise is not None:
            floor = builder.noise_floor_ns or 0
            builder.noise_floor_ns = max(floor, measurement.noise.floor_ns)
        return builder

    def _value_ns(self, sample: Sample, measurement: Measurement) -> float | None:
        """The number that counts: +inf for a loss, None for a sample that is excluded."""
        if sample.failure is not None:
            return None if self._is_no_attempt(sample, measurement) else LOST
        value = float(sample.value_ns or 0)
        if not sample.flags and sample.responder is None and value >= 0:
            return value
        return self._marked_value_ns(sample, value, measurement.address)

    def _is_no_attempt(self, sample: Sample, measurement: Measurement) -> bool:
        failure = sample.failure
        assert failure is not None
        if failure.kind in NOT_SENT:
            what = f"{sample.metric} samples with failure {failure.kind}/{failure.stage}"
            self._exclude(what, "the measuring host could not send, so the network was not asked")
            return True
        if failure.kind in NO_NAME and sample.metric != Metric.RESOLVE:
            what = f"{sample.metric} samples with failure {failure.kind}/{failure.stage}"
            self._exclude(what, "the name had no address, so nothing was sent")
            self.unresolved[*place_of(measurement), measurement.target.name] += 1
            return True
        if (why := OTHER_MODE.get(failure.kind)) is not None:
            self._exclude(f"{sample.metric} samples {why[0]}", why[1])
            return True
        return False

    def _marked_value_ns(self, sample: Sample, value: float, address: str) -> float | None:
        if value < 0:
            self._exclude(f"{sample.metric} samples below zero", "no clock reads a negative time")
            return None
        if Flag.CLOCK_STEP in sample.flags and sample.clock_source in WALL_CLOCKS:
            what = f"{sample.metric} samples across a clock step"
            self._exclude(what, "read from the wall clock, which was stepped meanwhile")
            return None
        if sample.responder not in (None, address):
            what = f"{sample.metric} samples answered by another address"
            self._exclude(what, "the time to somebody else is no time to the target")
            return None
        if Flag.LATE in sample.flags:
            return LOST
        if Flag.SYN_RETRANSMITTED in sample.flags and sample.metric == Metric.CONNECT:
            what = "connect times with a retransmitted SYN"
            why = "they contain a retransmission timer (RFC 6298): counted as lost round trips"
            self._exclude(what, f"{why}; set-up times keep them")
            return LOST
        return value

    def _exclude(self, what: str, why: str) -> None:
        self.excluded[what, why] += 1


_Builders = dict[tuple[str, str | None, bool], SeriesBuilder]
"""By metric, mode and load, of one measurement."""


def _append(builder: SeriesBuilder, sample: Sample, value: float, vantage: int) -> None:
    builder.sent.append(sample.sent_unix_ns)
    builder.values.append(value)
    builder.vantages.append(vantage)
    builder.sequence.append(sample.seq)
    _note(builder, sample)


def _as_loss(sample: Sample) -> Sample:
    """A refused connect as a connection that did not come about."""
    failure = Failure(FailureKind.REFUSED, Stage.CONNECT)
    return msgspec.structs.replace(sample, value_ns=None, failure=failure)


def _note(builder: SeriesBuilder, sample: Sample) -> None:
    if sample.failure is None:
        builder.clock_sources[sample.clock_source] += 1
    else:
        words = f"{sample.failure.kind}/{sample.failure.stage}"
        builder.failures[words] += 1
        said = words, sample.failure.detail
        if said in builder.details or len(builder.details) < MOST_DETAILS:
            builder.details[said] += 1
    for flag in sample.flags:
        builder.flags[flag] += 1
