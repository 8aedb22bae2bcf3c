"""Quantiles of a host's own delays, in constant memory: a histogram of logarithmic buckets."""

import operator
from itertools import accumulate

PRECISION_BITS = 4
"""A bucket is at most a sixteenth of its value wide."""
_STEPS = 1 << PRECISION_BITS
LONGEST_NS = 1 << 42
"""Over an hour: whatever took longer is counted as this."""
BUCKETS = (42 - PRECISION_BITS) * _STEPS + _STEPS


class DelayHistogram:
    """Counts of nanoseconds. Negative ones count as 0, those over `LONGEST_NS` as that."""

    __slots__ = ("counts",)

    def __init__(self) -> None:
        self.counts = [0] * BUCKETS

    def note(self, ns: int) -> None:
        """Count one delay. Called once per packet: no allocation, no logarithm."""
        if ns < _STEPS:
            self.counts[max(ns, 0)] += 1
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
        total = self.total
        if not total:
            return None
        rank = max(1, int(-(-total * share // 1)))
        reached = accumulate(self.counts)
        return _upper_edge(next(index for index, below in enumerate(reached) if below >= rank))

    def add(self, other: "DelayHistogram") -> None:
        """Count everything that `other` counted."""
        self.counts = list(map(operator.add, self.counts, other.counts))

    def clear(self) -> None:
        """Forget everything."""
        self.counts = [0] * BUCKETS


def together(*parts: DelayHistogram) -> DelayHistogram:
    """A histogram of everything that `parts` counted."""
    whole = DelayHistogram()
    for part in parts:
        whole.add(part)
    return whole


def _upper_edge(index: int) -> int:
    shift = max(0, (index >> PRECISION_BITS) - 1)
    return ((index - (shift << PRECISION_BITS) + 1) << shift) - 1
