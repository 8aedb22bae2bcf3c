"""What comes out of the packets of one stream. Part of the JSON report, as `Evaluation.streams`.

Milliseconds throughout, and `None` for *unbounded*, as in `results`. Every field of a variation
carries its definition in its name; no two definitions share a word.
"""

from enum import StrEnum

import msgspec


class StreamResult(msgspec.Struct, frozen=True, kw_only=True):
    """Base: immutable, and made by keyword."""


class Way(StrEnum):
    """Which way of the packets a number is about."""

    FORWARD = "forward"
    REVERSE = "reverse"
    ROUND_TRIP = "round_trip"


class Bounded(StreamResult, frozen=True):
    """A value with its interval."""

    value_ms: float | None
    low_ms: float | None
    high_ms: float | None


class OneWay(StreamResult, frozen=True):
    """One-way delay (RFC 7679) of the packet with the shortest round trip."""

    owd_ms: float
    """As read from the two clocks: below zero where they disagree, never clamped."""
    low_ms: float
    high_ms: float
    """What is possible: the stated error of the clocks, within 0 and the round trip."""
    clock_error_ms: float | None
    """What the clocks themselves admit, together; None where nobody vouches for one of them."""
    clock_state: str
    """``synchronised``, ``unsynchronised``, ``stepped`` or ``contradicted`` (docs/metrics.md)."""


class Variation(StreamResult, frozen=True):
    """Loss, variation and order of one way."""

    way: Way
    sent: int
    """Packets that began this way; for ``reverse`` those that were not lost on the way there."""
    lost: int
    lost_way_unknown: int
    """Lost packets of which nobody knows which way: `loss_high` counts them, `loss_ratio` not."""
    loss_ratio: float
    loss_low: float
    loss_high: float
    n: int
    """Packets with a number."""
    n_effective: float
    pdv_p50_ms: Bounded | None
    pdv_p95_ms: Bounded | None
    pdv_p99_ms: Bounded | None
    pdv_p999_ms: Bounded | None
    """RFC 5481, of the packets that arrived; None for no packet."""
    ipdv_p1_ms: Bounded | None
    ipdv_p50_ms: Bounded | None
    ipdv_p99_ms: Bounded | None
    """RFC 3393, signed, of packets sent one after another; None for no such pair."""
    extras: dict[str, float]
    """Other definitions by their own names, for comparison with other tools alone."""
    reordered: int | None
    reordered_ratio: float | None
    reordered_largest_extent: int | None
    reordered_3: int | None
    """RFC 4737; `reordered_3` counts packets that three later ones overtook. None: not seen."""
    owd: OneWay | None = None


class ClockStep(StreamResult, frozen=True):
    """A step of one clock against the other, seen in the transit times of both directions."""

    at_unix_ns: int
    step_ms: float
    """By how much the other end's clock went forward against ours."""
    error_ms: float


class PathChange(StreamResult, frozen=True):
    """A lasting change of the shortest delay."""

    at_unix_ns: int
    forward_ms: float | None
    reverse_ms: float | None
    """None where only the round trip is known."""
    round_trip_ms: float
    error_ms: float


class ClockPair(StreamResult, frozen=True):
    """The other end's clock against ours, as the packets show it."""

    skew_ppm: float
    skew_low_ppm: float
    skew_high_ppm: float
    """Of the longest piece between cuts."""
    steps: tuple[ClockStep, ...]


class LossPatterns(StreamResult, frozen=True):
    """RFC 3357 and RFC 6534; every number depends on `tmax_ms`."""

    tmax_ms: float | None
    loss_distance_median: float | None
    loss_periods: int
    loss_period_mean_packets: float | None
    loss_period_longest_packets: int
    loss_episode_frequency: float
    loss_episode_mean_packets: float | None


class OutageInfo(StreamResult, frozen=True):
    """A run of losses too long for chance. Start and end lie between two sends."""

    began_after_unix_ns: int | None
    began_by_unix_ns: int
    ended_after_unix_ns: int
    ended_by_unix_ns: int | None
    lost: int
    shortest_ms: float
    longest_ms: float | None


class Outages(StreamResult, frozen=True):
    """All outages, and the rule that made them."""

    consecutive_losses: int
    """So many losses in a row are an outage."""
    false_alarms_expected: float
    """Upper bound over the whole stream, if losses are independent of one another."""
    outages: tuple[OutageInfo, ...]


class FlowInfo(StreamResult, frozen=True):
    """One flow of a sweep over flows."""

    flow: int
    n: int
    lost: int
    minimum_ms: float | None
    median_ms: Bounded


class FlowSpreadInfo(StreamResult, frozen=True):
    """Difference of the medians of the slowest and the fastest flow."""

    way: Way
    ecmp_spread_ms: Bounded
    decided: bool
    """False: the data cannot tell the flows apart, or there are too few flows."""
    may_miss_paths: bool
    flows: tuple[FlowInfo, ...]


class TrainPositionInfo(StreamResult, frozen=True):
    """Packets of one place in their trains."""

    position: int
    sent: int
    lost: int
    growth_p50_ms: Bounded | None


class TrainInfo(StreamResult, frozen=True):
    """Trains of packets sent back to back: what queueing they met or made."""

    way: Way
    length: int
    trains: int
    growth_p95_ms: Bounded | None
    """Delay of the last packet over that of the first."""
    dispersion_p50_ms: Bounded | None
    """How much farther apart two neighbours arrive than they were sent."""
    positions: tuple[TrainPositionInfo, ...]


class StreamSummary(StreamResult, frozen=True):
    """All of one stream: (region, site, target, address, probe, family, vantage, options, load)."""

    region: str
    site: str
    target: str
    address: str
    probe: str
    family: str | None
    vantage: str
    options: str
    loaded: bool
    started_unix_ns: int
    ended_unix_ns: int
    sent: int
    lost: int
    duplicated: int
    """Packets that were answered more than once (RFC 5560 replicated packets)."""
    duplicate_copies: int
    """Answers beyond the first."""
    host_busy: int
    """Packets that this host was late to send or to read."""
    noise_floor_ms: float | None
    stateless_reflector: bool
    """The reflector keeps no numbers of its own, so no loss can be given a direction."""
    ways: tuple[Variation, ...]
    clock_pair: ClockPair | None
    path_changes: tuple[PathChange, ...]
    loss_patterns: LossPatterns
    outages: Outages
    flow_spreads: tuple[FlowSpreadInfo, ...]
    trains: tuple[TrainInfo, ...]


class UnderLoad(StreamResult, frozen=True):
    """The round trip while our own traffic filled the path, less that of the idle path."""

    region: str
    site: str
    target: str
    probe: str
    metric: str
    family: str | None
    percentile: float
    idle_n: int
    loaded_n: int
    idle_ms: float | None
    loaded_ms: float | None
    added_ms: Bounded


class TimerInfo(StreamResult, frozen=True):
    """Durations that cluster at a timer of a stack or a tool."""

    region: str
    site: str
    target: str
    probe: str
    metric: str
    timer_ms: float
    words: str
    n: int
    of: int
