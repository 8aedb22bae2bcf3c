"""From question and answer to a sample, whatever carried them."""

from collections.abc import Iterable, Mapping

from pathbudget.probes.carriers import Moment
from pathbudget.probes.clock import StampedInterval, measure_interval
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import (
    HOST_BUSY_NS,
    ConnectionMode,
    Failure,
    Flag,
    Note,
    Sample,
    Stamps,
)
from pathbudget.probes.tcp_stamps import lateness_of, stamps_of


def question_span(asked: Moment, answered: Moment) -> StampedInterval:
    """From the question leaving to the answer coming, by the best clocks there are."""
    return measure_interval(
        asked.reading, answered.reading, asked.kernel_unix_ns, answered.kernel_unix_ns
    )


def measured(
    shot: Shot,
    metric: str,
    asked: Moment,
    answered: Moment,
    *,
    flags: Iterable[str] = (),
    notes: Mapping[str, Note],
    late_ns: int | None = None,
    mode: ConnectionMode | None = None,
    flow: int | None = None,
    ttl: int | None = None,
) -> Sample:
    """A question that has been answered. `late_ns` where it did not leave with the shot."""
    span = question_span(asked, answered)
    stamps = _stamps(shot, asked, answered)
    lateness_ns = lateness_of(shot, asked.reading) if late_ns is None else late_ns
    marks = [*flags]
    if span.stepped:
        marks.append(Flag.CLOCK_STEP)
    if _busy(stamps, lateness_ns, stepped=span.stepped):
        marks.append(Flag.HOST_BUSY)
    return Sample(
        seq=shot.seq,
        metric=metric,
        sent_unix_ns=asked.unix_ns,
        value_ns=span.value_ns,
        clock_source=span.source,
        mode=mode,
        lateness_ns=lateness_ns,
        ttl=ttl,
        flags=tuple(marks),
        flow=flow,
        stamps=stamps,
        notes=dict(notes),
    )


def failed(
    shot: Shot,
    metric: str,
    asked: Moment,
    failure: Failure,
    *,
    answered: Moment | None = None,
    notes: Mapping[str, Note] | None = None,
    late_ns: int | None = None,
    mode: ConnectionMode | None = None,
    flow: int | None = None,
    responder: str | None = None,
) -> Sample:
    """A question without an answer; an error that a server sent has its stamps all the same."""
    return Sample(
        seq=shot.seq,
        metric=metric,
        sent_unix_ns=asked.unix_ns,
        failure=failure,
        mode=mode,
        lateness_ns=lateness_of(shot, asked.reading) if late_ns is None else late_ns,
        responder=responder,
        flow=flow,
        stamps=_stamps(shot, asked, answered),
        notes=dict(notes) if notes else None,
    )


def _stamps(shot: Shot, asked: Moment, answered: Moment | None) -> Stamps:
    return stamps_of(
        shot,
        asked.unix_ns,
        asked.reading,
        None if answered is None else answered.reading,
        asked.kernel_unix_ns,
        None if answered is None else answered.kernel_unix_ns,
    )


def _busy(stamps: Stamps, lateness_ns: int, *, stepped: bool) -> bool:
    if lateness_ns > HOST_BUSY_NS:
        return True
    came, read = stamps.kernel_received_ns, stamps.user_received_ns
    if stepped or came is None or read is None:
        return False
    return read - came > HOST_BUSY_NS
