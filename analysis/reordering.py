"""Packets that arrive in another order than they were sent (RFC 4737), or twice (RFC 5560).

A packet is known by the number it was sent under; `arrived` lists those numbers in order of
arrival, each once (a copy is a duplicate, not a reordered packet).
"""

import bisect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

FAST_RETRANSMIT = 3
"""Three packets that overtake one make TCP send it again (RFC 5681)."""


@dataclass(frozen=True, slots=True)
class Reordering:
    """What RFC 4737 says of one stream of packets that arrived."""

    received: int
    """Packets that arrived, copies not counted."""
    reordered: int
    """Packets with s < NextExp (section 3)."""
    extents: tuple[int, ...]
    """One per reordered packet, in order of arrival: how many arrivals back the first packet came
    that was sent later (section 4.2)."""
    n_reordered: int
    """Packets that are n-reordered for n = 3: the three before them were all sent later (5.4)."""

    @property
    def ratio(self) -> float:
        """Share of the received packets that are reordered (section 4.1); 0 for none."""
        return self.reordered / self.received if self.received else 0.0

    @property
    def largest_extent(self) -> int:
        """The buffer, in packets, that would put everything in order again."""
        return max(self.extents, default=0)


def reordering(arrived: Sequence[int], n: int = FAST_RETRANSMIT) -> Reordering:
    """Reordering of unique sequence numbers in order of arrival (RFC 4737).

    Packet s is reordered if and only if s < NextExp, the number after the largest one seen. Lost
    packets are gaps and reorder nothing. Raises ValueError for a number that comes twice.
    """
    if len(set(arrived)) != len(arrived):
        raise ValueError("a packet arrived twice; take the copies out first")
    extents: list[int] = []
    harmful = 0
    peaks: list[int] = []  # largest number so far, after each arrival: never falls
    for place, number in enumerate(arrived):
        if peaks and number < peaks[-1]:
            extents.append(place - bisect.bisect_right(peaks, number))
            before = arrived[max(0, place - n) : place]
            harmful += len(before) == n and min(before) > number
        peaks.append(max(number, peaks[-1]) if peaks else number)
    return Reordering(len(arrived), len(extents), tuple(extents), harmful)


@dataclass(frozen=True, slots=True)
class Duplication:
    """Copies of packets (RFC 5560)."""

    arrived: int
    """Different packets that arrived."""
    replicated: int
    """Packets that came more than once."""
    copies: int
    """Arrivals beyond the first, over all packets."""

    @property
    def duplicate_fraction(self) -> float:
        """Copies per packet that arrived (RFC 5560 section 5.2); 0 for none."""
        return self.copies / self.arrived if self.arrived else 0.0

    @property
    def replicated_fraction(self) -> float:
        """Share of the packets that came more than once (section 5.3)."""
        return self.replicated / self.arrived if self.arrived else 0.0


def duplication(arrivals: Iterable[int]) -> Duplication:
    """Copies among the numbers of all arrivals, in any order."""
    counts: dict[int, int] = {}
    for number in arrivals:
        counts[number] = counts.get(number, 0) + 1
    copies = sum(count - 1 for count in counts.values())
    return Duplication(len(counts), sum(count > 1 for count in counts.values()), copies)
