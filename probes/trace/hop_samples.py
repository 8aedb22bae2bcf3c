"""What the packets of a trace become: samples (see `record.Sample`, `contract.HopNote`)."""

from dataclasses import dataclass

import msgspec

from pathbudget.probes.clock import Reading, measure_interval
from pathbudget.probes.contract import Shot
from pathbudget.probes.failures import from_icmp, timed_out
from pathbudget.probes.icmp_flight import canonical
from pathbudget.probes.record import (
    HOST_BUSY_NS,
    AddressFamily,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Note,
    Sample,
    Stage,
    Stamps,
)
from pathbudget.probes.trace.contract import (
    Answer,
    AnswerKind,
    FlowPacket,
    HopNote,
    InterfaceNote,
    LabelEntry,
)
from pathbudget.probes.trace.matching import return_hops

_HOP_RTT = Metric.HOP_RTT


@dataclass(slots=True, eq=False)
class Sent:
    """One packet that has left (or could not)."""

    series: int
    seq: int
    flow: int
    """Number of the flow in its trace."""
    key: int
    limit: int
    asked: int
    epoch: int
    """How often the trace had begun again."""
    packet: FlowPacket
    sent: Reading
    timeout_ns: int
    place: int | None = None
    """Key of its send stamp."""
    kernel_sent_unix_ns: int | None = None
    given_up: bool = False
    ended: bool = False
    mtu_size: int = 0
    """Of a packet that looks for the path MTU."""


def hop_sample(
    sent: Sent, answer: Answer, now: Reading, *, translated: bool, ambiguous: bool = False
) -> Sample:
    """The sample of a packet that was answered."""
    span = measure_interval(sent.sent, now, sent.kernel_sent_unix_ns, answer.kernel_unix_ns)
    began = sent.kernel_sent_unix_ns or sent.sent.unix_ns
    stamps = _stamps(sent, began, now, answer.kernel_unix_ns)
    marks = [Flag.CLOCK_STEP] if span.stepped else []
    if ambiguous:
        marks.append(Flag.LOW_CONFIDENCE)
    if _was_late(stamps) and not span.stepped:
        marks.append(Flag.HOST_BUSY)
    arrived = answer.kind is AnswerKind.ARRIVED
    return Sample(
        seq=sent.seq,
        metric=_HOP_RTT,
        sent_unix_ns=began,
        value_ns=span.value_ns,
        clock_source=span.source,
        ttl=answer.ttl,
        responder=None if arrived else canonical(answer.responder),
        flags=tuple(marks),
        flow=sent.key,
        stamps=stamps,
        part=sent.limit,
        notes=_notes(answer, translated=translated),
    )


def silent_sample(sent: Sent, failure: Failure | None = None) -> Sample:
    """The sample of a packet that nobody answered, or that could not be sent."""
    began = sent.kernel_sent_unix_ns or sent.sent.unix_ns
    return Sample(
        seq=sent.seq,
        metric=_HOP_RTT,
        sent_unix_ns=began,
        failure=failure or timed_out(Stage.WAIT, sent.timeout_ns),
        flow=sent.key,
        stamps=_stamps(sent, began, None, None),
        part=sent.limit,
    )


def target_sample(
    shot: Shot, arrived: Sample, first_sent: Reading, notes: dict[str, Note]
) -> Sample:
    """The sample of the whole trace, out of that of the first flow's packet that arrived."""
    lateness_ns = _lateness(shot, first_sent)
    return msgspec.structs.replace(
        arrived,
        metric=Metric.RTT,
        part=None,
        lateness_ns=lateness_ns,
        notes={**(arrived.notes or {}), **notes},
    )


def no_target_sample(
    shot: Shot,
    first_sent: Reading,
    failure: Failure,
    *,
    flow: int | None = None,
    responder: str | None = None,
    notes: dict[str, Note] | None = None,
) -> Sample:
    """The sample of a trace whose first flow did not arrive."""
    return Sample(
        seq=shot.seq,
        metric=Metric.RTT,
        sent_unix_ns=first_sent.unix_ns,
        failure=failure,
        lateness_ns=_lateness(shot, first_sent),
        responder=responder,
        flow=flow,
        notes=notes,
    )


def refusal(family: AddressFamily, answer: Answer) -> Failure:
    """What somebody who refuses to carry packets further has said."""
    if answer.icmp_type is not None and answer.icmp_code is not None:
        known = from_icmp(family, answer.icmp_type, answer.icmp_code, Stage.WAIT)
        if known is not None:
            return known
    return Failure(FailureKind.UNREACHABLE, Stage.WAIT, answer.word or "refused")


def label_text(stack: tuple[LabelEntry, ...]) -> str:
    """As in `HopNote.MPLS`."""
    words = (f"{e.label}/{e.traffic_class}/{int(e.bottom)}/{e.ttl}" for e in stack)
    return " ".join(words)


def interface_text(interfaces: tuple[InterfaceNote, ...]) -> str:
    """As in `HopNote.INTERFACE`."""
    return " ".join(
        ":".join(
            part
            for part in (
                one.role,
                "" if one.number is None else str(one.number),
                one.name,
                one.address,
            )
            if part
        )
        for one in interfaces
    )


def _notes(answer: Answer, *, translated: bool) -> dict[str, Note]:
    notes: dict[str, Note] = {}
    word = answer.word
    if not word and answer.icmp_type is not None:
        word = f"{answer.icmp_type}/{answer.icmp_code}"
    if word:
        notes[HopNote.ICMP] = word
    if answer.quoted_ttl not in (None, 1):
        notes[HopNote.QUOTED_TTL] = answer.quoted_ttl
    if answer.stack:
        notes[HopNote.MPLS] = label_text(answer.stack)
    if answer.interfaces:
        notes[HopNote.INTERFACE] = interface_text(answer.interfaces)
    if answer.mtu:
        notes[HopNote.MTU] = answer.mtu
    if translated:
        notes[HopNote.TRANSLATED] = True
    back = return_hops(answer.ttl)
    if back is not None:
        notes[HopNote.RETURN_HOPS] = back
    return notes


def _stamps(sent: Sent, began: int, now: Reading | None, received: int | None) -> Stamps:
    """As offsets from `began`; what lies between two readings is monotonic."""
    user_sent = sent.sent.unix_ns - began
    user_received = None
    if now is not None:
        user_received = user_sent + now.monotonic_ns - sent.sent.monotonic_ns
    return Stamps(
        None,
        user_sent,
        None if sent.kernel_sent_unix_ns is None else 0,
        None if received is None else received - began,
        user_received,
    )


def _was_late(stamps: Stamps) -> bool:
    sent, came, read = stamps.user_sent_ns, stamps.kernel_received_ns, stamps.user_received_ns
    if sent is not None and stamps.kernel_sent_ns is not None and -sent > HOST_BUSY_NS:
        return True
    return came is not None and read is not None and read - came > HOST_BUSY_NS


def _lateness(shot: Shot, first_sent: Reading) -> int:
    if shot.due_ns is None:
        return shot.lateness_ns
    return first_sent.monotonic_ns - shot.due_ns
