"""From four timestamps to four numbers (RFC 8762 section 4, RFC 2681, RFC 7679).

    RTT = (T4 - T1) - (T3 - T2)     forward = T2 - T1     reverse = T4 - T3     residence = T3 - T2

T1 and T4 are the sender's, T2 and T3 the reflector's. Each number says by which clocks it was read:

    rtt        kernel: T1, T4 and T3 by the kernels; kernel_receive: T1 or T3 read before the send
               call, the RTT is too long by that call; user: T4 read when this process came to it
    forward    kernel, or kernel_receive where T1 was read before the send call
    reverse    kernel where T3 is the kernel's, kernel_receive where not, user where T4 is no stamp
    residence  kernel where T3 is the kernel's, kernel_receive where not
"""

from pathbudget.probes.clock import StampedInterval
from pathbudget.probes.record import HOST_BUSY_NS, ClockSource, Flag, Metric, Sample, Stamps
from pathbudget.probes.stamp.flights import Answer, Flight
from pathbudget.probes.stamp.timestamps import decode_error, from_ntp, from_ptp


def sent_unix_ns(flight: Flight) -> int:
    """The best that is known of when a packet left."""
    return flight.kernel_sent_unix_ns or flight.sent.unix_ns


def lateness_ns(flight: Flight) -> int:
    """How long after its due time it left."""
    due, sent = flight.shot.due_ns, flight.sent
    if due is None:
        return flight.shot.lateness_ns
    return sent.monotonic_ns - due + sent_unix_ns(flight) - sent.unix_ns


def stamps_of(flight: Flight) -> Stamps:
    """Everything that was read of one packet, relative to when it left."""
    zero, sent, answer = sent_unix_ns(flight), flight.sent, flight.answer
    due, kernel_sent = flight.shot.due_ns, flight.kernel_sent_unix_ns
    return Stamps(
        None if due is None else sent.unix_ns - sent.monotonic_ns + due - zero,
        sent.unix_ns - zero,
        None if kernel_sent is None else 0,
        None if answer is None or answer.kernel_unix_ns is None else answer.kernel_unix_ns - zero,
        None if answer is None else answer.read.unix_ns - zero,
    )


def error_between(own_error_ns: int | None, error: int) -> int | None:
    """By how much two clocks may be apart; None unless both are vouched for."""
    if own_error_ns is None:
        return None
    theirs = decode_error(error)
    vouched = theirs.synchronised and theirs.multiplier
    return own_error_ns + theirs.error_ns if vouched else None


def measured(
    flight: Flight,
    answer: Answer,
    span: StampedInterval,
    flow: int | None,
    own_error_ns: int | None,
) -> tuple[Sample, Sample, Sample, Sample]:
    """The samples of one answered packet: RTT, forward, reverse, residence.

    A residence that does not fit into the round trip was read by a clock that was stepped: then it
    is not taken out of the RTT, and all four are marked.
    """
    zero, shot = sent_unix_ns(flight), flight.shot
    read = from_ptp if answer.error >> 14 & 1 else from_ntp
    arrived = read(answer.arrived, zero)
    left, by_kernel = read(answer.left, zero), False
    if flight.left_by_kernel is not None:
        really = read(flight.left_by_kernel, zero)
        if left < really <= arrived + span.value_ns:
            left, by_kernel = really, True
    residence = left - arrived
    fits = 0 <= residence <= span.value_ns
    back = answer.kernel_unix_ns or answer.read.unix_ns
    late = lateness_ns(flight)
    flags: tuple[str, ...] = (Flag.CLOCK_STEP,) if span.stepped or not fits else ()
    if flight.duplicated:
        flags = (*flags, Flag.DUPLICATED)
    lag = 0 if span.stepped else answer.read.unix_ns - back
    if late > HOST_BUSY_NS or lag > HOST_BUSY_NS:
        flags = (*flags, Flag.HOST_BUSY)
    source = span.source
    if source is ClockSource.KERNEL and not by_kernel:
        source = ClockSource.KERNEL_RECEIVE
    stamped = flight.kernel_sent_unix_ns is not None
    forward_source = ClockSource.KERNEL if stamped else ClockSource.KERNEL_RECEIVE
    left_source = ClockSource.KERNEL if by_kernel else ClockSource.KERNEL_RECEIVE
    reverse_source = ClockSource.USER if answer.kernel_unix_ns is None else left_source
    error = error_between(own_error_ns, answer.error)
    responder = None if answer.sender == flight.session.address else answer.sender
    stamps = stamps_of(flight)
    rtt = span.value_ns - residence if fits else span.value_ns
    seq, ttl = shot.seq, answer.ttl
    # In the order of the fields of Sample: this is done four times a packet.
    # fmt: off
    return (
        Sample(seq, Metric.RTT, zero, rtt, None, source, None, late, ttl, responder,
               flags, flow, None, stamps),
        Sample(seq, Metric.TRANSIT_FORWARD, zero, arrived - zero, None, forward_source, None, late,
               ttl, responder, flags, flow, error, stamps),
        Sample(seq, Metric.TRANSIT_REVERSE, zero, back - left, None, reverse_source, None, late,
               ttl, responder, flags, flow, error, stamps),
        Sample(seq, Metric.RESIDENCE, zero, residence, None, left_source, None, late,
               ttl, responder, flags, flow, None, stamps),
    )
    # fmt: on
