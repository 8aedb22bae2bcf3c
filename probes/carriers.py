"""What carries a request, as interfaces: a TLS stream over TCP, and HTTP over that or over QUIC.

    Moment            one instant, by each clock that saw it
    Phase             one step of opening a connection
    Opened            all steps, with the proof of what the connection is
    SecureStream      bytes over TLS over TCP (or over TCP alone)
    HttpConnection    requests and answers, whatever the version

Sans-IO codecs and sockets are behind them (`tls/`, `quic/`, `http/`). Everything happens in one
event loop; calls return at once, and what comes of them comes through the listener. A call never
raises for what the network does. After `failed` or `ended` a listener hears no more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from pathbudget.probes.clock import Reading, StampedInterval, step_between
from pathbudget.probes.contract import Shot
from pathbudget.probes.record import ClockSource, ConnectionMode, Failure, Note, Transport


class Moment(NamedTuple):
    """One instant, by each clock that saw it.

    `reading` is of user space: just before a send call, or as an arrival was read. `kernel_unix_ns`
    is the kernel's stamp of the packet; None where it does not say.
    """

    reading: Reading
    kernel_unix_ns: int | None = None

    @property
    def unix_ns(self) -> int:
        """The best that is known of when it was, by the wall clock."""
        return self.reading.unix_ns if self.kernel_unix_ns is None else self.kernel_unix_ns


def span_between(first: Moment, last: Moment) -> StampedInterval:
    """The time from one moment to a later one, by the best clocks that saw both.

    A wall clock that was stepped in between leaves the monotonic one, marked.
    """
    by_user = last.reading.monotonic_ns - first.reading.monotonic_ns
    if step_between(first.reading, last.reading):
        return StampedInterval(by_user, ClockSource.USER, stepped=True)
    if last.kernel_unix_ns is None:
        return StampedInterval(by_user, ClockSource.USER)
    source = ClockSource.KERNEL if first.kernel_unix_ns is not None else ClockSource.KERNEL_RECEIVE
    return StampedInterval(last.kernel_unix_ns - first.unix_ns, source)


def without(span: StampedInterval, own: StampedInterval | None) -> StampedInterval:
    """A span less a part of it in which this host kept the other one waiting."""
    if own is None or own.value_ns <= 0:
        return span
    ranks = list(ClockSource)
    return StampedInterval(
        max(0, span.value_ns - own.value_ns),
        max(span.source, own.source, key=ranks.index),
        stepped=span.stepped or own.stepped,
    )


@dataclass(frozen=True, slots=True)
class Phase:
    """One step of opening a connection, as one sample tells it."""

    metric: str
    began: Moment
    span: StampedInterval
    flags: tuple[str, ...] = ()
    ended: Moment | None = None
    """What it ended with, where that was an arrival."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A connection on which a request may leave, or (early data) has left and was accepted.

    `mode` is what the connection proved to be, not what was wished for. `phases` are the steps that
    a request waits for, in order; `beside` are numbers that it does not wait for (processor time of
    our own side; the handshake that early data travels in). `notes` name the group, certificate
    bytes, ticket age and so on.
    """

    transport: Transport
    mode: ConnectionMode
    began: Moment
    phases: tuple[Phase, ...] = ()
    beside: tuple[Phase, ...] = ()
    notes: Mapping[str, Note] = field(default_factory=dict[str, Note])
    application: str = ""
    """ALPN that the server chose (RFC 7301)."""

    @property
    def setup(self) -> StampedInterval:
        """What the request waited for: the sum of `phases`, by the worst of their clocks."""
        spans = [phase.span for phase in self.phases]
        ranks = list(ClockSource)
        return StampedInterval(
            sum(span.value_ns for span in spans),
            max((span.source for span in spans), key=ranks.index, default=ClockSource.USER),
            stepped=any(span.stepped for span in spans),
        )


class OpeningListener(Protocol):
    """Whom a connection tells how its opening went: exactly one of the two, once."""

    def opened(self, opened: Opened) -> None:
        """It stands. Of early data: the server has accepted it."""

    def failed(self, metric: str, failure: Failure, done: tuple[Phase, ...]) -> None:
        """It does not stand, or broke later; `metric` is the step that failed, `done` those before
        it (empty once it stood).
        """


class StreamListener(OpeningListener, Protocol):
    """Whom a `SecureStream` tells what happens after the opening. Offsets count plain bytes."""

    def sent(self, last_byte: int, moment: Moment) -> None:
        """The byte of this offset has left this host, by the kernel's stamp."""

    def acknowledged(self, last_byte: int, moment: Moment) -> None:
        """The other host has acknowledged the byte of this offset, by the kernel's stamp."""

    def received(self, data: bytes, moment: Moment) -> None:
        """Bytes came; the moment is that of the packet that completed them."""

    def ended(self) -> None:
        """The other side has ended the stream in good order."""


class SecureStream(Protocol):
    """A stream of bytes in both directions, being opened or open."""

    def write(self, data: bytes) -> int:
        """Send all of it, as the kernel takes it; the offset of its last byte. After `opened`."""
        ...

    def notes(self) -> Mapping[str, Note]:
        """What the kernel knows of the connection as of now (TCP_INFO): ``rtt_us`` ..."""
        ...

    def close(self) -> None:
        """End it in good order; stays a moment where a ticket is of use. No more is told."""

    def abandon(self) -> None:
        """Drop it at once."""


class StreamDialer(Protocol):
    """Opens streams, and keeps what later ones may use: tickets."""

    def dial(self, shot: Shot, listener: StreamListener, *, early: bytes = b"") -> SecureStream:
        """Begin. `early` leaves with the ClientHello where a ticket allows it, else right after the
        handshake: it is the beginning of what is written either way.
        """
        ...

    async def drain(self) -> None:
        """Return when no connection is being opened or is waiting for a ticket."""

    def close(self) -> None:
        """Drop everything."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request (RFC 9110). Header names in lower case."""

    method: str
    authority: str
    path: str
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""


class AnswerListener(Protocol):
    """Whom an exchange tells what happens, in this order; `failed` may take the place of any."""

    def left(self, first: Moment, last: Moment) -> None:
        """The request has left: its first and its last byte (of early data before `opened`)."""

    def acknowledged(self, moment: Moment) -> None:
        """Its last byte was acknowledged, where the transport tells (TCP does)."""

    def head(self, status: int, headers: tuple[tuple[str, str], ...], moment: Moment) -> None:
        """The answer's status and headers; the moment is that of its first byte."""

    def body(self, data: bytes, moment: Moment) -> None:
        """A piece of the body, as it came; called once per packet that held some."""

    def complete(self, moment: Moment, notes: Mapping[str, Note]) -> None:
        """The answer is whole. `notes`: flow-control stalls, what the kernel knows ..."""

    def failed(self, failure: Failure) -> None:
        """There will be no (whole) answer."""


class HttpConnection(Protocol):
    """Carries one request at a time (or more, where the version can)."""

    @property
    def usable(self) -> bool:
        """Whether another request may be sent on it."""
        ...

    def request(self, request: Request, listener: AnswerListener) -> None:
        """Send a request. After `opened`."""

    def close(self) -> None:
        """End it in good order; the tickets that came are kept. No more is told."""

    def abandon(self) -> None:
        """Drop it at once."""


class HttpDialer(Protocol):
    """Opens HTTP connections of one version, and keeps what later ones may use."""

    def dial(
        self,
        shot: Shot,
        listener: OpeningListener,
        early: tuple[Request, AnswerListener] | None = None,
    ) -> HttpConnection:
        """Begin. The request of `early` leaves as soon as it may: with the first packet where a
        ticket allows it, else right after the handshake.
        """
        ...

    async def drain(self) -> None:
        """Return when no connection is being opened or is waiting for a ticket."""

    def close(self) -> None:
        """Drop everything."""
