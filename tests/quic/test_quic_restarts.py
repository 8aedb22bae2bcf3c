"""After a Retry our own side computes new keys: that time is known, to be taken out."""

from pathbudget.probes.carriers import Moment
from pathbudget.probes.clock import Reading
from pathbudget.probes.quic.flight import Flight
from pathbudget.probes.quic.packets import PacketHead, PacketKind
from pathbudget.probes.record import Flag

MS = 1_000_000
VERSION_1 = 1


def at(ms: int) -> Moment:
    return Moment(Reading(ms * MS, 1_790_000_000 * 10**9 + ms * MS, 0))


FIRST = [PacketHead(PacketKind.INITIAL, 0, 1200, VERSION_1)]
AGAIN = [PacketHead(PacketKind.INITIAL, 0, 1200, VERSION_1, token=b"proof")]
RETRY = [PacketHead(PacketKind.RETRY, 0, 100, VERSION_1)]


def test_the_initial_with_a_token_begins_anew() -> None:
    flight = Flight()
    assert not flight.left(FIRST, 1200, at(0))
    flight.came(RETRY, 100, at(10))
    assert flight.heard == at(10)
    assert flight.left(AGAIN, 1200, at(60))
    assert not flight.left(AGAIN, 1200, at(61), timer=True)
    assert Flag.RETRY in flight.flags


def test_a_repeated_initial_begins_nothing() -> None:
    flight = Flight()
    assert not flight.left(FIRST, 1200, at(0))
    assert not flight.left(FIRST, 1200, at(300), timer=True)
    assert flight.flags == (Flag.RETRIED,)
