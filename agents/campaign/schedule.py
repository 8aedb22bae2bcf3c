"""When to send. Fixed by a seed before the first packet, whatever the replies do (open loop).

Poisson sampling (RFC 2330 section 11.1) sees time averages without bias; its gaps are exponential,
truncated here at ten times the mean. Periodic sampling (RFC 3432) starts at a random phase, so that
agents do not run in step. Either gives instants; a train of packets may leave at each of them, and
its queueing shows what one packet cannot (back to back: what the narrowest link spreads it to).
"""

import heapq
import itertools
import math
import random
from collections.abc import Iterator
from enum import StrEnum
from typing import NamedTuple

TRUNCATION = 10.0
"""A gap is never longer than this many mean gaps (probability 4.5e-5): part of the definition."""

_WORD = 2**64 - 1


class ScheduleKind(StrEnum):
    """How the gaps between sends are drawn."""

    POISSON = "poisson"
    PERIODIC = "periodic"


class Train(NamedTuple):
    """How many packets leave at each instant, and how long after one another (0: back to back)."""

    packets: int = 1
    gap_ns: int = 0

    @property
    def length_ns(self) -> int:
        """From its first packet to its last."""
        return (self.packets - 1) * self.gap_ns


def send_times(
    kind: ScheduleKind, interval_ns: int, duration_ns: int | None, rng: random.Random
) -> Iterator[int]:
    """Offsets from the start of the campaign in nanoseconds, ascending, all below `duration_ns`.

    None is for ever: nothing is kept of what has been drawn.
    """
    if interval_ns <= 0:
        raise ValueError("the interval must be longer than nothing")
    draw = _poisson if kind is ScheduleKind.POISSON else _periodic
    return draw(interval_ns, duration_ns, rng)


class Ticks(NamedTuple):
    """The times that several series share, one in each `interval_ns`, at a phase drawn anew.

    What they send then leaves together, and the host wakes up once for all of it (timer
    coalescing). At one and the same phase they would see whatever else repeats with the interval,
    or a part of it, always at the same point of its course.
    """

    interval_ns: int
    key: int
    """Out of which phases are drawn: 64 bits."""

    def at(self, number: int) -> int:
        """The time of tick `number`, in nanoseconds; ascending."""
        return number * self.interval_ns + _scattered(self.key + number) % self.interval_ns


def coalesced(instants: Iterator[int], ticks: Ticks) -> Iterator[int]:
    """Each instant at the tick of its interval, or at the next where it has been taken already.

    So an instant moves by less than an interval, unless its series has several within one.
    """
    before = -1
    for instant in instants:
        before = max(instant // ticks.interval_ns, before + 1)
        yield ticks.at(before)


def _scattered(number: int) -> int:
    """64 bits that look random, and are the same for the same number (SplitMix64, Steele 2014)."""
    mixed = number * 0x9E3779B97F4A7C15 & _WORD
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 & _WORD
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB & _WORD
    return mixed ^ mixed >> 31


def train_times(instants: Iterator[int], train: Train) -> Iterator[int]:
    """The times of all packets, ascending, when a train leaves at each of `instants`.

    The instants never wait: a train that lasts beyond the next one is interleaved with it.
    """
    if train.packets == 1:
        return instants
    if train.gap_ns == 0:
        return (instant for instant in instants for _ in range(train.packets))
    return (time for time, _ in numbered_trains(instants, train))


def numbered_trains(instants: Iterator[int], train: Train) -> Iterator[tuple[int, int]]:
    """The time and the number of all packets, in this order.

    A number is that of the train, by its instant, times the packets of one, plus the place in it:
    so it tells both, even where trains overlap.
    """
    waiting: list[tuple[int, int]] = []
    for index, instant in enumerate(instants):
        while waiting and waiting[0][0] < instant:
            yield heapq.heappop(waiting)
        for place in range(train.packets):
            packet = (instant + place * train.gap_ns, index * train.packets + place)
            heapq.heappush(waiting, packet)
    yield from sorted(waiting)


def _poisson(interval_ns: int, duration_ns: int | None, rng: random.Random) -> Iterator[int]:
    end = float("inf") if duration_ns is None else duration_ns
    uniform, log = rng.random, math.log
    offset = 0.0
    while True:
        # an exponential gap of mean 1, by inversion
        offset += min(-log(1.0 - uniform()), TRUNCATION) * interval_ns
        if offset >= end:
            return
        yield int(offset)


def _periodic(interval_ns: int, duration_ns: int | None, rng: random.Random) -> Iterator[int]:
    first = int(rng.random() * interval_ns)
    if duration_ns is None:
        return itertools.count(first, interval_ns)
    return iter(range(first, duration_ns, interval_ns))


def series_rng(seed: int, *key: str) -> random.Random:
    """The generator of one series: the same for the same seed and key, on every machine."""
    return random.Random("\x1f".join((str(seed), *key)))
