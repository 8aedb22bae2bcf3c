"""One shot of a connection probe: resolve, connect, and what a probe does next; one deadline.

Every shot emits one sample per phase up to the phase that failed, whatever happens and whenever the
deadline strikes.
"""

import asyncio
import errno
from collections.abc import Callable, Iterable

from pathbudget.probes.channels import (
    PLAIN,
    PacketOptions,
    QueuedError,
    Resolution,
    RoundTrip,
    TcpChannel,
)
from pathbudget.probes.clock import (
    ClockWatcher,
    Reading,
    StampedInterval,
    measure_interval,
    step_between,
)
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.failures import closed, from_icmp, from_os_error, refused, timed_out
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Flag,
    Metric,
    Sample,
    Stage,
    Stamps,
)
from pathbudget.probes.tcp_stamps import lateness_of, stamps_of


class Attempt:
    """One shot, from the call of `begin` to the call of `ended`. A `TcpListener`.

    A probe fills in what it does next; `packet` and `source_port` say how connections leave.
    """

    packet: PacketOptions = PLAIN
    source_port = 0

    def __init__(
        self,
        environment: ProbeEnvironment,
        watcher: ClockWatcher,
        shot: Shot,
        port: int,
        ended: "Callable[[Attempt], None]",
    ) -> None:
        self._environment = environment
        self._watcher = watcher
        self._shot = shot
        self._port = port
        self._ended = ended
        self._channel: TcpChannel | None = None
        self._stage = Stage.RESOLVE
        self._mode: ConnectionMode | None = None
        self._over = False
        self._flow: int | None = None
        self._phase_began = watcher.read()
        self._lateness_ns = lateness_of(shot, self._phase_began)
        due = self._phase_began.monotonic_ns + shot.timeout_ns
        self._alarm = environment.network.call_at(due, self._expire)

    def begin(self) -> None:
        """Start with the first phase."""
        if self._shot.resolve:
            self._environment.network.look_up(
                self._shot.target.host, self._shot.family, self._resolved
            )
        else:
            self._connect()

    def abandon(self) -> None:
        """Drop everything, without a sample."""
        self._over = True
        self._alarm.cancel()
        self.connect_over()
        if self._channel is not None:
            self._channel.close()

    # What a probe fills in.

    def after_resolve_failure(self, failure: Failure) -> None:
        """The name did not resolve; the address of the shot is known all the same."""
        raise NotImplementedError

    def after_connect(self, sample: Sample) -> None:
        """The connection stands."""
        raise NotImplementedError

    def after_failure(self, failure: Failure) -> None:
        """The phase that failed has its sample; emit what follows from it."""
        raise NotImplementedError

    def may_connect(self) -> Failure | None:
        """Whether a SYN may leave now; None where it may."""
        return None

    def connect_over(self) -> None:
        """Called as soon as the SYN has been answered or given up, at least once."""

    def refusal_stamp(self, flow: int | None) -> int | None:
        """When the RST to our port `flow` came, by the kernel; None where it does not say."""
        del flow
        return None

    # TcpListener

    def connected(self) -> None:
        """See `channels.TcpListener.connected`."""
        now = self._watcher.read()
        assert self._channel is not None
        self.connect_over()
        span, marks = connect_span(self._channel.round_trip(), self._phase_began, now)
        sample = self._emit_connect(span, marks, now)
        self._stage, self._phase_began = Stage.HANDSHAKE, now
        self.after_connect(sample)

    def _refused(self) -> None:
        """A RST answered the SYN: a round trip, but no connection (RFC 9293 section 3.10.7.3)."""
        now = self._watcher.read()
        assert self._channel is not None
        trip = self._channel.round_trip()
        again = trip is not None and trip.retransmits > 0
        kernel = None if again else self.refusal_stamp(self._flow)
        span = measure_interval(self._phase_began, now, None, kernel)
        marks = [Flag.REFUSED, Flag.SYN_RETRANSMITTED] if again else [Flag.REFUSED]
        self._emit_connect(span, marks, now, kernel)
        self.after_failure(refused())
        self._end()

    def _emit_connect(
        self,
        span: StampedInterval,
        marks: Iterable[str],
        now: Reading,
        kernel_received_unix_ns: int | None = None,
    ) -> Sample:
        began = self._phase_began
        stamps = stamps_of(self._shot, began.unix_ns, began, now, None, kernel_received_unix_ns)
        return self._emit(Metric.CONNECT, began, span, marks=marks, flow=self._flow, stamps=stamps)

    def failed(self, error: OSError, icmp: QueuedError | None) -> None:
        """See `channels.TcpListener.failed`."""
        if icmp is not None:
            failure = from_icmp(self._shot.family, icmp.icmp_type, icmp.icmp_code, self._stage)
            if failure is not None:
                responder = icmp.responder or None
                self._fail(failure, None if responder == self._shot.address else responder)
                return
        elif error.errno == errno.ECONNREFUSED and self._stage is Stage.CONNECT and not self._over:
            self.connect_over()
            self._refused()
            return
        self._fail(from_os_error(error, self._stage))

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        """See `channels.TcpListener.sent`."""

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """See `channels.TcpListener.received`."""
        del kernel_unix_ns  # of use to a handshake only
        if not data:
            self._fail(closed(self._stage))

    # Steps

    def _resolved(self, found: Resolution | Failure) -> None:
        if self._over:
            return
        if isinstance(found, Failure):
            self._emit_failure(Metric.RESOLVE, found)
            self.after_resolve_failure(found)
            return
        stepped = step_between(self._phase_began, self._watcher.read()) != 0
        span = StampedInterval(found.duration_ns, ClockSource.USER, stepped)
        self.resolve_sample(self._emit(Metric.RESOLVE, self._phase_began, span))
        self._connect()

    def resolve_sample(self, sample: Sample) -> None:
        """The name resolved."""

    def _connect(self) -> None:
        self._begin_phase(Stage.CONNECT)
        refusal = self.may_connect()
        if refusal is not None:
            self._fail(refusal)
            return
        shot, began = self._shot, self._phase_began
        channel = self._environment.network.connect(
            shot.address, self._port, shot.family, self, self.packet, source_port=self.source_port
        )
        if isinstance(channel, Failure):
            self._fail(channel)
            return
        self._channel = channel
        self._flow = channel.local_port
        # What making the socket took is no part of the interval.
        self._phase_began = began.later(channel.sent_ns)
        if not self._shot.resolve:
            self._lateness_ns = lateness_of(shot, self._phase_began)

    def _begin_phase(self, stage: Stage) -> None:
        self._stage = stage
        self._phase_began = self._watcher.read()

    def _expire(self) -> None:
        if not self._over:
            self._fail(timed_out(self._stage, self._shot.timeout_ns))

    def _fail(self, failure: Failure, responder: str | None = None) -> None:
        if self._over:
            return
        metric = self.metric_of_phase()
        mode = self._mode if metric == Metric.TLS_HANDSHAKE else None
        self._emit_failure(metric, failure, responder, mode=mode)
        self.after_failure(failure)
        self._end()

    def metric_of_phase(self) -> str:
        """What would have been measured now."""
        return {Stage.RESOLVE: Metric.RESOLVE, Stage.CONNECT: Metric.CONNECT}.get(
            self._stage, Metric.TLS_HANDSHAKE
        )

    def _end(self) -> None:
        """All samples are out: close in good order, unless it is broken."""
        if self._over:
            return
        self._over = True
        self._alarm.cancel()
        self.connect_over()
        if self._channel is not None and self.source_port:
            self._channel.close()  # with a reset: the port is needed again
        elif self._channel is not None:
            self._channel.finish()
        self._ended(self)

    # Samples

    def _emit(
        self,
        metric: str,
        began: Reading,
        span: StampedInterval,
        *,
        marks: Iterable[str] = (),
        mode: ConnectionMode | None = None,
        sent_unix_ns: int | None = None,
        flow: int | None = None,
        stamps: Stamps | None = None,
    ) -> Sample:
        flags = (*marks, Flag.CLOCK_STEP) if span.stepped else tuple(marks)
        sample = Sample(
            seq=self._shot.seq,
            metric=metric,
            sent_unix_ns=began.unix_ns if sent_unix_ns is None else sent_unix_ns,
            value_ns=span.value_ns,
            clock_source=span.source,
            mode=mode,
            lateness_ns=self._lateness_ns,
            flags=flags,
            flow=flow,
            stamps=stamps,
        )
        self._environment.emit(self._shot.series, sample)
        return sample

    def _emit_failure(
        self,
        metric: str,
        failure: Failure,
        responder: str | None = None,
        *,
        mode: ConnectionMode | None = None,
        sent_unix_ns: int | None = None,
    ) -> None:
        began = self._phase_began
        sample = Sample(
            seq=self._shot.seq,
            metric=metric,
            sent_unix_ns=began.unix_ns if sent_unix_ns is None else sent_unix_ns,
            failure=failure,
            mode=mode,
            lateness_ns=self._lateness_ns,
            responder=responder,
            flow=self._flow,
            stamps=stamps_of(self._shot, began.unix_ns, began) if sent_unix_ns is None else None,
        )
        self._environment.emit(self._shot.series, sample)


def connect_span(
    trip: RoundTrip | None, began: Reading, now: Reading, *, refused: bool = False
) -> tuple[StampedInterval, tuple[str, ...]]:
    """How long the SYN took to be answered, and its marks.

    The kernel's own estimate (from its monotonic clock) is taken where there is one: of an answer
    that refused, or that came to a SYN sent again, it has none.
    """
    again = trip is not None and trip.retransmits > 0
    if refused or again or trip is None or not trip.rtt_ns:
        stepped = step_between(began, now) != 0
        span = StampedInterval(now.monotonic_ns - began.monotonic_ns, ClockSource.USER, stepped)
        return span, (Flag.SYN_RETRANSMITTED,) if again else ()
    return StampedInterval(trip.rtt_ns, ClockSource.TCP_INFO), ()


class Attempts:
    """The attempts under way of one probe."""

    def __init__(self) -> None:
        self._running: set[Attempt] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    def add(self, attempt: Attempt) -> None:
        """Begin it, and keep it until it ends."""
        self._running.add(attempt)
        self._idle.clear()
        attempt.begin()

    def remove(self, attempt: Attempt) -> None:
        """It has ended."""
        self._running.discard(attempt)
        if not self._running:
            self._idle.set()

    async def drain(self) -> None:
        """Return when nothing is under way."""
        await self._idle.wait()

    def close(self) -> None:
        """Abandon what is under way."""
        for attempt in tuple(self._running):
            attempt.abandon()
            self.remove(attempt)


def no_port(failure_stage: Stage) -> Failure:
    """The target names no port, and the probe has no default one."""
    return Failure(FailureKind.LOCAL, failure_stage, detail="the target has no port")
