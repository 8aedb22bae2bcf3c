"""Samples of one shot together: what a request paid, step by step."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from pathbudget.analysis.series import (
    LOST,
    NO_NAME,
    NOT_SENT,
    OTHER_MODE,
    WALL_CLOCKS,
    place_of,
    transport_of,
)
from pathbudget.analysis.variants import variant_of
from pathbudget.probes.record import Flag, Measurement, Metric, Note, Sample


class ShotKey(NamedTuple):
    """Whose shots they are: one target over one transport, measured by one probe in one way."""

    region: str
    site: str
    target: str
    family: str | None
    probe: str
    transport: str | None
    variant: str

    def sort_key(self) -> tuple[str, ...]:
        """Order of the groups in every result."""
        return tuple(part or "" for part in self)


@dataclass(slots=True)
class Shot:
    """All samples of one sequence number, by metric; of several parts the first one."""

    seq: int
    sent_unix_ns: int
    samples: dict[str, Sample] = field(default_factory=dict[str, Sample])

    def value_ns(self, metric: str) -> float | None:
        """The number of a metric: +inf for a loss, None where it has none that counts."""
        sample = self.samples.get(metric)
        return None if sample is None else usable_ns(sample)

    def notes(self) -> dict[str, Note]:
        """Everything that was noted, whatever sample it stands on."""
        merged: dict[str, Note] = {}
        for sample in self.samples.values():
            merged.update(sample.notes or {})
        return merged

    def flags(self) -> set[str]:
        """Every mark of the shot."""
        return {flag for sample in self.samples.values() for flag in sample.flags}


def usable_ns(sample: Sample) -> float | None:
    """What a sample counts as: its number, +inf for a loss, None where it is excluded."""
    failure = sample.failure
    if failure is not None:
        asked = failure.kind not in NOT_SENT and failure.kind not in OTHER_MODE
        named = failure.kind not in NO_NAME or sample.metric == Metric.RESOLVE
        return LOST if asked and named else None
    if Flag.CLOCK_STEP in sample.flags and sample.clock_source in WALL_CLOCKS:
        return None
    return LOST if Flag.LATE in sample.flags else float(sample.value_ns or 0)


def shot_key(measurement: Measurement) -> ShotKey:
    """The group of the shots of one measurement."""
    family = measurement.family
    transport = transport_of(measurement)
    return ShotKey(
        *place_of(measurement),
        target=measurement.target.name,
        family=None if family is None else str(family),
        probe=measurement.probe,
        transport=None if transport is None else str(transport),
        variant=variant_of(measurement),
    )


def shots_of(measurement: Measurement) -> Iterator[Shot]:
    """Idle shots of one measurement in order of their first sample."""
    shots: dict[int, Shot] = {}
    for sample in measurement.samples:
        if Flag.LOADED in sample.flags:
            continue
        shot = shots.get(sample.seq)
        if shot is None:
            shot = shots[sample.seq] = Shot(sample.seq, sample.sent_unix_ns)
        shot.samples.setdefault(sample.metric, sample)
        shot.sent_unix_ns = min(shot.sent_unix_ns, sample.sent_unix_ns)
    yield from shots.values()


def whole_note(notes: Mapping[str, Note], *names: str) -> int | None:
    """The first of these notes that is a whole number."""
    for name in names:
        value = notes.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return round(value)
    return None


def word_note(notes: Mapping[str, Note], *names: str) -> str:
    """The first of these notes as a word; empty where there is none."""
    for name in names:
        value = notes.get(name)
        if isinstance(value, str) and value:
            return value
    return ""
