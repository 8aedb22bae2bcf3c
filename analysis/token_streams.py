"""Streams of chunks: what the way back adds to each, and the egress line of streams.

    egress of a chunk = shortest way back + delay of the chunk over the quickest of its stream

A chunk that was asked for and did not come is later than any number.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pathbudget.analysis.finding_kinds import FindingKind
from pathbudget.analysis.one_way_tracks import OneWayTracks
from pathbudget.analysis.quantiles import Estimate, Values
from pathbudget.analysis.request_numbers import quantile_ms
from pathbudget.analysis.request_results import Completions, Range, TokenStreams
from pathbudget.analysis.results import Carrier, Finding
from pathbudget.analysis.series import LOST, NS_PER_MS
from pathbudget.analysis.shots import Shot, ShotKey
from pathbudget.analysis.stream_delivery import (
    Delivery,
    Stream,
    evaluate_delivery,
    server_quantile,
    streams_of,
)
from pathbudget.analysis.stream_results import Bounded
from pathbudget.analysis.summary import milliseconds
from pathbudget.analysis.track import Track
from pathbudget.probes.record import Flag, Measurement, Metric
from pathbudget.probes.stream.buffering import Verdict

PACED, ENDPOINT = "token_stream", "completion"
DEFAULT_BUFFER_MS, DEFAULT_UNDERRUN = 100.0, 0.01
CALM = 0.99
"""Share of round trips that say how long the path itself may hold a chunk, in that test."""


@dataclass(slots=True)
class _Waits:
    sent: list[int] = field(default_factory=list[int])
    values: list[float] = field(default_factory=list[float])
    vantages: list[str] = field(default_factory=list[str])

    def add(self, shots: Iterable[Shot], vantage: str) -> None:
        """Take the times to the first token."""
        for shot in shots:
            value = shot.value_ns(Metric.TTFT)
            if value is not None:
                self.sent.append(shot.sent_unix_ns)
                self.values.append(value)
                self.vantages.append(vantage)

    def track(self, vantages: Mapping[str, int]) -> Track:
        """All of them in order of time."""
        return _track(self.sent, self.values, self.vantages, vantages)


@dataclass(slots=True)
class StreamGroup:
    """Streams of one target, form and transport, while they are collected."""

    key: ShotKey
    interval_ns: int
    buffer_ns: int
    underrun_rate: float
    streams: list[Stream] = field(default_factory=list[Stream])
    sent: list[int] = field(default_factory=list[int])
    vantages: list[str] = field(default_factory=list[str])
    waits: _Waits = field(default_factory=_Waits)


class StreamCollector:
    """Takes measurements one at a time and keeps their streams."""

    def __init__(self) -> None:
        self._groups: dict[tuple[ShotKey, int, int, float], StreamGroup] = {}
        self._waits: dict[ShotKey, _Waits] = {}

    def add(self, measurement: Measurement, key: ShotKey, shots: Sequence[Shot]) -> None:
        """Take the streams of a measurement on an idle path."""
        if measurement.probe == ENDPOINT:
            self._waits.setdefault(key, _Waits()).add(shots, measurement.vantage.name)
        if measurement.probe == PACED:
            self._add_streams(measurement, key, shots)

    def groups(self) -> tuple[StreamGroup, ...]:
        """All groups of paced streams in their order."""
        order = sorted(self._groups, key=lambda one: (*one[0].sort_key(), *map(str, one[1:])))
        return tuple(self._groups[key] for key in order)

    def waits(self, vantages: Mapping[str, int]) -> list[tuple[ShotKey, Track]]:
        """Times to the first token, by target."""
        return [
            (key, waits.track(vantages))
            for key, waits in sorted(self._waits.items(), key=lambda one: one[0].sort_key())
            if waits.values
        ]

    def _add_streams(self, measurement: Measurement, key: ShotKey, shots: Sequence[Shot]) -> None:
        interval = _number(measurement.options.get("interval_ms"), 0.0)
        buffer = _number(measurement.options.get("buffer_ms"), DEFAULT_BUFFER_MS)
        underrun = _number(measurement.options.get("underrun_rate"), DEFAULT_UNDERRUN)
        underrun = underrun if 0 < underrun < 1 else DEFAULT_UNDERRUN
        found = streams_of(one for one in measurement.samples if Flag.LOADED not in one.flags)
        if not found or not interval:
            return
        plan = (round(interval * NS_PER_MS), round(buffer * NS_PER_MS), underrun)
        group = self._groups.setdefault((key, *plan), StreamGroup(key, *plan))
        sent_unix_ns = {shot.seq: shot.sent_unix_ns for shot in shots}
        group.waits.add(shots, measurement.vantage.name)
        for stream in found:
            group.streams.append(stream)
            group.sent.append(sent_unix_ns[stream.seq])
            group.vantages.append(measurement.vantage.name)


def _number(value: object, default: float) -> float:
    return float(value) if isinstance(value, int | float) else default


def _track(
    sent: Sequence[int], values: Sequence[float], names: Sequence[str], vantages: Mapping[str, int]
) -> Track:
    times = np.array(sent, dtype=np.int64)
    numbers = np.array([vantages[name] for name in names], dtype=np.int64)
    order = np.lexsort((numbers, times))
    return Track(times[order], np.array(values, dtype=np.float64)[order], numbers[order])


def egress_tracks(
    groups: Iterable[StreamGroup],
    target: str,
    family: str | None,
    round_trips: Track | None,
    one_way: OneWayTracks | None,
    vantages: Mapping[str, int],
) -> dict[Carrier, Track]:
    """Egress of every chunk from one target, by transport.

    Where streams were framed or paced in several ways, of the way with the most chunks.
    """
    found: dict[Carrier, Track] = {}
    for group in groups:
        carrier = group.key.transport
        if (group.key.target, group.key.family) != (target, family) or carrier not in list(Carrier):
            continue
        track = _egress(group, _shortest_back(round_trips, one_way), vantages)
        known = found.get(Carrier(carrier))
        if track.n and (known is None or track.n > known.n):
            found[Carrier(carrier)] = track
    return found


def _shortest_back(round_trips: Track | None, one_way: OneWayTracks | None) -> dict[int, float]:
    """Shortest way back by vantage, ns: of the reflector, else half of the shortest round trip."""
    track = round_trips if one_way is None else one_way.reverse
    if track is None:
        return {}
    share = 2 if one_way is None else 1
    least = ((vantage, values[np.isfinite(values)]) for vantage, values in track.by_vantage())
    return {vantage: float(known.min()) / share for vantage, known in least if len(known)}


def _egress(group: StreamGroup, back: Mapping[int, float], vantages: Mapping[str, int]) -> Track:
    sent: list[int] = []
    values: list[float] = []
    names: list[str] = []
    for stream, began, name in zip(group.streams, group.sent, group.vantages, strict=True):
        least = back.get(vantages[name])
        if least is None:
            continue
        missing = max(0, stream.expected - stream.received)
        times = [least + pdv for pdv in stream.pdv_ns] + [LOST] * missing
        values += times
        sent += [began + i * group.interval_ns for i in range(len(times))]
        names += [name] * len(times)
    return _track(sent, values, names, vantages)


def summarise_streams(
    group: StreamGroup, round_trips: Track | None, vantages: Mapping[str, int], confidence: float
) -> TokenStreams | None:
    """One group; None where no stream had two chunks."""
    found = evaluate_delivery(
        group.streams,
        interval_ns=group.interval_ns,
        buffer_ns=group.buffer_ns,
        underrun_rate=group.underrun_rate,
        path_variation_ns=_path_variation_ns(round_trips),
    )
    if found is None:
        return None
    first = [float(stream.pdv_ns[0]) for stream in group.streams]
    first_track = _track(group.sent, first, group.vantages, vantages)
    waits = group.waits.track(vantages)
    return _summary(
        group,
        found,
        quantile_ms(first_track, 0.95, confidence),
        (quantile_ms(waits, 0.5, confidence), quantile_ms(waits, 0.95, confidence))
        if waits.n
        else (None, None),
    )


def _path_variation_ns(round_trips: Track | None) -> int:
    if round_trips is None:
        return 0
    known = round_trips.values_ns[np.isfinite(round_trips.values_ns)]
    return round(float(np.quantile(known, CALM) - known.min())) if len(known) else 0


def _summary(
    group: StreamGroup,
    found: Delivery,
    first: Bounded,
    ttft: tuple[Bounded | None, Bounded | None],
) -> TokenStreams:
    key = group.key
    return TokenStreams(
        region=key.region,
        site=key.site,
        target=key.target,
        family=key.family,
        transport=key.transport,
        variant=key.variant,
        streams=found.streams,
        chunks_expected=found.chunks_expected,
        chunks_received=found.chunks_received,
        stall_limit_ms=(group.interval_ns + group.buffer_ns) / NS_PER_MS,
        stalls=found.stalls,
        stall_share=_range(found.stall_share),
        burst_share=_range(found.burst_index),
        gap_p95_ms=_bounded(found.gap_ns[0.95]),
        gap_p99_ms=_bounded(found.gap_ns[0.99]),
        variation_p95_ms=_bounded(found.variation_ns[0.95]),
        pdv_p50_ms=_bounded(found.pdv_ns[0.5]),
        pdv_p95_ms=_bounded(found.pdv_ns[0.95]),
        pdv_p99_ms=_bounded(found.pdv_ns[0.99]),
        first_chunk_pdv_p95_ms=first,
        ttft_p50_ms=ttft[0],
        ttft_p95_ms=ttft[1],
        playout_buffer_ms=_bounded(found.playout_buffer_ns),
        underrun_rate=found.underrun_rate,
        buffering=found.verdict,
        releases=found.releases.trials,
        releases_held=found.releases.held,
    )


def _range(found: tuple[float, float, float]) -> Range:
    value, low, high = found
    return Range(value=value, low=low, high=high)


def _bounded(found: Estimate) -> Bounded:
    low, value, high = (milliseconds(end) for end in (found.low, found.value, found.high))
    return Bounded(value_ms=value, low_ms=low, high_ms=high)


def summarise_waits(
    key: ShotKey, waits: Track, round_trips: Track | None, confidence: float
) -> Completions:
    """Times to the first token, and what of them can be the server's."""
    trips = np.array([]) if round_trips is None else round_trips.values_ns
    trips = trips[np.isfinite(trips)]
    return Completions(
        region=key.region,
        site=key.site,
        target=key.target,
        family=key.family,
        transport=key.transport,
        variant=key.variant,
        n=waits.n,
        losses=waits.losses,
        ttft_p50_ms=quantile_ms(waits, 0.5, confidence),
        ttft_p95_ms=quantile_ms(waits, 0.95, confidence),
        server_p50_ms=_server(waits.values_ns, trips, 0.5),
        server_p95_ms=_server(waits.values_ns, trips, 0.95),
    )


def _server(waits: Values, trips: Values, p: float) -> Bounded | None:
    if not len(trips):
        return None
    low, high = (milliseconds(end) for end in server_quantile(waits, trips, p))
    return Bounded(value_ms=None, low_ms=low, high_ms=high)


def stream_findings(streams: Iterable[TokenStreams]) -> list[Finding]:
    """Something that holds chunks back, and streams that stall."""
    found: list[Finding] = []
    for one in streams:
        if one.buffering in (Verdict.BURSTS, Verdict.SMOOTHS):
            found.append(_finding(FindingKind.BUFFERING_PROXY, one, _buffering(one)))
        if one.stalls:
            gaps = one.chunks_received - one.streams
            text = (
                f"{one.stalls} of {gaps} gaps in streams from {one.target} were longer than "
                f"{one.stall_limit_ms:.0f} ms: the stream stood still."
            )
            found.append(_finding(FindingKind.STREAM_STALLS, one, text))
    return found


def _buffering(one: TokenStreams) -> str:
    if one.buffering == Verdict.BURSTS:
        return (
            f"chunks from {one.target} that were sent apart arrive together "
            f"({one.releases_held} of {one.releases} releases): something on the way buffers the "
            "stream, so the first token comes late and later gaps look better than they are."
        )
    return (
        f"chunks from {one.target} arrive more evenly than they were sent: something on the way "
        "holds them and releases them at a pace of its own."
    )


def _finding(kind: FindingKind, one: TokenStreams, text: str) -> Finding:
    return Finding(kind=kind, region=one.region, site=one.site, text=text)
