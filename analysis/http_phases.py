"""HTTP requests phase by phase, and what credentials cost at the gateway."""

import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from pathbudget.analysis.quantiles import Values
from pathbudget.analysis.request_numbers import median_ms, quantile_ms, signed_quantile_ms
from pathbudget.analysis.request_results import Gateway, HttpPhases, PhaseTime
from pathbudget.analysis.results import Mode
from pathbudget.analysis.series import NS_PER_MS
from pathbudget.analysis.shots import Shot, ShotKey, whole_note, word_note
from pathbudget.analysis.track import Track
from pathbudget.probes.record import Measurement, Metric, Note

PHASES = (
    *(Metric.RESOLVE, Metric.CONNECT, Metric.TLS_HANDSHAKE, Metric.QUIC_HANDSHAKE),
    *(Metric.SEND, Metric.WAIT, Metric.RECEIVE, Metric.TTFB, Metric.FIRST_BYTE),
)
"""In the order of a request; the last two are sums of others."""

MOST_STEPS = 16
LONGEST_NAME = 40


@dataclass(slots=True)
class _Group:
    sent: "array[int]" = field(default_factory=lambda: array("q"))
    vantages: list[str] = field(default_factory=list[str])
    times: dict[str, "array[float]"] = field(default_factory=dict[str, "array[float]"])
    anonymous: "array[float]" = field(default_factory=lambda: array("d"))
    statuses: Counter[str] = field(default_factory=Counter[str])
    server: dict[str, list[float]] = field(default_factory=dict[str, list[float]])

    def add(self, shot: Shot, vantage: str) -> None:
        """Take one request."""
        self.sent.append(shot.sent_unix_ns)
        self.vantages.append(vantage)
        for phase in PHASES:
            value = shot.value_ns(phase)
            column = self.times.setdefault(phase, array("d"))
            column.append(np.nan if value is None else value)
        without = shot.value_ns(Metric.TTFB_ANONYMOUS)
        self.anonymous.append(np.nan if without is None else without)
        self._note(shot.notes())

    def _note(self, notes: Mapping[str, Note]) -> None:
        if (status := whole_note(notes, "status")) is not None:
            self.statuses[str(status)] += 1
        for name, duration in server_timing(word_note(notes, "server_timing")):
            if name in self.server or len(self.server) < MOST_STEPS:
                self.server.setdefault(name, []).append(duration)

    def track(self, values: Values, vantages: Mapping[str, int]) -> Track:
        """Those of the numbers that are known, in order of time."""
        sent = np.array(self.sent, dtype=np.int64)
        numbers = np.array([vantages[name] for name in self.vantages], dtype=np.int64)
        order = np.lexsort((numbers, sent))
        order = order[~np.isnan(values[order])]
        return Track(sent[order], values[order], numbers[order])


def server_timing(header: str) -> list[tuple[str, float]]:
    """Steps with a duration in ms, as a Server-Timing header names them (W3C); others left out."""
    found: list[tuple[str, float]] = []
    for entry in header.split(","):
        name, *parameters = (part.strip() for part in entry.split(";"))
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "dur" and name:
                duration = _number(value)
                if duration is not None:
                    found.append((name[:LONGEST_NAME], duration))
                break
    return found


def _number(text: str) -> float | None:
    try:
        number = float(text.strip().strip('"'))
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


class HttpCollector:
    """Takes measurements one at a time and keeps the phases of requests."""

    def __init__(self) -> None:
        self._groups: dict[tuple[ShotKey, str], _Group] = {}

    def add(self, measurement: Measurement, key: ShotKey, shots: Sequence[Shot]) -> None:
        """Take the requests of an `http` measurement."""
        if measurement.probe != "http":
            return
        for shot in shots:
            group = self._groups.setdefault((key, _mode(shot, measurement)), _Group())
            group.add(shot, measurement.vantage.name)

    def phases(self, vantages: Mapping[str, int], confidence: float) -> tuple[HttpPhases, ...]:
        """Every group that was sent, in its order."""
        return tuple(
            HttpPhases(
                region=key.region,
                site=key.site,
                target=key.target,
                family=key.family,
                version=key.variant,
                transport=key.transport,
                mode=mode,
                phases=_phases(group, vantages, confidence),
                statuses=dict(sorted(group.statuses.items())),
                server_timing={
                    name: float(np.median(found)) for name, found in sorted(group.server.items())
                },
            )
            for (key, mode), group in self._ordered()
        )

    def gateways(self, vantages: Mapping[str, int], confidence: float) -> tuple[Gateway, ...]:
        """Every group in which requests without credentials were answered too."""
        return tuple(
            found
            for (key, mode), group in self._ordered()
            if (found := _gateway(key, mode, group, vantages, confidence)) is not None
        )

    def _ordered(self) -> list[tuple[tuple[ShotKey, str], _Group]]:
        return sorted(self._groups.items(), key=lambda one: (*one[0][0].sort_key(), one[0][1]))


def _mode(shot: Shot, measurement: Measurement) -> str:
    modes = (sample.mode for sample in shot.samples.values() if sample.mode is not None)
    return str(next(modes, measurement.options.get("mode") or Mode.COLD))


def _phases(group: _Group, vantages: Mapping[str, int], confidence: float) -> tuple[PhaseTime, ...]:
    found: list[PhaseTime] = []
    for phase, column in group.times.items():
        track = group.track(np.array(column), vantages)
        if track.n:
            found.append(
                PhaseTime(
                    phase=phase,
                    n=track.n,
                    losses=track.losses,
                    p50_ms=median_ms(track.values_ns),
                    p95_ms=quantile_ms(track, 0.95, confidence),
                )
            )
    return tuple(found)


def _gateway(
    key: ShotKey, mode: str, group: _Group, vantages: Mapping[str, int], confidence: float
) -> Gateway | None:
    """Pairs within one shot: what both requests meet, the path above all, cancels."""
    first, second = np.array(group.times[Metric.TTFB]), np.array(group.anonymous)
    both = np.isfinite(first) & np.isfinite(second)
    one = np.isfinite(first) ^ np.isfinite(second)
    tried = ~np.isnan(second)
    if not both.any():
        return None
    differences = np.where(both, first - np.where(both, second, 0.0), np.nan)
    track = group.track(differences, vantages)
    middle = signed_quantile_ms(track.values_ns, 0.5, confidence)
    high = signed_quantile_ms(track.values_ns, 0.95, confidence)
    assert middle is not None  # there is a pair
    assert high is not None
    return Gateway(
        region=key.region,
        site=key.site,
        target=key.target,
        family=key.family,
        version=key.variant,
        transport=key.transport,
        mode=mode,
        pairs=track.n,
        unpaired=int(np.count_nonzero(one & tried)),
        with_p50_ms=float(np.median(first[both])) / NS_PER_MS,
        without_p50_ms=float(np.median(second[both])) / NS_PER_MS,
        difference_p50_ms=middle,
        difference_p95_ms=high,
    )
