"""Packets one by one, in order of sending: what distributions of single delays cannot tell.

A stream is everything that one vantage sent to one address with one probe, idle or loaded. Transit
times of a reflector belong here and nowhere else: their level is the offset of two clocks.
"""

import re
from array import array
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.series import (
    LOST,
    NOT_SENT,
    WALL_CLOCKS,
    largest_known,
    loaded_samples,
    place_of,
)
from pathbudget.probes.record import Direction, Flag, Measurement, Metric, Sample

NOT_KNOWN = float("nan")
"""The packet was answered, and there is no number that could be used."""

TRAIN = re.compile(r"\btrain (\d+)\b")

LOST_FORWARD, LOST_REVERSE, DUPLICATED, HOST_BUSY, STEPPED = 1, 2, 4, 8, 16

Numbers = npt.NDArray[np.int64]


class StreamKey(NamedTuple):
    """What all packets of one stream have in common."""

    region: str
    site: str
    target: str
    address: str
    probe: str
    family: str | None
    vantage: str
    options: str
    """Options of the probe: packets of two sizes or classes are two streams."""
    train: int
    """Packets per train; 1 where they are sent one by one."""
    loaded: bool

    def sort_key(self) -> tuple[str, ...]:
        """Order of the streams in every result."""
        return tuple(f"{part:09d}" if isinstance(part, int) else part or "" for part in self)


@dataclass(frozen=True, slots=True)
class Transits:
    """One-way times of the packets of a stream, ns; NaN where there is none.

    Clocks may be decades apart (a reflector without a battery starts in 1970), and a float64 of so
    many nanoseconds is good to 256 of them: so the first time is taken off while all are integers.
    """

    values_ns: Values
    """What each is beyond `base_ns`."""
    errors_ns: Values
    """What the clocks' own statement allows for; NaN where nobody vouches for them."""
    base_ns: int = 0

    def whole_ns(self, packet: int) -> int:
        """The time of one packet, as it was read from the two clocks."""
        return self.base_ns + round(float(self.values_ns[packet]))


@dataclass(frozen=True, slots=True)
class Stream:
    """Parallel arrays in order of sending, one entry per packet."""

    key: StreamKey
    sent_unix_ns: Numbers
    sequence: Numbers
    round_trips_ns: Values
    """``inf`` for a loss, NaN for an answer without a usable number."""
    received_ns: Values
    """When the first answer came, ns after `sent_unix_ns`; for the order of arrival alone. ``inf``
    for a loss, whatever a router may have said of it or come too late."""
    forward: Transits
    reverse: Transits
    flows: Numbers
    """-1 where the packets of a flow are not told apart."""
    runs: Numbers
    """Which measurement each packet is of, from 0 in order of their first packets."""
    flow_sets: Numbers
    """By measurement: those of one number used the same flows. Another may see other paths."""
    marks: npt.NDArray[np.uint8]
    counters: Counter[str]
    noise_floor_ns: int | None
    tmax_ns: int | None
    clock_steps: int
    """Steps that this host's own clock took, as it says itself."""

    @property
    def n(self) -> int:
        """Packets sent."""
        return len(self.sent_unix_ns)

    @property
    def lost(self) -> npt.NDArray[np.bool_]:
        """Which packets were not answered in time."""
        return np.isinf(self.round_trips_ns)

    @property
    def timed(self) -> npt.NDArray[np.bool_]:
        """Which packets have a round trip and a transit time each way."""
        return np.isfinite(self.round_trips_ns + self.forward.values_ns + self.reverse.values_ns)

    def marked(self, mark: int) -> int:
        """How many packets carry the mark."""
        return int(np.count_nonzero(self.marks & mark))


@dataclass(slots=True)
class _TransitBuilder:
    sent: "array[int]" = field(default_factory=lambda: array("q"))
    sequence: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[int]" = field(default_factory=lambda: array("q"))
    errors: "array[float]" = field(default_factory=lambda: array("d"))

    def add(self, sample: Sample) -> None:
        self.sent.append(sample.sent_unix_ns)
        self.sequence.append(sample.seq)
        self.values.append(sample.value_ns or 0)
        error = sample.error_ns
        self.errors.append(NOT_KNOWN if error is None else float(error))

    def beside(self, sent: Numbers, sequence: Numbers) -> Transits:
        """Each transit beside the packet of the same send time and number."""
        values, errors = np.full(len(sent), NOT_KNOWN), np.full(len(sent), NOT_KNOWN)
        own_sent = np.array(self.sent, dtype=np.int64)
        own_sequence = np.array(self.sequence, dtype=np.int64)
        kind = np.concatenate((np.zeros(len(sent)), np.ones(len(own_sent))))
        all_sent = np.concatenate((sent, own_sent))
        all_sequence = np.concatenate((sequence, own_sequence))
        order = np.lexsort((kind, all_sequence, all_sent))
        after, before = order[1:], order[:-1]
        joined = (kind[after] == 1) & (kind[before] == 0)
        joined &= all_sent[after] == all_sent[before]
        joined &= all_sequence[after] == all_sequence[before]
        packets, own = before[joined], after[joined] - len(sent)
        whole = np.array(self.values, dtype=np.int64)[own]
        base = int(whole[np.argmin(packets)]) if len(packets) else 0
        values[packets] = whole - base
        errors[packets] = np.array(self.errors)[own]
        return Transits(values, errors, base)


@dataclass(slots=True)
class _StreamBuilder:
    sent: "array[int]" = field(default_factory=lambda: array("q"))
    sequence: "array[int]" = field(default_factory=lambda: array("q"))
    values: "array[float]" = field(default_factory=lambda: array("d"))
    received: "array[float]" = field(default_factory=lambda: array("d"))
    flows: "array[int]" = field(default_factory=lambda: array("q"))
    runs: "array[int]" = field(default_factory=lambda: array("q"))
    senders: list[str] = field(default_factory=list[str])
    """Who sent, by measurement: the run, which keeps the flows that its samples do not tell."""
    marks: "array[int]" = field(default_factory=lambda: array("B"))
    forward: _TransitBuilder = field(default_factory=_TransitBuilder)
    reverse: _TransitBuilder = field(default_factory=_TransitBuilder)
    counters: Counter[str] = field(default_factory=Counter[str])
    noise_floor_ns: int | None = None
    tmax_ns: int | None = None
    clock_steps: int = 0
    counted: str = ""

    def note(self, measurement: Measurement) -> None:
        """What the envelope says, once per measurement."""
        if self.counted == measurement.id:
            return
        self.counted = measurement.id
        self.senders.append(str(measurement.options.get("run", "")))
        self.counters.update(measurement.counters)
        noise, clock = measurement.noise, measurement.clock
        self.noise_floor_ns = largest_known(
            self.noise_floor_ns, None if noise is None else noise.floor_ns
        )
        self.clock_steps = max(self.clock_steps, 0 if clock is None else clock.steps)
        self.tmax_ns = largest_known(self.tmax_ns, _tmax_ns(measurement))

    def add(self, sample: Sample, address: str) -> None:
        """One packet."""
        value = _round_trip(sample, address)
        self.sent.append(sample.sent_unix_ns)
        self.sequence.append(sample.seq)
        self.values.append(value)
        self.received.append(_received(sample, value))
        self.flows.append(-1 if sample.flow is None else sample.flow)
        self.runs.append(len(self.senders) - 1)
        self.marks.append(_marks(sample))

    def finish(self, key: StreamKey) -> Stream:
        sent = np.array(self.sent, dtype=np.int64)
        sequence = np.array(self.sequence, dtype=np.int64)
        order = np.lexsort((sequence, sent))
        sent, sequence = sent[order], sequence[order]
        flows = np.array(self.flows, dtype=np.int64)[order]
        runs, senders = self._runs(order)
        return Stream(
            key=key,
            sent_unix_ns=sent,
            sequence=sequence,
            round_trips_ns=np.array(self.values)[order],
            received_ns=np.array(self.received)[order],
            forward=self.forward.beside(sent, sequence),
            reverse=self.reverse.beside(sent, sequence),
            flows=flows,
            runs=runs,
            flow_sets=_flow_sets(runs, flows, senders),
            marks=np.array(self.marks, dtype=np.uint8)[order],
            counters=self.counters,
            noise_floor_ns=self.noise_floor_ns,
            tmax_ns=self.tmax_ns,
            clock_steps=self.clock_steps,
        )

    def _runs(self, order: npt.NDArray[np.intp]) -> tuple[Numbers, list[str]]:
        """Measurements numbered by their first packets, whatever order they came in."""
        names, first, which = np.unique(
            np.array(self.runs, dtype=np.int64)[order], return_index=True, return_inverse=True
        )
        by_time = np.argsort(first)
        ranks = np.empty(len(names), dtype=np.int64)
        ranks[by_time] = np.arange(len(names))
        return ranks[which], [self.senders[int(names[i])] for i in by_time]


def _flow_sets(runs: Numbers, flows: Numbers, senders: list[str]) -> Numbers:
    """Measurements with the same flows get the same number; see `Stream.flow_sets`."""
    numbers: dict[tuple[object, ...], int] = {}
    found: list[int] = []
    by_run = flows[np.argsort(runs, kind="stable")]
    ends = np.cumsum(np.bincount(runs, minlength=len(senders)))
    for sender, mine in zip(senders, np.split(by_run, ends), strict=False):
        used = tuple(np.unique(mine[mine >= 0]).tolist())
        found.append(numbers.setdefault(used or (sender,), len(numbers)))
    return np.array(found, dtype=np.int64)


def _tmax_ns(measurement: Measurement) -> int | None:
    """How long an answer was waited for, where the options of the probe say it."""
    value = measurement.options.get("timeout_ns")
    return value if isinstance(value, int) else None


def _round_trip(sample: Sample, address: str) -> float:
    if sample.failure is not None or Flag.LATE in sample.flags:
        return LOST
    value = float(sample.value_ns or 0)
    foreign = sample.responder not in (None, address)
    return NOT_KNOWN if value < 0 or _is_stepped(sample) or foreign else value


def _is_stepped(sample: Sample) -> bool:
    return Flag.CLOCK_STEP in sample.flags and sample.clock_source in WALL_CLOCKS


def _received(sample: Sample, value: float) -> float:
    """By the best clock that saw the answer; else by the round trip itself.

    Only an answer in time is an arrival: an error of a router is another packet than ours.
    """
    stamps = sample.stamps
    if stamps is None or value == LOST:
        return value
    if _is_stepped(sample):
        return NOT_KNOWN
    if stamps.kernel_received_ns is not None:
        return float(stamps.kernel_received_ns)
    return value if stamps.user_received_ns is None else float(stamps.user_received_ns)


def _marks(sample: Sample) -> int:
    marks = DUPLICATED * (Flag.DUPLICATED in sample.flags)
    marks |= HOST_BUSY * (Flag.HOST_BUSY in sample.flags)
    marks |= STEPPED * (Flag.CLOCK_STEP in sample.flags)
    if sample.failure is not None and sample.failure.direction is not None:
        forward = sample.failure.direction is Direction.FORWARD
        marks |= LOST_FORWARD if forward else LOST_REVERSE
    return marks


class PacketCollector:
    """Takes measurements one at a time and keeps the packets of the probes that send any."""

    def __init__(self) -> None:
        self._builders: dict[StreamKey, _StreamBuilder] = {}

    def add(self, measurement: Measurement) -> None:
        """Take the round trips and the transit times of one measurement."""
        builders: dict[bool, _StreamBuilder] = {}
        for sample, loaded in zip(measurement.samples, loaded_samples(measurement), strict=True):
            metric = sample.metric
            if metric not in (Metric.RTT, Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE):
                continue
            builder = builders.get(loaded)
            if builder is None:
                builder = builders[loaded] = self._builder(measurement, loaded)
            if metric == Metric.RTT:
                if sample.failure is None or sample.failure.kind not in NOT_SENT:
                    builder.add(sample, measurement.address)
            elif sample.value_ns is not None and Flag.CLOCK_STEP not in sample.flags:
                forward = metric == Metric.TRANSIT_FORWARD
                (builder.forward if forward else builder.reverse).add(sample)

    def finish(self) -> tuple[Stream, ...]:
        """All streams that sent anything, in their order."""
        keys = sorted(self._builders, key=StreamKey.sort_key)
        streams = (self._builders.pop(key).finish(key) for key in keys)
        return tuple(stream for stream in streams if stream.n)

    def _builder(self, measurement: Measurement, loaded: bool) -> _StreamBuilder:
        train = TRAIN.search(measurement.schedule)
        key = StreamKey(
            *place_of(measurement),
            target=measurement.target.name,
            address=measurement.address,
            probe=measurement.probe,
            family=None if measurement.family is None else str(measurement.family),
            vantage=measurement.vantage.name,
            options=_options_text(measurement),
            train=1 if train is None else max(1, int(train[1])),
            loaded=loaded,
        )
        builder = self._builders.setdefault(key, _StreamBuilder())
        builder.note(measurement)
        return builder


def _options_text(measurement: Measurement) -> str:
    """What was asked of the probe. Runs and time limits do not make another stream."""
    return ", ".join(
        f"{name}={value}"
        for name, value in sorted(measurement.options.items())
        if value is not None and name not in ("run", "timeout_ns")
    )
