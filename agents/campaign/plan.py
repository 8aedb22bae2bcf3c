"""What a campaign is going to do, in full, before it does anything.

CampaignPlan    one campaign: name, seed, duration, limits, and one VantagePlan per vantage
VantagePlan     all that one worker needs; it travels to the worker as JSON
SeriesPlan      one target x probe x address family, with its schedule
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from pathbudget.agents.campaign.schedule import ScheduleKind, send_times, series_rng
from pathbudget.agents.units import format_duration
from pathbudget.probes.contract import Option
from pathbudget.probes.record import AddressFamily, Target, Vantage


class SeriesPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """One series of sends. `family` is None where the names at the start decide (see `addresses`).

    `probe` is the label of the entry in the campaign file, `kind` its line in the probe table.
    """

    target: Target
    probe: str
    kind: str
    interval_ns: int
    timeout_ns: int
    schedule: ScheduleKind = ScheduleKind.POISSON
    family: AddressFamily | None = None
    options: dict[str, Option] = {}

    @property
    def key(self) -> tuple[str, ...]:
        """What tells this series from the others of its vantage."""
        return (self.target.site, self.target.name, self.probe, self.family or "any")


class Limits(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a campaign may put on the wire at most. On by default."""

    packets_per_second: int = 500
    """Per vantage."""
    packets_per_second_per_target: int = 500
    """Towards one target, all vantages together."""
    bytes: int = 2_000_000_000
    """In all, both directions."""


class VantagePlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that one worker needs to know."""

    vantage: Vantage
    series: tuple[SeriesPlan, ...]
    campaign: str
    run_id: str
    seed: int
    duration_ns: int
    namespace: str = ""
    source: dict[AddressFamily, str] = {}
    packets_per_second: int = 500
    resolve_every_ns: int = 60_000_000_000
    resume_at_ns: int = 0
    """Sends before this offset were done by an earlier run of the same plan."""


class CampaignPlan(msgspec.Struct, frozen=True, omit_defaults=True):
    """One campaign."""

    name: str
    run_id: str
    seed: int
    duration_ns: int
    vantages: tuple[VantagePlan, ...]
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True, order=True)
class DueShot:
    """One send of the plan: when, of which series, and its number in that series."""

    offset_ns: int
    series: int
    seq: int


def due_shots(plan: VantagePlan) -> Iterator[DueShot]:
    """All sends of one vantage in order of time, those of an earlier run left out."""
    streams = [_series_shots(plan, index) for index in range(len(plan.series))]
    for shot in heapq.merge(*streams):
        if shot.offset_ns >= plan.resume_at_ns:
            yield shot


def _series_shots(plan: VantagePlan, index: int) -> Iterator[DueShot]:
    series = plan.series[index]
    rng = series_rng(plan.seed, plan.vantage.name, *series.key)
    times = send_times(series.schedule, series.interval_ns, plan.duration_ns, rng)
    return (DueShot(offset, index, seq) for seq, offset in enumerate(times))


def schedule_text(series: SeriesPlan, seed: int) -> str:
    """What goes into `Measurement.schedule`."""
    return f"{series.schedule} {format_duration(series.interval_ns)} seed {seed}"
