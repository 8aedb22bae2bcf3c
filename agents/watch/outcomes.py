"""What became of one shot, and what is in a distribution: the rules of docs/metrics.md."""

from enum import StrEnum

from pathbudget.probes.record import ClockSource, FailureKind, Flag, Metric, Sample, Stage

NOT_SENT = frozenset(
    {
        *(FailureKind.PERMISSION, FailureKind.LOCAL, FailureKind.NO_ROUTE),
        FailureKind.UNAVAILABLE,
    }
)
"""Failures of this host: the network was not asked."""
NO_NAME = frozenset({FailureKind.NAME_NOT_FOUND, FailureKind.NO_ADDRESS, FailureKind.RESOLVER})
"""Failures of a name server: nothing was sent to the target."""
OTHER_MODE = frozenset({FailureKind.NOT_RESUMED, FailureKind.EARLY_DATA_REJECTED})
"""Connections of another mode than the one asked for."""
WALL_CLOCKS = frozenset({ClockSource.KERNEL, ClockSource.KERNEL_RECEIVE, ClockSource.FOREIGN})
"""Sources whose number a step of the wall clock spoils."""
NO_DELAY = frozenset(
    {
        *(Metric.TRANSIT_FORWARD, Metric.TRANSIT_REVERSE, Metric.DELIVERY_VARIATION),
        Metric.HOP_RTT,
    }
)
"""Numbers that may be below zero, or are delays to somebody else than the target."""
_TIMERS = ((Flag.LATE, Stage.WAIT), (Flag.SYN_RETRANSMITTED, Stage.CONNECT))


class Outcome(StrEnum):
    """Of one shot."""

    ANSWERED = "answered"
    LOST = "lost"
    """By the network, or by the other end."""
    NOT_MEASURED = "not_measured"
    """Nothing was sent to the target, or the connection was of another mode."""


def failure_of(sample: Sample) -> tuple[str, str] | None:
    """Kind and stage; None of a sample that is an answer."""
    if sample.failure is not None:
        return sample.failure.kind, sample.failure.stage
    if sample.metric == Metric.CONNECT and Flag.REFUSED in sample.flags:
        return FailureKind.REFUSED, Stage.CONNECT  # a round trip, and no connection
    for flag, stage in _TIMERS:
        if flag in sample.flags:
            return flag, stage
    return None


def outcome_of(failure: tuple[str, str] | None) -> Outcome:
    """Of a shot whose primary sample has that failure."""
    if failure is None:
        return Outcome.ANSWERED
    if failure[0] in NOT_SENT or failure[0] in NO_NAME or failure[0] in OTHER_MODE:
        return Outcome.NOT_MEASURED
    return Outcome.LOST


def delay_of(sample: Sample) -> int | None:
    """What goes into the distribution of its metric; None of what is in none."""
    if sample.value_ns is None or sample.metric in NO_DELAY or sample.value_ns < 0:
        return None
    if failure_of(sample) is not None:
        return None
    if Flag.CLOCK_STEP in sample.flags and sample.clock_source in WALL_CLOCKS:
        return None
    return sample.value_ns
