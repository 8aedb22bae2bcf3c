"""How it was measured: campaigns, vantages, clocks, noise, counters; streamed like the samples."""

from array import array
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from pathbudget.analysis.results import Provenance, VantageInfo
from pathbudget.analysis.series import NS_PER_MS, place_of
from pathbudget.probes.record import ClockSource, Measurement, Metric, SyncState

WORST_SYNC = (SyncState.SYNCHRONISED, SyncState.UNKNOWN, SyncState.UNSYNCHRONISED)


def largest(known: int | None, new: int | None) -> int | None:
    """The larger of two numbers that may be unknown."""
    return new if known is None else known if new is None else max(known, new)


@dataclass(slots=True)
class _VantageNotes:
    """What the measurements of one vantage say of their host. The worst of each."""

    name: str
    region: str
    software: set[str] = field(default_factory=set[str])
    sync_states: set[SyncState] = field(default_factory=set[SyncState])
    clock_sources: set[str] = field(default_factory=set[str])
    offset_bound_ns: int | None = None
    steps: int = 0
    largest_step_ns: int = 0
    floor_ns: int | None = None
    timer_p99_ns: int | None = None
    steal_ratio: float | None = None
    stamp_modes: set[ClockSource] = field(default_factory=set[ClockSource])
    lateness: "array[int]" = field(default_factory=lambda: array("q"))

    def add(self, measurement: Measurement) -> None:
        self.software.add(measurement.software)
        clock, noise = measurement.clock, measurement.noise
        if clock is not None:
            self.sync_states.add(clock.sync_state)
            self.clock_sources.add(clock.source)
            self.offset_bound_ns = largest(self.offset_bound_ns, clock.offset_bound_ns)
            self.steps = max(self.steps, clock.steps)
            step = max(self.largest_step_ns, clock.largest_step_ns, key=abs)
            self.largest_step_ns = max(step, -step)
        if noise is not None:
            self.floor_ns = largest(self.floor_ns, noise.floor_ns)
            self.timer_p99_ns = largest(self.timer_p99_ns, noise.timer_lateness_p99_ns)
            self.steal_ratio = max(self.steal_ratio or 0.0, noise.steal_ratio)
            self.stamp_modes.add(noise.stamp_mode)
        self.lateness.extend(
            sample.lateness_ns for sample in measurement.samples if sample.lateness_ns is not None
        )

    def info(self) -> VantageInfo:
        states = self.sync_states or {SyncState.UNKNOWN}
        order = list(ClockSource)
        return VantageInfo(
            name=self.name,
            region=self.region,
            software=", ".join(sorted(self.software - {""})),
            sync_state=max(states, key=WORST_SYNC.index),
            clock_source=", ".join(sorted(self.clock_sources - {""})),
            offset_bound_ms=_ms(self.offset_bound_ns),
            clock_steps=self.steps,
            largest_step_ms=self.largest_step_ns / NS_PER_MS,
            noise_floor_ms=_ms(self.floor_ns),
            stamp_mode=max(self.stamp_modes, key=order.index) if self.stamp_modes else "",
            timer_lateness_p99_ms=_ms(self.timer_p99_ns),
            steal_ratio=self.steal_ratio,
            lateness_p99_ms=self._lateness_p99_ms(),
        )

    def _lateness_p99_ms(self) -> float | None:
        if not self.lateness:
            return None
        lateness = np.sort(np.array(self.lateness, dtype=np.float64))
        rank = int(np.ceil(0.99 * len(lateness)))
        return float(lateness[rank - 1]) / NS_PER_MS


def _ms(value_ns: int | None) -> float | None:
    return None if value_ns is None else value_ns / NS_PER_MS


class ProvenanceCollector:
    """Takes measurements one at a time."""

    def __init__(self) -> None:
        self._vantages: dict[tuple[str, str], _VantageNotes] = {}
        self._words: dict[str, set[str]] = {
            word: set() for word in ("campaigns", "software", "probes", "schedules", "imported")
        }
        self._counters: Counter[str] = Counter()
        self._measurements = self._samples = self._losses = 0
        self._started: int | None = None
        self._ended: int | None = None

    def add(self, measurement: Measurement) -> None:
        """Note one measurement."""
        region, _ = place_of(measurement)
        name = measurement.vantage.name
        notes = self._vantages.setdefault((region, name), _VantageNotes(name, region))
        notes.add(measurement)
        self._words["campaigns"].add(measurement.campaign)
        self._words["software"].add(measurement.software)
        self._words["probes"].add(measurement.probe)
        self._words["schedules"].add(measurement.schedule)
        self._words["imported"].add(measurement.imported_from)
        self._counters.update(measurement.counters)
        self._measurements += 1
        own = [one for one in measurement.samples if one.metric != Metric.HOP_RTT]
        self._samples += len(own)
        self._losses += sum(sample.failure is not None for sample in own)
        self._note_time(measurement)

    def _note_time(self, measurement: Measurement) -> None:
        """The time from the first to the last send; what sent nothing counts with its start."""
        times = [sample.sent_unix_ns for sample in measurement.samples]
        first = min(times, default=measurement.started_unix_ns)
        last = max(times, default=measurement.started_unix_ns)
        self._started = first if self._started is None else min(self._started, first)
        self._ended = last if self._ended is None else max(self._ended, last)

    def vantages(self) -> tuple[VantageInfo, ...]:
        """How each vantage measured, by region and name."""
        return tuple(self._vantages[key].info() for key in sorted(self._vantages))

    def provenance(self, confidence: float, *, always_valid: bool = False) -> Provenance:
        """How everything was measured, and what the intervals of lines are."""
        return Provenance(
            campaigns=self._sorted("campaigns"),
            software=self._sorted("software"),
            started_unix_ns=self._started or 0,
            ended_unix_ns=self._ended or 0,
            measurements=self._measurements,
            samples=self._samples,
            losses=self._losses,
            probes=self._sorted("probes"),
            schedules=self._sorted("schedules"),
            confidence=confidence,
            counters=dict(sorted(self._counters.items())),
            imported_from=self._sorted("imported"),
            always_valid=always_valid,
        )

    def _sorted(self, word: str) -> tuple[str, ...]:
        return tuple(sorted(self._words[word] - {""}))
