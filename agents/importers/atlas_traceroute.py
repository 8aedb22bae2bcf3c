"""``traceroute`` results as measurements of the probe ``trace``: every hop, and the destination.

Each packet of each hop is a sample ``hop_rtt`` (`atlas_hops`). What they say of the destination are
samples ``rtt`` beside them: only the last hop of a trace can be the destination, and in it only
what came from the very address that was probed. Answers there are round trips, packets without one
are losses. An earlier hop may carry the destination's address too (a NAT box in front of it speaks
for it) and is a hop like any other.
"""

from collections import Counter
from collections.abc import Sequence

from pathbudget.agents.importers.atlas_failures import (
    BAD_NUMBER,
    NO_ADDRESS,
    NO_MEANING,
    TIMEOUT,
    failure_of,
    unreachable,
)
from pathbudget.agents.importers.atlas_hops import hop_samples, is_destination
from pathbudget.agents.importers.atlas_labels import Labels
from pathbudget.agents.importers.atlas_wire import (
    NO_RTT,
    SECOND,
    Hop,
    HopReply,
    Traceroute,
    address_of,
    family_of,
    nanoseconds,
)
from pathbudget.agents.importers.import_report import ImportReport
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Failure,
    FailureKind,
    Measurement,
    Metric,
    Sample,
    Stage,
)

PROBE = "trace"
KIND = "traceroute"
_LONGEST_PACKET = 65_536
_PROTOCOLS = {"ICMP": "icmp", "UDP": "udp", "TCP": "tcp"}


def read_traceroute(
    trace: Traceroute, labels: Labels, report: ImportReport, *, keep_addresses: bool = False
) -> Measurement | None:
    """The measurement of one trace; None when it has nothing to import."""
    if isinstance(trace.result, str):
        report.left_out["traceroute as text (firmware 1)"] += 1
        return None
    hops = trace.result or []
    counters = _count(hops)
    on_the_way = tuple(hop_samples(trace, hops, counters, keep_addresses=keep_addresses))
    samples = (*_destination(trace, hops), *on_the_way)
    if not samples:
        report.left_out["traceroute without a packet at its last hop"] += 1
        return None
    report.late += counters["late"]
    report.duplicates += counters["duplicate"]
    report.count(KIND, samples)
    return labels.measurement(
        trace, PROBE, samples,
        duration_ns=max(0, (trace.endtime or 0) - trace.timestamp) * SECOND,
        counters={word: count for word, count in counters.items() if count},
        options=_options(trace),
    )  # fmt: skip


def _options(trace: Traceroute) -> dict[str, str | int | float | bool | None]:
    protocol = _PROTOCOLS.get(trace.proto.upper(), "")
    size = trace.size if trace.size is not None and trace.size >= 0 else None
    options: dict[str, str | int | float | bool | None] = {}
    if protocol:
        options["protocol"] = protocol
    if size is not None and size < _LONGEST_PACKET:
        options["size"] = size
    return options


def _destination(trace: Traceroute, hops: Sequence[Hop]) -> tuple[Sample, ...]:
    """What the packets of the last hop say of the destination."""
    message = _error(trace, hops)
    if message:
        return (_sample(trace, 0, failure_of(message, Stage.SEND), None),)
    if hops:
        return _outcomes(trace, hops[-1])
    return () if address_of(trace) else (_sample(trace, 0, NO_ADDRESS, None),)


def _error(trace: Traceroute, hops: Sequence[Hop]) -> str:
    """Why the trace ended before it was done, in the probe's words; empty when it did not."""
    message = trace.error or trace.dnserr or ""
    if hops and not message:
        last = hops[-1]
        message = last.error or next((reply.error for reply in last.result if reply.error), "")
    return message


def _outcomes(trace: Traceroute, last: Hop) -> tuple[Sample, ...]:
    """Round trip or failure of each packet of the last hop, with the TTL of each answer."""
    address, family = address_of(trace), family_of(trace)
    own = [reply for reply in last.result if reply.late is None and not reply.dup]
    outcomes = [_outcome(reply, last, address, family) for reply in own]
    return tuple(
        _sample(trace, seq, outcome, reply.ttl or None if isinstance(outcome, int) else None)
        for seq, (reply, outcome) in enumerate(zip(own, outcomes, strict=True))
    )


def _outcome(
    reply: HopReply, hop: Hop, address: str, family: AddressFamily | None
) -> int | Failure:
    arrived = is_destination(reply, address)
    if reply.err is not None and not arrived:
        return unreachable(reply.err, family)
    if reply.rtt == NO_RTT:
        return TIMEOUT if reply.x else NO_MEANING
    if not arrived:
        detail = f"hop {hop.hop}, the last one, answered and is not the destination"
        return Failure(FailureKind.TIME_EXCEEDED, Stage.WAIT, detail)
    value = nanoseconds(reply.rtt)
    return BAD_NUMBER if value is None else value


def _sample(trace: Traceroute, seq: int, outcome: int | Failure, ttl: int | None) -> Sample:
    return Sample(
        seq=seq,
        metric=Metric.RTT,
        sent_unix_ns=trace.timestamp * SECOND,
        value_ns=outcome if isinstance(outcome, int) else None,
        failure=outcome if isinstance(outcome, Failure) else None,
        clock_source=ClockSource.FOREIGN,
        ttl=ttl,
    )


def _count(hops: Sequence[Hop]) -> Counter[str]:
    """Replies that are no samples: late ones and duplicates."""
    counters: Counter[str] = Counter()
    for hop in hops:
        for reply in hop.result:
            if reply.late is not None:
                counters["late"] += 1
            elif reply.dup:
                counters["duplicate"] += 1
    return counters
