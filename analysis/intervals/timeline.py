"""What samples in a row are worth: how far the share below a value scatters, neighbours included.

The share of samples at or below a quantile is a mean of zeros and ones in order of time. Its
scatter is read off slow cosines of that row (the equal-weighted cosine estimator of the long-run
variance: Lazarus, Lewis, Stock and Watson, JBES 36, 2018), which needs no model of the correlation,
and as many cosines as there are make it a Student t with that many degrees of freedom. Zeros and
ones *at the quantile that is asked for*: the tail of a delay is correlated unlike its middle.
docs/calibration.md has the coverage, record 200 the reasons.
"""

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special

from pathbudget.analysis.quantiles import Values, independent_size
from pathbudget.analysis.track import Track

SLOW = 8
"""Degrees of freedom of the scatter: the slowest cosines, up to four turns of the whole row."""
QUICKER = 16
"""Cosines after those, which tell whether even the slowest were too quick."""
MOST_BINS = 512
BINS_OF_DAYS = 1024
FEWEST = 32
"""Of fewer samples only the correlation of neighbours is looked at."""
DAY_NS = 86_400_000_000_000
HOURS = 24
HALF_HOURS = 48
NEARLY = 0.03
"""Part of a day that may be missing from a whole one."""
MOST_TURNS = 8
"""Turns a day, of one day alone, that are taken as its rhythm; quicker swings are chance."""
FEWEST_AN_HOUR = 10
"""Samples, on average, without which the hours of the day are not told apart."""
MOST_GAIN = 4.0
"""How many samples one may be worth at most, where all hours of the day have their even part."""
NEIGHBOURS_ALIKE = 1.96
"""Standard errors of the correlation of neighbours that independent samples reach in 2.5 %."""
MOST_RISING = 2.0
"""How far the slowest cosines are believed to miss a swing that is slower still."""
HEARD = 0.1
"""Part of the variance of a mixture from which on the neighbours of one of its modes count."""
SLOW_CHANCE = 0.95
"""Quantile of the scatter of independent samples up to which they are taken as such."""

TURNS = 0.05
"""Part of a cosine that vantages may take while they count as taking turns."""
MOST_CELLS = 1 << 24
"""Of more bins of vantages, all count as taking turns."""

LOSSES_THAT_DECIDE = 0.25
"""Part of the share above a quantile that losses have where it is they that decide."""
ANY_NUMBER = 1e300
"""Only losses are above it, also where times are scaled."""


def losses_decide(lost: float, p: float) -> bool:
    """Whether a quantile may be lost: then bursts of losses count with all their weight.

    Where they are few by chance they hide among slow samples, and look like them.
    """
    return lost >= LOSSES_THAT_DECIDE * (1 - p)


class Scatter(NamedTuple):
    """How the share of samples at or below one value scatters, in units of the share."""

    share: float
    slow: Values
    """Amplitudes of the cosines, slowest first: each varies `scale` times as much as the share."""
    scales: Values
    """1, or less where the rhythm of the day was taken out of a cosine."""
    independent: float
    """Variance of the share, were the samples independent."""
    neighbours: float
    """Correlation of neighbours in standard errors; the larger of that here and at the median."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """A track prepared for questions about its quantiles: without NaN, losses +inf."""

    values_ns: Values
    """In order of time."""
    starts: npt.NDArray[np.int64]
    """First sample of every bin."""
    cosines: Values
    """Shape (cosines, bins)."""
    scales: Values
    vantages: "Groups | None"
    """None for one vantage."""
    strata: "Groups | None"
    """Vantages and half-hours of the day; None where that is one group."""
    order: npt.NDArray[np.int64]
    """Samples of each vantage in a row; empty where there is one vantage."""
    neighbours: float = 0.0
    """Correlation of neighbours about the median, in standard errors."""

    def scatter(self, q: float) -> Scatter:
        """Scatter of the share of samples at or below `q`."""
        below = (self.values_ns <= q).astype(np.float64)
        n, share = len(below), float(below.mean())
        scores = below - (share if self.vantages is None else self.vantages.means(below))
        within = scores
        if self.strata is not self.vantages and self.strata is not None:
            within = below - self.strata.means(below)
        groups = 0 if self.strata is None else len(self.strata.counts)
        binned = np.add.reduceat(scores, self.starts)
        return Scatter(
            share=share,
            slow=self.cosines @ binned * (math.sqrt(len(self.starts)) / n),
            scales=self.scales,
            independent=float(within @ within) / max(1, n - groups) / n,
            neighbours=max(self.neighbours, self._alike(within)),
        )

    def lost(self) -> npt.NDArray[np.int64]:
        """Places of the losses, in order of time."""
        return np.flatnonzero(np.isinf(self.values_ns))

    def neighbours_at(self, q: float) -> float:
        """Correlation of neighbours, in standard errors, of being at or below `q`."""
        below = (self.values_ns <= q).astype(np.float64)
        return self._alike(
            below - (below.mean() if self.strata is None else self.strata.means(below))
        )

    def _alike(self, scores: Values) -> float:
        """Sum of the products of neighbours over its standard error.

        That is of independent samples whose variance may differ from stratum to stratum.
        """
        inside = scores[self.order] if len(self.order) else scores
        products = float(inside[1:] @ inside[:-1])
        squares = np.square(scores)
        if self.strata is None:
            error = float(squares.sum()) / math.sqrt(len(scores))
        else:
            sums = np.bincount(self.strata.of, squares)
            error = math.sqrt(float((sums**2 / self.strata.counts).sum()))
        return products / error if error > 0 else 0.0


@dataclass(frozen=True, slots=True)
class Groups:
    """Samples by group."""

    of: npt.NDArray[np.int64]
    """Number of the group of every sample; every group has one."""
    counts: npt.NDArray[np.int64]

    def means(self, values: Values) -> Values:
        """For every sample the mean of its group."""
        found: Values = (np.bincount(self.of, values) / self.counts)[self.of]
        return found


def grouped(labels: npt.NDArray[np.int64]) -> Groups | None:
    """Samples by label, a number from 0 on; None where there is one label."""
    if not len(labels) or (labels == labels[0]).all():
        return None
    counts = np.bincount(labels)  # labels are small numbers from 0 on: no need to sort millions
    names = np.flatnonzero(counts)
    numbers = np.zeros(len(counts), dtype=np.int64)
    numbers[names] = np.arange(len(names))
    return Groups(numbers[labels], counts[names])


def timeline_of(track: Track, median: float) -> Timeline | None:
    """The timeline of a track without NaN; None for fewer than `FEWEST` samples."""
    found = laid_out(track)
    return None if found is None else replace(found, neighbours=found.neighbours_at(median))


def laid_out(track: Track) -> Timeline | None:
    """The same before its neighbours are looked at."""
    if track.n < FEWEST:
        return None
    vantages = grouped(track.vantages)
    days = float(track.sent_unix_ns[-1] - track.sent_unix_ns[0]) / DAY_NS
    if days < 1 - NEARLY or track.n < FEWEST_AN_HOUR * HOURS:
        starts = _starts(track.n, MOST_BINS)
        cosines, scales, strata = *_plain(len(starts), vantages is not None), vantages
    else:
        starts = _starts(track.n, BINS_OF_DAYS)
        halves = track.sent_unix_ns % DAY_NS * HALF_HOURS // DAY_NS
        cosines, scales = _without_rhythm(track.sent_unix_ns[starts], days)
        strata = grouped(track.vantages * HALF_HOURS + halves)
    if vantages is not None:
        cosines, scales = _within_vantages(vantages, starts, cosines, scales)
    return Timeline(
        values_ns=track.values_ns,
        starts=starts,
        cosines=cosines,
        scales=scales,
        vantages=vantages,
        strata=strata,
        order=_by_group(vantages) if vantages else np.empty(0, np.int64),
    )


def _by_group(groups: Groups) -> npt.NDArray[np.int64]:
    """Samples of each group in a row; few groups are sorted by radix."""
    few = len(groups.counts) < 1 << 16
    order: npt.NDArray[np.int64] = np.argsort(
        groups.of.astype(np.uint16) if few else groups.of, kind="stable"
    )
    return order


def worth(n: int, scatter: Scatter, confidence: float) -> float:
    """How many independent samples would tell the quantile as well as these `n`.

    The error of the scatter itself is in it, so it is smaller than n / (1 + 2 x correlations). It
    is more than `n` where what differs is not chance: between vantages, and hours of the day.
    """
    if scatter.independent <= 0:
        return float(n)
    alone = scatter.share * (1 - scatter.share) / scatter.independent
    return min(MOST_GAIN * n, max(1.0, alone / inflation([(1.0, scatter)], confidence)))


def inflation(scatters: Sequence[tuple[float, Scatter]], confidence: float) -> float:
    """How many times more a share varies than if all samples were independent, at least 1.

    `scatters` of the parts of a mixture at one value, with their weights.
    """
    independent = sum(weight**2 * part.independent for weight, part in scatters)
    if independent <= 0:
        return 1.0
    rows = min(len(part.scales) for _, part in scatters)
    # Parts that swing together add up; others cancel on average.
    slow = sum((weight * part.slow[:rows] for weight, part in scatters), np.zeros(rows))
    squares = np.square(slow) / independent
    scales = np.minimum.reduce([part.scales[:rows] for _, part in scatters])
    last = min(rows, int(np.searchsorted(np.cumsum(scales), SLOW - 0.5)) + 1)
    freedom = float(scales[:last].sum())
    found = float(squares[:last].sum()) / freedom
    heard = [  # parts that hardly matter here must not widen the interval of those that do
        part for weight, part in scatters if weight**2 * part.independent >= HEARD * independent
    ]
    # Where rhythms were taken out, a few evenings may hold all of the scatter.
    surprise = freedom if (scales == 1).all() else freedom / 2
    if _may_be_independent(heard, found, surprise):
        return 1.0
    beyond = slice(last, last + QUICKER)
    quicker = float(squares[beyond].sum()) / max(float(scales[beyond].sum()), 1e-9)
    rising = min(MOST_RISING, max(1.0, found / max(quicker, 1e-9)))
    return max(1.0, found * math.sqrt(rising) * student(freedom, confidence) ** 2)


def _may_be_independent(parts: Sequence[Scatter], found: float, freedom: float) -> bool:
    """Whether neither neighbours nor slow cosines stand out of what chance does."""
    if any(part.neighbours > NEIGHBOURS_ALIKE for part in parts):
        return False
    return found * freedom <= float(special.chdtri(freedom, 1 - SLOW_CHANCE))


@functools.lru_cache(maxsize=1024)
def student(freedom: float, confidence: float) -> float:
    """How much wider an interval is whose scatter was estimated with so many degrees of freedom."""
    tail = (1 + confidence) / 2
    return float(special.stdtrit(freedom, tail) / special.ndtri(tail))


def few_worth(track: Track) -> float:
    """What few samples are worth, each vantage judged by the ranks of its own."""
    return sum(independent_size(values) for _, values in track.by_vantage())


@functools.lru_cache(maxsize=64)
def _rows(bins: int) -> Values:
    """Rows of length 1: cos(pi j (b + 1/2) / bins), j from 1 on."""
    rows = np.arange(1, min(bins, 3 * (SLOW + QUICKER)))[:, np.newaxis]
    turns: Values = np.cos(np.pi * rows * (np.arange(bins) + 0.5) / bins) * math.sqrt(2 / bins)
    return turns


def _starts(n: int, most: int) -> npt.NDArray[np.int64]:
    """First samples of at most so many bins that are as long as each other."""
    bins = min(n, most)
    return np.arange(bins, dtype=np.int64) * n // bins


def _plain(bins: int, spare: bool) -> tuple[Values, Values]:
    """With spare ones, where vantages will take their part of some."""
    rows = _rows(bins) if spare else _rows(bins)[: SLOW + QUICKER]
    return rows, np.ones(len(rows))


def _within_vantages(
    vantages: Groups, starts: npt.NDArray[np.int64], cosines: Values, scales: Values
) -> tuple[Values, Values]:
    """Cosines that are enough, and what is left of each once every vantage has lost its mean.

    All, where vantages take turns; little, where one measured after the other. Where so many did
    that too little is left, nothing is taken off: between vantages nothing is chance.
    """
    n, bins = len(vantages.of), len(starts)
    if len(vantages.counts) * bins <= MOST_CELLS:
        at = np.repeat(np.arange(bins), np.diff(np.append(starts, n)))
        cells = np.bincount(vantages.of * bins + at, minlength=len(vantages.counts) * bins)
        sums = cells.reshape(-1, bins) @ cosines.T
        lost = (sums**2 / vantages.counts[:, np.newaxis]).sum(axis=0) * bins / n
        left = scales * np.where(lost < TURNS, 1.0, np.clip(1 - lost, 0, 1))
        if left.sum() >= SLOW:
            scales = left
    enough = int(np.searchsorted(np.cumsum(scales), SLOW + QUICKER - 0.5)) + 1
    return cosines[:enough], scales[:enough]


def _without_rhythm(sent_unix_ns: npt.NDArray[np.int64], days: float) -> tuple[Values, Values]:
    return _rhythmless(sent_unix_ns.tobytes(), days)


@functools.lru_cache(maxsize=4)
def _rhythmless(times: bytes, days: float) -> tuple[Values, Values]:
    """Cosines blind to what repeats every day, and what is left of the square of each.

    From two days on that is any function of the hour; of one day alone, which cannot tell what
    repeats, its slow turns. Lines of one track share them.
    """
    sent_unix_ns = np.frombuffer(times, dtype=np.int64)
    if days >= 2 - NEARLY:
        hours = sent_unix_ns % DAY_NS * HOURS // DAY_NS
        rhythm = (hours[:, np.newaxis] == np.unique(hours)).astype(np.float64)
        basis = rhythm / np.sqrt(rhythm.sum(axis=0))
    else:
        turns = np.arange(1, MOST_TURNS + 1)
        angles = 2 * np.pi * turns * (sent_unix_ns % DAY_NS / DAY_NS)[:, np.newaxis]
        whole = np.ones((len(sent_unix_ns), 1))
        basis = np.linalg.qr(np.hstack([whole, np.cos(angles), np.sin(angles)]))[0]
    rows = _rows(len(sent_unix_ns))
    left = rows - (rows @ basis) @ basis.T
    return left, np.square(left).sum(axis=1)
