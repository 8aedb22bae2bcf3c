"""What became of one shot, as samples: one for each phase up to the one that failed.

Of every shot exactly one is `first_byte`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pathbudget.probes.carriers import Moment, Opened, Phase, span_between
from pathbudget.probes.clock import StampedInterval
from pathbudget.probes.contract import Shot
from pathbudget.probes.http.hops import Hop, Told, wrong_status
from pathbudget.probes.http.plan import Plan
from pathbudget.probes.record import (
    HOST_BUSY_NS,
    ClockSource,
    ConnectionMode,
    Failure,
    Flag,
    Metric,
    Note,
    Sample,
)
from pathbudget.probes.tcp_stamps import lateness_of, stamps_between, stamps_of

_WITH_MODE = (Metric.TLS_HANDSHAKE, Metric.QUIC_HANDSHAKE, Metric.CLIENT_COMPUTE, Metric.SETUP)
_HANDSHAKES = (Metric.TLS_HANDSHAKE, Metric.QUIC_HANDSHAKE)
_NOTHING = StampedInterval(0, ClockSource.KERNEL)


def tell(told: Told, plan: Plan) -> Iterator[Sample]:
    """All samples of one shot."""
    teller = _Teller(told.shot, verified=plan.settings.tls.verify or not plan.settings.tls.tls)
    final = told.hops[-1]
    failure = told.failure or final.failure if final.headed is None else told.failure
    if failure is None and final.headed is not None and not plan.accepts(final.status):
        failure = wrong_status(final.status)
    for number, hop in enumerate(told.hops):
        part = number if plan.follow else None
        yield from teller.opening(hop, part)
        yield from teller.exchange(hop, part, failure if hop is final else None)
    yield teller.first_byte(told, failure)
    if told.anonymous is not None:
        yield teller.anonymous(told.anonymous)


class _Teller:
    def __init__(self, shot: Shot, *, verified: bool) -> None:
        self._shot = shot
        self._marks: tuple[str, ...] = () if verified else (Flag.UNVERIFIED,)

    def opening(self, hop: Hop, part: int | None) -> Iterator[Sample]:
        """The phases of a connection, as far as it came; nothing to wait for of one that stood."""
        if hop.opened is not None:
            yield from self._phases(hop.opened, hop.mode, part)
            yield self._setup(hop.opened, hop.mode, part)
        elif hop.opening_failure is not None:
            metric, failure, done = hop.opening_failure
            for phase in done:
                yield self._phase(phase, hop.mode, {}, part)
            for one in dict.fromkeys((metric or Metric.SETUP, Metric.SETUP)):
                yield self._missing(one, hop.began, failure, hop.mode, part)
        elif hop.reused:
            phase = Phase(Metric.SETUP, hop.began, _NOTHING)
            yield self._phase(phase, hop.mode, {}, part)

    def exchange(self, hop: Hop, part: int | None, failure: Failure | None) -> Iterator[Sample]:
        """The request and its answer; `failure` where there is one that does not count."""
        if hop.opening_failure is not None:
            return
        mode, first, last = hop.mode, hop.first_left, hop.last_left
        if first is not None and last is not None:
            yield self._timed(Metric.SEND, first, last, mode, part)
        if hop.headed is None:
            why = failure or hop.failure
            if why is not None:
                waited = Metric.SEND if last is None else Metric.WAIT
                yield self._missing(waited, hop.asked, why, mode, part)
                yield self._missing(Metric.TTFB, hop.asked, why, mode, part)
            return
        if last is not None:
            yield self._timed(Metric.WAIT, last, hop.headed, mode, part)
        if failure is not None:
            yield self._missing(Metric.TTFB, hop.asked, failure, mode, part)
        else:
            yield self._timed(Metric.TTFB, hop.asked, hop.headed, mode, part, _doubts(hop))
        if hop.whole is not None:
            yield self._timed(Metric.RECEIVE, hop.headed, hop.whole, mode, part)
        elif hop.failure is not None:
            yield self._missing(Metric.RECEIVE, hop.headed, hop.failure, mode, part)

    def first_byte(self, told: Told, failure: Failure | None) -> Sample:
        """The one sample that every shot has: all that is waited for until the first byte that
        counts. What this host does between two steps is none of it, but noted.
        """
        opening, final = told.hops[0], told.hops[-1]
        began = _begin(told)
        notes = _notes(told)
        metric, mode = Metric.FIRST_BYTE, opening.mode
        if failure is not None or final.headed is None:
            failure = failure or final.failure
            assert failure is not None
            return self._missing(metric, began, failure, mode, None, notes)
        opened = [hop.opened for hop in told.hops if hop.opened is not None]
        flags = [flag for one in opened for phase in one.phases for flag in phase.flags]
        flags += _doubts(final)
        flags += [Flag.FLOW_STALL] * bool(final.notes.get("flow_stall_ns"))
        if not opened and len(told.hops) == 1:
            return self._timed(metric, began, final.headed, mode, None, flags, notes)
        span = _waited(told.hops)
        elapsed_ns = span_between(began, final.headed).value_ns
        notes["own_us"] = max(0, elapsed_ns - span.value_ns) // 1_000
        busy = _read_late_ns(final.headed) > HOST_BUSY_NS
        marks = (*self._marks, *flags, *((Flag.HOST_BUSY,) if busy else ()))
        return Sample(
            seq=self._shot.seq,
            metric=metric,
            sent_unix_ns=began.unix_ns,
            value_ns=span.value_ns,
            clock_source=span.source,
            mode=mode,
            lateness_ns=self._lateness(began),
            flags=_marked(marks, span),
            notes=notes,
        )

    def anonymous(self, hop: Hop) -> Sample:
        """The same request without credentials; any status will do."""
        notes: dict[str, Note] = {} if hop.headed is None else {"status_anonymous": hop.status}
        metric, mode = Metric.TTFB_ANONYMOUS, hop.mode
        if hop.headed is None:
            assert hop.failure is not None
            return self._missing(metric, hop.asked, hop.failure, mode, None, notes)
        return self._timed(metric, hop.asked, hop.headed, mode, None, _doubts(hop), notes)

    # Samples

    def _phases(self, opened: Opened, mode: ConnectionMode, part: int | None) -> Iterator[Sample]:
        for phase in (*opened.phases, *opened.beside):
            notes = opened.notes if phase.metric in _HANDSHAKES else {}
            yield self._phase(phase, mode, notes, part)

    def _setup(self, opened: Opened, mode: ConnectionMode, part: int | None) -> Sample:
        flags = tuple(flag for phase in opened.phases for flag in phase.flags)
        phase = Phase(Metric.SETUP, opened.began, opened.setup, flags)
        return self._phase(phase, mode, {}, part)

    def _phase(
        self, phase: Phase, mode: ConnectionMode, notes: Mapping[str, Note], part: int | None
    ) -> Sample:
        own = phase.metric in _WITH_MODE
        computed = phase.metric == Metric.CLIENT_COMPUTE
        flags = () if computed else (*(self._marks if own else ()), *phase.flags)
        ended = phase.ended
        return Sample(
            seq=self._shot.seq,
            metric=phase.metric,
            sent_unix_ns=phase.began.unix_ns,
            value_ns=phase.span.value_ns,
            clock_source=phase.span.source,
            mode=mode if own else None,
            lateness_ns=None if part else self._lateness(phase.began),
            flags=_marked(flags, phase.span),
            stamps=None if ended is None else stamps_between(self._shot, phase.began, ended),
            part=part,
            notes=dict(notes) or None,
        )

    def _timed(
        self,
        metric: str,
        first: Moment,
        last: Moment,
        mode: ConnectionMode,
        part: int | None,
        flags: Iterable[str] = (),
        notes: Mapping[str, Note] | None = None,
    ) -> Sample:
        span = span_between(first, last)
        busy = metric != Metric.SEND and _read_late_ns(last) > HOST_BUSY_NS
        found = (*self._marks, *flags, *((Flag.HOST_BUSY,) if busy else ()))
        return Sample(
            seq=self._shot.seq,
            metric=metric,
            sent_unix_ns=first.unix_ns,
            value_ns=span.value_ns,
            clock_source=span.source,
            mode=mode,
            lateness_ns=None if part else self._lateness(first),
            flags=_marked(found, span),
            stamps=stamps_between(self._shot, first, last),
            part=part,
            notes=dict(notes) if notes else None,
        )

    def _missing(
        self,
        metric: str,
        began: Moment,
        failure: Failure,
        mode: ConnectionMode,
        part: int | None,
        notes: Mapping[str, Note] | None = None,
    ) -> Sample:
        return Sample(
            seq=self._shot.seq,
            metric=metric,
            sent_unix_ns=began.unix_ns,
            failure=failure,
            mode=None if metric in (Metric.RESOLVE, Metric.CONNECT) else mode,
            lateness_ns=None if part else self._lateness(began),
            flags=self._marks,
            stamps=stamps_of(self._shot, began.unix_ns, began.reading),
            part=part,
            notes=dict(notes) if notes else None,
        )

    def _lateness(self, began: Moment) -> int:
        return lateness_of(self._shot, began.reading)


def _begin(told: Told) -> Moment:
    """Resolve, connect or send, whichever came first."""
    opening = told.hops[0]
    if opening.opened is not None:
        return opening.opened.began
    return opening.asked if opening.reused else told.began


def _waited(hops: Sequence[Hop]) -> StampedInterval:
    """Set-up and answers, one after the other; of all but the last hop the whole answer."""
    spans: list[StampedInterval] = []
    for hop in hops:
        if hop.opened is not None:
            spans.append(hop.opened.setup)
        until = hop.headed if hop is hops[-1] else hop.whole
        if until is not None:
            spans.append(span_between(hop.asked, until))
    ranks = list(ClockSource)
    return StampedInterval(
        sum(span.value_ns for span in spans),
        max((span.source for span in spans), key=ranks.index),
        stepped=any(span.stepped for span in spans),
    )


def _notes(told: Told) -> dict[str, Note]:
    opening, final = told.hops[0], told.hops[-1]
    notes = final.seen()
    if len(told.hops) > 1:
        notes["redirects"] = len(told.hops) - 1
    if told.idle_ns is not None:
        notes["idle_ms"] = told.idle_ns // 1_000_000
    if told.age_ns is not None:
        notes["connection_age_ms"] = told.age_ns // 1_000_000
    if opening.opened is not None and opening.opened.application:
        notes["alpn"] = opening.opened.application
    return notes


def _doubts(hop: Hop) -> tuple[str, ...]:
    """The answer began before the request had left: two things that went on at once."""
    return () if hop.last_left is not None else (Flag.LOW_CONFIDENCE,)


def _marked(flags: Iterable[str], span: StampedInterval) -> tuple[str, ...]:
    step = (Flag.CLOCK_STEP,) if span.stepped else ()
    return tuple(dict.fromkeys((*flags, *step)))


def _read_late_ns(moment: Moment) -> int:
    """How long after the kernel this host read what came."""
    if moment.kernel_unix_ns is None:
        return 0
    return moment.reading.unix_ns - moment.kernel_unix_ns
