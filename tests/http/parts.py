"""A stream that a test plays by hand, who hears of it, and an h2 server in memory."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pathbudget.probes.carriers import Moment, Opened, Phase, Request, StreamListener
from pathbudget.probes.clock import ClockWatcher, Reading
from pathbudget.probes.contract import Shot
from pathbudget.probes.fake_network import FakeClock
from pathbudget.probes.http.connection import StreamHttpConnection
from pathbudget.probes.http.dial import StreamHttpDialer
from pathbudget.probes.http.exchanges import Exchanges
from pathbudget.probes.http.http1 import Http1Exchanges
from pathbudget.probes.http.http2 import Http2Exchanges
from pathbudget.probes.http.settings import Limits
from pathbudget.probes.record import ConnectionMode, Failure, Note, Transport

MS = 1_000_000
START = 1_790_000_000 * 10**9


def moment(ms: float, *, kernel: bool = True) -> Moment:
    """So many milliseconds after the start; the kernel was 10 us earlier than user space."""
    unix = START + round(ms * MS)
    return Moment(Reading(unix - START, unix, 100), unix - 10_000 if kernel else None)


@dataclass
class FakeStream:
    """See `carriers.SecureStream`. What was written, and what became of it."""

    shot: Shot
    listener: StreamListener
    early: bytes
    written: bytes = b""
    writes: list[bytes] = field(default_factory=list[bytes])
    ending: str = ""
    mode: ConnectionMode = ConnectionMode.COLD

    def __post_init__(self) -> None:
        self.written = self.early

    def write(self, data: bytes) -> int:
        assert not self.ending
        self.written += data
        self.writes.append(data)
        return len(self.written) - 1

    def notes(self) -> Mapping[str, Note]:
        return {"rtt_us": 20_000}

    def close(self) -> None:
        self.ending = "closed"

    def abandon(self) -> None:
        self.ending = "abandoned"

    def stand(self, application: str = "http/1.1", **more: Any) -> None:
        """The listener learns that it is open."""
        opened = Opened(
            more.pop("transport", Transport.TLS),
            more.pop("mode", ConnectionMode.COLD),
            moment(0),
            application=application,
            **more,
        )
        self.listener.opened(opened)

    def left(self, ms: float) -> None:
        """Everything that was written has left, by the kernel."""
        self.listener.sent(len(self.written) - 1, moment(ms))


@dataclass
class FakeStreams:
    """See `carriers.StreamDialer`."""

    dialled: list[FakeStream] = field(default_factory=list[FakeStream])
    ended: bool = False

    def dial(self, shot: Shot, listener: StreamListener, *, early: bytes = b"") -> FakeStream:
        self.dialled.append(FakeStream(shot, listener, early))
        return self.dialled[-1]

    async def drain(self) -> None:
        """Nothing to wait for."""

    def close(self) -> None:
        self.ended = True


@dataclass
class Heard:
    """An `AnswerListener`: what was told, in its order."""

    events: list[str] = field(default_factory=list[str])
    left_at: tuple[Moment, Moment] | None = None
    acknowledged_at: Moment | None = None
    head_at: Moment | None = None
    whole_at: Moment | None = None
    status: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    data: bytes = b""
    notes: dict[str, Note] = field(default_factory=dict[str, Note])
    failure: Failure | None = None

    def left(self, first: Moment, last: Moment) -> None:
        self.events.append("left")
        self.left_at = (first, last)

    def acknowledged(self, moment: Moment) -> None:
        self.events.append("acknowledged")
        self.acknowledged_at = moment

    def head(self, status: int, headers: tuple[tuple[str, str], ...], moment: Moment) -> None:
        self.events.append("head")
        self.status, self.headers, self.head_at = status, headers, moment

    def body(self, data: bytes, moment: Moment) -> None:
        self.data += data

    def complete(self, moment: Moment, notes: Mapping[str, Note]) -> None:
        self.events.append("complete")
        self.whole_at, self.notes = moment, dict(notes)

    def failed(self, failure: Failure) -> None:
        self.events.append("failed")
        self.failure = failure


class Opener:
    """An `OpeningListener` that keeps what it is told."""

    def __init__(self) -> None:
        self.opened_as: Opened | None = None
        self.failures: list[tuple[str, Failure, tuple[Phase, ...]]] = []

    def opened(self, opened: Opened) -> None:
        self.opened_as = opened

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        self.failures.append((metric, failure, done))


def get(path: str = "/", *headers: tuple[str, str]) -> Request:
    return Request("GET", "site.example", path, headers)


def post(body: bytes, path: str = "/upload") -> Request:
    return Request("POST", "site.example", path, (), body)


def version_1() -> Exchanges:
    return Http1Exchanges(Limits())


def version_2() -> Exchanges:
    return Http2Exchanges(Limits(), "https")


@dataclass
class Dialled:
    """One connection of ours on a stream that the test plays."""

    connection: StreamHttpConnection
    stream: FakeStream
    opener: Opener


def dial(
    shot: Shot,
    exchanges: Callable[[], Exchanges],
    application: str,
    *,
    early: tuple[Request, Heard] | None = None,
    segments: bool = False,
) -> Dialled:
    streams, opener = FakeStreams(), Opener()
    watcher = ClockWatcher(FakeClock())
    dialer = StreamHttpDialer(streams, watcher, exchanges, application, segments=segments)
    connection = dialer.dial(shot, opener, early)
    return Dialled(connection, streams.dialled[0], opener)


class H2Server:
    """The server's side of one HTTP/2 connection, in memory, by the h2 library."""

    def __init__(self, window: int = 65_535) -> None:
        from h2.config import H2Configuration
        from h2.connection import H2Connection
        from h2.settings import SettingCodes, Settings

        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
        self.h2.local_settings = Settings(
            client=False, initial_values={SettingCodes.INITIAL_WINDOW_SIZE: window}
        )
        self.h2.initiate_connection()
        self.events: list[Any] = []

    def take(self, data: bytes) -> bytes:
        """Take the client's bytes; what the server says by itself."""
        self.events += self.h2.receive_data(data)
        return self.h2.data_to_send()

    def answer(
        self,
        stream: int,
        body: bytes = b"hi",
        *,
        end: bool = True,
        more: Iterable[tuple[str, str]] = (),
    ) -> bytes:
        headers = [(":status", "200"), *more]
        self.h2.send_headers(stream, headers, end_stream=end and not body)
        if body:
            self.h2.send_data(stream, body, end_stream=end)
        return self.h2.data_to_send()
