"""From the opening of a connection to samples: what the `tls` and `quic` probes tell of a shot."""

from collections.abc import Mapping
from typing import Protocol

from pathbudget.probes.carriers import Moment, Opened, Phase
from pathbudget.probes.clock import Reading
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.record import ConnectionMode, Failure, Flag, Metric, Note, Sample, Stamps
from pathbudget.probes.tcp_stamps import lateness_of, stamps_between, stamps_of


class Connection(Protocol):
    """The connection of one shot, as far as its samples tell of it."""

    flow: int | None
    responder: str | None
    began: Moment
    facts: dict[str, Note]

    @property
    def mode(self) -> ConnectionMode:
        """What it is tried as."""
        ...

    @property
    def phase_began(self) -> Reading:
        """Since when the step under way lasts."""
        ...

    def close(self) -> None:
        """End it in good order."""


class OpeningTeller:
    """Turns what becomes of one connection into samples. A `carriers.OpeningListener`.

    Notes go with the samples of `handshake`, the local port with those of `named_by`. Where nobody
    checks certificates every sample says so.
    """

    connection: Connection

    def __init__(
        self,
        environment: ProbeEnvironment,
        shot: Shot,
        *,
        handshake: Metric,
        named_by: Metric,
        verified: bool,
    ) -> None:
        self._environment = environment
        self._shot = shot
        self._handshake = handshake
        self._named_by = named_by
        self._of_a_mode = frozenset({handshake, Metric.CLIENT_COMPUTE, Metric.SETUP})
        self._marks = () if verified else (Flag.UNVERIFIED,)

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        for phase in (*opened.phases, *opened.beside):
            self._emit(phase, opened.mode, opened.notes)
        flags = dict.fromkeys(flag for phase in opened.phases for flag in phase.flags)
        total = Phase(Metric.SETUP, opened.began, opened.setup, tuple(flags))
        self._emit(total, opened.mode, opened.notes)
        self.connection.close()

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        mode = self.connection.mode
        for phase in done:
            self._emit(phase, mode, {})
        if metric != Metric.SETUP:
            self._emit_failure(metric, failure, mode)
        self._emit_failure(Metric.SETUP, failure, mode)

    def _emit(self, phase: Phase, mode: ConnectionMode, notes: Mapping[str, Note]) -> None:
        stepped = (Flag.CLOCK_STEP,) if phase.span.stepped else ()
        sample = Sample(
            seq=self._shot.seq,
            metric=phase.metric,
            sent_unix_ns=phase.began.unix_ns,
            value_ns=phase.span.value_ns,
            clock_source=phase.span.source,
            mode=mode if phase.metric in self._of_a_mode else None,
            lateness_ns=self._lateness(),
            flags=tuple(dict.fromkeys((*self._marks, *phase.flags, *stepped))),
            flow=self.connection.flow if phase.metric == self._named_by else None,
            stamps=self._stamps(phase),
            notes=dict(notes) if notes and phase.metric == self._handshake else None,
        )
        self._environment.emit(self._shot.series, sample)

    def _emit_failure(self, metric: str, failure: Failure, mode: ConnectionMode) -> None:
        connection, whole = self.connection, metric == Metric.SETUP
        began = connection.began.reading if whole else connection.phase_began
        sample = Sample(
            seq=self._shot.seq,
            metric=metric,
            sent_unix_ns=began.unix_ns,
            failure=failure,
            mode=mode if metric in self._of_a_mode else None,
            lateness_ns=self._lateness(),
            flags=self._marks,
            responder=None if whole else connection.responder,
            flow=connection.flow,
            stamps=None if whole else stamps_of(self._shot, began.unix_ns, began),
            notes=(dict(connection.facts) or None) if metric == self._handshake else None,
        )
        self._environment.emit(self._shot.series, sample)

    def _stamps(self, phase: Phase) -> Stamps | None:
        return None if phase.ended is None else stamps_between(self._shot, phase.began, phase.ended)

    def _lateness(self) -> int:
        return lateness_of(self._shot, self.connection.began.reading)
