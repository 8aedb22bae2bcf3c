"""One echo probe under way, the flow it belongs to, and the sample it becomes.

All packets of a flow look alike to a router that spreads its load by the first bytes of the ICMP
header: same identifier, same checksum (the Paris property: Augustin et al., "Avoiding traceroute
anomalies with Paris traceroute", IMC 2006). What differs from packet to packet, the number, is
balanced by two bytes beside it (`icmp_wire`).
"""

import functools
import socket

import msgspec

from pathbudget.probes.clock import (
    ORDER_TOLERANCE_NS,
    STEP_TOLERANCE_NS,
    Reading,
    StampedInterval,
    measure_interval,
    step_between,
)
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import (
    HOST_BUSY_NS,
    ClockSource,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Sample,
    Stage,
    Stamps,
)

# Looking up a member of an enumeration costs as much as packing a packet.
_RTT, _KERNEL = Metric.RTT, ClockSource.KERNEL
_BUSY = (Flag.HOST_BUSY,)
UNREADABLE = Failure(
    FailureKind.LOCAL, Stage.WAIT, "answered, but the kernel's stamp is missing or cannot be read"
)


class Flow(msgspec.Struct, gc=False):
    """One of the flows to one address, for as long as it keeps its identifier.

    `label` is what samples say of it, None where there is only one.
    """

    address: str
    index: int
    identifier: int
    checksum: int
    reply_checksum: int
    label: int | None
    asked: str
    """The address as shots write it."""
    losses: int = 0


Answer = tuple[str, int | None, int | None, Failure | None]
"""Sender, TTL, kernel stamp; and what it means, where it is no proper reply."""


class Flight(msgspec.Struct, gc=False):
    """One probe without an outcome."""

    number: int
    shot: Shot
    flow: Flow
    message: bytes
    """The request; the reply repeats it from `icmp_wire.REPEATED` on."""
    sent: Reading
    place: tuple[int, int] | None = None
    """Channel, and key of the stamp."""
    kernel_sent_unix_ns: int | None = None
    answer: Answer | None = None
    duplicated: bool = False


def measured_simply(flight: Flight, now: Reading, waited_ns: int = 0) -> Sample | None:
    """The sample of a probe in time with both kernel stamps and nothing odd; None for others.

    What `measured` says at a tenth of the cost: here every nanosecond is paid for each packet.
    """
    began = flight.kernel_sent_unix_ns
    if began is None or flight.answer is None or flight.duplicated:
        return None
    sender, ttl, ended, failure = flight.answer
    flow = flight.flow
    if ended is None or failure is not None or sender != flow.address:
        return None
    shot = flight.shot
    sent_monotonic, sent_unix, _ = flight.sent
    value_ns = ended - began
    enclosing = now[0] - sent_monotonic
    user_sent = sent_unix - began
    received = user_sent + enclosing
    due_ns = shot.due_ns
    if due_ns is None:
        due, lateness_ns = None, shot.lateness_ns
    else:
        lateness_ns = sent_monotonic - due_ns
        due = user_sent - lateness_ns
    if (
        -STEP_TOLERANCE_NS <= now[1] - sent_unix - enclosing <= STEP_TOLERANCE_NS
        and 0 <= value_ns <= enclosing + ORDER_TOLERANCE_NS
        and value_ns <= shot.timeout_ns
        and user_sent <= ORDER_TOLERANCE_NS
    ):
        # A busy host is no reason to take longer: it would fall behind for good.
        busy = lateness_ns - user_sent > HOST_BUSY_NS
        busy = busy or received - value_ns > HOST_BUSY_NS + waited_ns
        stamps = Stamps(due, user_sent, 0, value_ns, received)
        return Sample(
            shot.seq,
            _RTT,
            began,
            value_ns,
            None,
            _KERNEL,
            None,
            lateness_ns,
            ttl,
            None,
            _BUSY if busy else (),
            flow.label,
            None,
            stamps,
        )
    return None


def measured(flight: Flight, answer: Answer, now: Reading, waited_ns: int = 0) -> Sample:
    """The sample of a probe that was answered by a proper reply.

    One that lay unread for up to `waited_ns` because we wanted it so has no number where only the
    clock of user space could give one: that would be our own waiting.
    """
    sender, ttl, kernel_received, _ = answer
    span = measure_interval(flight.sent, now, flight.kernel_sent_unix_ns, kernel_received)
    stepped = span.stepped
    if waited_ns and span.source is ClockSource.USER:
        began = flight.kernel_sent_unix_ns
        found = span_across_steps(flight.sent, now, began, kernel_received)
        if found is None:
            return failed(flight, UNREADABLE, now, waited_ns=waited_ns)
        span = found
    sent_unix_ns, stamps, lateness_ns, busy = _when(
        flight, now, kernel_received, stepped, waited_ns
    )
    marks = (
        (Flag.CLOCK_STEP, stepped),
        (Flag.DUPLICATED, flight.duplicated),
        (Flag.HOST_BUSY, busy),
    )
    return Sample(
        seq=flight.shot.seq,
        metric=_RTT,
        sent_unix_ns=sent_unix_ns,
        value_ns=span.value_ns,
        clock_source=span.source,
        lateness_ns=lateness_ns,
        ttl=ttl,
        responder=None if canonical(sender) == flight.flow.address else sender,
        flags=tuple(flag for flag, holds in marks if holds),
        flow=flight.flow.label,
        stamps=stamps,
    )


def span_across_steps(
    sent: Reading, received: Reading, kernel_sent: int | None, kernel_received: int | None
) -> StampedInterval | None:
    """The time between two kernel stamps with a step of the wall clock around; None: nobody knows.

    Each stamp was given before the step or after it. What would lie outside of the two readings is
    ruled out; where a small step leaves both possible, the longer span stands. It is too long by
    the step at most.
    """
    if kernel_received is None:
        return None
    slack = ORDER_TOLERANCE_NS + sent.error_ns + received.error_ns
    earliest, latest = sent.monotonic_ns - slack, received.monotonic_ns + slack

    def possible(stamp: int) -> list[tuple[bool, int]]:
        offsets = ((False, sent.offset_ns), (True, received.offset_ns))
        times = [(after, stamp - offset) for after, offset in offsets]
        return [(after, time) for after, time in times if earliest <= time <= latest]

    source = ClockSource.KERNEL_RECEIVE
    begins = [(False, sent.monotonic_ns)]
    if kernel_sent is not None:
        source, begins = ClockSource.KERNEL, possible(kernel_sent)
    spans = [
        end - begin
        for begin_after, begin in begins
        for end_after, end in possible(kernel_received)
        if end_after >= begin_after and end >= begin
    ]
    return StampedInterval(max(spans), source, stepped=True) if spans else None


def failed(
    flight: Flight,
    failure: Failure,
    now: Reading,
    *,
    responder: str | None = None,
    waited_ns: int = 0,
) -> Sample:
    """The sample of a probe without a number. Its answer is looked at only for its stamps."""
    came = None if flight.answer is None else flight.answer[2]
    stepped = bool(step_between(flight.sent, now))
    read = None if flight.answer is None else now
    sent_unix_ns, stamps, lateness_ns, busy = _when(flight, read, came, stepped, waited_ns)
    return Sample(
        seq=flight.shot.seq,
        metric=_RTT,
        sent_unix_ns=sent_unix_ns,
        failure=failure,
        lateness_ns=lateness_ns,
        responder=responder,
        flags=(Flag.HOST_BUSY,) if busy else (),
        flow=flight.flow.label,
        stamps=stamps,
    )


def _when(
    flight: Flight,
    now: Reading | None,
    kernel_received: int | None,
    stepped: bool,
    waited_ns: int,
) -> tuple[int, Stamps, int, bool]:
    """Time sent, stamps, lateness, and whether this host was late to send or to read."""
    shot, sent = flight.shot, flight.sent
    kernel_sent = flight.kernel_sent_unix_ns
    sent_unix_ns = kernel_sent or sent.unix_ns
    user_sent = sent.unix_ns - sent_unix_ns
    due = received = came = None
    lateness_ns = shot.lateness_ns
    if shot.due_ns is not None:
        lateness_ns = sent.monotonic_ns - shot.due_ns
        due = user_sent - lateness_ns
    # A wall clock that was stepped says nothing of how late this host was.
    busy = lateness_ns - (0 if stepped else user_sent) > HOST_BUSY_NS
    if kernel_received is not None:
        came = kernel_received - sent_unix_ns
    if now is not None:
        # By the monotonic clock, so that no step of the other one gets in.
        received = user_sent + now.monotonic_ns - sent.monotonic_ns
        if came is not None and not stepped:
            busy = busy or received - came > HOST_BUSY_NS + waited_ns
    stamps = Stamps(due, user_sent, None if kernel_sent is None else 0, came, received)
    return sent_unix_ns, stamps, lateness_ns, busy


@functools.lru_cache(maxsize=65_536)
def canonical(address: str) -> str:
    """An address as the system writes it, without its zone; other text as it is."""
    plain = address.partition("%")[0]
    family = socket.AF_INET6 if ":" in plain else socket.AF_INET
    try:
        return socket.inet_ntop(family, socket.inet_pton(family, plain))
    except OSError:
        return plain
