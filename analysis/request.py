"""What the network costs one request, request by request, and the distribution of that.

Set-up and round trip are joined in time before anything is summed: percentiles of sums are taken
of sums, never summed (they do not add up).
"""

from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.path_choice import PathSeries
from pathbudget.analysis.quantiles import Estimate, Values, estimate_quantile
from pathbudget.analysis.results import Direction, Mode
from pathbudget.analysis.series import Track
from pathbudget.analysis.summary import autocorrelation


@dataclass(frozen=True, slots=True)
class Distribution:
    """Sorted times in ns, +inf for requests that failed, and what they are worth."""

    ordered: Values
    n_effective: float

    @property
    def n(self) -> int:
        """Number of requests."""
        return len(self.ordered)

    @property
    def losses(self) -> int:
        """How many of them failed."""
        return int(np.count_nonzero(np.isinf(self.ordered)))

    def estimate(self, p: float, confidence: float) -> Estimate:
        """Quantile `p` with its interval."""
        return estimate_quantile(
            self.ordered, p, n_effective=self.n_effective, confidence=confidence
        )


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """Parallel arrays, one entry per request of one connection mode, in order of time."""

    setup_ns: Values
    round_trips: Track
    """The round trip of each request; `sent_unix_ns` is when the request was made."""
    unjoined: int = 0
    """Set-ups of vantages that measured no round trip: they make no request."""

    def distribution(self, direction: Direction, extra_round_trips: int) -> Distribution:
        """Distribution of one budget term.

        ingress = set-up + RTT / 2 + extra RTTs, egress = RTT / 2, network = both, per request.
        RTT / 2 is the symmetric split: half of the constant part and half of its variation.
        """
        one_way = self.round_trips.values_ns / 2
        total = one_way.copy()
        if direction is not Direction.EGRESS:
            total += self.setup_ns
            for _ in range(extra_round_trips):
                total += self.round_trips.values_ns
        if direction is Direction.NETWORK:
            total += one_way
        track = Track(self.round_trips.sent_unix_ns, total, self.round_trips.vantages)
        return Distribution(np.sort(total), autocorrelation(track)[1])


def request_times(path: PathSeries, mode: Mode) -> RequestTimes | None:
    """Requests of one mode on one path; None where the mode was not measured."""
    round_trips = path.round_trips
    if round_trips is None:
        return None
    if mode is Mode.WARM:
        return RequestTimes(np.zeros(round_trips.n), round_trips)
    setups = path.setups.get(mode)
    if setups is None:
        return None
    return _joined(setups, round_trips)


def _joined(setups: Track, round_trips: Track) -> RequestTimes | None:
    """Each set-up with the round trip nearest in time, of the same vantage.

    Set-ups of a vantage that measured no round trip cannot be joined and make no request.
    """
    nearest = np.full(setups.n, -1, dtype=np.int64)
    for vantage in np.unique(setups.vantages):
        places = np.flatnonzero(round_trips.vantages == vantage)
        if len(places):
            mine = setups.vantages == vantage
            found = nearest_in_time(round_trips.sent_unix_ns[places], setups.sent_unix_ns[mine])
            nearest[mine] = places[found]
    known = nearest >= 0
    if not known.any():
        return None
    return RequestTimes(
        setups.values_ns[known],
        Track(
            setups.sent_unix_ns[known],
            round_trips.values_ns[nearest[known]],
            setups.vantages[known],
        ),
        unjoined=int(np.count_nonzero(~known)),
    )


def nearest_in_time(
    times: np.typing.NDArray[np.int64], wanted: np.typing.NDArray[np.int64]
) -> np.typing.NDArray[np.int64]:
    """Index into the sorted `times` of the one nearest to each `wanted`; the earlier of two."""
    after = np.clip(np.searchsorted(times, wanted), 1, max(1, len(times) - 1))
    before = after - 1
    after = np.minimum(after, len(times) - 1)
    earlier_is_nearer = wanted - times[before] <= times[after] - wanted
    return np.where(earlier_is_nearer, before, after)
