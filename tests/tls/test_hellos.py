"""What our own side takes between two ClientHellos is no part of the handshake time."""

from pathbudget.probes.carriers import Moment
from pathbudget.probes.clock import Reading
from pathbudget.probes.record import ClockSource
from pathbudget.probes.tls.hellos import Hellos

MS = 1_000_000
BEGAN_UNIX_NS = 1_700_000_000_000_000_000


def at(ms: float) -> Reading:
    return Reading(round(ms * MS), BEGAN_UNIX_NS + round(ms * MS), 0)


def stamp(ms: float) -> int:
    return BEGAN_UNIX_NS + round(ms * MS)


def test_one_hello_is_the_plain_span() -> None:
    hellos = Hellos(at(0))
    hellos.leaves(at(1), 300)
    hellos.sent(299, stamp(1.5))
    span = hellos.until(Moment(at(12), stamp(11.5)))
    assert (span.value_ns, span.source) == (10 * MS, ClockSource.KERNEL)
    assert hellos.own is None


def test_a_slow_second_hello_is_taken_out() -> None:
    hellos = Hellos(at(0))
    hellos.leaves(at(1), 300)
    hellos.sent(299, stamp(1.5))
    hellos.leaves_again(Moment(at(41), stamp(11.5)), at(60), 900)
    hellos.sent(599, stamp(60.2))  # not all of it yet
    hellos.sent(899, stamp(61.5))
    hellos.sent(899, stamp(90))  # a retransmission
    span = hellos.until(Moment(at(80), stamp(71.5)))
    assert hellos.own is not None
    assert hellos.own.value_ns == 50 * MS
    assert (span.value_ns, span.source) == (20 * MS, ClockSource.KERNEL)


def test_without_the_kernels_stamp_of_the_second_the_worst_clock_is_named() -> None:
    hellos = Hellos(at(0))
    hellos.leaves(at(1), 300)
    hellos.sent(299, stamp(1))
    hellos.leaves_again(Moment(at(11)), at(31), 900)
    span = hellos.until(Moment(at(41), stamp(41)))
    assert (span.value_ns, span.source) == (20 * MS, ClockSource.USER)
