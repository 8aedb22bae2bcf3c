"""Roll-ups that merge: a histogram whose quantiles are within a stated relative error.

DDSketch (Masson, Rim and Lee, VLDB 2019): bucket i holds values in (g^(i-1), g^i], where
g = (1 + a) / (1 - a), and reads as 2 g^i / (g + 1). Sketches add up to exactly the sketch of all
samples, in any order. Losses are counted beyond all buckets. Intervals need what samples are worth,
which a histogram has forgotten: keep that number beside it.
"""

import math
from collections.abc import Sequence
from typing import Self

import msgspec
import numpy as np
import numpy.typing as npt

from pathbudget.analysis.quantiles import Estimate, Values, widened_ranks

RELATIVE_ERROR = 0.01
SMALLEST_NS = 1.0
"""Shorter times count as none: no clock is finer."""
LONGEST_NS = 2.0**63
"""Longer ones, of 292 years, are none."""
FINEST = 1e-4
"""A smaller error would need millions of buckets."""


class _Packed(msgspec.Struct, array_like=True, frozen=True, forbid_unknown_fields=True):
    relative_error: float
    first: int
    counts: tuple[int, ...]
    zeros: int
    losses: int


class Sketch:
    """Counts of times in ns by logarithmic buckets, and of losses (+inf)."""

    def __init__(self, relative_error: float = RELATIVE_ERROR) -> None:
        """Raises ValueError for an error below 0.0001, or of 1 and more."""
        if not FINEST <= relative_error < 1:
            raise ValueError(f"relative error is {relative_error}; expected 0.0001 to below 1")
        self.relative_error = relative_error
        self.zeros = self.losses = 0
        self.first = 0
        """Bucket of the first of `counts`."""
        self.counts: npt.NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        self._growth = (1 + relative_error) / (1 - relative_error)

    @property
    def n(self) -> int:
        """Number of samples, losses included."""
        return int(self.counts.sum()) + self.zeros + self.losses

    def add(self, values: Values | Sequence[float] | float) -> None:
        """Add times in ns; +inf is a loss. Raises ValueError for one below 0, or NaN."""
        try:
            given = np.atleast_1d(np.asarray(values, dtype=np.float64))
        except OverflowError:
            raise ValueError("a sketch takes times up to 2^63 ns") from None
        if not (given >= 0).all():
            raise ValueError("a sketch takes times of 0 or more, and inf for losses")
        if ((given > LONGEST_NS) & (given < np.inf)).any():
            raise ValueError("a sketch takes times up to 2^63 ns")
        lost, short = np.isinf(given), given < SMALLEST_NS
        self.losses += int(np.count_nonzero(lost))
        self.zeros += int(np.count_nonzero(short))
        inside = given[~lost & ~short]
        if len(inside):
            at = self._buckets(inside)
            first = int(at.min())
            self._add_counts(first, np.bincount(at - first))

    def merge(self, other: "Sketch") -> None:
        """Take in all samples of another; raises ValueError where its error is another."""
        if other.relative_error != self.relative_error:
            raise ValueError(
                f"sketches of relative error {self.relative_error} and {other.relative_error} "
                "do not merge"
            )
        self.zeros += other.zeros
        self.losses += other.losses
        if len(other.counts):
            self._add_counts(other.first, other.counts)

    def quantile(self, p: float) -> float:
        """Quantile `p`, within `relative_error` of that of the samples; inf where it is lost.

        Raises ValueError for no samples at all, or a `p` outside [0, 1].
        """
        if not 0 <= p <= 1:
            raise ValueError(f"quantile {p}; expected 0 to 1")
        if not self.n:
            raise ValueError("no samples, no quantile")
        return self._at_rank(min(self.n, max(1, math.ceil(p * self.n - 1e-9))))

    def estimate(
        self, p: float, confidence: float = 0.95, n_effective: float | None = None
    ) -> Estimate:
        """The quantile with its interval, whose ends reach out by the error of the buckets.

        Raises ValueError as `quantile` does, for a confidence outside (0, 1), and for samples that
        are worth nothing.
        """
        if not (0 < p < 1 and 0 < confidence < 1):
            raise ValueError(f"quantile {p} at {confidence}; expected both above 0 and below 1")
        if n_effective is not None and not n_effective > 0:
            raise ValueError(f"samples worth {n_effective}; expected more than 0")
        n = self.n
        value = self.quantile(p)
        worth = float(n) if n_effective is None else min(float(n), n_effective)
        lower, upper = widened_ranks(n, worth, p, confidence)
        low = self._at_rank(lower) / (1 + self.relative_error) if lower else 0.0
        high = math.inf if upper is None else self._at_rank(upper) / (1 - self.relative_error)
        return Estimate(value, min(low, value), max(high, value), n, worth)

    def to_bytes(self) -> bytes:
        """All of it, for a file; `from_bytes` reads it back."""
        counts = tuple(self.counts.tolist())
        packed = _Packed(self.relative_error, self.first, counts, self.zeros, self.losses)
        return msgspec.msgpack.encode(packed)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read what `to_bytes` wrote; raises ValueError for anything else."""
        try:
            packed = msgspec.msgpack.decode(data, type=_Packed)
            found = cls(packed.relative_error)
            counts = np.array(packed.counts, dtype=np.int64)
        except (msgspec.MsgspecError, OverflowError) as error:
            raise ValueError(f"this is no sketch: {error}") from None
        if min(packed.zeros, packed.losses, *packed.counts, 0) < 0:
            raise ValueError("this is no sketch: a count is below 0")
        if packed.zeros + packed.losses + sum(packed.counts) >= 2**63:
            raise ValueError("this is no sketch: too many samples")
        if packed.first < 0 or packed.first + len(packed.counts) > found.bucket(LONGEST_NS) + 1:
            raise ValueError("this is no sketch: a bucket is of no time")
        found.zeros, found.losses = packed.zeros, packed.losses
        found.first, found.counts = packed.first, counts
        return found

    def bucket(self, time_ns: float) -> int:
        """Number of the bucket that a time is counted in."""
        return int(self._buckets(np.array([time_ns]))[0])

    def _buckets(self, times_ns: Values) -> npt.NDArray[np.int64]:
        found = np.ceil(np.log(times_ns) / math.log(self._growth) - 1e-9)
        return found.astype(np.int64)

    def _at_rank(self, rank: int) -> float:
        if rank <= self.zeros:
            return 0.0
        bucket = int(np.searchsorted(np.cumsum(self.counts), rank - self.zeros))
        if bucket >= len(self.counts):
            return math.inf
        return 2 * self._growth ** (self.first + bucket) / (self._growth + 1)

    def _add_counts(self, first: int, counts: npt.NDArray[np.int64]) -> None:
        if not len(self.counts):
            self.first, self.counts = first, counts.astype(np.int64)
            return
        start = min(first, self.first)
        end = max(first + len(counts), self.first + len(self.counts))
        total = np.zeros(end - start, dtype=np.int64)
        total[self.first - start : self.first - start + len(self.counts)] = self.counts
        total[first - start : first - start + len(counts)] += counts
        self.first, self.counts = start, total
