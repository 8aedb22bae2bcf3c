"""scamper's ``trace`` and ``tracelb`` as samples of the probe ``trace``.

The result lists answers; packets that nobody answered are only counted (a ``trace`` says how many
were sent). Of a ``tracelb`` the packets to the first router are not in the result either: that each
flow passed it follows from what it passed next, and is kept as a hop without a number.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import msgspec

from pathbudget.agents.importers.addresses import canonical
from pathbudget.agents.importers.atlas_failures import BAD_NUMBER
from pathbudget.agents.importers.atlas_hops import NOBODY
from pathbudget.agents.importers.atlas_wire import nanoseconds
from pathbudget.agents.importers.scamper_wire import (
    NO_RTT,
    Extension,
    HopReply,
    LinkProbe,
    LinkReply,
    Node,
    Trace,
    TraceLb,
)
from pathbudget.probes.record import (
    ClockSource,
    Failure,
    FailureKind,
    Metric,
    Note,
    Sample,
    Stage,
)
from pathbudget.probes.trace.contract import HopNote

TIMEOUT = Failure(FailureKind.TIMEOUT, Stage.WAIT)
NO_PROBE = Failure(FailureKind.OTHER, Stage.PARSE, "passed, and the result has no packet of it")
_TIME_EXCEEDED = {False: 11, True: 3}
_STOPPED = {
    "COMPLETED": "arrived", "UNREACH": "unreachable", "ICMP": "unreachable", "LOOP": "loop",
    "GAPLIMIT": "gap", "HOPLIMIT": "limit", "ERROR": "error", "HALTED": "halted", "GSS": "halted",
}  # fmt: skip
_PARIS = {"icmp-echo-paris": "icmp", "udp-paris": "udp", "tcp": "tcp", "tcp-ack": "tcp"}

_decode_extensions = msgspec.json.Decoder(list[Extension], strict=False).decode


class ContradictionError(ValueError):
    """A result that contradicts itself; the message says how."""


@dataclass(slots=True)
class _Packet:
    """One answered packet, of either kind of result."""

    limit: int
    flow: int | None
    sent_unix_ns: int
    addr: str
    reply: HopReply | LinkReply
    ttl: int


def protocol_of(method: str) -> str:
    """The protocol of a method: ``icmp``, ``udp`` or ``tcp``; empty of an unknown one."""
    word = method.partition("-")[0]
    return word if word in ("icmp", "udp", "tcp") else ""


def trace_samples(trace: Trace, counters: Counter[str]) -> list[Sample]:
    """A sample for each answer, and one for the destination. `counters` gets what is none."""
    flow = _flow_of(trace)
    start = trace.start.unix_ns
    packets: list[_Packet] = []
    seen: set[tuple[int, int]] = set()
    for hop in trace.hops:
        key = (hop.probe_ttl, hop.probe_id)
        if hop.probe_id and key in seen:
            counters["duplicate"] += 1
            continue
        seen.add(key)
        sent = hop.tx.unix_ns if hop.tx is not None else start
        packets.append(_Packet(hop.probe_ttl, flow, sent, hop.addr, hop, hop.reply_ttl))
    counters["unanswered"] += max(0, trace.probe_count - len(packets))
    samples = [_hop(packet, trace.dst, counters) for packet in packets]
    stopped = _STOPPED.get(trace.stop_reason, "")
    return [_destination(samples, start, _why(trace), _notes(trace.method, stopped)), *samples]


def tracelb_samples(trace: TraceLb, counters: Counter[str]) -> list[Sample]:
    """The same of all flows. Raises ContradictionError."""
    start = trace.start.unix_ns
    samples: list[Sample] = []
    for node in trace.nodes:
        if node.linkc and not node.links:
            raise ContradictionError(f"node {node.addr[:45]}: links are counted, and none listed")
        packets = _packets(node, start, counters)
        samples += [_hop(packet, trace.dst, counters) for packet in packets]
    counters["unanswered"] += max(0, trace.probec - len(samples))
    samples = [*_first_hops(trace.nodes, start), *samples]
    arrived = any(sample.responder is None and not sample.failure for sample in samples)
    notes = _notes(trace.method, "arrived" if arrived else "gap")
    notes[HopNote.CONFIDENCE] = trace.confidence / 100
    notes[HopNote.COMPLETE] = not 0 < trace.probec_max <= trace.probec
    return [_destination(samples, start, TIMEOUT, notes), *samples]


def _flow_of(trace: Trace) -> int | None:
    """What all packets of a Paris method have in common; other methods change it with each."""
    if trace.method not in _PARIS:
        return None
    return trace.icmp_sum if trace.method.startswith("icmp") else trace.sport


def _packets(node: Node, start: int, counters: Counter[str]) -> Iterator[_Packet]:
    for row in node.links:
        for link in row:
            for probe in link.probes:
                sent = _sent(probe, start)
                for reply in probe.replies[:1]:
                    yield _Packet(probe.ttl, probe.flowid, sent, link.addr, reply, reply.ttl)
                counters["duplicate"] += max(0, len(probe.replies) - 1)


def _sent(probe: LinkProbe, start: int) -> int:
    return probe.tx.unix_ns if probe.tx is not None else start


def _first_hops(nodes: Iterable[Node], start: int) -> Iterator[Sample]:
    """Who was passed before the first packets of the result, by flow."""
    nodes = list(nodes)
    behind = {link.addr for node in nodes for row in node.links for link in row}
    for node in nodes:
        if node.addr in behind or not canonical(node.addr):
            continue
        passed = {
            (probe.flowid, probe.ttl - 1 - silent)
            for silent, row in enumerate(node.links)
            for link in row
            for probe in link.probes
        }
        for flow, limit in sorted(passed):
            if limit > 0:
                yield Sample(
                    seq=0, metric=Metric.HOP_RTT, sent_unix_ns=start, failure=NO_PROBE,
                    clock_source=ClockSource.FOREIGN, responder=canonical(node.addr), flow=flow,
                    part=limit,
                )  # fmt: skip


def _hop(packet: _Packet, destination: str, counters: Counter[str]) -> Sample:
    reply, responder = packet.reply, canonical(packet.addr)
    arrived = responder == canonical(destination) and not _is_exceeded(responder, reply)
    value = nanoseconds(reply.rtt) if reply.rtt != NO_RTT else None
    failure = NOBODY if not responder else BAD_NUMBER if value is None else None
    return Sample(
        seq=0,
        metric=Metric.HOP_RTT,
        sent_unix_ns=packet.sent_unix_ns,
        value_ns=None if failure is not None else value,
        failure=failure,
        clock_source=ClockSource.FOREIGN,
        ttl=packet.ttl or None,
        responder=None if arrived and failure is None else responder or None,
        flow=packet.flow,
        part=packet.limit,
        notes=_hop_notes(reply, counters) or None,
    )


def _is_exceeded(responder: str, reply: HopReply | LinkReply) -> bool:
    """Time exceeded (RFC 792, RFC 4443), which is no arrival whoever sends it."""
    return reply.icmp_type == _TIME_EXCEEDED[":" in responder]


def _hop_notes(reply: HopReply | LinkReply, counters: Counter[str]) -> dict[str, Note]:
    notes: dict[str, Note] = {}
    if reply.icmp_type is not None:
        notes[HopNote.ICMP] = f"{reply.icmp_type}/{reply.icmp_code or 0}"
    if reply.icmp_q_ttl not in (None, 1):
        notes[HopNote.QUOTED_TTL] = reply.icmp_q_ttl
    if stack := _stack(bytes(reply.icmpext), counters):
        notes[HopNote.MPLS] = stack
    return notes


def _stack(raw: bytes, counters: Counter[str]) -> str:
    if not raw:
        return ""
    try:
        objects = _decode_extensions(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        counters["extension_unreadable"] += 1
        return ""
    stacks = (one.mpls_labels for one in objects if (one.ie_cn, one.ie_ct) == (1, 1))
    return " ".join(
        f"{one.mpls_label}/{one.mpls_exp}/{one.mpls_s}/{one.mpls_ttl}"
        for stack in stacks
        for one in stack
    )


def _notes(method: str, stopped: str) -> dict[str, Note]:
    words: dict[str, Note] = {HopNote.PROTOCOL: protocol_of(method), HopNote.STOPPED: stopped}
    return {key: word for key, word in words.items() if word}


def _why(trace: Trace) -> Failure:
    """Why the destination did not answer, by the reason for which the trace ended."""
    reason, code = trace.stop_reason, trace.stop_data
    if reason in ("UNREACH", "ICMP"):
        return Failure(
            FailureKind.UNREACHABLE, Stage.WAIT, reason.lower(),
            icmp_code=code if 0 <= code <= 255 else None,
        )  # fmt: skip
    if reason in ("LOOP", "HOPLIMIT"):
        return Failure(FailureKind.TIME_EXCEEDED, Stage.WAIT, reason.lower())
    if reason == "ERROR":
        return Failure(FailureKind.LOCAL, Stage.SEND, f"error {code}")
    return TIMEOUT


def _destination(
    hops: Iterable[Sample], start: int, why: Failure, notes: dict[str, Note]
) -> Sample:
    """The first answer of the destination on the lowest flow; else why there is none."""
    arrived = [one for one in hops if one.responder is None and one.value_ns is not None]
    first = min(arrived, key=lambda one: (one.flow or 0, one.sent_unix_ns), default=None)
    return Sample(
        seq=0,
        metric=Metric.RTT,
        sent_unix_ns=start if first is None else first.sent_unix_ns,
        value_ns=None if first is None else first.value_ns,
        failure=why if first is None else None,
        clock_source=ClockSource.FOREIGN,
        ttl=None if first is None else first.ttl,
        flow=None if first is None else first.flow,
        notes=notes or None,
    )
