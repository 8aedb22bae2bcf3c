"""The `quic` probe at work: connections into samples. Needs aioquic."""

from collections.abc import Mapping

from aioquic.h3.connection import H3Connection

from pathbudget.probes.carriers import Moment, Opened, Phase
from pathbudget.probes.contract import Options, ProbeEnvironment, Shot
from pathbudget.probes.quic.dialer import QuicDialer, QuicStreams, quic_settings
from pathbudget.probes.record import (
    ConnectionMode,
    Failure,
    Flag,
    Metric,
    Note,
    Sample,
    Stamps,
)
from pathbudget.probes.tcp_stamps import lateness_of, stamps_of

_OWN = frozenset({Metric.QUIC_HANDSHAKE, Metric.CLIENT_COMPUTE, Metric.SETUP})
"""Metrics that belong to a mode."""


class QuicProbe:
    """See `contract.Probe`."""

    def __init__(
        self, environment: ProbeEnvironment, options: Options, alpn: tuple[str, ...]
    ) -> None:
        mode = ConnectionMode(str(options.get("mode") or "cold"))
        self._environment = environment
        self._settings = quic_settings(options, mode=mode, alpn=alpn)
        self._early_path = str(options.get("early_path") or "/")
        self._dialer = QuicDialer(environment, self._settings)

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        told = _Teller(self._environment, shot, verified=self._settings.verify)
        wanted = self._settings.mode is ConnectionMode.EARLY_DATA

        def ask(streams: QuicStreams) -> None:
            ask_early(streams, shot, self._early_path)

        told.streams = self._dialer.prepare(shot, told, early=ask if wanted else None)
        told.streams.begin()

    async def drain(self) -> None:
        """See `contract.Probe.drain`. Waits for tickets too: the next shot wants them."""
        await self._dialer.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        self._dialer.close()


def ask_early(streams: QuicStreams, shot: Shot, path: str) -> None:
    """Write the request that leaves as early data (RFC 9114, 4): one that changes nothing."""
    host = shot.target.server_name or shot.target.host
    authority = f"[{host}]" if ":" in host else host
    headers = {":method": "HEAD", ":scheme": "https", ":authority": authority, ":path": path}
    http = H3Connection(streams.quic)
    stream = streams.quic.get_next_available_stream_id()
    encoded = [(name.encode(), value.encode("utf-8", "replace")) for name, value in headers.items()]
    http.send_headers(stream, encoded, end_stream=True)


class _Teller:
    """Turns what becomes of one connection into samples. A `QuicListener`."""

    streams: QuicStreams

    def __init__(self, environment: ProbeEnvironment, shot: Shot, *, verified: bool) -> None:
        self._environment = environment
        self._shot = shot
        self._marks = () if verified else (Flag.UNVERIFIED,)

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        for phase in (*opened.phases, *opened.beside):
            self._emit(phase, opened.mode, opened.notes)
        shaken = (phase for phase in (*opened.phases, *opened.beside) if phase.flags)
        flags = dict.fromkeys(flag for phase in shaken for flag in phase.flags)
        total = Phase(Metric.SETUP, opened.began, opened.setup, tuple(flags))
        self._emit(total, opened.mode, opened.notes)
        self.streams.close()

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        mode = self.streams.mode
        for phase in done:
            self._emit(phase, mode, {})
        self._emit_failure(metric, failure, mode)
        self._emit_failure(Metric.SETUP, failure, mode)

    def stream_left(self, stream: int, first: Moment, last: Moment) -> None:
        """See `QuicListener.stream_left`."""

    def stream_acknowledged(self, stream: int, moment: Moment) -> None:
        """See `QuicListener.stream_acknowledged`."""

    def stream_data(self, stream: int, data: bytes, fin: bool, moment: Moment) -> None:
        """See `QuicListener.stream_data`: the answer to the early request is not waited for."""

    def stream_refused(self, stream: int, code: int, moment: Moment) -> None:
        """See `QuicListener.stream_refused`."""

    def _emit(self, phase: Phase, mode: ConnectionMode, notes: Mapping[str, Note]) -> None:
        own = phase.metric in _OWN
        marks = phase.flags
        if own and phase.metric != Metric.CLIENT_COMPUTE:
            marks = tuple(dict.fromkeys((*self._marks, *phase.flags)))
        if phase.span.stepped:
            marks = (*marks, Flag.CLOCK_STEP)
        shakes = phase.metric == Metric.QUIC_HANDSHAKE
        sample = Sample(
            seq=self._shot.seq,
            metric=phase.metric,
            sent_unix_ns=phase.began.unix_ns,
            value_ns=phase.span.value_ns,
            clock_source=phase.span.source,
            mode=mode if own else None,
            lateness_ns=self._lateness(),
            flags=marks,
            flow=self.streams.flow if shakes else None,
            stamps=self._stamps(phase),
            notes=dict(notes) if shakes and notes else None,
        )
        self._environment.emit(self._shot.series, sample)

    def _emit_failure(self, metric: str, failure: Failure, mode: ConnectionMode) -> None:
        streams, whole = self.streams, metric == Metric.SETUP
        shakes = metric == Metric.QUIC_HANDSHAKE
        began = streams.began.reading if whole else streams.phase_began
        sample = Sample(
            seq=self._shot.seq,
            metric=metric,
            sent_unix_ns=began.unix_ns,
            failure=failure,
            mode=mode if metric in _OWN else None,
            lateness_ns=self._lateness(),
            flags=self._marks if metric in _OWN else (),
            responder=None if whole else streams.responder,
            flow=streams.flow,
            stamps=None if whole else stamps_of(self._shot, began.unix_ns, began),
            notes=(dict(streams.facts) or None) if shakes else None,
        )
        self._environment.emit(self._shot.series, sample)

    def _stamps(self, phase: Phase) -> Stamps | None:
        if phase.ended is None:
            return None
        began, ended = phase.began, phase.ended
        return stamps_of(
            self._shot,
            began.unix_ns,
            began.reading,
            ended.reading,
            began.kernel_unix_ns,
            ended.kernel_unix_ns,
        )

    def _lateness(self) -> int:
        return lateness_of(self._shot, self.streams.began.reading)
