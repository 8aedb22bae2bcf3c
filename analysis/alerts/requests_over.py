"""How many requests of each budget line were over the allowance of its tier, by slices of time.

A request is what it is for the line itself (`analysis.request`): a round trip, or a set-up and the
round trip nearest to it, with the round trips of slow start for its bytes, or an upload of as many
bytes where enough were timed. A request that failed is over.
Which target stands for a site is decided by which was measured most (record 50), when asked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from pathbudget.analysis.alerts.shares import Count, WindowCounts
from pathbudget.analysis.budget import headline_place
from pathbudget.analysis.line_place import LinePlace
from pathbudget.analysis.path_choice import PathSeries, path_candidates
from pathbudget.analysis.quantiles import fewest_samples
from pathbudget.analysis.request import RequestTimes, request_times
from pathbudget.analysis.results import Carriage, Direction
from pathbudget.analysis.series import NS_PER_MS, Series, SeriesCollector
from pathbudget.analysis.shots import shot_key, shots_of
from pathbudget.analysis.track import Track
from pathbudget.analysis.uploads import UploadCollector, Uploads
from pathbudget.probes.record import Measurement
from pathbudget.sites.catalogue import Tier

FUTURE_NS = 300_000_000_000
"""Samples later than now by more are of a clock that is wrong; they would push out all others."""


class LineName(NamedTuple):
    """One headline line."""

    tier: str
    region: str
    site: str


class _Path(NamedTuple):
    target: str
    family: str


class _Part(NamedTuple):
    carriage: Carriage
    uploaded: bool
    """The request's bytes were sent and timed; else the model of slow start stands for them."""


Parts = dict[_Part, WindowCounts]
Weighted = list[tuple[float, Count]]


@dataclass(slots=True)
class LineCounts:
    """One line: for each target that may stand for its site, requests by connection mode."""

    place: LinePlace
    length_ns: int
    slice_ns: int
    paths: dict[_Path, Parts] = field(default_factory=dict[_Path, Parts])

    def count(
        self,
        path: PathSeries,
        requests: Mapping[Carriage, RequestTimes],
        uploads: Mapping[tuple[Carriage, int], Uploads],
    ) -> None:
        """Take the requests of one path."""
        parts = self.paths.setdefault(_Path(path.target, path.family or ""), {})
        place = self.place
        for carriage in place.weights():
            if (times := requests.get(carriage)) is not None:
                track = times.track(Direction.NETWORK, place.extra_round_trips)
                self._add(parts, _Part(carriage, uploaded=False), track)
            if place.has_upload and (sent := uploads.get((carriage, place.request_bytes))):
                self._add(parts, _Part(carriage, uploaded=True), sent.with_setup)

    def _add(self, parts: Parts, part: _Part, track: Track) -> None:
        known = ~np.isnan(track.values_ns)
        if part not in parts:
            parts[part] = WindowCounts(self.length_ns, self.slice_ns)
        over = track.values_ns[known] > (self.place.allowance_ms or 0.0) * NS_PER_MS
        parts[part].add(track.sent_unix_ns[known], over)

    def newest_unix_ns(self) -> int | None:
        """When the newest request was made, to the slice."""
        times = [each.newest_unix_ns for parts in self.paths.values() for each in parts.values()]
        return max((one for one in times if one is not None), default=None)

    def parts(self, until_unix_ns: int, windows_ns: Sequence[int]) -> list[Weighted]:
        """For each window, the counts of every mode with its weight, of the path measured most."""
        longest = max(windows_ns)

        def most(item: tuple[_Path, Parts]) -> tuple[int, str, str]:
            name, parts = item
            n = sum(each.within(until_unix_ns, longest).n for each in parts.values())
            return (-n, name.family, name.target)

        if not self.paths:
            return [[] for _ in windows_ns]
        _, chosen = min(self.paths.items(), key=most)
        counts = {
            carriage: self._counts(chosen, carriage, until_unix_ns, longest)
            for carriage in self.place.weights()
        }
        return [
            [
                (weight, Count() if (of := counts[one]) is None else of.within(until_unix_ns, each))
                for one, weight in self.place.weights().items()
            ]
            for each in windows_ns
        ]

    def _counts(
        self, parts: Parts, carriage: Carriage, until_unix_ns: int, longest_ns: int
    ) -> WindowCounts | None:
        """Uploads that were timed, where they are enough to bound the line; else the model."""
        sent = parts.get(_Part(carriage, uploaded=True))
        modelled = parts.get(_Part(carriage, uploaded=False))
        enough = fewest_samples(self.place.percentile / 100)
        if sent is not None and (
            modelled is None or sent.within(until_unix_ns, longest_ns).n >= enough
        ):
            return sent
        return modelled


class RequestsOver:
    """Takes measurements, or pieces of them, one at a time; `settle` counts what has come."""

    def __init__(self, tiers: Iterable[Tier], length_ns: int, slice_ns: int) -> None:
        self._places = [headline_place(tier) for tier in tiers]
        self._length_ns, self._slice_ns = length_ns, slice_ns
        self._collector, self._sent = SeriesCollector(), UploadCollector()
        self._lines: dict[LineName, LineCounts] = {}
        self._waiting = 0

    def see(self, measurement: Measurement) -> None:
        """Take one; it is counted at the next `settle`."""
        self._collector.add(measurement)
        if measurement.probe == "upload":
            self._sent.add(measurement, shot_key(measurement), list(shots_of(measurement)))
        self._waiting += 1

    def settle(self, now_unix_ns: int) -> None:
        """Count what has come since."""
        if not self._waiting:
            return
        series, vantages = self._collector.finish()
        uploads = [
            _sent_until(one, now_unix_ns + FUTURE_NS)
            for one in self._sent.finish({name: i for i, name in enumerate(vantages)})
        ]
        self._collector, self._sent, self._waiting = SeriesCollector(), UploadCollector(), 0
        pairs: dict[tuple[str, str], list[Series]] = {}
        for key, one in series.items():
            if not key.loaded and (now := _until(one, now_unix_ns + FUTURE_NS)) is not None:
                pairs.setdefault((key.region, key.site), []).append(now)
        for (region, site), of_pair in pairs.items():
            here = [one for one in uploads if (one.key.region, one.key.site) == (region, site)]
            for path in path_candidates(of_pair):
                self._count(path, _of_path(here, path))

    def lines(self) -> Iterator[tuple[LineName, LineCounts]]:
        """Every line of which anything was measured, in order."""
        for name in sorted(self._lines):
            yield name, self._lines[name]

    def _count(self, path: PathSeries, uploads: Mapping[tuple[Carriage, int], Uploads]) -> None:
        wanted = {carriage for place in self._places for carriage in place.weights()}
        requests = {
            carriage: times
            for carriage in wanted
            if (times := request_times(path, carriage)) is not None
        }
        if not requests and not uploads:
            return
        for place in self._places:
            name = LineName(place.tier.name, path.region, path.site)
            if name not in self._lines:
                self._lines[name] = LineCounts(place, self._length_ns, self._slice_ns)
            self._lines[name].count(path, requests, uploads)


def _until(series: Series, latest_unix_ns: int) -> Series | None:
    """The series without what claims to be of the future; None where that is all."""
    track = series.track
    if not track.n or int(track.sent_unix_ns[-1]) <= latest_unix_ns:
        return series
    kept = int(np.searchsorted(track.sent_unix_ns, latest_unix_ns, side="right"))
    if not kept:
        return None
    series.track = type(track)(
        track.sent_unix_ns[:kept], track.values_ns[:kept], track.vantages[:kept]
    )
    return series


def _sent_until(uploads: Uploads, latest_unix_ns: int) -> Uploads:
    """The same without what claims to be of the future."""
    known = uploads.sent_unix_ns <= latest_unix_ns
    return replace(
        uploads,
        sent_unix_ns=uploads.sent_unix_ns[known],
        setup_ns=uploads.setup_ns[known],
        upload_ns=uploads.upload_ns[known],
        acknowledged_ns=uploads.acknowledged_ns[known],
        vantages=uploads.vantages[known],
    )


def _of_path(uploads: Iterable[Uploads], path: PathSeries) -> dict[tuple[Carriage, int], Uploads]:
    """Uploads to one target, by carriage and bytes, of the version of HTTP with the most.

    Where all were refused no sink is there; where all failed otherwise, in these few seconds, it is
    what an alert is about.
    """
    found: dict[tuple[Carriage, int], Uploads] = {}
    for one in uploads:
        key = one.key
        mine = (key.target, key.family) == (path.target, path.family)
        if not mine or one.n == one.refused_status:
            continue
        known = found.get((key.carriage, key.bytes))
        if known is None or one.n > known.n:
            found[key.carriage, key.bytes] = one
    return found
