"""Everything that requests tell, in one pass over the measurements."""

from collections.abc import Iterable, Mapping, Sequence

from pathbudget.analysis.failure_findings import failure_findings
from pathbudget.analysis.http_phases import HttpCollector
from pathbudget.analysis.name_lookups import LookUpCollector, edge_findings, look_ups
from pathbudget.analysis.one_way_tracks import OneWayTracks
from pathbudget.analysis.path_choice import PathSeries
from pathbudget.analysis.request_findings import setup_findings, upload_findings
from pathbudget.analysis.request_results import RequestResults
from pathbudget.analysis.results import Carrier, Finding
from pathbudget.analysis.series import Series
from pathbudget.analysis.setups import SetupCollector, resumptions, summarise_setups
from pathbudget.analysis.shots import ShotKey, shot_key, shots_of
from pathbudget.analysis.token_streams import (
    StreamCollector,
    egress_tracks,
    stream_findings,
    summarise_streams,
    summarise_waits,
)
from pathbudget.analysis.track import Track
from pathbudget.analysis.upload_summary import summarise_uploads
from pathbudget.analysis.uploads import UploadCollector, Uploads
from pathbudget.probes.record import Measurement, Metric

OF_REQUESTS = frozenset(
    {
        *(Metric.SETUP, Metric.TTFB, Metric.TTFB_ANONYMOUS, Metric.UPLOAD),
        *(Metric.DNS_HIT, Metric.DNS_MISS, Metric.TTFT, Metric.DELIVERY_GAP),
    }
)


class RequestCollector:
    """Takes measurements one at a time, and looks at those whose samples are of requests."""

    def __init__(self) -> None:
        self.setups = SetupCollector()
        self.http = HttpCollector()
        self.names = LookUpCollector()
        self.uploads = UploadCollector()
        self.streams = StreamCollector()

    def add(self, measurement: Measurement) -> None:
        """Group the samples of a measurement by shot, for each topic."""
        if OF_REQUESTS.isdisjoint(sample.metric for sample in measurement.samples):
            return
        key, shots = shot_key(measurement), list(shots_of(measurement))
        self.setups.add(measurement, key, shots)
        self.http.add(measurement, key, shots)
        self.names.add(measurement, key, shots)
        self.uploads.add(measurement, key, shots)
        self.streams.add(measurement, key, shots)


class Requests:
    """What was collected, once the vantages have their numbers."""

    def __init__(
        self, collector: RequestCollector, vantages: Mapping[str, int], confidence: float
    ) -> None:
        self._collector = collector
        self._vantages = vantages
        self._confidence = confidence
        self.uploads = collector.uploads.finish(vantages)
        self._streams = collector.streams.groups()

    def uploads_of(self, region: str, site: str) -> list[Uploads]:
        """Uploads from one region to one site."""
        return [one for one in self.uploads if (one.key.region, one.key.site) == (region, site)]

    def streams_of(self, path: PathSeries, one_way: OneWayTracks | None) -> dict[Carrier, Track]:
        """Egress of the chunks of streams on one path, by transport."""
        here = (
            one
            for one in self._streams
            if (one.key.region, one.key.site) == (path.region, path.site)
        )
        trips = path.round_trips
        return egress_tracks(here, path.target, path.family, trips, one_way, self._vantages)

    def results(
        self, paths: Sequence[PathSeries], series: Iterable[Series]
    ) -> tuple[RequestResults, list[Finding]]:
        """All results, and what is to be said of them; `paths` are of all pairs."""
        every = list(series)
        by_place = {(one.region, one.site, one.target, one.family): one for one in paths}

        def round_trips(key: ShotKey) -> Track | None:
            path = by_place.get((key.region, key.site, key.target, key.family))
            return path.round_trips if path is not None else None

        groups = self._collector.setups.groups()
        setups = summarise_setups(groups, self._vantages, round_trips, self._confidence)
        edges = self._collector.names.edges()
        uploads = tuple(
            summarise_uploads(one, _of_upload(by_place, one), self._confidence)
            for one in self.uploads
        )
        summaries = (
            summarise_streams(one, round_trips(one.key), self._vantages, self._confidence)
            for one in self._streams
        )
        streams = tuple(one for one in summaries if one is not None)
        results = RequestResults(
            setups=setups,
            resumptions=resumptions(groups, setups, self._vantages, self._confidence),
            http=self._collector.http.phases(self._vantages, self._confidence),
            gateways=self._collector.http.gateways(self._vantages, self._confidence),
            look_ups=look_ups(every, self._confidence),
            edges=edges,
            uploads=uploads,
            token_streams=streams,
            completions=tuple(
                summarise_waits(key, waits, round_trips(key), self._confidence)
                for key, waits in self._collector.streams.waits(self._vantages)
            ),
        )
        findings = [
            *setup_findings(setups),
            *failure_findings(every),
            *upload_findings(uploads),
            *edge_findings(edges),
            *stream_findings(streams),
        ]
        return results, findings


def _of_upload(
    paths: Mapping[tuple[str, str, str, str | None], PathSeries], uploads: Uploads
) -> Track | None:
    key = uploads.key
    path = paths.get((key.region, key.site, key.target, key.family))
    return path.round_trips if path is not None else None
