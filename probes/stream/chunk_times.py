"""The arithmetic of a stream's chunks: gaps, variation, stalls, bursts, play-out. Pure.

    gap        r(i) - r(i-1)                                        of arrivals r
    variation  (r(i) - r(i-1)) - (s(i) - s(i-1)), signed            of sends s, RFC 3393
    PDV        d(i) - min(d) with d(i) = r(i) - s(i)                RFC 5481

Clocks of two hosts differ by an unknown offset, which falls out of all three; their rates differ by
some millionths, which does not: a stream of ten seconds carries up to some tenths of a millisecond.
All times are nanoseconds.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

MILLISECOND_NS = 1_000_000
BURST_GAP_NS = MILLISECOND_NS
"""Chunks that arrive closer than this arrive in one burst."""


def gaps_of(times: Sequence[int]) -> list[int]:
    """Differences of neighbours, in order."""
    return [later - earlier for earlier, later in pairwise(times)]


def variations_of(gaps: Sequence[int], send_gaps: Sequence[int]) -> list[int]:
    """Delivery gap minus send gap, each; negative where a chunk caught up."""
    return [gap - sent for gap, sent in zip(gaps, send_gaps, strict=True)]


def pdv_of(variations: Sequence[int]) -> list[int]:
    """PDV of every chunk, the first one too: running sum of the variations above its minimum."""
    delays = [0]
    for variation in variations:
        delays.append(delays[-1] + variation)
    least = min(delays)
    return [delay - least for delay in delays]


def quantile_of(values: Sequence[int], p: float) -> int:
    """Smallest value with F(x) >= p (RFC 2330, 11.3). Raises ValueError for no values."""
    if not values:
        raise ValueError("no values, no quantile")
    rank = max(1, math.ceil(p * len(values) - 1e-9))
    return sorted(values)[min(len(values), rank) - 1]


def playout_buffer_of(pdv: Sequence[int], underrun_rate: float) -> int:
    """How long a player has to hold the fastest chunk back so that no more than this share of
    chunks comes too late: the (1 - rate) quantile of PDV.
    """
    return quantile_of(pdv, 1 - underrun_rate)


def stalls_in(gaps: Sequence[int], longest_ns: int) -> int:
    """How many gaps are longer than that."""
    return sum(gap > longest_ns for gap in gaps)


def burst_index_of(gaps: Sequence[int]) -> float:
    """Share of gaps under a millisecond; 0 where there is none."""
    return sum(gap < BURST_GAP_NS for gap in gaps) / len(gaps) if gaps else 0.0


def send_gap_of(part: int, user: Sequence[int], kernel: Mapping[int, int]) -> tuple[int, bool]:
    """Gap between the sends of a chunk and the one before it, and whether by kernel stamps.

    Both ends come from the same clock: a kernel stamp less a user-space one is neither.
    """
    first, last = kernel.get(part - 1), kernel.get(part)
    if first is not None and last is not None:
        return last - first, True
    return user[part] - user[part - 1], False
