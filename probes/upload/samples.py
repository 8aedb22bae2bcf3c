"""Samples of one shot of the upload probe: the steps of a new connection, and the upload."""

from collections.abc import Mapping

from pathbudget.probes.carriers import Moment, Opened, Phase
from pathbudget.probes.clock import Reading, StampedInterval
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.record import (
    ConnectionMode,
    Failure,
    Flag,
    Metric,
    Note,
    Sample,
    Stamps,
)
from pathbudget.probes.tcp_stamps import lateness_of, stamps_between

_WITHOUT_MODE = frozenset({Metric.RESOLVE, Metric.CONNECT})


class Teller:
    """Emits them; all carry the number of the shot."""

    def __init__(
        self, environment: ProbeEnvironment, shot: Shot, began: Reading, *, verified: bool
    ) -> None:
        self._environment = environment
        self._shot = shot
        self._began = began
        self._lateness_ns = lateness_of(shot, began)
        self._marks: tuple[str, ...] = () if verified else (Flag.UNVERIFIED,)

    def tell_setup(self, opened: Opened) -> None:
        """Each step of a connection that stands, and their sum."""
        for phase in (*opened.phases, *opened.beside):
            self._tell_phase(phase, opened.mode)
        flags = dict.fromkeys(flag for phase in opened.phases for flag in phase.flags)
        total = Phase(Metric.SETUP, opened.began, opened.setup, tuple(flags))
        self._tell_phase(total, opened.mode, opened.notes)

    def tell_no_setup(
        self, metric: str, failure: Failure, done: tuple[Phase, ...], mode: ConnectionMode
    ) -> None:
        """The steps up to the one that failed, that one, and the sum."""
        for phase in done:
            self._tell_phase(phase, mode)
        if metric and metric != Metric.SETUP:
            self._tell_failure(metric, failure, mode)
        self._tell_failure(Metric.SETUP, failure, mode)

    def tell_upload(
        self,
        first: Moment,
        answered: Moment,
        span: StampedInterval,
        mode: ConnectionMode,
        notes: Mapping[str, Note],
        flow: int | None,
    ) -> None:
        """The number that every shot is about."""
        stalled = (Flag.FLOW_STALL,) if notes.get("flow_stalls") else ()
        stamps = stamps_between(self._shot, first, answered)
        self._emit(Metric.UPLOAD, first, span, mode, stalled, stamps, notes=notes, flow=flow)

    def tell_acknowledged(
        self, first: Moment, at: Moment, span: StampedInterval, mode: ConnectionMode
    ) -> None:
        """When the kernel had the acknowledgement of the last byte."""
        stamps = stamps_between(self._shot, first, at)
        self._emit(Metric.UPLOAD_ACKNOWLEDGED, first, span, mode, (), stamps)

    def tell_failure(self, failure: Failure, mode: ConnectionMode) -> None:
        """There is no such number."""
        self._tell_failure(Metric.UPLOAD, failure, mode)

    def _tell_phase(
        self, phase: Phase, mode: ConnectionMode, notes: Mapping[str, Note] | None = None
    ) -> None:
        own = None if phase.metric in _WITHOUT_MODE else mode
        stamps = (
            None if phase.ended is None else stamps_between(self._shot, phase.began, phase.ended)
        )
        self._emit(phase.metric, phase.began, phase.span, own, phase.flags, stamps, notes=notes)

    def _tell_failure(self, metric: str, failure: Failure, mode: ConnectionMode) -> None:
        sample = Sample(
            seq=self._shot.seq,
            metric=metric,
            sent_unix_ns=self._began.unix_ns,
            failure=failure,
            mode=None if metric in _WITHOUT_MODE else mode,
            lateness_ns=self._lateness_ns,
            flags=self._marks,
        )
        self._environment.emit(self._shot.series, sample)

    def _emit(
        self,
        metric: str,
        began: Moment,
        span: StampedInterval,
        mode: ConnectionMode | None,
        flags: tuple[str, ...],
        stamps: Stamps | None,
        *,
        notes: Mapping[str, Note] | None = None,
        flow: int | None = None,
    ) -> None:
        stepped = (Flag.CLOCK_STEP,) if span.stepped else ()
        sample = Sample(
            seq=self._shot.seq,
            metric=metric,
            sent_unix_ns=began.unix_ns,
            value_ns=span.value_ns,
            clock_source=span.source,
            mode=mode,
            lateness_ns=self._lateness_ns,
            flags=tuple(dict.fromkeys((*self._marks, *flags, *stepped))),
            flow=flow,
            stamps=stamps,
            notes=dict(notes) if notes else None,
        )
        self._environment.emit(self._shot.series, sample)
