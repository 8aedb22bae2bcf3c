"""Samples of what lies between two moments."""

from collections.abc import Iterable, Mapping

from pathbudget.probes.carriers import Moment, span_between
from pathbudget.probes.clock import StampedInterval
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import (
    HOST_BUSY_NS,
    ClockSource,
    ConnectionMode,
    Failure,
    Flag,
    Note,
    Sample,
)
from pathbudget.probes.tcp_stamps import lateness_of, stamps_between

CLOCKS = tuple(ClockSource)
"""Best first."""


def read_late_ns(moment: Moment) -> int:
    """How long after the kernel this host read what came; 0 where the kernel does not say."""
    if moment.kernel_unix_ns is None:
        return 0
    return max(0, moment.reading.unix_ns - moment.kernel_unix_ns)


def marks_of(span: StampedInterval, *ends: Moment) -> tuple[str, ...]:
    """The flags that clocks and this host give a number."""
    busy = any(read_late_ns(end) > HOST_BUSY_NS for end in ends)
    marked = ((Flag.CLOCK_STEP, span.stepped), (Flag.HOST_BUSY, busy))
    return tuple(flag for flag, holds in marked if holds)


def timed(
    shot: Shot,
    metric: str,
    first: Moment,
    last: Moment,
    *,
    mode: ConnectionMode | None,
    flags: Iterable[str] = (),
    notes: Mapping[str, Note] | None = None,
    part: int | None = None,
) -> Sample:
    """The time from one moment to a later one that was an arrival."""
    span = span_between(first, last)
    began = first.unix_ns
    return Sample(
        seq=shot.seq,
        metric=metric,
        sent_unix_ns=began,
        value_ns=span.value_ns,
        clock_source=span.source,
        mode=mode,
        lateness_ns=lateness_of(shot, first.reading) if part is None else None,
        flags=tuple(dict.fromkeys((*flags, *marks_of(span, last)))),
        stamps=stamps_between(shot if part is None else _undated(shot), first, last),
        part=part,
        notes=dict(notes) if notes else None,
    )


def valued(
    shot: Shot,
    metric: str,
    began_unix_ns: int,
    span: StampedInterval,
    *,
    mode: ConnectionMode | None,
    flags: Iterable[str] = (),
    notes: Mapping[str, Note] | None = None,
    part: int | None = None,
) -> Sample:
    """A number that others have worked out."""
    step = (Flag.CLOCK_STEP,) if span.stepped else ()
    return Sample(
        seq=shot.seq,
        metric=metric,
        sent_unix_ns=began_unix_ns,
        value_ns=span.value_ns,
        clock_source=span.source,
        mode=mode,
        flags=tuple(dict.fromkeys((*flags, *step))),
        part=part,
        notes=dict(notes) if notes else None,
    )


def missing(
    shot: Shot,
    metric: str,
    began_unix_ns: int,
    failure: Failure,
    *,
    mode: ConnectionMode | None,
    notes: Mapping[str, Note] | None = None,
    part: int | None = None,
) -> Sample:
    """No number, and why."""
    return Sample(
        seq=shot.seq,
        metric=metric,
        sent_unix_ns=began_unix_ns,
        failure=failure,
        mode=mode,
        part=part,
        notes=dict(notes) if notes else None,
    )


def _undated(shot: Shot) -> Shot:
    """Parts of a shot were never due on their own."""
    return Shot(shot.series, shot.seq, shot.target, shot.address, shot.family, shot.timeout_ns)
