"""TLS 1.3 handshake, full, resumed and with early data: ClientHello sent to the server's flight.

Both ends of the interval are kernel stamps of our own TCP socket, so neither our cryptography nor
a busy loop enters it; the processor time that we spent is a sample of its own. One shot emits
samples of one sequence number: resolve (where asked for), connect, tls_handshake, client_compute,
and setup, their sum as a request would wait for it: resolve + connect + tls_handshake, and with
early data resolve + connect alone.

In mode ``resumed`` a shot offers a ticket of an earlier connection to the same target and address,
once, and the server's word that it was taken is proof; without it the sample is a failure. While no
ticket is at hand a shot makes a full handshake, says so in its mode, and fetches one. In mode
``early_data`` a small request leaves with the ClientHello, and must have been accepted.
"""

from collections.abc import Mapping

from pathbudget.probes.carriers import Moment, Opened, Phase
from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
    Shot,
)
from pathbudget.probes.errors import Fault
from pathbudget.probes.record import (
    ConnectionMode,
    Failure,
    Flag,
    Metric,
    Note,
    Sample,
    Stamps,
    Transport,
)
from pathbudget.probes.tcp_stamps import lateness_of, stamps_of
from pathbudget.probes.tls.checking import tls_faults
from pathbudget.probes.tls.settings import HTTPS_PORT, TLS_OPTIONS, tls_settings
from pathbudget.probes.tls.stream import TlsStream, TlsStreamDialer

EARLY_REQUEST = "HEAD / HTTP/1.1"
_MODES = (ConnectionMode.COLD, ConnectionMode.RESUMED, ConnectionMode.EARLY_DATA)

OPTIONS = {
    "mode": OptionSpec(
        str,
        "cold",
        "full handshakes, resumed by ticket, or with a request as early data",
        choices=_MODES,
    ),
    "alpn": OptionSpec(str, "", "application protocols to offer, as in h2,http/1.1"),
    "early_request": OptionSpec(
        str, EARLY_REQUEST, "request line that leaves as early data; Host comes by itself"
    ),
    **TLS_OPTIONS,
}


class TlsProbe:
    """See `contract.Probe`."""

    def __init__(self, environment: ProbeEnvironment, options: Options) -> None:
        words = str(options.get("alpn") or "").split(",")
        self._environment = environment
        self._settings = tls_settings(
            options,
            mode=ConnectionMode(str(options.get("mode", "cold"))),
            alpn=tuple(word.strip() for word in words if word.strip()),
        )
        self._early_request = str(options.get("early_request") or EARLY_REQUEST)
        self._dialer = TlsStreamDialer(environment, self._settings)

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        early = b""
        if self._settings.mode is ConnectionMode.EARLY_DATA:
            early = early_request(self._early_request, shot)
        told = _Teller(self._environment, shot, verified=self._settings.verify)
        told.stream = self._dialer.prepare(shot, told, early=early)
        told.stream.begin()

    async def drain(self) -> None:
        """See `contract.Probe.drain`. Waits for tickets too: the next shot wants them."""
        await self._dialer.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        self._dialer.close()


def early_request(line: str, shot: Shot) -> bytes:
    """The request that leaves as early data (RFC 9112). The server is not asked to close: it would
    say goodbye before it sends its tickets.
    """
    host = shot.target.server_name or shot.target.host
    return f"{line}\r\nHost: {host}\r\n\r\n".encode("utf-8", "replace")


class _Teller:
    """Turns what becomes of one connection into samples. A `carriers.StreamListener`."""

    stream: TlsStream

    def __init__(self, environment: ProbeEnvironment, shot: Shot, *, verified: bool) -> None:
        self._environment = environment
        self._shot = shot
        self._marks = () if verified else (Flag.UNVERIFIED,)

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        for phase in opened.phases:
            self._emit(phase, opened.mode, opened.notes)
        for phase in opened.beside:
            self._emit(phase, opened.mode, opened.notes)
        flags = dict.fromkeys(flag for phase in opened.phases for flag in phase.flags)
        total = Phase(Metric.SETUP, opened.began, opened.setup, tuple(flags))
        self._emit(total, opened.mode, opened.notes)
        self.stream.close()

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        mode = self.stream.mode
        for phase in done:
            self._emit(phase, mode, {})
        if metric != Metric.SETUP:
            self._emit_failure(metric, failure, mode)
        self._emit_failure(Metric.SETUP, failure, mode)

    def sent(self, last_byte: int, moment: Moment) -> None:
        """See `carriers.StreamListener.sent`."""

    def acknowledged(self, last_byte: int, moment: Moment) -> None:
        """See `carriers.StreamListener.acknowledged`."""

    def received(self, data: bytes, moment: Moment) -> None:
        """See `carriers.StreamListener.received`."""

    def ended(self) -> None:
        """See `carriers.StreamListener.ended`."""

    def _emit(self, phase: Phase, mode: ConnectionMode, notes: Mapping[str, Note]) -> None:
        shakes = phase.metric == Metric.TLS_HANDSHAKE
        own = shakes or phase.metric in (Metric.CLIENT_COMPUTE, Metric.SETUP)
        marks = tuple(dict.fromkeys((*self._marks, *phase.flags)))
        if phase.span.stepped:
            marks = (*marks, Flag.CLOCK_STEP)
        began = phase.began
        sample = Sample(
            seq=self._shot.seq,
            metric=phase.metric,
            sent_unix_ns=began.unix_ns,
            value_ns=phase.span.value_ns,
            clock_source=phase.span.source,
            mode=mode if own else None,
            lateness_ns=self._lateness(),
            flags=marks,
            flow=self.stream.flow if phase.metric == Metric.CONNECT else None,
            stamps=self._stamps(phase),
            notes=dict(notes) if shakes and notes else None,
        )
        self._environment.emit(self._shot.series, sample)

    def _emit_failure(self, metric: str, failure: Failure, mode: ConnectionMode) -> None:
        stream = self.stream
        whole = metric == Metric.SETUP
        began = stream.began.reading if whole else stream.phase_began
        facts = None if metric != Metric.TLS_HANDSHAKE else dict(stream.facts) or None
        sample = Sample(
            seq=self._shot.seq,
            metric=metric,
            sent_unix_ns=began.unix_ns,
            failure=failure,
            mode=mode if whole or metric == Metric.TLS_HANDSHAKE else None,
            lateness_ns=self._lateness(),
            flags=self._marks,
            responder=None if whole else stream.responder,
            flow=stream.flow,
            stamps=None if whole else stamps_of(self._shot, began.unix_ns, began),
            notes=facts,
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
        return lateness_of(self._shot, self.stream.began.reading)


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return TlsProbe(environment, options)


def _check(options: Options) -> list[Fault]:
    return tls_faults(options, ConnectionMode(str(options.get("mode") or "cold")))


def _cost(options: Options) -> Cost:
    """Connection (7 packets), ClientHello, a server's flight with a chain of up to 6 kB, ours."""
    del options
    return Cost(packets=24, bytes=10_000)


def _transport(options: Options) -> Transport:
    del options
    return Transport.TLS


TLS = ProbeSpec(
    name="tls",
    summary="TLS 1.3 handshake, full, resumed or with early data, with connect and total",
    version=2,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    needs_port=True,
    primary_metric=Metric.SETUP,
    default_port=HTTPS_PORT,
    transport=_transport,
    check=_check,
)
