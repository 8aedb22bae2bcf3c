"""Traces out of stored samples: one `PathObservation` for each.

A trace is what its samples say (docs/probes/trace.md): of every packet one ``hop_rtt`` with flow,
hop limit and responder, and of the destination one ``rtt`` or more, which carry the notes of the
whole. Measurements are read one at a time and nothing of them is kept.
"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from pathbudget.analysis.routes.model import FlowPath, PathObservation, PathSeries
from pathbudget.probes.record import FailureKind, Measurement, Metric, Sample
from pathbudget.probes.trace.contract import HopNote

LONGEST_STEP = 16
"""A hop limit that is so much larger than the one before it was a last try at the destination
after a gap of silent hops, and says nothing of the hops between."""

MOST_MEASUREMENTS, MOST_TRACES = 1_024, 64
"""Unfinished traces that are kept: of so many measurements, so many each."""

NOT_SENT = frozenset({FailureKind.PERMISSION, FailureKind.LOCAL, FailureKind.NO_ROUTE})
"""Failures of this host: no packet was sent, so no router was asked."""


def observe(measurements: Iterable[Measurement]) -> Iterator[PathObservation]:
    """The traces in `measurements`, in their order; measurements of other probes are passed over.

    A trace of which no packet was sent is none, nor is one that was cut off before its end.
    """
    for measurement in measurements:
        yield from observations_of(measurement)


def observations_of(measurement: Measurement) -> list[PathObservation]:
    """The traces of one whole measurement, by the time they began."""
    return Observer().see(measurement)


class Observer:
    """Traces out of measurements that come in pieces, as out of a journal that grows.

    A trace is told when its sample of the destination has come, which is the last one of it; until
    then its samples are kept, of so many measurements.
    """

    def __init__(self) -> None:
        self._open: dict[str, dict[int, _Trace]] = {}

    def see(self, piece: Measurement) -> list[PathObservation]:
        """Take a measurement, or the next samples of one; the traces that are whole now."""
        if not any(sample.metric == Metric.HOP_RTT for sample in piece.samples) and (
            piece.id not in self._open
        ):
            return []
        traces = self._open.pop(piece.id, {})
        for sample in piece.samples:
            if sample.metric == Metric.HOP_RTT and sample.part is not None:
                traces.setdefault(sample.seq, _Trace()).add(sample)
        for sample in piece.samples:
            if sample.metric == Metric.RTT and sample.seq in traces:
                traces[sample.seq].note(sample)
        whole = {seq for seq, trace in traces.items() if trace.ended_well or piece.imported_from}
        found = [traces[seq].observation(piece) for seq in whole]
        self._keep(piece.id, {seq: one for seq, one in traces.items() if seq not in whole})
        return sorted(filter(None, found), key=lambda one: one.started_unix_ns)

    def _keep(self, name: str, traces: "dict[int, _Trace]") -> None:
        if traces:
            self._open[name] = dict(itertools.islice(reversed(traces.items()), MOST_TRACES))
        while len(self._open) > MOST_MEASUREMENTS:
            del self._open[next(iter(self._open))]


def series_of(measurement: Measurement, protocol: str = "") -> PathSeries:
    """Whose path a measurement tells of."""
    vantage, target = measurement.vantage, measurement.target
    return PathSeries(
        vantage=vantage.name,
        region=vantage.region or vantage.name,
        site=target.site or target.name,
        target=target.name,
        address=measurement.address,
        family=measurement.family,
        protocol=protocol or str(measurement.options.get("protocol") or ""),
    )


@dataclass(slots=True)
class _Hop:
    """Packets of one flow with one hop limit."""

    sent: int = 0
    answered: int = 0
    responders: set[str] = field(default_factory=set[str])
    shortest_ns: float | None = None
    arrived: bool = False
    stack: str = ""

    def add(self, sample: Sample, address: str) -> None:
        self.sent += 1
        failure = sample.failure
        if failure is not None and sample.responder is None:
            return
        self.answered += 1
        self.arrived |= sample.responder is None
        self.responders.add(sample.responder or address)
        if sample.value_ns is not None:
            before = self.shortest_ns
            value = float(sample.value_ns)
            self.shortest_ns = value if before is None else min(before, value)
        if sample.notes:
            self.stack = self.stack or str(sample.notes.get(HopNote.MPLS, ""))


class _Trace:
    """One trace on its way together."""

    def __init__(self) -> None:
        self.packets: list[Sample] = []
        self.confidence: float | None = None
        self.protocol = ""
        self.ended_well = False
        """Whether its sample of the destination has come."""
        self._destination: Sample | None = None
        self._since = 0
        """The path changed under way: what was sent before is of a path that is no more."""

    def add(self, sample: Sample) -> None:
        """Take a packet on the way."""
        failure, part = sample.failure, sample.part
        if part is None or part < 1 or (failure is not None and failure.kind in NOT_SENT):
            return
        self.packets.append(sample)

    def note(self, sample: Sample) -> None:
        """Take what the sample of the destination says of the whole."""
        self.ended_well = True
        if sample.failure is None:
            self._destination = sample
        notes = sample.notes or {}
        confidence, changed = notes.get(HopNote.CONFIDENCE), notes.get(HopNote.CHANGED)
        if isinstance(confidence, float) and notes.get(HopNote.COMPLETE, True):
            self.confidence = confidence
        if isinstance(changed, int):
            self._since = changed
        self.protocol = self.protocol or str(notes.get(HopNote.PROTOCOL, ""))

    def observation(self, measurement: Measurement) -> PathObservation | None:
        """The path that was there in the end, its flows in the order of their keys; None where that
        one was never looked at.
        """
        packets = [one for one in self.packets if one.sent_unix_ns >= self._since]
        if not packets:
            return None
        hops: dict[int | None, dict[int, _Hop]] = {}
        for one in packets:
            flow = hops.setdefault(one.flow, {})
            flow.setdefault(one.part or 0, _Hop()).add(one, measurement.address)
        spanned = packets if self._destination is None else [*packets, self._destination]
        started = min(one.sent_unix_ns for one in spanned)
        ended = max(one.sent_unix_ns + (one.value_ns or 0) for one in spanned)
        if measurement.imported_from:  # other tools stamp all packets with one time
            ended = max(ended, started + measurement.duration_ns)
        flows = sorted(hops.items(), key=lambda item: (item[0] is None, item[0] or 0))
        return PathObservation(
            series=series_of(measurement, self.protocol),
            started_unix_ns=started,
            ended_unix_ns=ended,
            flows=tuple(_flow_path(flow, rows) for flow, rows in flows),
            confidence=self.confidence,
            measurement=measurement.id,
        )


def _flow_path(flow: int | None, hops: dict[int, _Hop]) -> FlowPath:
    """Hops from 1 to the first that is the destination, or to the last that was tried.

    What was sent with a larger hop limit reached the destination too, or died where nobody speaks.
    """
    arrived = min((limit for limit, hop in hops.items() if hop.arrived), default=None)
    limits = [limit for limit in sorted(hops) if arrived is None or limit <= arrived]
    leaps = len(limits) > 1 and limits[-1] - limits[-2] > LONGEST_STEP
    near = limits[-2] if leaps else limits[-1]
    row = [hops.get(limit, _SILENT) for limit in range(1, near + 1)]
    gap = None
    if leaps and hops[limits[-1]].responders:
        gap = max((i for i, hop in enumerate(row, 1) if hop.responders), default=0)
        row.append(hops[limits[-1]])
    return FlowPath(
        flow=flow,
        hops=tuple(frozenset(hop.responders) for hop in row),
        reached=arrived is not None,
        hop_rtt_ns=tuple(hop.shortest_ns for hop in row),
        labels=tuple(hop.stack for hop in row),
        sent=tuple(hop.sent for hop in row),
        answered=tuple(hop.answered for hop in row),
        gap=gap,
    )


_SILENT = _Hop()
