"""What slow start makes of one upload: flights, when its last byte arrives, and what it waited for.

Segment by segment, in exact integers of segments and nanoseconds. Segment ``i`` may leave when
``k`` segments have been acknowledged and ``i < k + window``, where the congestion window has grown
by one per acknowledged segment (RFC 5681; RFC 3465 with delayed acknowledgements) and a receiver's
flow-control window, where there is one, gives credit for what it has acknowledged. A bottleneck
serialises, and a sender that paces (BBR) spreads on purpose; no segment is lost. A segment belongs
to the flight after that of the last one whose acknowledgement had come when it left. So without a
bottleneck

    flights = ceil(log2(B / IW + 1))        last byte = one way + (flights - 1) round trips

What congestion control does beyond that (HyStart, loss) is what measurements are for.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from pathbudget.analysis.slow_start import SEGMENT_BYTES

INITIAL_SEGMENTS = 10
"""RFC 6928 with segments of 1460 bytes or less."""
RECORD_BYTES, RECORD_OVERHEAD = 16_384, 22
"""TLS 1.3: plain bytes of a full record; header, content type and tag around them (RFC 8446)."""
FRAME_BYTES, FRAME_OVERHEAD = 16_384, 9
"""HTTP/2: payload of the largest frame that every server takes, and its header (RFC 9113)."""
HTTP2_WINDOW = 65_535
"""Bytes that may be under way where a server does not say otherwise (RFC 9113, 6.9.2)."""
QUIC_OVERHEAD = 32
"""Short header, frame header and tag of a datagram, about (RFC 9000, RFC 9001)."""
HEADER_BYTES = 250
"""Method, path and headers of a request without credentials, about."""


BBR_GAIN = 2 / math.log(2)
"""By how much BBR's start paces faster than it has seen arrive (pacing gain of Startup)."""
UNPACED_SEGMENTS = 10
"""Linux does not pace the first segments of a connection."""


class Version(StrEnum):
    """What the body travels in."""

    PLAIN = "plain"
    HTTP1 = "1.1"
    HTTP2 = "2"
    HTTP3 = "3"


class Term(StrEnum):
    """What the last byte waited for most, beside the way itself."""

    PROPAGATION = "propagation"
    SLOW_START = "slow_start"
    FLOW_CONTROL = "flow_control"
    PACING = "pacing"
    BOTTLENECK = "bottleneck"


@dataclass(frozen=True, slots=True)
class UploadPath:
    """What the bytes travel over. `initial_segments` is the window when the request leaves: that of
    a new connection; of one that lay idle `window_after_idle`; of a warm one what TCP_INFO says.
    `flow_window` in bytes, `rate` in bits per second; None: no such limit. `pacing_gain` is that of
    a sender that paces, beyond the first `unpaced_segments`.
    """

    round_trip_ns: int
    one_way_ns: int | None = None
    """None: half a round trip."""
    segment_bytes: int = SEGMENT_BYTES
    initial_segments: int = INITIAL_SEGMENTS
    flow_window: int | None = None
    rate: float | None = None
    pacing_gain: float | None = None
    unpaced_segments: int = UNPACED_SEGMENTS

    def __post_init__(self) -> None:
        if self.round_trip_ns <= 0 or self.segment_bytes <= 0 or self.initial_segments <= 0:
            raise ValueError("round trip, segment and initial window must be positive")
        if self.flow_window is not None and self.flow_window <= 0:
            raise ValueError("a flow-control window must be positive")
        if self.rate is not None and not self.rate > 0:
            raise ValueError("a rate must be positive")
        if self.pacing_gain is not None and not self.pacing_gain > 0:
            raise ValueError("a pacing gain must be positive")


@dataclass(frozen=True, slots=True)
class ModelledUpload:
    """One upload as the model has it. Times count from the first segment's leaving."""

    wire_bytes: int
    segments: int
    flights: int
    last_left_ns: int
    """The last byte leaves."""
    last_arrived_ns: int
    """It arrives: the request can be worked on."""
    acknowledged_ns: int
    """An answer made at once is here."""
    waits_ns: dict[Term, int]
    """What each term adds to the last byte's arrival; their sum is `last_arrived_ns`."""

    @property
    def term(self) -> Term:
        """What it waited for most, beside the way itself; the way where it waited for nothing."""
        beside = {term: wait for term, wait in self.waits_ns.items() if term != Term.PROPAGATION}
        term = max(beside, key=lambda one: beside[one])
        return term if beside[term] else Term.PROPAGATION


def wire_bytes(
    body_bytes: int,
    version: Version = Version.HTTP1,
    *,
    header_bytes: int = HEADER_BYTES,
    escaping: float = 1.0,
    segment_bytes: int = SEGMENT_BYTES,
) -> int:
    """Bytes that TCP (or the datagrams of QUIC) carries for a body of so many bytes.

    `escaping` is how much longer a prompt is as a JSON string (1 for a body that is one already).
    """
    body = math.ceil(body_bytes * escaping)
    if version is Version.PLAIN:
        return body
    if version is Version.HTTP3:
        useful = max(1, segment_bytes - QUIC_OVERHEAD)
        return body + header_bytes + QUIC_OVERHEAD * math.ceil((body + header_bytes) / useful)
    if version is Version.HTTP2:
        body += FRAME_OVERHEAD * (1 + math.ceil(body / FRAME_BYTES))
    plain = body + header_bytes
    return plain + RECORD_OVERHEAD * math.ceil(plain / RECORD_BYTES)


def window_after_idle(
    segments: int, idle_ns: int, timeout_ns: int, initial: int = INITIAL_SEGMENTS
) -> int:
    """What is left of a window after lying idle: half of it per retransmission timeout, not less
    than the initial one (Linux tcp_cwnd_restart, after RFC 2861; RFC 5681 would take all at once).
    """
    if timeout_ns <= 0:
        raise ValueError("a retransmission timeout must be positive")
    least = min(initial, segments)
    while idle_ns > timeout_ns and segments > least:
        segments //= 2
        idle_ns -= timeout_ns
    return max(segments, least)


def model_upload(size: int, path: UploadPath) -> ModelledUpload:
    """An upload of `size` bytes on the wire (see `wire_bytes`)."""
    segments = max(1, math.ceil(size / path.segment_bytes))
    unpaced = replace(path, pacing_gain=None)
    open_window = replace(unpaced, initial_segments=segments, flow_window=None)
    way = path.round_trip_ns // 2 if path.one_way_ns is None else path.one_way_ns
    free = _departures(segments, size, replace(open_window, rate=None))[-1]
    at_rate = _departures(segments, size, open_window)[-1]
    with_window = _departures(segments, size, replace(unpaced, flow_window=None))[-1]
    with_credit = _departures(segments, size, unpaced)[-1]
    last = _departures(segments, size, path)[-1]
    return ModelledUpload(
        wire_bytes=size,
        segments=segments,
        flights=last.flight,
        last_left_ns=last.sent_ns,
        last_arrived_ns=last.through_ns + way,
        acknowledged_ns=last.through_ns + path.round_trip_ns,
        waits_ns={
            Term.PROPAGATION: way + free.through_ns,
            Term.BOTTLENECK: at_rate.through_ns - free.through_ns,
            Term.SLOW_START: with_window.through_ns - at_rate.through_ns,
            Term.FLOW_CONTROL: with_credit.through_ns - with_window.through_ns,
            Term.PACING: last.through_ns - with_credit.through_ns,
        },
    )


@dataclass(frozen=True, slots=True)
class _Departure:
    sent_ns: int
    through_ns: int
    """The bottleneck has let it go."""
    flight: int


def _departures(segments: int, size: int, path: UploadPath) -> list[_Departure]:
    credit = segments if path.flow_window is None else path.flow_window // path.segment_bytes
    credit = max(1, credit)
    gone: list[_Departure] = []
    pacing = _Pacing(path, gone)
    free_ns = 0
    for number in range(segments):
        needed = _acknowledgements_needed(number, path.initial_segments, credit)
        sent_ns, flight = 0, 1
        if needed:
            released = gone[needed - 1]
            sent_ns = released.through_ns + path.round_trip_ns
            flight = released.flight + 1
        if path.pacing_gain is not None:
            before = flight
            sent_ns = pacing.not_before(number, sent_ns)
            flight = max(before, pacing.flight_at(sent_ns))
        octets = min(path.segment_bytes, size - number * path.segment_bytes)
        wire_ns = 0 if path.rate is None else round(octets * 8e9 / path.rate)
        free_ns = max(sent_ns, free_ns) + wire_ns
        gone.append(_Departure(sent_ns, free_ns, flight))
    return gone


class _Pacing:
    """When a paced sender lets a segment go: at its gain times the rate that it has seen arrive,
    which is what was acknowledged within the round trip before.
    """

    def __init__(self, path: UploadPath, gone: list[_Departure]) -> None:
        self._path = path
        self._gone = gone
        self._acknowledged = self._a_round_trip_ago = 0
        self._best = path.initial_segments

    def not_before(self, number: int, released_ns: int) -> int:
        """The time at which segment `number` leaves, which may leave from `released_ns` on."""
        path, gone = self._path, self._gone
        if number < path.unpaced_segments or path.pacing_gain is None:
            return released_ns
        now_ns = max(released_ns, gone[-1].sent_ns)
        self._see(now_ns)
        interval = path.round_trip_ns / (path.pacing_gain * self._best)
        return max(released_ns, gone[-1].sent_ns + round(interval))

    def flight_at(self, now_ns: int) -> int:
        """The flight that a segment belongs to which leaves now."""
        self._see(now_ns)
        return self._gone[self._acknowledged - 1].flight + 1 if self._acknowledged else 1

    def _see(self, now_ns: int) -> None:
        trip, gone = self._path.round_trip_ns, self._gone
        while self._acknowledged < len(gone) and (
            gone[self._acknowledged].through_ns + trip <= now_ns
        ):
            self._acknowledged += 1
        while self._a_round_trip_ago < self._acknowledged and (
            gone[self._a_round_trip_ago].through_ns + 2 * trip <= now_ns
        ):
            self._a_round_trip_ago += 1
        self._best = max(self._best, self._acknowledged - self._a_round_trip_ago)


def _acknowledgements_needed(number: int, initial: int, credit: int) -> int:
    """How many segments must have been acknowledged before segment `number` may leave.

    Congestion: number < k + initial + k. Flow control: number < k + credit.
    """
    by_congestion = max(0, (number - initial) // 2 + 1) if number >= initial else 0
    by_credit = max(0, number - credit + 1)
    return max(by_congestion, by_credit)
