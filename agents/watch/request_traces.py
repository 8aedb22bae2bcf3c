"""One trace for each shot of a probe that makes a request: when which step of it began and ended.

    root                 the shot: from its first packet to its last
      resolve, connect, tls_handshake, quic_handshake
      ttfb               first byte of the request sent to first byte of the answer
        send, wait
      upload, upload_acknowledged, ttft, echo, dns_hit, dns_miss ...
      receive            first byte of the answer to its last
        delivery_gap     one for each chunk of a stream

Ids come out of the id of the measurement and the number of the shot: exported again, a span has the
same ids, so that a backend can tell the second copy.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pathbudget.agents.watch.trace_attributes import (
    Value,
    measurement_attributes,
    root_attributes,
    sample_attributes,
)
from pathbudget.probes.record import Failure, FailureKind, Measurement, Metric, Sample

_CONTEXT = b"pathbudget trace 1"
MOST_CHUNKS = 512
"""Spans of one stream; what is beyond is counted in `pathbudget.chunks_left_out`."""

SUMS = frozenset({Metric.SETUP, Metric.FIRST_BYTE, Metric.CLIENT_COMPUTE})
"""Numbers that are no stretch of time: attributes of the root."""
BESIDE = frozenset({Metric.DELIVERY_VARIATION})
"""Numbers of a chunk: attributes of its span."""
PARENTS = {
    Metric.SEND: Metric.TTFB,
    Metric.WAIT: Metric.TTFB,
    Metric.DELIVERY_GAP: Metric.RECEIVE,
}
REQUEST_LIKE = frozenset(Metric) - {
    *(Metric.RTT, Metric.HOP_RTT, Metric.RESIDENCE),
    *(Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE),
    *(Metric.RESOLVE, Metric.CLIENT_COMPUTE),
}
"""A shot with one of these is a request, or what comes before one."""


@dataclass(frozen=True, slots=True)
class Span:
    """One stretch of a trace; times are ns since 1970."""

    trace_id: bytes
    span_id: bytes
    parent_id: bytes
    name: str
    start_unix_ns: int
    end_unix_ns: int
    attributes: Mapping[str, Value] = field(default_factory=dict[str, Value])
    failure: Failure | None = None

    @property
    def is_root(self) -> bool:
        """Whether it is the shot itself."""
        return not self.parent_id


def trace_id(measurement_id: str, seq: int) -> bytes:
    """Of one shot: 16 bytes."""
    return _digest(measurement_id.encode(), str(seq).encode())[:16]


def traces_of(measurement: Measurement) -> Iterator[list[Span]]:
    """The traces of its shots, in the order of their numbers; none of a probe of packets."""
    shots: defaultdict[int, list[Sample]] = defaultdict(list)
    for sample in measurement.samples:
        shots[sample.seq].append(sample)
    common = measurement_attributes(measurement)
    for seq, samples in sorted(shots.items()):
        if any(sample.metric in REQUEST_LIKE for sample in samples):
            yield _trace(measurement, seq, samples, common)


def _trace(
    measurement: Measurement, seq: int, samples: Sequence[Sample], common: Mapping[str, Value]
) -> list[Span]:
    trace = trace_id(measurement.id, seq)
    root_id = _digest(trace, b"root")[:8]
    began = min(sample.sent_unix_ns for sample in samples)
    deadline = _deadline(measurement, began)
    beside = {sample.part: sample for sample in samples if sample.metric in BESIDE}
    steps = [one for one in samples if one.metric not in SUMS and one.metric not in BESIDE]
    shown, left_out = _bounded(steps)
    ids = _ids(trace, shown)
    spans = [
        Span(
            trace,
            ids[number],
            _parent(sample, shown, ids) or root_id,
            sample.metric,
            *_times(sample, deadline),
            sample_attributes(sample, beside.get(sample.part) if sample.part else None),
            sample.failure,
        )
        for number, sample in enumerate(shown)
    ]
    sums = [sample for sample in samples if sample.metric in SUMS]
    ended = max((_times(one, deadline)[1] for one in steps or sums), default=began)
    attributes = {**common, **root_attributes(seq, samples)}
    if left_out:
        attributes["pathbudget.chunks_left_out"] = left_out
    name = f"{measurement.probe} {measurement.target.site or measurement.target.name}"
    failure = next((one.failure for one in reversed(samples) if one.failure is not None), None)
    root = Span(trace, root_id, b"", name, began, max(began, ended), attributes, failure)
    return [root, *spans]


def _bounded(steps: Sequence[Sample]) -> tuple[list[Sample], int]:
    chunks = [one for one in steps if one.metric == Metric.DELIVERY_GAP]
    if len(chunks) <= MOST_CHUNKS:
        return list(steps), 0
    kept = {id(one) for one in chunks[:MOST_CHUNKS]}
    shown = [one for one in steps if one.metric != Metric.DELIVERY_GAP or id(one) in kept]
    return shown, len(chunks) - MOST_CHUNKS


def _ids(trace: bytes, samples: Sequence[Sample]) -> list[bytes]:
    """A step that comes twice (two questions of one shot) has two."""
    seen: defaultdict[tuple[str, int | None], int] = defaultdict(int)
    found: list[bytes] = []
    for sample in samples:
        key = (sample.metric, sample.part)
        words = f"{sample.metric} {sample.part} {seen[key]}"
        seen[key] += 1
        found.append(_digest(trace, words.encode())[:8])
    return found


def _parent(sample: Sample, samples: Sequence[Sample], ids: Sequence[bytes]) -> bytes | None:
    above = PARENTS.get(Metric(sample.metric)) if sample.metric in PARENTS else None
    if above is None:
        return None
    for part in (sample.part, None):
        for number, one in enumerate(samples):
            if one.metric == above and one.part == part:
                return ids[number]
    return None


def _times(sample: Sample, deadline_unix_ns: int | None) -> tuple[int, int]:
    """Begin and end. A step that was waited for in vain ends with the deadline of its shot, one
    that failed otherwise as it began: nobody has noted when.
    """
    start = sample.sent_unix_ns
    if sample.value_ns is not None:
        return start, start + max(0, sample.value_ns)
    timed_out = sample.failure is not None and sample.failure.kind is FailureKind.TIMEOUT
    if timed_out and deadline_unix_ns is not None:
        return start, max(start, deadline_unix_ns)
    return start, start


def _deadline(measurement: Measurement, began_unix_ns: int) -> int | None:
    timeout_ns = measurement.options.get("timeout_ns")
    if isinstance(timeout_ns, int) and not isinstance(timeout_ns, bool) and timeout_ns > 0:
        return began_unix_ns + timeout_ns
    return None


def _digest(*parts: bytes) -> bytes:
    return hashlib.sha256(b"\0".join((_CONTEXT, *parts))).digest()
