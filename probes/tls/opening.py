"""The way to a TCP connection, as phases: resolve, connect; one deadline for all of the opening.

What comes after the connection (`stream.py`) fills in the rest.
"""

import errno

from pathbudget.probes.carriers import Moment, Phase, StreamListener
from pathbudget.probes.channels import QueuedError, Resolution, TcpChannel
from pathbudget.probes.clock import ClockWatcher, Reading, StampedInterval, step_between
from pathbudget.probes.connection import connect_span
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.failures import from_icmp, from_os_error, refused, timed_out
from pathbudget.probes.record import ClockSource, Failure, Flag, Metric, Stage
from pathbudget.probes.tls.settings import TlsSettings

_METRIC = {
    Stage.RESOLVE: Metric.RESOLVE,
    Stage.CONNECT: Metric.CONNECT,
    Stage.HANDSHAKE: Metric.TLS_HANDSHAKE,
}


class Opening:
    """One connection from the start to its end. A `channels.TcpListener`.

    `flow` is the local port, `responder` who said that it cannot be (a router).
    """

    def __init__(
        self,
        environment: ProbeEnvironment,
        watcher: ClockWatcher,
        settings: TlsSettings,
        shot: Shot,
        listener: StreamListener,
    ) -> None:
        self._environment = environment
        self._watcher = watcher
        self._settings = settings
        self._shot = shot
        self._listener: StreamListener | None = listener
        self._port = settings.default_port if shot.target.port is None else shot.target.port
        self._channel: TcpChannel | None = None
        self._stage = Stage.RESOLVE if shot.resolve else Stage.CONNECT
        self._stood = False
        """Whether the listener has been told that it stands."""
        self._phases: list[Phase] = []
        self.flow: int | None = None
        self.responder: str | None = None
        self.began = Moment(watcher.read())
        self._phase_began: Reading = self.began.reading
        due = self._phase_began.monotonic_ns + shot.timeout_ns
        self._alarm = environment.network.call_at(due, self._expire)

    @property
    def stage(self) -> Stage:
        """What is under way."""
        return self._stage

    @property
    def phase_began(self) -> Reading:
        """Since when."""
        return self._phase_began

    def begin(self) -> None:
        """Start with the first phase."""
        if self._shot.resolve:
            target = self._shot.target
            self._environment.network.look_up(target.host, self._shot.family, self._resolved)
        else:
            self._connect()

    # What comes after the connection.

    def after_connect(self, now: Reading) -> None:
        """The connection stands."""
        raise NotImplementedError

    def after_failure(self) -> None:
        """The listener knows that it failed; give back what is held."""
        raise NotImplementedError

    # TcpListener

    def connected(self) -> None:
        """See `channels.TcpListener.connected`."""
        now = self._watcher.read()
        self._add_connect(now, ())
        self._stage, self._phase_began = Stage.HANDSHAKE, now
        self.after_connect(now)

    def failed(self, error: OSError, icmp: QueuedError | None) -> None:
        """See `channels.TcpListener.failed`."""
        if icmp is not None:
            failure = from_icmp(self._shot.family, icmp.icmp_type, icmp.icmp_code, self._stage)
            if failure is not None:
                if icmp.responder and icmp.responder != self._shot.address:
                    self.responder = icmp.responder
                self.fail(failure)
                return
        elif error.errno == errno.ECONNREFUSED and self._stage is Stage.CONNECT:
            # A RST answered the SYN: a round trip, but no connection.
            self._add_connect(self._watcher.read(), (Flag.REFUSED,))
            self.fail(refused(), Metric.SETUP)
            return
        self.fail(from_os_error(error, self._stage))

    # Steps

    def fail(self, failure: Failure, metric: str | None = None) -> None:
        """Tell the listener, once. After the opening `metric` is empty."""
        listener, self._listener = self._listener, None
        self._alarm.cancel()
        if listener is not None:
            step = "" if self._stood else metric or _METRIC.get(self._stage, Metric.TLS_HANDSHAKE)
            done = () if self._stood else tuple(self._phases)
            listener.failed(step, failure, done)
        self.after_failure()

    def _resolved(self, found: Resolution | Failure) -> None:
        if self._listener is None or self._stage is not Stage.RESOLVE:
            return
        if isinstance(found, Failure):
            self.fail(found)
            return
        stepped = step_between(self._phase_began, self._watcher.read()) != 0
        span = StampedInterval(found.duration_ns, ClockSource.USER, stepped)
        self._phases.append(Phase(Metric.RESOLVE, self.began, span))
        self._connect()

    def _connect(self) -> None:
        shot, settings = self._shot, self._settings
        self._stage = Stage.CONNECT
        if shot.resolve:
            self._phase_began = self._watcher.read()
        channel = self._environment.network.connect(
            shot.address, self._port, shot.family, self, settings.packet, options=settings.tcp
        )
        if isinstance(channel, Failure):
            self.fail(channel)
            return
        self._channel = channel
        self.flow = channel.local_port
        # What making the socket took is no part of the interval.
        self._phase_began = self._phase_began.later(channel.sent_ns)
        if not shot.resolve:
            self.began = Moment(self._phase_began)

    def _add_connect(self, now: Reading, marks: tuple[str, ...]) -> None:
        assert self._channel is not None
        span, again = connect_span(
            self._channel.round_trip(), self._phase_began, now, refused=bool(marks)
        )
        phase = Phase(Metric.CONNECT, Moment(self._phase_began), span, marks + again, Moment(now))
        self._phases.append(phase)

    def _expire(self) -> None:
        if self._listener is not None and not self._stood:
            self.fail(timed_out(self._stage, self._shot.timeout_ns))

    def sent(self, last_byte: int, kernel_unix_ns: int) -> None:
        """See `channels.TcpListener.sent`."""
        raise NotImplementedError

    def received(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """See `channels.TcpListener.received`."""
        raise NotImplementedError
