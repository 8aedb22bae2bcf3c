"""``traceroute`` results: what they say of the destination, as measurements of ``traceroute``.

Only the last hop of a trace can be the destination, and in it only what came from the very address
that was probed: answers there are round trips, packets without one are losses. An earlier hop may
carry the destination's address too (a NAT box in front of it speaks for it) and is never taken.
Hops on the way are counted, not imported: paths come with the path probes.
"""

import ipaddress
from collections.abc import Sequence

from pathbudget.agents.importers.atlas_failures import (
    BAD_NUMBER,
    NO_ADDRESS,
    NO_MEANING,
    TIMEOUT,
    failure_of,
    unreachable,
)
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

PROBE = "traceroute"
_ARRIVED = ("p",)
"""``err`` letters that only the destination itself sends: "port unreachable" is an arrival."""


def read_traceroute(trace: Traceroute, labels: Labels, report: ImportReport) -> Measurement | None:
    """The measurement of one trace; None when it has nothing to import."""
    if isinstance(trace.result, str):
        report.left_out["traceroute as text (firmware 1)"] += 1
        return None
    hops = trace.result or []
    message = _error(trace, hops)
    if message:
        outcomes: list[int | Failure] = [failure_of(message, Stage.SEND)]
        ttls: list[int | None] = [None]
    elif hops:
        outcomes, ttls = _outcomes(trace, hops[-1])
    else:
        outcomes, ttls = ([] if address_of(trace) else [NO_ADDRESS]), [None]
    if not outcomes:
        report.left_out["traceroute without a packet at its last hop"] += 1
        return None
    samples = tuple(
        _sample(trace, seq, outcome, ttl)
        for seq, (outcome, ttl) in enumerate(zip(outcomes, ttls, strict=True))
    )
    counters = _count(hops, report)
    report.count(PROBE, samples)
    return labels.measurement(
        trace, PROBE, samples,
        duration_ns=max(0, (trace.endtime or 0) - trace.timestamp) * SECOND,
        counters=counters,
    )  # fmt: skip


def _error(trace: Traceroute, hops: Sequence[Hop]) -> str:
    """Why the trace ended before it was done, in the probe's words; empty when it did not."""
    message = trace.error or trace.dnserr or ""
    if hops and not message:
        last = hops[-1]
        message = last.error or next((reply.error for reply in last.result if reply.error), "")
    return message


def _outcomes(trace: Traceroute, last: Hop) -> tuple[list[int | Failure], list[int | None]]:
    """Round trip or failure of each packet of the last hop, and the TTL of each answer."""
    address, family = address_of(trace), family_of(trace)
    own = [reply for reply in last.result if reply.late is None and not reply.dup]
    outcomes = [_outcome(reply, last, address, family) for reply in own]
    ttls = [
        reply.ttl or None if isinstance(outcome, int) else None
        for reply, outcome in zip(own, outcomes, strict=True)
    ]
    return outcomes, ttls


def _outcome(
    reply: HopReply, hop: Hop, address: str, family: AddressFamily | None
) -> int | Failure:
    if reply.err is not None and not (reply.err in _ARRIVED and _same(reply.origin, address)):
        return unreachable(reply.err, family)
    if reply.rtt == NO_RTT:
        return TIMEOUT if reply.x else NO_MEANING
    if not _same(reply.origin, address):
        detail = f"hop {hop.hop}, the last one, answered and is not the destination"
        return Failure(FailureKind.TIME_EXCEEDED, Stage.WAIT, detail)
    value = nanoseconds(reply.rtt)
    return BAD_NUMBER if value is None else value


def _same(one: str, other: str) -> bool:
    """Whether two texts are the same address."""
    if one == other:
        return bool(one)
    try:
        return ":" in one and ipaddress.ip_address(one) == ipaddress.ip_address(other)
    except ValueError:
        return False


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


def _count(hops: Sequence[Hop], report: ImportReport) -> dict[str, int]:
    """Replies that are no samples: late, duplicate, and those of the hops on the way."""
    late = duplicate = on_the_way = 0
    last = hops[-1] if hops else None
    for hop in hops:
        for reply in hop.result:
            if reply.late is not None:
                late += 1
            elif reply.dup:
                duplicate += 1
            elif reply.rtt != NO_RTT and hop is not last:
                on_the_way += 1
    report.late += late
    report.duplicates += duplicate
    report.hop_replies += on_the_way
    counters = {"late": late, "duplicate": duplicate, "hop_reply": on_the_way}
    return {word: count for word, count in counters.items() if count}
