"""From four timestamps to four numbers (RFC 8762 section 4, RFC 2681, RFC 7679).

    RTT = (T4 - T1) - (T3 - T2)     forward = T2 - T1     reverse = T4 - T3     residence = T3 - T2

T1 and T4 are the sender's, T2 and T3 the reflector's. Each number says by which clocks it was read:

    rtt        kernel: T1, T4 and T3 by the kernels; kernel_receive: T1 or T3 read before the send
               call, the RTT is too long by that call; user: T4 read when this process came to it
    forward    kernel, or kernel_receive where T1 was read before the send call
    reverse    kernel where T3 is the kernel's, kernel_receive where not, user where T4 is no stamp
    residence  kernel where T3 is the kernel's, kernel_receive where not
"""

import functools

from pathbudget.probes.clock import StampedInterval
from pathbudget.probes.record import HOST_BUSY_NS, ClockSource, Flag, Metric, Sample, Stamps
from pathbudget.probes.stamp.flights import Answer, Flight
from pathbudget.probes.stamp.timestamps import decode_error, from_ptp, ntp_between, to_ntp

_KERNEL, _RECEIVE, _USER = ClockSource.KERNEL, ClockSource.KERNEL_RECEIVE, ClockSource.USER
_RTT, _RESIDENCE = Metric.RTT, Metric.RESIDENCE
_FORWARD, _REVERSE = Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE
# Looked up here once: an attribute of an enumeration costs as much as a field of a sample.


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


@functools.lru_cache(1024)
def _stated_ns(error: int) -> int | None:
    """What an error estimate vouches for; None where it does not."""
    theirs = decode_error(error)
    return theirs.error_ns if theirs.synchronised and theirs.multiplier else None


def error_between(own_error_ns: int | None, error: int) -> int | None:
    """By how much two clocks may be apart; None unless both are vouched for."""
    if own_error_ns is None:
        return None
    theirs_ns = _stated_ns(error)
    return None if theirs_ns is None else own_error_ns + theirs_ns


def _between(flight: Flight, answer: Answer, zero: int) -> tuple[int, int, int | None]:
    """T2, T3 and, where it is known, T3 by the reflector's kernel, from the moment of sending."""
    by_kernel = flight.left_by_kernel
    if answer.error >> 14 & 1:
        arrived, left = from_ptp(answer.arrived, zero), from_ptp(answer.left, zero)
        really = None if by_kernel is None else from_ptp(by_kernel, zero) - zero
        return arrived - zero, left - zero, really
    began = to_ntp(zero)
    really = None if by_kernel is None else ntp_between(began, by_kernel)
    return ntp_between(began, answer.arrived), ntp_between(began, answer.left), really


def _flags(flight: Flight, late: int, lag: int, *, stepped: bool) -> tuple[str, ...]:
    """The marks of an answered packet that has any."""
    flags: tuple[str, ...] = (Flag.CLOCK_STEP,) if stepped else ()
    if flight.duplicated:
        flags = (*flags, Flag.DUPLICATED)
    if late > HOST_BUSY_NS or lag > HOST_BUSY_NS:
        flags = (*flags, Flag.HOST_BUSY)
    return flags


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
    zero, seq, ttl = sent_unix_ns(flight), flight.shot.seq, answer.ttl
    value, source, stepped = span
    forward, left, really = _between(flight, answer, zero)
    left_source = _RECEIVE
    if really is not None and left < really <= forward + value:
        left, left_source = really, _KERNEL
    elif source is _KERNEL:
        source = _RECEIVE
    residence = left - forward
    rtt = value
    if 0 <= residence <= value:
        rtt -= residence
    else:
        stepped = True
    read_unix_ns, stamp = answer.read.unix_ns, answer.kernel_unix_ns
    back = stamp or read_unix_ns
    late = lateness_ns(flight)
    lag = 0 if span.stepped else read_unix_ns - back
    flags: tuple[str, ...] = ()
    if stepped or flight.duplicated or late > HOST_BUSY_NS or lag > HOST_BUSY_NS:
        flags = _flags(flight, late, lag, stepped=stepped)
    forward_source = _RECEIVE if flight.kernel_sent_unix_ns is None else _KERNEL
    reverse_source = _USER if stamp is None else left_source
    # What is vouched for now was not while a clock was set.
    error = None if own_error_ns is None or stepped else error_between(own_error_ns, answer.error)
    responder = None if answer.sender == flight.session.address else answer.sender
    stamps = stamps_of(flight)
    # In the order of the fields of Sample: this is done four times a packet.
    # fmt: off
    return (
        Sample(seq, _RTT, zero, rtt, None, source, None, late, ttl, responder,
               flags, flow, None, stamps),
        Sample(seq, _FORWARD, zero, forward, None, forward_source, None, late,
               ttl, responder, flags, flow, error, stamps),
        Sample(seq, _REVERSE, zero, back - zero - left, None, reverse_source, None, late,
               ttl, responder, flags, flow, error, stamps),
        Sample(seq, _RESIDENCE, zero, residence, None, left_source, None, late,
               ttl, responder, flags, flow, None, stamps),
    )
    # fmt: on
