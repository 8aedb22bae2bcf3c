"""What a campaign is going to do, in full, before it does anything.

CampaignPlan    one campaign: name, seed, duration, limits, and one VantagePlan per vantage
VantagePlan     all that one worker needs; it travels to the worker as JSON
SeriesPlan      one target x probe x address family, with its schedule
"""

import itertools
from collections.abc import Iterator, Mapping

import msgspec

from pathbudget.agents.campaign.merging import Shot, merge
from pathbudget.agents.campaign.schedule import (
    ScheduleKind,
    Ticks,
    Train,
    coalesced,
    numbered_trains,
    send_times,
    series_rng,
    train_times,
)
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
    train: int = 1
    """Packets that leave at each instant of the schedule. The number of a packet divided by this is
    its train, the rest its place in it, even where trains overlap."""
    train_gap_ns: int = 0
    """From one packet of a train to the next; 0 is back to back."""
    coalesce_ns: int = 0
    """It sends at the ticks of its vantage, one in so long; 0: at instants of its own."""
    place: str = ""
    """Where its probe stands in the campaign file: ``probe[2]``; empty without a file."""

    def expected_shots(self, duration_ns: int | None) -> float:
        """Sends in that time on average; without end where it has none."""
        return float("inf") if duration_ns is None else self.train * duration_ns / self.interval_ns

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
    duration_ns: int | None
    """None: until somebody stops it."""
    namespace: str = ""
    source: dict[AddressFamily, str] = {}
    packets_per_second: int = 500
    resolve_every_ns: int = 60_000_000_000
    file: str = ""
    """The campaign file."""
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


def due_shots(plan: VantagePlan) -> Iterator[Shot]:
    """All sends of one vantage in order of time, those of an earlier run left out.

    A shot is (offset from the start in ns, index of its series, its number in that series). A train
    that has begun before the end of the plan is sent whole.
    """
    streams: list[Iterator[int]] = []
    numbers: dict[int, Iterator[int]] = {}
    for index, series in enumerate(plan.series):
        instants, train = _instants(plan, series), Train(series.train, series.train_gap_ns)
        if train.length_ns:
            times, numbers[index] = _apart(numbered_trains(instants, train))
            streams.append(times)
        else:
            streams.append(train_times(instants, train))
    per_ns = sum(series.train / series.interval_ns for series in plan.series)
    shots = merge(streams, 1 / per_ns if per_ns else 1.0)
    for shot in _renumbered(shots, numbers) if numbers else shots:
        if shot[0] >= plan.resume_at_ns:
            yield shot


def _renumbered(shots: Iterator[Shot], numbers: Mapping[int, Iterator[int]]) -> Iterator[Shot]:
    """The shots of some series under numbers of their own, instead of those by order of time."""
    for time, series, number in shots:
        yield time, series, next(numbers[series]) if series in numbers else number


def _instants(plan: VantagePlan, series: SeriesPlan) -> Iterator[int]:
    rng = series_rng(plan.seed, plan.vantage.name, *series.key)
    times = send_times(series.schedule, series.interval_ns, plan.duration_ns, rng)
    if not series.coalesce_ns:
        return times
    key = series_rng(plan.seed, plan.vantage.name, "ticks").getrandbits(64)
    return coalesced(times, Ticks(series.coalesce_ns, key))


def _apart(packets: Iterator[tuple[int, int]]) -> tuple[Iterator[int], Iterator[int]]:
    """Times and numbers of packets, each in the order of the packets."""
    times, numbers = itertools.tee(packets)
    return (time for time, _ in times), (number for _, number in numbers)


def schedule_text(series: SeriesPlan, seed: int) -> str:
    """What goes into `Measurement.schedule`: ``poisson 1s train 10 gap 0s seed 7``."""
    return f"{rhythm_text(series)} seed {seed}"


def rhythm_text(series: SeriesPlan) -> str:
    """How a series is paced, whatever the seed."""
    text = f"{series.schedule} {format_duration(series.interval_ns)}"
    if series.train > 1:
        text += f" train {series.train} gap {_gap_text(series.train_gap_ns)}"
    if series.coalesce_ns:
        text += f" coalesce {format_duration(series.coalesce_ns)}"
    return text


def _gap_text(gap_ns: int) -> str:
    return format_duration(gap_ns) if gap_ns else "0s"
