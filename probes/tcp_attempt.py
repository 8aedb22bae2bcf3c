"""One shot of the tcp probe: connect, and where asked for have some bytes echoed."""

from collections.abc import Callable
from dataclasses import dataclass

from pathbudget.probes.clock import ClockWatcher, Reading, measure_interval
from pathbudget.probes.connection import Attempt
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.half_open import HalfOpen
from pathbudget.probes.record import Failure, FailureKind, Metric, Sample, Stage
from pathbudget.probes.tcp_refusals import Refusals
from pathbudget.probes.tcp_settings import TcpSettings
from pathbudget.probes.tcp_stamps import stamps_of


@dataclass(frozen=True, slots=True)
class Shared:
    """What all attempts of one probe share."""

    environment: ProbeEnvironment
    watcher: ClockWatcher
    settings: TcpSettings
    half_open: HalfOpen
    refusals: Refusals
    ended: Callable[[Attempt], None]


class ConnectAttempt(Attempt):
    """See `connection.Attempt`."""

    def __init__(self, shared: Shared, shot: Shot, port: int, source_port: int) -> None:
        super().__init__(shared.environment, shared.watcher, shot, port, shared.ended)
        self.packet = shared.settings.packet
        self.source_port = source_port
        self._shared = shared
        self._counted = False
        self._payload = b""
        self._echoed = bytearray()
        self._kernel_sent_unix_ns: int | None = None

    def may_connect(self) -> Failure | None:
        """See `Attempt.may_connect`."""
        refusal = self._shared.half_open.enter((self._shot.address, self._port))
        self._counted = refusal is None
        if refusal is not None:
            self._environment.count(self._shot.series, "half_open_limit")
        return refusal

    def connect_over(self) -> None:
        """See `Attempt.connect_over`."""
        if self._counted:
            self._counted = False
            self._shared.half_open.leave((self._shot.address, self._port))

    def refusal_stamp(self, flow: int | None) -> int | None:
        """See `Attempt.refusal_stamp`."""
        shot = self._shot
        return self._shared.refusals.stamp(shot.family, shot.address, self._port, flow)

    def after_resolve_failure(self, failure: Failure) -> None:
        """See `Attempt.after_resolve_failure`."""
        del failure  # has its own sample
        # The address is known from the plan, so the connect time can be had all the same.
        self._connect()

    def after_connect(self, sample: Sample) -> None:
        """See `Attempt.after_connect`."""
        del sample
        size = self._shared.settings.echo_bytes
        if not size or self._channel is None:
            self._end()
            return
        self._payload = self._environment.rng.randbytes(size)
        self._begin_phase(Stage.WAIT)
        self._channel.send(self._payload)

    def after_failure(self, failure: Failure) -> None:
        """See `Attempt.after_failure`."""
        # The deadline struck while the resolver was busy: no connect was tried, and that is told.
        if self._stage is Stage.RESOLVE:
            self._emit_failure(Metric.CONNECT, failure)

    def metric_of_phase(self) -> str:
        """See `Attempt.metric_of_phase`."""
        return Metric.ECHO if self._stage is Stage.WAIT else super().metric_of_phase()

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        """See `channels.TcpListener.sent`. A second report is a retransmission."""
        if last_byte == len(self._payload) - 1 and self._kernel_sent_unix_ns is None:
            self._kernel_sent_unix_ns = kernel_unix_ns

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """See `channels.TcpListener.received`."""
        if not data or self._stage is not Stage.WAIT:
            super().received(data, kernel_unix_ns)
            return
        self._echoed += data
        if not self._payload.startswith(self._echoed):
            self._fail(Failure(FailureKind.CORRUPT, Stage.WAIT, "not the bytes that were sent"))
        elif len(self._echoed) == len(self._payload):
            self._emit_echo(self._watcher.read(), kernel_unix_ns)
            self._end()

    def _emit_echo(self, now: Reading, kernel_unix_ns: int | None) -> None:
        """From the last byte sent to the last byte back, both by the kernel where it says."""
        began, kernel_sent = self._phase_began, self._kernel_sent_unix_ns
        span = measure_interval(began, now, kernel_sent, kernel_unix_ns)
        sent_unix_ns = kernel_sent or began.unix_ns
        stamps = stamps_of(self._shot, sent_unix_ns, began, now, kernel_sent, kernel_unix_ns)
        self._emit(
            Metric.ECHO,
            began,
            span,
            sent_unix_ns=sent_unix_ns,
            flow=self._flow,
            stamps=stamps,
        )
