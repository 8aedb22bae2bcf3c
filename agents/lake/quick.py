"""`PathBudget` for millions of requests: the same numbers, with what lines share made once.

Requests on a connection that stands cost a multiple of their round trip: half of it one way, all of
it both ways, and some more for a long prompt. One order and one count of the round trips is that of
all of these. Requests that need a set-up are counted one term at a time, in the same cells.
"""

import numpy as np

from pathbudget.agents.lake.counted import Cells, cells_of, counted_distribution, scaled
from pathbudget.analysis.budget import PathBudget
from pathbudget.analysis.distribution import Distribution, distribution_of
from pathbudget.analysis.intervals.timeline import FEWEST
from pathbudget.analysis.line_place import LinePlace
from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.request import KEPT_OPEN
from pathbudget.analysis.results import Carriage, Direction
from pathbudget.analysis.track import Track

LARGEST = float(1 << 44)
"""ns, 4.9 hours: up to here 256 times a number is exact in a float64."""


class QuickBudget(PathBudget):
    """All lines of one path."""

    _shared: Distribution | None = None
    _cells: dict[Carriage, Cells] | None = None

    def _made(self, carriage: Carriage, place: LinePlace, *, is_uploaded: bool) -> Distribution:
        if is_uploaded:
            return super()._made(carriage, place, is_uploaded=is_uploaded)
        if not self._is_multiple(carriage, place):
            times, extra = self._requests[carriage], place.extra_round_trips
            one_way = times.one_way is not None and place.direction is not Direction.NETWORK
            track = times.track(place.direction, extra)
            return distribution_of(track) if one_way else self._counted(carriage, track)
        factor = {Direction.NETWORK: 1.0}.get(place.direction, 0.5)
        if place.direction is not Direction.EGRESS:
            factor += place.extra_round_trips
        base = self._round_trips()
        return base if factor == 1.0 else scaled(base, factor)

    def _counted(self, carriage: Carriage, track: Track) -> Distribution:
        """Of a term whose requests are those of all terms of the mode."""
        if track.n < FEWEST or np.isnan(track.values_ns).any():
            return distribution_of(track)
        self._cells = {} if self._cells is None else self._cells
        if carriage not in self._cells:
            self._cells[carriage] = cells_of(track)
        return counted_distribution(track, self._cells[carriage])

    def _is_multiple(self, carriage: Carriage, place: LinePlace) -> bool:
        """Whether these requests are the round trips of the path, times a factor."""
        times, round_trips = self._requests[carriage], self.path.round_trips
        if carriage[1] not in KEPT_OPEN or times.round_trips is not round_trips:
            return False
        if round_trips is None or round_trips.n < FEWEST:
            return False
        if times.one_way is not None and place.direction is not Direction.NETWORK:
            return False
        return place.extra_round_trips < 256 and _largest(self._round_trips().ordered) < LARGEST

    def _round_trips(self) -> Distribution:
        if self._shared is None:
            assert self.path.round_trips is not None
            self._shared = counted_distribution(self.path.round_trips)
        return self._shared


def _largest(ordered: Values) -> float:
    """The largest number that is no loss; 0 where all are."""
    answered = int(ordered.searchsorted(float("inf")))
    return float(ordered[answered - 1]) if answered else 0.0
