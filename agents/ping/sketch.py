"""Quantiles of a stream of numbers in bounded memory, with the error of each answer stated.

The first `EXACT` numbers are kept as they are. After that they go into buckets whose width grows
with the distance from the smallest of those first ones (as DDSketch does from zero; Masson, Rim,
Lee, VLDB 2019). A round trip stands on a constant that says nothing; what varies above it is what
is asked for, and 1 % of that is finer than 1 % of the whole.
"""

import math

EXACT = 128
ACCURACY = 0.01
"""A bucket's middle is at most this share of the distance from the base away from any member."""
FINEST_NS = 100
"""Distances below this are one bucket."""
_GROWTH = math.log((1 + ACCURACY) / (1 - ACCURACY))


class Sketch:
    """Numbers in nanoseconds, of either sign. At most some 4,000 buckets, however many numbers."""

    __slots__ = ("_base", "_buckets", "_first", "_order", "maximum", "minimum", "n")

    def __init__(self) -> None:
        self.n = 0
        self.minimum = 0
        self.maximum = 0
        self._first: list[int] | None = []
        self._base = 0
        self._buckets: dict[int, int] = {}
        self._order: list[int] | None = None

    def add(self, value_ns: int) -> None:
        """Take one number."""
        self.minimum = min(self.minimum, value_ns) if self.n else value_ns
        self.maximum = max(self.maximum, value_ns) if self.n else value_ns
        self.n += 1
        self._order = None
        if self._first is None:
            self._put(value_ns)
            return
        self._first.append(value_ns)
        if len(self._first) > EXACT:
            self._base = min(self._first)
            for one in self._first:
                self._put(one)
            self._first = None

    def quantile(self, share: float, lost: int = 0) -> float | None:
        """The smallest number with at least `share` of all at or below it (RFC 2330, 11.3).

        `lost` packets count as infinitely late. None without any number or loss.
        """
        total = self.n + lost
        if not total:
            return None
        rank = max(1, math.ceil(round(share * total, 9)))
        return math.inf if rank > self.n else self._at_rank(rank)

    def error_ns(self, value_ns: float) -> int:
        """How far an answer of `quantile` may be from the number it stands for."""
        if self._first is not None or value_ns in (self.minimum, self.maximum):
            return 0
        return max(FINEST_NS, math.ceil(ACCURACY / (1 - ACCURACY) * abs(value_ns - self._base)))

    @property
    def buckets(self) -> int:
        """How many numbers are held in memory."""
        return len(self._buckets) if self._first is None else len(self._first)

    def _put(self, value_ns: int) -> None:
        bucket = _bucket(value_ns - self._base)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1

    def _at_rank(self, rank: int) -> int:
        if rank == 1:
            return self.minimum
        if rank == self.n:
            return self.maximum
        if self._first is not None:
            self._order = self._order or sorted(self._first)
            return self._order[rank - 1]
        self._order = self._order or sorted(self._buckets)
        for bucket in self._order:
            rank -= self._buckets[bucket]
            if rank <= 0:
                return min(self.maximum, max(self.minimum, self._base + _middle(bucket)))
        return self.maximum


def _bucket(distance_ns: int) -> int:
    """0 around the base, then 1, 2, ... above it and -1, -2, ... below."""
    if abs(distance_ns) < FINEST_NS:
        return 0
    number = 1 + int(math.log(abs(distance_ns) / FINEST_NS) / _GROWTH)
    return number if distance_ns > 0 else -number


def _middle(bucket: int) -> int:
    """The distance with the same relative error to both ends of its bucket."""
    if bucket == 0:
        return 0
    low = FINEST_NS * math.exp((abs(bucket) - 1) * _GROWTH)
    middle = round(low * (1 + ACCURACY))
    return middle if bucket > 0 else -middle
