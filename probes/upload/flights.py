"""How many flights some bytes left in, read off the kernel's stamps. Sans-IO.

By acknowledgements (TCP): a packet belongs to the flight after that of the last packet whose
acknowledgement had come when it left; to the first one where none had. These are the round trips
that the bytes waited for, also where pacing or a bottleneck spreads a flight until the next one
joins it.

By time (QUIC, whose acknowledgements are encrypted): a flight begins with the first packet, and
another one with each packet that leaves at least `SHARE` of a round trip after the first packet of
the flight before it. Where packets are spread over whole round trips this is the time of sending in
round trips, and no more.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

SHARE = 0.8
SHORTEST_ROUND_TRIP_NS = 2_000_000
"""Below this our own work between two packets is as long as a round trip: time tells nothing."""


class Departed(NamedTuple):
    """One packet that has left: bytes that were new in it, its last one, and when."""

    bytes: int
    last_byte: int
    unix_ns: int


class Acknowledged(NamedTuple):
    """An acknowledgement of all bytes up to one."""

    last_byte: int
    unix_ns: int


@dataclass(frozen=True, slots=True)
class Flights:
    """What was seen. `first_bytes` is what the first flight carried: the window that it left in."""

    count: int
    first_bytes: int
    first_packets: int
    by_acknowledgements: bool


def flights_of(departed: Sequence[Departed], acknowledged: Sequence[Acknowledged]) -> list[int]:
    """The number of the flight of each packet, from 1, by acknowledgements; both in order."""
    ends = [packet.last_byte for packet in departed]
    numbers: list[int] = []
    known = 0
    latest = -1
    for packet in departed:
        while known < len(acknowledged) and acknowledged[known].unix_ns <= packet.unix_ns:
            latest = max(latest, acknowledged[known].last_byte)
            known += 1
        before = min(bisect_right(ends, latest), len(numbers))
        numbers.append(numbers[before - 1] + 1 if before else 1)
    return numbers


def flights_by_time(departed: Sequence[Departed], round_trip_ns: int) -> list[int]:
    """The same by time alone."""
    numbers: list[int] = []
    began = 0
    for packet in departed:
        if not numbers:
            number, began = 1, packet.unix_ns
        elif packet.unix_ns - began >= SHARE * round_trip_ns:
            number, began = numbers[-1] + 1, packet.unix_ns
        else:
            number = numbers[-1]
        numbers.append(number)
    return numbers


def count_flights(
    departed: Sequence[Departed],
    acknowledged: Sequence[Acknowledged],
    round_trip_ns: int | None,
) -> Flights | None:
    """Flights by the better rule that the stamps allow; None where they allow none."""
    if not departed:
        return None
    if acknowledged:
        numbers = flights_of(departed, acknowledged)
    elif round_trip_ns is None or round_trip_ns < SHORTEST_ROUND_TRIP_NS:
        return None
    else:
        numbers = flights_by_time(departed, round_trip_ns)
    first = [packet.bytes for packet, number in zip(departed, numbers, strict=True) if number == 1]
    return Flights(max(numbers), sum(first), len(first), by_acknowledgements=bool(acknowledged))
