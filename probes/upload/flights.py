"""How many flights some bytes left in, read off the kernel's send stamps. Sans-IO.

The rule: a flight begins with the first packet, and another one with each packet that leaves at
least `SHARE` of a round trip after the first packet of the flight before it. In slow start the
first packet of a flight waits for the acknowledgement of the first one of the flight before, which
takes a round trip, and the others follow as their acknowledgements come: in much less where the
path is wide. Where a bottleneck spreads them over a whole round trip there are no flights any more,
and the number is the time of sending in round trips, rounded up.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

SHARE = 0.8
SHORTEST_ROUND_TRIP_NS = 2_000_000
"""Below this our own work between two packets is as long as a round trip: flights are not told."""


class Departed(NamedTuple):
    """One packet that has left: bytes that were new in it, and when."""

    bytes: int
    unix_ns: int


@dataclass(frozen=True, slots=True)
class Flights:
    """What was seen. `first_bytes` is what the first flight carried: the window that it left in."""

    count: int
    first_bytes: int
    first_packets: int


def count_flights(departed: Iterable[Departed], round_trip_ns: int | None) -> Flights | None:
    """Flights by the rule above; None where there is nothing to tell them by."""
    if round_trip_ns is None or round_trip_ns < SHORTEST_ROUND_TRIP_NS:
        return None
    count = first_bytes = first_packets = 0
    began = 0
    for packet in sorted(departed, key=lambda one: one.unix_ns):
        if not count or packet.unix_ns - began >= SHARE * round_trip_ns:
            count += 1
            began = packet.unix_ns
        if count == 1:
            first_bytes += packet.bytes
            first_packets += 1
    return Flights(count, first_bytes, first_packets) if count else None
