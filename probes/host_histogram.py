"""Quantiles of a host's own delays, in constant memory: a histogram of logarithmic buckets."""

import math
import operator
from bisect import bisect_left
from itertools import accumulate

PRECISION_BITS = 4
"""A bucket is at most a sixteenth of its value wide."""
_STEPS = 1 << PRECISION_BITS
LONGEST_NS = 1 << 42
"""Over an hour: whatever took longer is counted as this."""
BUCKETS = (42 - PRECISION_BITS) * _STEPS + _STEPS


class DelayHistogram:
    """Counts of nanoseconds. What is over `LONGEST_NS` counts as that.

    A negative delay is none: a clock was stepped in between. It is not counted.
    """

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS

    def note(self, ns: int) -> None:
        """Count one delay. Called once per packet: no allocation, no logarithm."""
        if ns < _STEPS:
            if ns >= 0:
                self.counts[ns] += 1
        elif ns >= LONGEST_NS:
            self.counts[-1] += 1
        else:
            shift = ns.bit_length() - PRECISION_BITS - 1
            self.counts[(shift << PRECISION_BITS) + (ns >> shift)] += 1

    @property
    def total(self) -> int:
        """How many delays were counted."""
        return sum(self.counts)

    def quantile(self, share: float) -> int | None:
        """The smallest delay with at least `share` of all at or below it (RFC 2330, 11.3).

        The upper edge of its bucket: never too small, too large by a sixteenth at most. None where
        nothing was counted.
        """
        reached = list(accumulate(self.counts))
        if not reached[-1]:
            return None
        rank = max(1, math.ceil(reached[-1] * share))
        return _upper_edge(bisect_left(reached, rank))

    def add(self, other: "DelayHistogram") -> None:
        """Count everything that `other` counted."""
        self.counts = list(map(operator.add, self.counts, other.counts))

    def clear(self) -> None:
        """Forget everything."""
        self.counts = [0] * BUCKETS


def together(one: DelayHistogram, other: DelayHistogram) -> DelayHistogram:
    """A histogram of everything that both counted."""
    both = DelayHistogram()
    both.counts = list(map(operator.add, one.counts, other.counts))
    return both


def _upper_edge(index: int) -> int:
    shift = max(0, (index >> PRECISION_BITS) - 1)
    return ((index - (shift << PRECISION_BITS) + 1) << shift) - 1
