"""What was measured, in constant memory: counts and distributions of each series.

A series is what a person tells apart on a dashboard: an agent, a target of a site, a probe and its
variant, an address family and a transport. Never an id, an address or a port. So the number of its
series bounds the memory of a book and the length of a scrape; what is beyond `most` distributions
is counted, and is in none.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from pathbudget.agents.watch.buckets import Distribution
from pathbudget.agents.watch.outcomes import delay_of, failure_of, outcome_of
from pathbudget.analysis.variants import variant_of
from pathbudget.probes.agent_health import AGENT
from pathbudget.probes.record import Measurement, Metric, Sample
from pathbudget.probes.table import probe_table

MOST = 4_000
"""Distributions of one book: about 4 MB here, and 22 MB of text to each scrape."""
FORGET_NS = 900_000_000_000
"""A series that has ended is shown for so long, that its last numbers are scraped."""


class SeriesLabels(NamedTuple):
    """Names and values of the labels of everything that is counted by series."""

    agent: str
    region: str
    site: str
    target: str
    probe: str
    variant: str
    family: str
    transport: str


@dataclass(slots=True)
class SeriesMeters:
    """One series."""

    labels: SeriesLabels
    primary: str
    """Metric of which each shot has exactly one sample."""
    outcomes: Counter[str] = field(default_factory=Counter[str])
    failures: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])
    """By kind and stage."""
    flags: Counter[str] = field(default_factory=Counter[str])
    delays: dict[tuple[str, str], Distribution] = field(
        default_factory=dict[tuple[str, str], Distribution]
    )
    """By metric and connection mode."""
    last_unix_ns: int = 0
    users: int = 0
    """Measurements of it that are open."""
    ended_ns: int = 0


class MeterBook:
    """All series of one process. One thread writes; others may read what `pages` returns."""

    def __init__(self, most: int = MOST) -> None:
        self.most = most
        self.left_out = 0
        """Samples that are in no distribution, because there were too many of them."""
        self.lateness: dict[str, Distribution] = {}
        """How late the shots of each agent left."""
        self._series: dict[SeriesLabels, SeriesMeters] = {}
        self._spare: SeriesMeters = SeriesMeters(SeriesLabels(*[""] * 8), "")
        self._delays = 0

    def begin(self, measurement: Measurement, now_ns: int) -> SeriesMeters:
        """The series of a measurement that is opened. `now_ns` is of a monotonic clock."""
        self.forget(now_ns)
        meters = self.meters(measurement)
        meters.users += 1
        return meters

    def end(self, meters: SeriesMeters, now_ns: int) -> None:
        """A measurement is closed. A series without any goes after a while."""
        meters.users -= 1
        meters.ended_ns = now_ns

    def meters(self, measurement: Measurement) -> SeriesMeters:
        """The series of a measurement."""
        labels = labels_of(measurement)
        found = self._series.get(labels)
        if found is not None:
            return found
        if len(self._series) >= self.most:
            return self._spare
        spec = probe_table().get(measurement.probe)
        primary = Metric.RTT if spec is None else spec.primary_metric
        return self._series.setdefault(labels, SeriesMeters(labels, str(primary)))

    def add(self, measurement: Measurement, now_ns: int) -> None:
        """Count a whole measurement, but what agents say of themselves."""
        if measurement.probe == AGENT:
            return
        meters = self.meters(measurement)
        meters.ended_ns = now_ns
        for sample in measurement.samples:
            self.note(meters, sample)

    def note(self, meters: SeriesMeters, sample: Sample) -> None:
        """Count one sample."""
        if meters is self._spare:
            self.left_out += 1
            return
        meters.last_unix_ns = max(meters.last_unix_ns, sample.sent_unix_ns)
        for flag in sample.flags:
            meters.flags[flag] += 1
        if sample.metric == meters.primary:
            failure = failure_of(sample)
            meters.outcomes[outcome_of(failure)] += 1
            if failure is not None:
                meters.failures[failure] += 1
            if sample.lateness_ns is not None:
                self._note_lateness(meters.labels.agent, max(0, sample.lateness_ns))
        value = delay_of(sample)
        if value is not None:
            self._note_delay(meters, (sample.metric, sample.mode or ""), value)

    def pages(self) -> list[SeriesMeters]:
        """The series of now, for another thread."""
        return list(self._series.values())

    def forget(self, now_ns: int) -> None:
        """Drop what ended a while ago."""
        ended = [
            labels
            for labels, one in self._series.items()
            if one.users <= 0 and one.ended_ns and now_ns - one.ended_ns > FORGET_NS
        ]
        for labels in ended:
            self._delays -= len(self._series.pop(labels).delays)

    def _note_lateness(self, agent: str, value_ns: int) -> None:
        found = self.lateness.get(agent)
        if found is None:
            if len(self.lateness) >= self.most:
                return
            found = self.lateness[agent] = Distribution()
        found.note(value_ns)

    def _note_delay(self, meters: SeriesMeters, key: tuple[str, str], value_ns: int) -> None:
        found = meters.delays.get(key)
        if found is None:
            if self._delays >= self.most:
                self.left_out += 1
                return
            self._delays += 1
            found = meters.delays[key] = Distribution()
        found.note(value_ns)


def labels_of(measurement: Measurement) -> SeriesLabels:
    """What a series is called."""
    vantage, target = measurement.vantage, measurement.target
    return SeriesLabels(
        agent=vantage.name,
        region=vantage.region,
        site=target.site,
        target=target.name,
        probe=measurement.probe,
        variant=variant_of(measurement),
        family=measurement.family or "",
        transport=measurement.transport or "",
    )
