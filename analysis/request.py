"""What the network costs one request, request by request, and the distribution of that.

Set-up and round trip are joined in time before anything is summed: percentiles of sums are taken
of sums, never summed (they do not add up).
"""

from dataclasses import dataclass

import numpy as np

from pathbudget.analysis.distribution import Distribution, distribution_of
from pathbudget.analysis.one_way_tracks import OneWayTracks
from pathbudget.analysis.path_choice import PathSeries
from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.results import Carriage, Carrier, Direction, Mode
from pathbudget.analysis.series import LOST
from pathbudget.analysis.track import Track
from pathbudget.analysis.uploads import Uploads

__all__ = ["Distribution", "RequestTimes", "distribution_of", "request_times", "uploaded"]

KEPT_OPEN = (Mode.WARM, Mode.IDLE)
"""Modes without a set-up: their requests are made by the round trips."""


@dataclass(frozen=True, slots=True)
class RequestTimes:
    """Parallel arrays, one entry per request of one connection mode, in order of time."""

    setup_ns: Values
    round_trips: Track
    """The round trip of each request; `sent_unix_ns` is when the request was made."""
    unjoined: int = 0
    """Set-ups of vantages that measured no round trip: they make no request."""
    one_way: OneWayTracks | None = None
    """Both directions by themselves, where a reflector told them apart."""
    is_warm: bool = False

    def distribution(self, direction: Direction, extra_round_trips: int) -> Distribution:
        """Distribution of one budget term."""
        return distribution_of(self.track(direction, extra_round_trips))

    def track(self, direction: Direction, extra_round_trips: int) -> Track:
        """One budget term of every request.

        ingress = set-up + RTT / 2 + extra RTTs, egress = RTT / 2, network = both, per request.
        RTT / 2 is the symmetric split: half of the constant part and half of its variation. Where a
        reflector measured the directions, theirs stands in its place.
        """
        if self.one_way is not None and direction is Direction.EGRESS:
            return self.one_way.reverse
        if self.one_way is not None and direction is Direction.INGRESS:
            return self._ingress(self.one_way.forward, extra_round_trips)
        one_way = self.round_trips.values_ns / 2
        total = one_way.copy()
        if direction is not Direction.EGRESS:
            total += self.setup_ns
            for _ in range(extra_round_trips):
                total += self.round_trips.values_ns
        if direction is Direction.NETWORK:
            total += one_way
        return Track(self.round_trips.sent_unix_ns, total, self.round_trips.vantages)

    def _ingress(self, forward: Track, extra_round_trips: int) -> Track:
        """Set-up, one way there, extra round trips; warm requests are made by the packets."""
        if self.is_warm:
            total = forward.values_ns.copy()
            if extra_round_trips:
                total += extra_round_trips * beside(forward, self.round_trips)
            return Track(forward.sent_unix_ns, total, forward.vantages)
        total = self.setup_ns + beside(self.round_trips, forward)
        if extra_round_trips:
            total += extra_round_trips * self.round_trips.values_ns
        return Track(self.round_trips.sent_unix_ns, total, self.round_trips.vantages)


def uploaded(
    uploads: Uploads, round_trips: Track, one_way: OneWayTracks | None, direction: Direction
) -> Distribution:
    """Ingress or network of requests whose bytes were sent and timed.

    network = set-up + upload, ingress = that less the way back, which the answer took.
    """
    total = uploads.with_setup
    if direction is Direction.NETWORK:
        return distribution_of(total)
    back = _way_back(round_trips, one_way)
    ways = beside(total, back)
    return distribution_of(Track(total.sent_unix_ns, total.values_ns - ways, total.vantages))


def _way_back(round_trips: Track, one_way: OneWayTracks | None) -> Track:
    """How long answers take; the upload was answered, so a packet lost beside it says nothing."""
    track = round_trips if one_way is None else one_way.reverse
    arrived = np.isfinite(track.values_ns)
    values = track.values_ns[arrived] / (2 if one_way is None else 1)
    return Track(track.sent_unix_ns[arrived], values, track.vantages[arrived])


def request_times(
    path: PathSeries, carriage: Carriage, one_way: OneWayTracks | None = None
) -> RequestTimes | None:
    """Requests of one mode over one transport; None where that was not measured."""
    round_trips, (carrier, mode) = path.round_trips, carriage
    if round_trips is None:
        return None
    if mode in KEPT_OPEN:
        return _kept_open(path, carrier, round_trips, one_way)
    setups = path.setups.get(carriage)
    if setups is None:
        return None
    return _joined(setups, round_trips, one_way)


def _kept_open(
    path: PathSeries, carrier: Carrier, round_trips: Track, one_way: OneWayTracks | None
) -> RequestTimes | None:
    """Requests on a connection that stands: one for each round trip.

    Over QUIC only where QUIC was tried; where not one connection came about, there is none to keep,
    and each attempt is a request that failed.
    """
    if carrier is Carrier.QUIC:
        tried = [track for (over, _), track in path.setups.items() if over is Carrier.QUIC]
        if not tried:
            return None
        if all(track.losses == track.n for track in tried):
            longest = max(tried, key=lambda track: track.n)
            lost = Track(longest.sent_unix_ns, np.full(longest.n, LOST), longest.vantages)
            return RequestTimes(np.zeros(lost.n), lost)
    return RequestTimes(np.zeros(round_trips.n), round_trips, 0, one_way, is_warm=True)


def _joined(setups: Track, round_trips: Track, one_way: OneWayTracks | None) -> RequestTimes | None:
    """Each set-up with the round trip nearest in time, of the same vantage.

    Set-ups of a vantage that measured no round trip cannot be joined and make no request.
    """
    nearest = beside(setups, round_trips)
    known = ~np.isnan(nearest)
    if not known.any():
        return None
    return RequestTimes(
        setups.values_ns[known],
        Track(setups.sent_unix_ns[known], nearest[known], setups.vantages[known]),
        unjoined=int(np.count_nonzero(~known)),
        one_way=one_way,
    )


def beside(events: Track, others: Track) -> Values:
    """For each event the value of `others` nearest in time, of the same vantage; NaN for none."""
    result = np.full(events.n, np.nan)
    for vantage in np.unique(events.vantages):
        places = np.flatnonzero(others.vantages == vantage)
        if len(places):
            mine = events.vantages == vantage
            found = nearest_in_time(others.sent_unix_ns[places], events.sent_unix_ns[mine])
            result[mine] = others.values_ns[places[found]]
    return result


def nearest_in_time(
    times: np.typing.NDArray[np.int64], wanted: np.typing.NDArray[np.int64]
) -> np.typing.NDArray[np.int64]:
    """Index into the sorted `times` of the one nearest to each `wanted`; the earlier of two."""
    after = np.clip(np.searchsorted(times, wanted), 1, max(1, len(times) - 1))
    before = after - 1
    after = np.minimum(after, len(times) - 1)
    earlier_is_nearer = wanted - times[before] <= times[after] - wanted
    return np.where(earlier_is_nearer, before, after)
