"""Every packet of a ``traceroute`` result as a sample ``hop_rtt``.

The platform gives one time for the whole trace; all packets get it. The flow is the Paris number;
classic traceroute (number 0) makes every packet a flow of its own, so its samples have none.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from pathbudget.agents.importers.addresses import canonical
from pathbudget.agents.importers.atlas_failures import (
    BAD_NUMBER,
    NO_MEANING,
    TIMEOUT,
    failure_of,
    unreachable,
)
from pathbudget.agents.importers.atlas_wire import (
    NO_RTT,
    SECOND,
    Extensions,
    Hop,
    HopReply,
    Traceroute,
    address_of,
    family_of,
    nanoseconds,
)
from pathbudget.probes.record import (
    AddressFamily,
    ClockSource,
    Failure,
    FailureKind,
    Metric,
    Note,
    Sample,
    Stage,
)
from pathbudget.probes.trace.contract import HopNote

OWN_ADDRESS = "masked"
"""Responder of a hop that is the probe's own public or private address, which is near-personal."""

ARRIVED = ("p",)
"""``err`` letters that only the destination itself sends: "port unreachable" is an arrival."""

NOBODY = Failure(FailureKind.CORRUPT, Stage.PARSE, "an answer that does not say whose it is")

_HIGHEST = 255
_decode_extensions = msgspec.json.Decoder(Extensions, strict=False).decode


def hop_samples(
    trace: Traceroute, hops: Sequence[Hop], counters: Counter[str], *, keep_addresses: bool
) -> Iterator[Sample]:
    """A sample for each packet; `counters` gets what is none."""
    reader = _Reader(trace, counters, keep_addresses)
    for hop in hops:
        if 1 <= hop.hop <= _HIGHEST:
            yield from reader.samples(hop, last=hop is hops[-1])
        elif hop.result:
            counters["hop_without_limit"] += len(hop.result)


def is_destination(reply: HopReply, address: str) -> bool:
    """Whether an answer at the last hop comes from the very address that was probed."""
    return (reply.err is None or reply.err in ARRIVED) and same(reply.origin, address)


def same(one: str, other: str) -> bool:
    """Whether two texts are the same address."""
    return bool(one) and (one == other or (canonical(one) or one) == canonical(other))


class _Reader:
    """The hops of one trace."""

    def __init__(self, trace: Traceroute, counters: Counter[str], keep_addresses: bool) -> None:
        self._sent = trace.timestamp * SECOND
        self._flow = trace.paris_id if (trace.paris_id or 0) > 0 else None
        self._address, self._family = address_of(trace), family_of(trace)
        self._counters = counters
        own = () if keep_addresses else (trace.origin, trace.src_addr)
        self._own = {canonical(address) for address in own if address} - {"", self._address}

    def samples(self, hop: Hop, *, last: bool) -> Iterator[Sample]:
        for reply in hop.result:
            if reply.late is None and not reply.dup:
                yield self._sample(hop.hop, reply, last=last)

    def _sample(self, limit: int, reply: HopReply, *, last: bool) -> Sample:
        arrived = last and is_destination(reply, self._address)
        outcome = _outcome(reply, self._family)
        return Sample(
            seq=0,
            metric=Metric.HOP_RTT,
            sent_unix_ns=self._sent,
            value_ns=outcome if isinstance(outcome, int) else None,
            failure=outcome if isinstance(outcome, Failure) else None,
            clock_source=ClockSource.FOREIGN,
            ttl=reply.ttl or None,
            responder=None if arrived else self._responder(reply),
            flow=self._flow,
            part=limit,
            notes=self._notes(reply) or None,
        )

    def _responder(self, reply: HopReply) -> str | None:
        responder = canonical(reply.origin)
        return OWN_ADDRESS if responder in self._own else responder or None

    def _notes(self, reply: HopReply) -> dict[str, Note]:
        notes: dict[str, Note] = {}
        if reply.err is not None:
            icmp = unreachable(reply.err, self._family)
            if icmp.icmp_code is not None:
                notes[HopNote.ICMP] = f"{icmp.icmp_type}/{icmp.icmp_code}"
        if reply.ittl is not None:
            notes[HopNote.QUOTED_TTL] = reply.ittl
        if reply.mtu is not None:
            notes[HopNote.MTU] = reply.mtu
        if stack := self._stack(reply):
            notes[HopNote.MPLS] = stack
        return notes

    def _stack(self, reply: HopReply) -> str:
        raw = bytes(reply.icmpext)
        if not raw:
            return ""
        try:
            objects = _decode_extensions(raw).obj
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            self._counters["extension_unreadable"] += 1
            return ""
        entries = (entry for one in objects if (one.kind, one.sub) == (1, 1) for entry in one.mpls)
        return " ".join(f"{one.label}/{one.exp}/{one.s}/{one.ttl}" for one in entries)


def _outcome(reply: HopReply, family: AddressFamily | None) -> int | Failure:
    """Round trip of one packet, whoever answered it."""
    if reply.error:
        return failure_of(reply.error, Stage.SEND)
    if reply.rtt == NO_RTT:
        if reply.err is not None:
            return unreachable(reply.err, family)
        return TIMEOUT if reply.x else NO_MEANING
    if not canonical(reply.origin):
        return NOBODY
    value = nanoseconds(reply.rtt)
    return BAD_NUMBER if value is None else value
