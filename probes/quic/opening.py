"""The way to a QUIC connection up to its handshake, and whom it tells; one deadline for all of it.

What comes after the look-up of the name (`streams.py`) fills in the rest.
"""

from typing import Protocol

from pathbudget.probes.carriers import Moment, OpeningListener, Phase
from pathbudget.probes.channels import Resolution
from pathbudget.probes.clock import ClockWatcher, Reading, StampedInterval, step_between
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.quic.endings import from_deadline
from pathbudget.probes.quic.settings import QuicSettings
from pathbudget.probes.record import ClockSource, Failure, Metric, Stage


class QuicListener(OpeningListener, Protocol):
    """Whom a connection tells what happens. After `failed` or `ended` it hears no more.

    `failed` with an empty metric is a connection that stood and broke.
    """

    def stream_left(self, stream: int, first: Moment, last: Moment) -> None:
        """All that was written to a stream has left, with its end: first byte and last byte."""

    def stream_acknowledged(self, stream: int, moment: Moment) -> None:
        """The other end has acknowledged all of a stream that we ended."""

    def stream_data(self, stream: int, data: bytes, fin: bool, moment: Moment) -> None:
        """Bytes of a stream, in order; the moment is that of the datagram they came in."""

    def stream_refused(self, stream: int, code: int, moment: Moment) -> None:
        """The other end has reset a stream, or wants no more of it."""


class Opening:
    """One connection from the start to its end."""

    def __init__(
        self,
        environment: ProbeEnvironment,
        watcher: ClockWatcher,
        settings: QuicSettings,
        shot: Shot,
        listener: QuicListener,
    ) -> None:
        self._network = environment.network
        self._watcher = watcher
        self._shot = shot
        self._listener: QuicListener | None = listener
        self._port = settings.default_port if shot.target.port is None else shot.target.port
        self._stage = Stage.RESOLVE if shot.resolve else Stage.HANDSHAKE
        self._stood = False
        """Whether the listener has been told that it stands."""
        self._phases: list[Phase] = []
        self.began = Moment(watcher.read())
        self._phase_began = self.began.reading
        due = self._phase_began.monotonic_ns + shot.timeout_ns
        self._alarm = self._network.call_at(due, self._expire)

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
            shot = self._shot
            self._network.look_up(shot.target.host, shot.family, self._resolved)
        else:
            self.connect()

    # What comes after the look-up.

    def connect(self) -> None:
        """The address is known: shake hands."""
        raise NotImplementedError

    def after_failure(self) -> None:
        """The listener knows that it failed; give back what is held."""
        raise NotImplementedError

    def datagrams_received(self) -> int:
        """How many have come until now."""
        raise NotImplementedError

    # Steps

    def fail(self, failure: Failure) -> None:
        """Tell the listener, once. After the opening the metric is empty."""
        listener, self._listener = self._listener, None
        self._alarm.cancel()
        if listener is not None:
            resolving = self._stage is Stage.RESOLVE
            step = Metric.RESOLVE if resolving else Metric.QUIC_HANDSHAKE
            if self._stood:
                listener.failed("", failure, ())
            else:
                listener.failed(step, failure, tuple(self._phases))
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
        self.connect()

    def _expire(self) -> None:
        if self._listener is not None and not self._stood:
            came = self.datagrams_received()
            self.fail(from_deadline(self._stage, self._shot.timeout_ns, came))
