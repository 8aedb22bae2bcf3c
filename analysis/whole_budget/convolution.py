"""The distribution of a sum of independent times, on one grid for all of them.

Every time is rounded *up* to the grid, so the sum is never told smaller than it is, by at most one
step per summand. A failure is no place on the grid: it is mass that is missing at every time, so
it can never be averaged away. Constants cost nothing: each summand is counted from its minimum.
"""

import functools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import fft

from pathbudget.analysis.quantiles import Values

CELLS = 1 << 15
"""Steps from the smallest sum to the largest one that matters."""

FINEST_NS = 100.0
"""No clock of ours is finer."""

SLACK = 1e-9
"""Of a step: what floats may be off before a time is rounded up to the next one."""


class Convolution:
    """P(sum <= x) of independent summands, and of all but one of them.

    `summands` are times in ns in any order, +inf for failures, at least one each. `reach_ns` is the
    largest sum that is asked for; beyond it only the share is known. None: the largest there is.
    The grid has at most `cells` places.
    """

    def __init__(
        self, summands: Sequence[Values], reach_ns: float | None = None, cells: int = CELLS
    ) -> None:
        finite = [values[np.isfinite(values)] for values in summands]
        self._least = [float(values.min()) if len(values) else 0.0 for values in finite]
        self.least_ns = math.fsum(self._least)
        widest = math.fsum(
            float(values.max()) - least if len(values) else 0.0
            for values, least in zip(finite, self._least, strict=True)
        )
        width = widest if reach_ns is None else min(widest, max(0.0, reach_ns - self.least_ns))
        self.step_ns = max(FINEST_NS, width / (cells - len(summands) - 1))
        self.cells = math.ceil(width / self.step_ns) + len(summands) + 1
        self.masses = [
            self._mass(values, least, len(every))
            for values, least, every in zip(finite, self._least, summands, strict=True)
        ]

    def _mass(self, values: Values, least: float, n: int) -> Values:
        places = np.ceil((values - least) / self.step_ns - SLACK).astype(np.int64)
        places = places[places < self.cells]
        mass: Values = np.bincount(places, minlength=self.cells) / n
        return mass

    @functools.cached_property
    def _occupied(self) -> list[tuple[npt.NDArray[np.intp], Values]]:
        """For each summand the places that have a share, and their shares."""
        places = [np.flatnonzero(mass) for mass in self.masses]
        return [(at, mass[at]) for at, mass in zip(places, self.masses, strict=True)]

    @functools.cached_property
    def _length(self) -> int:
        """Of the transforms: the largest sum on the grid has a place of its own, also beyond what
        is asked for, or it would come round and count as a small one.
        """
        last = sum(int(places[-1]) for places, _ in self._occupied if len(places))
        return fft.next_fast_len(max(last + 1, self.cells), real=True)

    @functools.cached_property
    def _spectra(self) -> list[npt.NDArray[np.complex128]]:
        return [np.fft.rfft(mass, self._length) for mass in self.masses]

    @functools.cached_property
    def within(self) -> Values:
        """P(sum <= least + i steps) for each i."""
        return self._shares(self._spectra)

    @functools.cached_property
    def rests(self) -> list[Values]:
        """For each summand the same of the sum of all others."""
        if len(self.masses) == 2:
            return [np.minimum(np.cumsum(mass), 1.0) for mass in reversed(self.masses)]
        found: list[Values] = []
        for place in range(len(self.masses)):
            others = self._spectra[:place] + self._spectra[place + 1 :]
            found.append(self._shares(others) if others else np.ones(self.cells))
        return found

    def _shares(self, spectra: Sequence[npt.NDArray[np.complex128]]) -> Values:
        product = functools.reduce(np.multiply, spectra)
        masses: Values = np.fft.irfft(product, self._length)[: self.cells]
        shares: Values = np.minimum(np.cumsum(np.maximum(masses, 0.0)), 1.0)
        return shares

    def time_ns(self, place: int) -> float:
        """The time that a place on the grid stands for."""
        return self.least_ns + place * self.step_ns

    def place(self, time_ns: float) -> int:
        """The last place that is not after a time; negative before the first."""
        place = math.floor((time_ns - self.least_ns) / self.step_ns + SLACK)
        return min(place, self.cells - 1)

    def share_at(self, place: int) -> float:
        """P(sum <= the time of the place)."""
        return float(self.within[place]) if place >= 0 else 0.0

    def rest_within(self, summand: int, times_ns: Values) -> Values:
        """P(the sum of all summands but one <= time), for each time."""
        least = self.least_ns - self._least[summand]
        steps = np.minimum((times_ns - least) / self.step_ns + SLACK, self.cells - 1)
        places = np.floor(np.maximum(steps, -1)).astype(np.int64)
        shares: Values = np.where(places >= 0, self.rests[summand][places], 0.0)
        return shares

    def variances(self, place: int) -> list[float]:
        """For each summand the variance of P(sum <= x | its time), x the time of the place.

        Over n samples of the summand that is n times what they add to the variance of the share
        (the first term of Hoeffding's decomposition of a generalised U-statistic).
        """
        if place < 0:
            return [0.0] * len(self.masses)
        found: list[float] = []
        for (places, shares), rest in zip(self._occupied, self.rests, strict=True):
            until = int(np.searchsorted(places, place, side="right"))
            given = rest[place - places[:until]]
            products = shares[:until] * given
            mean, square = float(products.sum()), float((products * given).sum())
            found.append(max(0.0, square - mean * mean))
        return found
