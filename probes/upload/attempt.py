"""One shot of the upload probe: a connection or one that was kept, one upload, one deadline."""

from collections.abc import Callable
from dataclasses import dataclass

from pathbudget.probes.carriers import (
    HttpConnection,
    HttpDialer,
    Moment,
    Opened,
    Phase,
    Request,
    span_between,
)
from pathbudget.probes.channels import Cancellable
from pathbudget.probes.clock import ClockWatcher, Reading
from pathbudget.probes.contract import ProbeEnvironment, Shot
from pathbudget.probes.failures import closed, timed_out
from pathbudget.probes.http.requests import authority_of
from pathbudget.probes.record import ConnectionMode, Failure, FailureKind, Metric, Note, Stage
from pathbudget.probes.tcp_info import TcpInfo
from pathbudget.probes.tls.tickets import server_of
from pathbudget.probes.upload.exchange import Exchange
from pathbudget.probes.upload.kept import Kept, KeptConnections
from pathbudget.probes.upload.notes import notes_of
from pathbudget.probes.upload.observer import ObservedNetwork, Sending, Sent
from pathbudget.probes.upload.receipt import parse_receipt, receipt_notes
from pathbudget.probes.upload.samples import Teller
from pathbudget.probes.upload.settings import KEPT_OPEN, UploadSettings

GRACE_NS = 250_000_000
"""An opening ends by its own deadline; where it does not, ours ends it so much later."""


@dataclass(frozen=True, slots=True)
class Shared:
    """What all attempts of one probe share."""

    environment: ProbeEnvironment
    watcher: ClockWatcher
    settings: UploadSettings
    dialer: HttpDialer
    network: ObservedNetwork
    kept: KeptConnections
    body: bytes
    port: int
    ended: "Callable[[UploadAttempt], None]"


class UploadAttempt:
    """See above. A `carriers.OpeningListener`."""

    def __init__(self, shared: Shared, shot: Shot) -> None:
        self._shared = shared
        self._shot = shot
        self._port = shared.port if shot.target.port is None else shot.target.port
        self._server = server_of(shot, self._port)
        self._mode = shared.settings.mode
        self._began = shared.watcher.read()
        self._teller = Teller(
            shared.environment, shot, self._began, verified=shared.settings.verify
        )
        self._connection: HttpConnection | None = None
        self._opened: Opened | None = None
        self._sending = Sending()
        self._before: TcpInfo | None = None
        self._writing = self._began
        self._idle_ns: int | None = None
        self._exchange: Exchange | None = None
        self._over = self._late = False
        self._alarm: Cancellable = self._call_in(shot.timeout_ns, self._expire)

    def begin(self) -> None:
        """Take the connection that the mode asks for, or open one."""
        kept = self._take_kept()
        if kept is None:
            self._dial()
            return
        self._connection, self._sending, self._opened = kept.connection, kept.sending, kept.opened
        self._idle_ns = self._began.monotonic_ns - kept.since_ns
        if self._mode is ConnectionMode.WARM:
            self._exchange = Exchange(self._primed, self._has_left)
            self._send(self._exchange)
        else:
            self._upload()

    def abandon(self) -> None:
        """Drop everything, without a sample."""
        self._over = True
        self._alarm.cancel()
        if self._exchange is not None:
            self._exchange.drop()
        if self._connection is not None:
            self._connection.abandon()

    # carriers.OpeningListener

    def opened(self, opened: Opened) -> None:
        """See `carriers.OpeningListener.opened`."""
        if self._over or self._opened is not None:
            return
        self._opened = opened
        self._mode = opened.mode
        self._teller.tell_setup(opened)
        if self._exchange is None:
            self._upload()

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """See `carriers.OpeningListener.failed`."""
        if self._over:
            return
        if self._opened is None:
            self._teller.tell_no_setup(metric, failure, done, self._mode)
        self._fail(failure)

    # Steps

    def _take_kept(self) -> Kept | None:
        shared = self._shared
        if self._mode is ConnectionMode.WARM:
            return shared.kept.take_latest(self._server)
        if self._mode is ConnectionMode.IDLE:
            now_ns = self._began.monotonic_ns
            return shared.kept.take_idle(self._server, now_ns, shared.settings.idle_ns)
        return None

    def _dial(self) -> None:
        """Open one. Without one at hand the upload is what it then is: one on a new connection."""
        wanted, early = self._mode, None
        if wanted in KEPT_OPEN:
            self._mode = ConnectionMode.COLD
        elif wanted is ConnectionMode.EARLY_DATA:
            self._exchange = Exchange(self._uploaded, self._has_left)
            early = (self._request(), self._exchange)
        with self._shared.network.watching(self._sending):
            connection = self._shared.dialer.dial(self._shot, self, early)
        if self._over:
            connection.abandon()
        else:
            self._adopt(connection)

    def _adopt(self, connection: HttpConnection) -> None:
        self._connection = connection
        if self._opened is not None and self._exchange is None:
            self._upload()

    def _upload(self) -> None:
        if self._connection is None:
            return  # it is told that it stands before we have it in hand
        self._exchange = Exchange(self._uploaded, self._has_left)
        self._send(self._exchange)

    def _send(self, exchange: Exchange) -> None:
        assert self._connection is not None
        self._sending.begin()
        self._before = self._sending.info()
        self._writing = self._shared.watcher.read()
        self._connection.request(self._request(), exchange)

    def _request(self) -> Request:
        authority = authority_of(self._shot.target, self._port, self._shared.settings.scheme)
        headers = (("content-type", "application/json"), ("accept", "application/json"))
        return Request("POST", authority, self._shared.settings.path, headers, self._shared.body)

    def _has_left(self) -> None:
        self._sending.end()

    def _primed(self, exchange: Exchange) -> None:
        """The upload that opens the window is over; the one that is measured follows at once."""
        if self._over:
            return
        connection = self._connection
        if exchange.failure is not None:
            self._fail(exchange.failure)
        elif connection is None or not connection.usable:
            self._fail(Failure(FailureKind.CLOSED, Stage.SEND, "closed after one upload"))
        else:
            self._idle_ns = None
            # Not from within the call that tells of the end of the request before.
            self._call_in(0, self._upload_again)

    def _upload_again(self) -> None:
        if not self._over:
            self._upload()

    def _uploaded(self, exchange: Exchange) -> None:
        if self._over:
            return
        reading, sent = self._leaving(exchange)
        first = Moment(reading, sent.departed[0].unix_ns if sent.departed else None)
        if exchange.first is not None and exchange.first.kernel_unix_ns is not None:
            first = exchange.first
        if exchange.acknowledged_at is not None:
            span = span_between(first, exchange.acknowledged_at)
            self._teller.tell_acknowledged(first, exchange.acknowledged_at, span, self._mode)
        if exchange.failure is not None:
            self._fail(exchange.failure)
            return
        receipt = parse_receipt(bytes(exchange.answer), len(self._shared.body))
        if isinstance(receipt, Failure) or exchange.answered is None:
            self._fail(receipt if isinstance(receipt, Failure) else closed(Stage.WAIT))
            return
        span = span_between(first, exchange.answered)
        if receipt.residence_ns > span.value_ns:
            told = "the sink says it took longer to answer than all of it took"
            self._fail(Failure(FailureKind.CORRUPT, Stage.PARSE, told))
            return
        span = span._replace(value_ns=span.value_ns - receipt.residence_ns)
        notes = {**self._notes(exchange, sent), **receipt_notes(receipt)}
        flow = self._sending.flow
        self._teller.tell_upload(first, exchange.answered, span, self._mode, notes, flow)
        self._end(keep=True)

    def _notes(self, exchange: Exchange, sent: Sent) -> dict[str, Note]:
        after = self._sending.info()
        notes = notes_of(sent, self._before, after, self._opened, exchange.notes)
        notes["bytes"] = len(self._shared.body)
        if self._idle_ns is not None:
            notes["idle_us"] = self._idle_ns // 1_000
        return notes

    def _leaving(self, exchange: Exchange) -> tuple[Reading, Sent]:
        """Just before the upload was written, and the packets that left from then on."""
        reading = self._writing if exchange.first is None else exchange.first.reading
        return reading, self._sending.since(reading.unix_ns)

    def _call_in(self, delay_ns: int, callback: Callable[[], None]) -> Cancellable:
        due_ns = self._shared.watcher.read().monotonic_ns + delay_ns
        return self._shared.environment.network.call_at(due_ns, callback)

    def _expire(self) -> None:
        if self._over:
            return
        if self._opened is None and self._connection is not None and not self._late:
            self._late = True
            self._alarm = self._call_in(GRACE_NS, self._expire)
            return
        exchange = self._exchange
        stage = Stage.HANDSHAKE if self._opened is None else Stage.SEND
        if self._opened is not None and exchange is not None:
            stage = exchange.stage
        failure = timed_out(stage, self._shot.timeout_ns)
        if self._opened is None:
            self._teller.tell_no_setup(Metric.SETUP, failure, (), self._mode)
        self._fail(failure)

    def _fail(self, failure: Failure) -> None:
        self._teller.tell_failure(failure, self._mode)
        self._end(keep=False)

    def _end(self, *, keep: bool) -> None:
        if self._over:
            return
        self._over = True
        self._alarm.cancel()
        if self._exchange is not None:
            self._exchange.drop()
        connection, opened = self._connection, self._opened
        if connection is None:
            pass
        elif not keep:
            connection.abandon()
        elif self._shared.settings.mode in KEPT_OPEN and opened is not None and connection.usable:
            now_ns = self._shared.watcher.read().monotonic_ns
            kept = Kept(connection, self._sending, opened, now_ns)
            self._shared.kept.keep(self._server, kept)
        else:
            connection.close()
        self._shared.ended(self)
