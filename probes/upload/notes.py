"""What a sample of an upload keeps beside its number: flights, windows, what the kernel counted."""

from collections.abc import Mapping

from pathbudget.probes.carriers import Opened
from pathbudget.probes.record import Metric, Note
from pathbudget.probes.tcp_info import TcpInfo
from pathbudget.probes.upload.flights import count_flights
from pathbudget.probes.upload.observer import Sent

NOTHING_KNOWN = TcpInfo()
_KEPT_OF_HTTP = ("protocol", "informational", "answered_early", "flow_stalls", "flow_stall_ns")


def notes_of(
    sent: Sent,
    before: TcpInfo | None,
    after: TcpInfo | None,
    opened: Opened | None,
    told: Mapping[str, Note],
) -> dict[str, Note]:
    """The notes of one upload; those that nobody can tell are missing (docs/probes/upload.md)."""
    notes = {key: told[key] for key in _KEPT_OF_HTTP if key in told}
    if after is None or after.mss is None or sent.is_whole(after.mss):
        notes |= _flights(sent, _round_trip_ns(after, opened))
    else:
        notes["stamps_missing"] = True
    if after is not None:
        notes |= _kernel(before or NOTHING_KNOWN, after)
    return notes


def _flights(sent: Sent, round_trip_ns: int | None) -> dict[str, Note]:
    if not sent.departed:
        return {}
    notes: dict[str, Note] = {"packets": len(sent.departed)}
    flights = count_flights(sent.departed, sent.acknowledged, round_trip_ns)
    if flights is not None:
        notes["flights_by"] = "acknowledgements" if flights.by_acknowledgements else "time"
        notes["flights"] = flights.count
        notes["first_flight_bytes"] = flights.first_bytes
        notes["first_flight_packets"] = flights.first_packets
    return notes


def _kernel(before: TcpInfo, after: TcpInfo) -> dict[str, Note]:
    found: dict[str, Note | None] = {
        "congestion": after.congestion,
        "mss_bytes": after.mss,
        "cwnd_before_segments": before.cwnd,
        "cwnd_after_segments": after.cwnd,
        "ssthresh_before_segments": before.ssthresh,
        "ssthresh_after_segments": after.ssthresh,
        "rtt_before_us": _us(before.rtt_ns),
        "rtt_after_us": _us(after.rtt_ns),
        "rttvar_us": _us(after.rtt_variation_ns),
        "min_rtt_us": _us(after.min_rtt_ns),
        "rto_us": _us(before.retransmission_timeout_ns),
        "retransmits": _added(before.retransmits, after.retransmits),
        "delivery_rate_before_bps": _bits(before.delivery_rate),
        "delivery_rate_bps": _bits(after.delivery_rate),
        "application_limited": after.application_limited,
        "wire_bytes": _added(before.bytes_sent, after.bytes_sent),
        "busy_us": _us(_added(before.busy_ns, after.busy_ns)),
        "window_limited_us": _us(_added(before.window_limited_ns, after.window_limited_ns)),
        "buffer_limited_us": _us(_added(before.buffer_limited_ns, after.buffer_limited_ns)),
    }
    return {key: value for key, value in found.items() if value is not None}


def _round_trip_ns(after: TcpInfo | None, opened: Opened | None) -> int | None:
    """The smallest that the kernel knows; over QUIC the handshake, which is one and some work."""
    if after is not None:
        return after.min_rtt_ns or after.rtt_ns
    if opened is None:
        return None
    for phase in (*opened.phases, *opened.beside):
        if phase.metric == Metric.QUIC_HANDSHAKE:
            return phase.span.value_ns
    return None


def _added(before: int | None, after: int | None) -> int | None:
    """What was added since; all of it where nothing was known before."""
    return None if after is None else max(0, after - (before or 0))


def _us(nanoseconds: int | None) -> int | None:
    return None if nanoseconds is None else nanoseconds // 1_000


def _bits(rate: int | None) -> int | None:
    return None if rate is None else rate * 8
