"""Distributions as Prometheus keeps them: counts in exponential buckets, from 31 us to 64 s.

The bounds are the powers of the square root of two, so a quantile that is read out of a bucket is
within a factor of 1.41 of the true one wherever it lies, in the tail as well as in the middle. They
are those of native histograms of schema 1, and of OpenTelemetry's exponential ones of scale 1.
"""

import math
from bisect import bisect_left

NS = 1_000_000_000
LOWEST, HIGHEST = -30, 12
"""Half powers of two, in seconds."""
BOUNDS_S = tuple(math.exp2(half / 2) for half in range(LOWEST, HIGHEST + 1))
"""Upper ends, each one part of its bucket; what is beyond the last is in one more bucket."""
BOUNDS_NS = tuple(round(bound * NS) for bound in BOUNDS_S)
RELATIVE_ERROR = math.sqrt(2) - 1


class Distribution:
    """Counts of intervals, in constant memory. A negative one is none, and is not counted."""

    __slots__ = ("counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_NS) + 1)
        """Of each bucket by itself."""
        self.sum_ns = 0

    def note(self, ns: int) -> None:
        """Count one."""
        if ns >= 0:
            self.counts[bisect_left(BOUNDS_NS, ns)] += 1
            self.sum_ns += ns
