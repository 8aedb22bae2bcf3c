"""TLS 1.3 handshake, full and resumed: ClientHello sent to the last byte of the server's flight.

Both ends of the interval are kernel stamps of our own TCP socket, so neither our cryptography nor
a busy loop enters it; the processor time that we spent is a sample of its own. One shot emits
samples of one sequence number: resolve (where asked for), connect, tls_handshake, client_compute,
and setup, their sum as a request would wait for it: resolve + connect + tls_handshake.

In mode ``resumed`` a shot offers a ticket of an earlier connection to the same target and address,
once, and the server's word that it was taken is proof; without it the sample is a failure. While no
ticket is at hand a shot makes a full handshake, says so in its mode, and fetches one.
"""

from pathbudget.probes.channels import QueuedError
from pathbudget.probes.clock import ClockWatcher, Reading, StampedInterval, measure_interval
from pathbudget.probes.connection import Attempt, Attempts
from pathbudget.probes.contract import (
    Cost,
    Options,
    OptionSpec,
    Probe,
    ProbeEnvironment,
    ProbeSpec,
    Shot,
)
from pathbudget.probes.failures import not_resumed
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Failure,
    Flag,
    Metric,
    Sample,
)
from pathbudget.probes.tls.client import TlsClient, client_context
from pathbudget.probes.tls.tickets import Tickets, server_of

TICKET_WAIT_NS = 300_000_000
"""How long a ticket is waited for after the handshake, at least; 4 handshakes where longer."""
HTTPS_PORT = 443
_WORST_LAST = tuple(ClockSource)

OPTIONS = {
    "mode": OptionSpec(
        str, "cold", "full handshakes, or resumed by ticket", choices=("cold", "resumed")
    ),
    "verify": OptionSpec(bool, True, "check the server's certificate"),
    "ca_file": OptionSpec(str, "", "PEM file of authorities to trust instead of the system's"),
    "alpn": OptionSpec(str, "", "application protocols to offer, as in h2,http/1.1"),
}


class _Shared:
    """What all attempts of one probe share."""

    def __init__(self, environment: ProbeEnvironment, options: Options) -> None:
        self.environment = environment
        self.watcher = ClockWatcher(environment.clock)
        self.resume = options.get("mode", "cold") == "resumed"
        self.verify = bool(options.get("verify", True))
        self.context = client_context(
            verify=self.verify,
            ca_file=str(options.get("ca_file") or ""),
            alpn=str(options.get("alpn") or ""),
        )
        self.tickets = Tickets()
        self.attempts = Attempts()


class _HandshakeAttempt(Attempt):
    def __init__(self, shared: _Shared, shot: Shot, port: int) -> None:
        super().__init__(shared.environment, shared.watcher, shot, port, shared.attempts.remove)
        self._shared = shared
        self._server = server_of(shot, port)
        self._ticket = (
            shared.tickets.take(self._server, self._phase_began.unix_ns) if shared.resume else None
        )
        self._mode = ConnectionMode.COLD if self._ticket is None else ConnectionMode.RESUMED
        self._began = self._phase_began
        self._phases: list[Sample] = []
        self._tls: TlsClient | None = None
        self._hello_sent: Reading = self._phase_began
        self._hello_bytes = 0
        self._kernel_sent_unix_ns: int | None = None
        self._measured = False

    def resolve_sample(self, sample: Sample) -> None:
        self._phases.append(sample)

    def after_resolve_failure(self, failure: Failure) -> None:
        self.after_failure(failure)
        self._end()

    def after_connect(self, sample: Sample) -> None:
        self._phases.append(sample)
        self._tls = TlsClient(self._shared.context, self._server.server_name, self._ticket)
        self._ticket = None
        hello = self._tls.start()
        if self._tls.failure is not None:
            self._fail(self._tls.failure)
            return
        self._hello_bytes = len(hello)
        self._hello_sent = self._watcher.read()
        self._send(hello)

    def after_failure(self, failure: Failure) -> None:
        if self._ticket is not None:
            self._shared.tickets.keep(self._server, self._ticket)
        self._emit_failure(Metric.SETUP, failure, mode=self._mode, sent_unix_ns=self._began.unix_ns)

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        """See `channels.TcpListener.sent`."""
        if last_byte == self._hello_bytes - 1 and self._kernel_sent_unix_ns is None:
            self._kernel_sent_unix_ns = kernel_unix_ns

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """See `channels.TcpListener.received`."""
        tls = self._tls
        if not data and self._measured:
            self._say_goodbye()
        elif not data or tls is None:
            super().received(data, kernel_unix_ns)
        elif self._measured:
            self._after_handshake(tls, data)
        else:
            now = self._watcher.read()
            self._send(tls.receive(data))
            if tls.failure is not None:
                self._fail(tls.failure)
            elif tls.complete:
                self._complete(tls, now, kernel_unix_ns)

    def failed(self, error: OSError, icmp: QueuedError | None) -> None:
        """See `channels.TcpListener.failed`."""
        if self._measured:
            self._end()
        else:
            super().failed(error, icmp)

    def _send(self, data: bytes) -> None:
        if data and self._channel is not None:
            self._channel.send(data)

    def _complete(self, tls: TlsClient, now: Reading, kernel_unix_ns: int | None) -> None:
        """The server's flight is in: everything is known."""
        self._measured = True
        if tls.hello_retry_request:
            self._environment.count(self._shot.series, "hello_retry_request")
        span = measure_interval(self._hello_sent, now, self._kernel_sent_unix_ns, kernel_unix_ns)
        if self._mode is ConnectionMode.RESUMED and not tls.resumed:
            failure = not_resumed()
            self._emit_failure(Metric.TLS_HANDSHAKE, failure, mode=self._mode)
            self.after_failure(failure)
        else:
            self._emit_all(tls, span)
        self._fetch_ticket(tls, span)

    def _emit_all(self, tls: TlsClient, span: StampedInterval) -> None:
        marks = () if self._shared.verify else (Flag.UNVERIFIED,)
        sent = self._kernel_sent_unix_ns or self._hello_sent.unix_ns
        self._phases.append(
            self._emit(
                Metric.TLS_HANDSHAKE,
                self._hello_sent,
                span,
                marks=marks,
                mode=self._mode,
                sent_unix_ns=sent,
            )
        )
        computed = StampedInterval(tls.compute_ns, ClockSource.USER)
        self._emit(Metric.CLIENT_COMPUTE, self._hello_sent, computed, mode=self._mode)
        flags = dict.fromkeys(flag for phase in self._phases for flag in phase.flags)
        total = StampedInterval(
            sum(phase.value_ns or 0 for phase in self._phases),
            max((phase.clock_source for phase in self._phases), key=_WORST_LAST.index),
        )
        self._emit(Metric.SETUP, self._began, total, marks=flags, mode=self._mode)

    def _fetch_ticket(self, tls: TlsClient, handshake: StampedInterval) -> None:
        """Stay for the ticket, where one is of use; never part of any number."""
        self._alarm.cancel()
        if not self._shared.resume:
            self._say_goodbye()
            return
        self._after_handshake(tls, b"")  # some servers send it with their flight
        if self._over:
            return
        wait = max(TICKET_WAIT_NS, 4 * handshake.value_ns)
        due = self._watcher.read().monotonic_ns + min(wait, self._shot.timeout_ns)
        self._alarm = self._environment.network.call_at(due, self._say_goodbye)

    def _after_handshake(self, tls: TlsClient, data: bytes) -> None:
        ticket = tls.take_ticket(data)
        if ticket is not None:
            self._shared.tickets.keep(self._server, ticket)
            self._say_goodbye()

    def _say_goodbye(self) -> None:
        if self._over:
            return
        if self._tls is not None:
            self._send(self._tls.goodbye())
        self._end()


class TlsProbe:
    """See `contract.Probe`."""

    def __init__(self, environment: ProbeEnvironment, options: Options) -> None:
        self._shared = _Shared(environment, options)

    def fire(self, shot: Shot) -> None:
        """See `contract.Probe.fire`."""
        port = shot.target.port
        attempt = _HandshakeAttempt(self._shared, shot, HTTPS_PORT if port is None else port)
        self._shared.attempts.add(attempt)

    async def drain(self) -> None:
        """See `contract.Probe.drain`. Waits for tickets too: the next shot wants them."""
        await self._shared.attempts.drain()

    def close(self) -> None:
        """See `contract.Probe.close`."""
        self._shared.attempts.close()


def _open(environment: ProbeEnvironment, options: Options) -> Probe:
    return TlsProbe(environment, options)


def _cost(options: Options) -> Cost:
    """Connection (7 packets), ClientHello, a server's flight with a chain of up to 6 kB, ours."""
    del options
    return Cost(packets=24, bytes=10_000)


TLS = ProbeSpec(
    name="tls",
    summary="TLS 1.3 handshake, full or resumed by ticket, with connect and total",
    version=1,
    open=_open,
    cost=_cost,
    options=OPTIONS,
    needs_port=True,
    primary_metric=Metric.SETUP,
    default_port=HTTPS_PORT,
)
