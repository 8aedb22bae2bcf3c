"""Unmeasured pairs without coordinates: places in a space of their own, learned from round trips.

Dabek, Cox, Kaashoek and Morris, "Vivaldi: a decentralized network coordinate system" (SIGCOMM
2004): three dimensions and a height, that of the access link. All known pairs pull at once (Adam,
Kingma and Ba 2015), since everything is known in one place here.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from pathbudget.analysis.siting.filling_known import Known
from pathbudget.analysis.siting.filling_smooth import smoothed

Matrix = npt.NDArray[np.float64]

DIMENSIONS = 3
STEPS = 400
FIRST_STEP = 0.1
"""Relative to the median round trip; falls to 0."""

LARGEST = 0.5
"""Relative errors beyond this pull no harder."""

REACH = 0.4
"""Distance, relative to the median round trip, over which errors are still alike."""


def vivaldi(known: Known) -> Matrix:
    """Distance in the learned space plus both heights."""
    return _learned(known).between()


def vivaldi_and_zones(known: Known) -> Matrix:
    """The same, and its errors smoothed over pairs whose two ends are near in the learned space."""
    space = _learned(known)
    reach = REACH * space.median
    regions, sites = space.regions, space.sites
    predicted = space.between()
    left = smoothed(
        known, predicted, _apart(regions, regions) / reach, _apart(sites, sites) / reach
    )
    return predicted * left


@dataclass(slots=True)
class _Space:
    regions: Matrix
    sites: Matrix
    region_heights: Matrix
    site_heights: Matrix
    median: float

    def between(self) -> Matrix:
        apart = _apart(self.regions, self.sites)
        return np.maximum(apart + self.region_heights[:, None] + self.site_heights, 0.01)


def _apart(a: Matrix, b: Matrix) -> Matrix:
    distance: Matrix = np.sqrt(((a[:, None] - b[None]) ** 2).sum(axis=2))
    return distance


def _learned(known: Known) -> _Space:
    regions, sites = known.costs.shape
    rows, columns = known.pairs
    ends, true = regions + columns, known.costs[rows, columns]
    median = float(np.median(true))
    places = np.random.default_rng(0).normal(size=(regions + sites, DIMENSIONS)) * median / 3
    heights = np.full(regions + sites, median / 20)
    by_place, by_height = _Momentum(places), _Momentum(heights)
    for step in range(STEPS):
        apart = places[rows] - places[ends]
        length = np.sqrt((apart**2).sum(axis=1) + 1e-6)
        off = (length + heights[rows] + heights[ends] - true) / np.maximum(true, 1.0)
        pull = np.clip(off, -LARGEST, LARGEST) / np.maximum(true, 1.0) * median
        force = apart * (pull / length)[:, None]
        size = FIRST_STEP * median * (1 - step / STEPS)
        by_place.move(_summed(force, rows, ends, len(heights)), size)
        total = np.zeros(len(heights))
        np.add.at(total, rows, pull)
        np.add.at(total, ends, pull)
        by_height.move(total, 0.3 * size)
        np.maximum(heights, 0, out=heights)
    return _Space(places[:regions], places[regions:], heights[:regions], heights[regions:], median)


def _summed(
    force: Matrix, rows: npt.NDArray[np.intp], ends: npt.NDArray[np.intp], places: int
) -> Matrix:
    """What acts on each place: the force at one end of a pair, its opposite at the other."""
    summed: Matrix = np.stack(
        [np.bincount(rows, part, places) - np.bincount(ends, part, places) for part in force.T],
        axis=1,
    ).astype(np.float64)
    return summed


@dataclass(slots=True)
class _Momentum:
    """Adam on one array, in place."""

    values: Matrix
    mean: Matrix = field(init=False)
    power: Matrix = field(init=False)
    steps: int = 0

    def __post_init__(self) -> None:
        self.mean, self.power = np.zeros_like(self.values), np.zeros_like(self.values)

    def move(self, gradient: Matrix, size: float) -> None:
        self.steps += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.power += 0.01 * (gradient**2 - self.power)
        mean = self.mean / (1 - 0.9**self.steps)
        power = self.power / (1 - 0.99**self.steps)
        self.values -= size * mean / (np.sqrt(power) + 1e-9)
