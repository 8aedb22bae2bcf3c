"""Shares of events in windows of time, each with its interval: requests over an allowance.

The interval is that of Clopper and Pearson, of the share *of the window*: probes sent at random
times are a random sample of what the window held, however its hours hang together (record 280).
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.proportion import clopper_pearson


class Count(NamedTuple):
    """Of `n` events so many were `hits`."""

    hits: int = 0
    n: int = 0


class Share(NamedTuple):
    """A share, 0 to 1, with its interval. `n` of 0: nothing is known, from 0 to 1."""

    value: float
    low: float
    high: float
    n: int


class WindowCounts:
    """Counts by slice of time, of the last `length_ns` before the newest."""

    def __init__(self, length_ns: int, slice_ns: int) -> None:
        self._slice_ns = slice_ns
        self._first = 0
        """Number of the slice that the rows begin with."""
        self._rows: npt.NDArray[np.int64] = np.zeros((length_ns // slice_ns + 2, 2), dtype=np.int64)
        self._newest: int | None = None

    @property
    def newest_unix_ns(self) -> int | None:
        """End of the newest slice with an event; None before any."""
        return None if self._newest is None else (self._newest + 1) * self._slice_ns

    def add(self, times_unix_ns: npt.NDArray[np.int64], hits: npt.NDArray[np.bool_]) -> None:
        """Count events. Those older than all slices are left out."""
        if not len(times_unix_ns):
            return
        slices = times_unix_ns // self._slice_ns
        self._make_room(int(slices.max()))
        places = slices - self._first
        known = places >= 0
        np.add.at(self._rows[:, 0], places[known], hits[known].astype(np.int64))
        np.add.at(self._rows[:, 1], places[known], 1)

    def add_one(self, time_unix_ns: int, *, hit: bool) -> None:
        """Count one event."""
        self.add(np.array([time_unix_ns]), np.array([hit]))

    def within(self, until_unix_ns: int, window_ns: int) -> Count:
        """What whole slices of the window before a time hold, the one of that time included."""
        last = -(-until_unix_ns // self._slice_ns) - self._first
        first = last - max(1, round(window_ns / self._slice_ns))
        rows = self._rows[max(0, first) : max(0, last)]
        hits, n = rows.sum(axis=0)
        return Count(int(hits), int(n))

    def _make_room(self, newest: int) -> None:
        size = len(self._rows)
        if self._newest is None:
            self._first = newest - size + 1
        elif (by := newest - self._first - size + 1) > 0:
            kept = self._rows[by:].copy()
            self._rows[:] = 0
            self._rows[: len(kept)] = kept
            self._first += by
        self._newest = newest if self._newest is None else max(self._newest, newest)


def share_of(count: Count, confidence: float) -> Share:
    """The share of one count."""
    if not count.n:
        return Share(math.nan, 0.0, 1.0, 0)
    low, high = clopper_pearson(count.hits, count.n, confidence)
    return Share(count.hits / count.n, low, high, count.n)


def mixed_share(parts: Iterable[tuple[float, Count]], confidence: float) -> Share:
    """The share of a mixture, by weights that sum to 1.

    Each part's interval is so much surer that all hold together (Bonferroni): no assumption of how
    parts hang together is made. A part without events may be anything.
    """
    every = list(parts)
    known = [(weight, count) for weight, count in every if count.n]
    missing = sum(weight for weight, count in every if not count.n)
    if not known:
        return Share(math.nan, 0.0, 1.0, 0)
    each = 1 - (1 - confidence) / len(known)
    shares = [(weight, share_of(count, each)) for weight, count in known]
    value = sum(weight * share.value for weight, share in shares)
    return Share(
        value=value / (1 - missing) if missing < 1 else value,
        low=sum(weight * share.low for weight, share in shares),
        high=min(1.0, sum(weight * share.high for weight, share in shares) + missing),
        n=sum(share.n for _, share in shares),
    )


def fewest_above(share: float, confidence: float) -> int:
    """Events, all of them hits, from which on the interval lies above `share`."""
    if share <= 0:
        return 1
    return math.floor(math.log((1 - confidence) / 2) / math.log(share)) + 1
