"""The distribution of times with losses, and what its quantiles can be trusted for."""

import math
from dataclasses import dataclass, field, replace

import numpy as np

from pathbudget.analysis.intervals.bursts import Bursts, bursts_of, slow_allowed
from pathbudget.analysis.intervals.timeline import (
    ANY_NUMBER,
    Timeline,
    few_worth,
    losses_decide,
    timeline_of,
    worth,
)
from pathbudget.analysis.quantiles import Estimate, Values, empirical_quantile, estimate_quantile
from pathbudget.analysis.track import Track


@dataclass(frozen=True, slots=True)
class Distribution:
    """Sorted times in ns, +inf for requests that failed, and what they are worth."""

    ordered: Values
    n_effective: float
    """For the median, or for all quantiles where there is no timeline."""
    timeline: Timeline | None = field(default=None, repr=False, compare=False)
    """The same times in their order; None where that is not known, or they are few."""

    @property
    def n(self) -> int:
        """Number of requests."""
        return len(self.ordered)

    @property
    def losses(self) -> int:
        """How many of them failed."""
        return int(np.count_nonzero(np.isinf(self.ordered)))

    def worth(self, p: float, confidence: float = 0.95) -> float:
        """How many independent requests would tell quantile `p` as well."""
        if self.timeline is None:
            return self.n_effective
        size = worth(self.n, self.timeline.scatter(empirical_quantile(self.ordered, p)), confidence)
        if not losses_decide(self.losses / self.n, p):
            return size
        return min(size, worth(self.n, self.timeline.scatter(ANY_NUMBER), confidence))

    def estimate(self, p: float, confidence: float) -> Estimate:
        """Quantile `p` with its interval."""
        size = self.worth(p, confidence)
        found = estimate_quantile(self.ordered, p, n_effective=size, confidence=confidence)
        high = max(found.high, self._above_bursts(p, confidence))
        return replace(found, high=high, n_effective=min(size, float(self.n)))

    def bursts(self) -> Bursts | None:
        """The bursts that losses came in; None where they did not, or their order is not known."""
        if self.timeline is None or self.losses < 2:
            return None
        found = bursts_of(self.timeline.lost(), self.n)
        return found if found.largest > 1 else None

    def _above_bursts(self, p: float, confidence: float) -> float:
        """What quantile `p` may be for the bursts of losses; 0 without any."""
        bursts = self.bursts()
        if bursts is None:
            return 0.0
        allowed = slow_allowed(bursts, p, confidence)
        rank = bursts.n - bursts.lost - allowed
        return math.inf if allowed < 0 else float(self.ordered[max(rank, 1) - 1])


def distribution_of(track: Track) -> Distribution:
    """The distribution of a track, without what is not known (NaN)."""
    known = ~np.isnan(track.values_ns)
    if not known.all():
        track = Track(track.sent_unix_ns[known], track.values_ns[known], track.vantages[known])
    ordered = np.sort(track.values_ns)
    if not track.n:
        return Distribution(ordered, 0.0)
    median = empirical_quantile(ordered, 0.5)
    timeline = timeline_of(track, median)
    if timeline is None:
        return Distribution(ordered, few_worth(track))
    size = worth(track.n, timeline.scatter(median), 0.95)
    return Distribution(ordered, min(size, float(track.n)), timeline)
