"""What `intervals.timeline` asks of samples, answered by counting them: for millions at a time.

A scatter is made of sums of zeros and ones less the mean of their group. The ones are counted cell
by cell and in pairs of neighbours, and the means come in at the end: the same numbers, but for
roundings in the last place, without an array of floats for every quantile.
"""

import math
import sys
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from pathbudget.agents.lake.scratch import LARGEST
from pathbudget.analysis.distribution import Distribution
from pathbudget.analysis.intervals.bursts import Bursts
from pathbudget.analysis.intervals.timeline import Scatter, Timeline, laid_out, worth
from pathbudget.analysis.quantiles import Values, empirical_quantile
from pathbudget.analysis.track import Track

Numbers = npt.NDArray[np.int64]


class CountedDistribution(Distribution):
    """A distribution that looks its losses up rather than counting them."""

    __slots__ = ()

    @property
    def losses(self) -> int:
        """How many requests failed: they stand at the end."""
        return self.n - int(self.ordered.searchsorted(np.inf))

    def bursts(self) -> Bursts | None:
        """As `Distribution.bursts`; once for all that share their losses."""
        assert isinstance(self.timeline, CountedTimeline)
        assert self.timeline.counted is not None
        known = self.timeline.counted.known_bursts
        if not known:
            known.append(super().bursts())
        return known[0]


@dataclass(frozen=True, slots=True)
class Cells:
    """Where the samples of a track stand: by vantage, in order of time within each, in cells of one
    bin and one stratum. Tracks of the same requests share them.
    """

    timeline: Timeline
    starts: Numbers
    """First sample of each cell."""
    sizes: Numbers
    bins: Numbers
    vantages: Numbers
    strata: Numbers
    """Of each cell."""

    def hits(self, marked: "Marks") -> Numbers:
        """How many samples of each cell are marked."""
        before = np.append(marked.before(self.starts), marked.total)
        return np.diff(before)


class Marks:
    """Which samples are marked: one bit each, 64 in a word, so that millions are counted fast."""

    def __init__(self, marks: npt.NDArray[np.bool_]) -> None:
        room = np.zeros(-(-len(marks) // 64) * 8 + 8, dtype=np.uint8)
        bits = np.packbits(marks, bitorder="little")
        room[: len(bits)] = bits
        self._words = room.view("<u8")
        self._sums = np.concatenate(([0], np.cumsum(_ones(self._words), dtype=np.int64)))

    @property
    def total(self) -> int:
        """How many are marked."""
        return int(self._sums[-1])

    def before(self, places: Numbers) -> Numbers:
        """How many are marked before each place."""
        words, bits = places >> 6, (places & 63).astype(np.uint64)
        kept = self._words[words] & ((np.uint64(1) << bits) - np.uint64(1))
        found: Numbers = self._sums[words] + _ones(kept)
        return found

    def pairs(self) -> int:
        """How often a marked sample follows a marked one."""
        words = self._words
        following = words >> np.uint64(1)
        following[:-1] |= words[1:] << np.uint64(63)
        return int(_ones(words & following).sum(dtype=np.int64))


def _ones(words: npt.NDArray[np.uint64]) -> npt.NDArray[Any]:
    """How many bits of each word are set."""
    if hasattr(np, "bitwise_count"):  # from numpy 2.0 on
        found: npt.NDArray[Any] = np.bitwise_count(words)
        return found
    counts: npt.NDArray[Any] = _ONES[words.view(np.uint8)].reshape(-1, 8).sum(axis=1)
    return counts


_ONES = np.array([number.bit_count() for number in range(256)], dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class Counted:
    """The values of a track in their cells."""

    cells: Cells
    values_ns: Values
    """By vantage and in order of time."""
    neighbours: float = 0.0
    """Correlation of neighbours about the median, in standard errors."""
    known: dict[float, Scatter] = field(default_factory=dict[float, Scatter])
    known_bursts: list[Bursts | None] = field(default_factory=list[Bursts | None])

    def scatter(self, q: float) -> Scatter:
        """As `Timeline.scatter`."""
        found = self.known.get(q)
        if found is None:
            found = self.known[q] = self._counted(q)
        return found

    def _counted(self, q: float) -> Scatter:
        below, cells, timeline = self.values_ns <= q, self.cells, self.cells.timeline
        marks = Marks(below)
        hits = cells.hits(marks)
        n, bins = len(below), len(timeline.starts)
        means = self._means(hits, cells.strata)
        squares = hits * (1 - means) ** 2 + (cells.sizes - hits) * means**2
        within, error = float(squares.sum()), self._error(squares)
        off = np.bincount(cells.bins, hits - cells.sizes * self._means(hits, cells.vantages), bins)
        groups = 0 if timeline.strata is None else len(timeline.strata.counts)
        alike = self._neighbours(marks, below, hits, means) / error if error > 0 else 0.0
        return Scatter(
            share=int(hits.sum()) / n,
            slow=timeline.cosines @ off * (math.sqrt(bins) / n),
            scales=timeline.scales,
            independent=within / max(1, n - groups) / n,
            neighbours=max(self.neighbours, alike),
        )

    def _means(self, hits: Numbers, groups: Numbers) -> Values:
        """For every cell the share of hits in its group."""
        shares: Values = np.bincount(groups, hits) / np.bincount(groups, self.cells.sizes)
        return shares[groups]

    def _error(self, squares: Values) -> float:
        """Standard error of the sum of the products of independent neighbours."""
        strata = self.cells.strata
        by_stratum = np.bincount(strata, squares) ** 2 / np.bincount(strata, self.cells.sizes)
        return math.sqrt(float(by_stratum.sum()))

    def _neighbours(
        self, marks: Marks, below: npt.NDArray[np.bool_], hits: Numbers, means: Values
    ) -> float:
        """Sum of the products of neighbours, each less the mean of its stratum."""
        starts, sizes = self.cells.starts, self.cells.sizes
        first = below[starts].astype(np.int64)
        last = below[starts + sizes - 1].astype(np.int64)
        both = marks.pairs() - int(last[:-1] @ first[1:])
        inside = both + float(
            (means * means * (sizes - 1) - means * (2 * hits - first - last)).sum()
        )
        return inside + float((last[:-1] - means[:-1]) @ (first[1:] - means[1:]))


@dataclass(frozen=True, slots=True)
class CountedTimeline(Timeline):
    """A timeline of `factor` times the counted values; it holds no values of its own."""

    counted: Counted | None = None
    factor: float = 1.0

    def scatter(self, q: float) -> Scatter:
        """As `Timeline.scatter`. Products are exact below 2^52, and so is every comparison."""
        assert self.counted is not None
        before = float(q) / self.factor
        overflows = math.isinf(before) and not math.isinf(q)
        return self.counted.scatter(sys.float_info.max if overflows else before)

    def lost(self) -> Numbers:
        """As `Timeline.lost`."""
        assert self.counted is not None
        places = np.flatnonzero(np.isinf(self.counted.values_ns))
        order = self.counted.cells.timeline.order
        return np.sort(order[places]) if len(order) else places


def counted_distribution(track: Track, cells: Cells | None = None) -> Distribution:
    """`distribution_of` a track with samples and without NaN, by counting.

    `cells` are those of another track of the same requests.
    """
    ordered = in_order(track.values_ns)
    median = empirical_quantile(ordered, 0.5)
    cells = cells_of(track) if cells is None else cells
    order = cells.timeline.order
    values = track.values_ns[order] if len(order) else track.values_ns
    alike = Counted(cells, values, -math.inf).scatter(median).neighbours
    counted = Counted(cells, values, alike)
    size = worth(track.n, counted.scatter(median), 0.95)
    return CountedDistribution(ordered, min(size, float(track.n)), _timeline(counted, 1.0))


def in_order(values: Values) -> Values:
    """Sorted, without NaN; whole numbers up to `LARGEST` ns by 32 bits, which takes less time."""
    below = np.minimum(values, LARGEST)
    with np.errstate(invalid="ignore"):  # what does not fit is seen in the next line
        narrow = below.astype(np.uint32)
    if not np.array_equal(narrow, below):
        return np.sort(values)
    narrow.sort()
    found = narrow.astype(np.float64)
    beyond = int(found.searchsorted(LARGEST))
    if beyond < len(found):
        found[beyond:] = np.sort(values[values >= LARGEST])
    return found


def scaled(base: Distribution, factor: float) -> Distribution:
    """`factor` times as long each, for whole ns and a factor of few binary digits."""
    timeline = base.timeline
    assert isinstance(timeline, CountedTimeline)
    assert timeline.counted is not None
    return CountedDistribution(
        base.ordered * factor, base.n_effective, _timeline(timeline.counted, factor)
    )


def _timeline(counted: Counted, factor: float) -> CountedTimeline:
    of = counted.cells.timeline
    return CountedTimeline(
        values_ns=np.empty(0),
        starts=of.starts,
        cosines=of.cosines,
        scales=of.scales,
        vantages=None,
        strata=None,
        order=np.empty(0, dtype=np.int64),
        neighbours=counted.neighbours,
        counted=counted,
        factor=factor,
    )


def cells_of(track: Track) -> Cells:
    """The cells of a track and of all others of the same requests.

    Raises ValueError for fewer samples than a timeline is made of.
    """
    timeline = laid_out(track)
    if timeline is None:
        raise ValueError("too few samples to be counted")
    n = track.n
    lengths = np.diff(np.concatenate((timeline.starts, [n])))
    labels = [np.repeat(np.arange(len(timeline.starts)), lengths)] + [
        np.zeros(n, dtype=np.int64) if groups is None else groups.of
        for groups in (timeline.vantages, timeline.strata)
    ]
    if len(timeline.order):
        labels = [label[timeline.order] for label in labels]
    changes = np.zeros(n, dtype=np.bool_)
    changes[0] = True
    for label in labels:
        changes[1:] |= label[1:] != label[:-1]
    starts = np.flatnonzero(changes)
    return Cells(
        timeline=timeline,
        starts=starts,
        sizes=np.diff(np.concatenate((starts, [n]))),
        bins=labels[0][starts],
        vantages=labels[1][starts],
        strata=labels[2][starts],
    )
