"""One QUIC connection: resolve, handshake, then streams in both directions.

    dialer = QuicDialer(environment, QuicSettings(ca_file=..., alpn=("doq",)))   # dialer.py
    streams = dialer.dial(shot, listener, early=lambda streams: streams.open_stream(data, fin=True))

The handshake lasts from the kernel's send stamp of the first Initial to the receive stamp of the
datagram that completes the server's flight. What `early` writes leaves with the first flight where
a ticket allows it, else right after the handshake.
"""

from collections.abc import Callable, Mapping
from typing import Protocol

from aioquic.quic.connection import QuicConnection
from aioquic.quic.events import (
    HandshakeCompleted,
    QuicEvent,
    StopSendingReceived,
    StreamDataReceived,
    StreamReset,
)
from aioquic.quic.stream import QuicStreamSender

from pathbudget.probes.carriers import Moment, Opened, Phase, span_between, without
from pathbudget.probes.channels import QueuedError
from pathbudget.probes.clock import ClockWatcher, Reading, StampedInterval
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.errors import PrivilegeError
from pathbudget.probes.failures import no_family, tls_refused_locally
from pathbudget.probes.quic import inside
from pathbudget.probes.quic.driver import Driver
from pathbudget.probes.quic.endings import from_close, from_error_queue
from pathbudget.probes.quic.opening import Opening, QuicListener
from pathbudget.probes.quic.settings import QuicSettings
from pathbudget.probes.quic.stalls import Stalls
from pathbudget.probes.quic.verifying import BAD_CERTIFICATE, Authorities
from pathbudget.probes.quic.wishes import Wish
from pathbudget.probes.record import (
    ClockSource,
    ConnectionMode,
    Failure,
    FailureKind,
    Metric,
    Note,
    Stage,
    Transport,
)
from pathbudget.probes.tls.tickets import Ticket

TICKET_WAIT_NS = 300_000_000
"""How long a ticket is waited for after the handshake, at least; 4 handshakes where longer."""


class Owner(Protocol):
    """What a connection uses of its dialer."""

    environment: ProbeEnvironment
    watcher: ClockWatcher
    settings: QuicSettings
    authorities: Authorities | None

    def make_quic(self, streams: "QuicStreams", server_name: str, now: Reading) -> QuicConnection:
        """A new connection; offers the ticket of its wish."""
        ...

    def settle(self, streams: "QuicStreams") -> None:
        """It is neither being opened nor waiting for a ticket."""

    def unsettle(self, streams: "QuicStreams") -> None:
        """It waits for a ticket."""

    def forget(self, streams: "QuicStreams") -> None:
        """It is gone."""


Early = Callable[["QuicStreams"], None]


class QuicStreams(Opening):
    """See above. `facts` are the notes of its opening, as far as it came."""

    def __init__(
        self, owner: Owner, shot: Shot, listener: QuicListener, early: Early | None, wish: Wish
    ) -> None:
        super().__init__(owner.environment, owner.watcher, owner.settings, shot, listener)
        self._owner = owner
        self._driver: Driver | None = None
        self._early = early
        self.wish = wish
        self._ticket_taken = False
        self._handshake_ns = 0
        self._latest: Moment | None = None
        self._early_streams: list[int] = []
        self._unacknowledged: dict[int, QuicStreamSender] = {}
        self.stalls = Stalls()
        self.facts: dict[str, Note] = {}
        self.flow: int | None = None
        self.responder: str | None = None
        self.wish.take_ticket(self._phase_began.monotonic_ns, early=early is not None)

    # What others use.

    @property
    def mode(self) -> ConnectionMode:
        """What it is tried as."""
        return self.wish.mode

    @property
    def usable(self) -> bool:
        """Whether it stands, and more can be written."""
        return self._stood and self._listener is not None and self._driver is not None

    @property
    def quic(self) -> QuicConnection:
        """The connection of aioquic, for a protocol of aioquic's on top (call `flush` after it)."""
        assert self._driver is not None
        return self._driver.quic

    def open_stream(self, data: bytes = b"", *, fin: bool = False) -> int:
        """Open a stream in both directions and write to it; its number."""
        stream = self.quic.get_next_available_stream_id()
        self.write(stream, data, fin=fin)
        return stream

    def write(self, stream: int, data: bytes, *, fin: bool = False) -> None:
        """Write to a stream; `fin` ends it."""
        if self._driver is not None:
            self.quic.send_stream_data(stream, data, end_stream=fin)
            self.flush()

    def refuse(self, stream: int) -> None:
        """Nothing more of this stream is wanted."""
        if self._driver is not None:
            inside.stop_stream(self._driver.quic, stream)
            self.flush()

    def flush(self) -> None:
        """Send what was written."""
        if self._driver is not None:
            self._driver.flush()

    def notes(self) -> Mapping[str, Note]:
        """What is known of the connection as of now."""
        if self._driver is None:
            return {}
        found: dict[str, Note] = dict(self.stalls.notes())
        trip = inside.smoothed_round_trip_ns(self._driver.quic)
        if trip is not None:
            found["rtt_us"] = trip // 1_000
        return found

    def close(self) -> None:
        """End it in good order; stays a moment where a ticket is of use. No more is told."""
        listener, self._listener = self._listener, None
        if self._stood:
            self._linger()
        elif listener is not None:
            self.abandon()

    def abandon(self) -> None:
        """Drop it at once."""
        self._listener = None
        self.wish.give_back()
        self._leave(0)

    # Opening

    def connect(self) -> None:
        """See `Opening.connect`."""
        self._stage, self._phase_began = Stage.HANDSHAKE, self._watcher.read()
        shot, owner = self._shot, self._owner
        name = shot.target.server_name or shot.target.host
        try:
            quic = owner.make_quic(self, name, self._phase_began)
        except (ValueError, TypeError) as error:
            self.fail(tls_refused_locally(f"server name {name!r}: {error}"))
            return
        place = (shot.address, self._port)
        network = owner.environment.network
        driver = Driver(self, network, owner.watcher, quic, place)
        self.facts |= self.wish.facts
        try:
            channel = network.open_datagrams(shot.family, driver.read, packet=owner.settings.packet)
        except PrivilegeError as error:
            self.fail(Failure(FailureKind.LOCAL, Stage.HANDSHAKE, detail=str(error)))
            return
        if channel is None:
            self.fail(no_family(shot.family, Stage.HANDSHAKE))
            return
        self.flow = channel.port
        self._driver = driver
        driver.attach(channel)
        driver.connect()
        if self._early is not None and driver.attached:
            self._early(self)
            self._early_streams = inside.streams_of(driver.quic)
        driver.flush()
        if driver.first is not None:
            self._phase_began = driver.first.reading
            if not shot.resolve:
                self.began = Moment(driver.first.reading)

    # What the driver tells.

    def before_events(self, moment: Moment) -> None:
        """See `DriverUser.before_events`."""
        finished = [one for one, sender in self._unacknowledged.items() if sender.is_finished]
        for stream in finished:
            del self._unacknowledged[stream]
            if self._driver is not None:
                self._driver.outflows.forget(stream)
            if self._listener is not None:
                self._listener.stream_acknowledged(stream, moment)

    def take_event(self, event: QuicEvent, moment: Moment) -> None:
        """See `DriverUser.take_event`."""
        listener = self._listener
        if isinstance(event, HandshakeCompleted):
            self._complete(event, moment)
        elif listener is None:
            return
        elif isinstance(event, StreamDataReceived):
            self.tell_left(unstamped=True)
            listener.stream_data(event.stream_id, event.data, event.end_stream, moment)
        elif isinstance(event, StreamReset | StopSendingReceived):
            listener.stream_refused(event.stream_id, event.error_code, moment)

    def after_datagram(self, moment: Moment) -> None:
        """See `DriverUser.after_datagram`."""
        self._latest = moment
        if self._stood and self._listener is None and self._ticket_taken:
            self._leave(0)  # it has stayed for the ticket alone

    def after_sending(self, reading: Reading) -> None:
        """See `DriverUser.after_sending`."""
        if self._driver is not None and self._stood:
            blocked = inside.is_blocked(self._driver.quic)
            now = self._latest if self._latest is not None and not blocked else Moment(reading)
            self.stalls.look(blocked=blocked, now=now)

    def tell_left(self, *, unstamped: bool = False) -> None:
        """Tell the listener what has left."""
        driver = self._driver
        if driver is None:
            return
        for flow in driver.outflows.left(unstamped=unstamped):
            assert flow.first is not None
            assert flow.last is not None
            self._unacknowledged[flow.stream] = flow.sender
            if self._listener is not None:
                self._listener.stream_left(flow.stream, flow.first.moment, flow.last.moment)

    def closing(self, closing: inside.Closing) -> None:
        """See `DriverUser.closing`."""
        self.fail(from_close(closing, self._stage))

    def icmp(self, error: QueuedError, *, ours: bool) -> None:
        """See `DriverUser.icmp`; where the server has been heard it means nothing."""
        driver = self._driver
        if self._stood or not ours or driver is None or driver.flight.received:
            return
        failure = from_error_queue(self._shot, error, self._port)
        if failure is not None:
            if error.responder and error.responder != self._shot.address:
                self.responder = error.responder
            self.fail(failure)

    def refused(self, failure: Failure) -> None:
        """See `DriverUser.refused`: later on it is a packet that was lost, and no more."""
        if not self._stood:
            self.fail(Failure(failure.kind, Stage.HANDSHAKE, detail=failure.detail))

    def flooded(self, received_bytes: int) -> None:
        """See `DriverUser.flooded`."""
        detail = f"{received_bytes} bytes came, and no handshake of them"
        self.fail(Failure(FailureKind.PROTOCOL, Stage.HANDSHAKE, detail=detail))

    def stumbled(self, error: Exception) -> None:
        """See `DriverUser.stumbled`."""
        stage = Stage.WAIT if self._stood else Stage.HANDSHAKE
        detail = f"cannot be understood ({type(error).__name__})"
        self.fail(Failure(FailureKind.PROTOCOL, stage, detail=detail))

    # The end of the opening

    def _complete(self, event: HandshakeCompleted, moment: Moment) -> None:
        driver = self._driver
        assert driver is not None
        why_not = self._distrust(driver)
        driver.shaking = False
        if why_not:
            driver.quic.close(BAD_CERTIFICATE, frame_type=0, reason_phrase="")
            self.fail(Failure(FailureKind.CERTIFICATE, Stage.HANDSHAKE, detail=why_not))
            return
        self.facts |= self.wish.found(driver, event)
        failure = self.wish.verdict(event, left_early=self._left_early(driver))
        if self._listener is None:
            return
        if failure is not None:
            self.fail(failure)
            return
        self._stand(driver, event, moment)

    def _stand(self, driver: Driver, event: HandshakeCompleted, moment: Moment) -> None:
        assert driver.first is not None
        began = driver.first.moment
        own = driver.own
        span = without(span_between(began, moment), own)
        if own is not None:
            self.facts["own_us"] = own.value_ns // 1_000
        self._handshake_ns = span.value_ns
        handshake = Phase(Metric.QUIC_HANDSHAKE, began, span, driver.flight.flags, moment)
        spent = StampedInterval(driver.compute_ns, ClockSource.USER)
        compute = Phase(Metric.CLIENT_COMPUTE, began, spent)
        phases: tuple[Phase, ...] = tuple(self._phases)
        beside: tuple[Phase, ...] = (handshake, compute)
        if self.mode is not ConnectionMode.EARLY_DATA:
            phases, beside = (*phases, handshake), (compute,)
        if not self._shot.resolve:
            self.began = began
        opened = Opened(
            Transport.QUIC, self.mode, self.began, phases, beside, dict(self.facts),
            event.alpn_protocol or "",
        )  # fmt: skip
        self._stood, self._stage = True, Stage.WAIT
        self._alarm.cancel()
        self._owner.settle(self)
        self.tell_left(unstamped=True)
        if self._listener is not None:
            self._listener.opened(opened)

    def _distrust(self, driver: Driver) -> str:
        """Why the server is not to be trusted. One that resumed was trusted before."""
        found = inside.certificates(driver.quic)
        authorities = self._owner.authorities
        if found is None or authorities is None:
            return ""
        name = self._shot.target.server_name or self._shot.target.host
        return driver.counted(lambda: authorities.why_not(*found, name), "cannot be read")

    def _left_early(self, driver: Driver) -> bool:
        """Whether something of every early stream left before anything came back."""
        flows = [driver.outflows.of(stream) for stream in self._early_streams]
        return bool(flows) and all(
            flow is not None and flow.first is not None and flow.first.early for flow in flows
        )

    # Failing and leaving

    def after_failure(self) -> None:
        """See `Opening.after_failure`."""
        self.wish.give_back()
        self._leave(0)

    def datagrams_received(self) -> int:
        """See `Opening.datagrams_received`."""
        return 0 if self._driver is None else self._driver.flight.received

    def take_ticket(self, ticket: Ticket) -> None:
        """A ticket came."""
        self._ticket_taken = True
        self.wish.keep(ticket)

    def _linger(self) -> None:
        """Stay for the ticket, where one is of use; never part of any number."""
        if self._driver is None or self._ticket_taken or not self.wish.wants_ticket:
            self._leave(0)
            return
        wait = min(max(TICKET_WAIT_NS, 4 * self._handshake_ns), self._shot.timeout_ns)
        self._owner.unsettle(self)
        due = self._watcher.read().monotonic_ns + wait
        self._alarm = self._owner.environment.network.call_at(due, lambda: self._leave(0))

    def _leave(self, code: int) -> None:
        """Say goodbye and go."""
        self._alarm.cancel()
        driver, self._driver = self._driver, None
        if driver is not None:
            driver.leave(code)
        self._owner.forget(self)
