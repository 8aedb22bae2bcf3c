"""Streams over simulated paths, whose truth is known: delay, loss with recovery, proxies."""

import random
from collections.abc import Callable, Sequence

from pathbudget.probes.stream.buffering import GapPair
from pathbudget.probes.stream.chunk_times import gaps_of

MS = 1_000_000
Path = Callable[[random.Random, Sequence[int]], list[int]]


def sends(rng: random.Random, chunks: int, interval_ns: int, late_ns: int = 200_000) -> list[int]:
    """On a fixed schedule, each late by up to something."""
    return [n * interval_ns + round(rng.expovariate(1 / late_ns)) for n in range(chunks)]


def in_order(arrivals: Sequence[int]) -> list[int]:
    """As a stream delivers: nothing before what was sent before it (up to 20 us of reading)."""
    ordered: list[int] = []
    for arrival in arrivals:
        ordered.append(max(arrival, ordered[-1] + 20_000) if ordered else arrival)
    return ordered


def plain(variation_ns: int = 500_000, loss: float = 0.0, rtt_ns: int = 40 * MS) -> Path:
    """Delay with exponential variation; a lost packet is there again after a timer (doubling)."""

    def carry(rng: random.Random, sent: Sequence[int]) -> list[int]:
        arrivals: list[int] = []
        for at in sent:
            delay = rtt_ns // 2 + round(rng.expovariate(1 / variation_ns))
            timer = 200 * MS + rtt_ns
            while rng.random() < loss:
                delay, timer = delay + timer, 2 * timer
            arrivals.append(at + delay)
        return in_order(arrivals)

    return carry


def gathering(buffer_chunks: int, before: Path | None = None) -> Path:
    """A proxy that releases when so many chunks are there, and at the end."""
    carry_before = before or plain()

    def carry(rng: random.Random, sent: Sequence[int]) -> list[int]:
        came = carry_before(rng, sent)
        out: list[int] = []
        for start in range(0, len(came), buffer_chunks):
            block = came[start : start + buffer_chunks]
            out += [block[-1] + 30_000 * n for n in range(len(block))]
        return in_order(out)

    return carry


def smoothing(depth_ns: int, interval_ns: int) -> Path:
    """A proxy that holds the first chunk for a while and then keeps a pace of its own."""
    carry_before = plain(100_000)

    def carry(rng: random.Random, sent: Sequence[int]) -> list[int]:
        came = carry_before(rng, sent)
        return [
            max(at, came[0] + depth_ns + n * interval_ns + rng.randrange(50_000))
            for n, at in enumerate(came)
        ]

    return carry


def pairs(sent: Sequence[int], came: Sequence[int], *, late_ns: int | None = 0) -> list[GapPair]:
    both = zip(gaps_of(came), gaps_of(sent), strict=True)
    return [GapPair(received, left, late_ns) for received, left in both]
