"""What happens on one connection: held, echoed, or one TLS 1.3 handshake and a polite goodbye.

The TLS side is a sans-IO `ssl.SSLObject` between two memory buffers, because the loopback world
must be able to hold back a whole server flight; without delays a flight is written at once.
"""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field

from pathbudget.agents.responder.delays import NO_DELAYS, Delays
from pathbudget.agents.responder.limits import Admission, Limits, source_of

RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER on, 0 seconds: closing sends RST, so that who is turned away knows at once."""

MUTED_SECONDS = 120.0
"""How long a connection that the loopback world lost is kept: longer than any client waits."""


@dataclass(slots=True)
class Shared:
    """What all connections of one responder have in common."""

    limits: Limits
    admission: Admission
    delays: Delays = NO_DELAYS
    counters: Counter[str] = field(default_factory=Counter[str])
    open: "set[Held]" = field(default_factory=set["Held"])


class Held(asyncio.Protocol):
    """A connection that is accepted and held until the peer leaves or its time is up.

    Nothing is ever sent. What the peer sends is thrown away, up to a bound.
    """

    _transport: asyncio.Transport
    _timer: asyncio.TimerHandle

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._loop = asyncio.get_running_loop()
        self._source: str | None = None
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Let the connection in, or turn it away with a reset."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._timer = self._loop.call_later(self._first_seconds(), self._expire)
        peer = transport.get_extra_info("peername")
        source = source_of(peer[0]) if peer else ""
        if not self._shared.admission.enter(source):
            self._shared.counters["turned away"] += 1
            self._reset()
            return
        self._source = source
        self._shared.open.add(self)
        self._shared.counters["accepted"] += 1
        self._admitted()

    def data_received(self, data: bytes) -> None:
        """Count what came; a connection that sends more than its bound is reset."""
        self._received += len(data)
        if self._received > self._shared.limits.bytes_received:
            self._shared.counters["too many bytes"] += 1
            self._reset()
        elif self._source is not None:
            self._take(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Make room for the next one."""
        self._timer.cancel()
        self._shared.open.discard(self)
        if self._source is not None:
            self._shared.admission.leave(self._source)

    def stop(self) -> None:
        """The responder is going down: leave now."""
        self._transport.abort()

    def _first_seconds(self) -> float:
        return self._shared.limits.idle_seconds

    def _admitted(self) -> None:
        """There was room for this connection."""

    def _take(self, data: bytes) -> None:
        """Look at what the peer sent; a held connection does not."""

    def _arm(self, seconds: float, action: Callable[[], None]) -> None:
        """Replace what happens when the time of this connection is up."""
        self._timer.cancel()
        self._timer = self._loop.call_later(seconds, action)

    def _expire(self) -> None:
        self._shared.counters["expired"] += 1
        self._reset()

    def _reset(self) -> None:
        peer = self._transport.get_extra_info("socket")
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
        self._transport.abort()


class Echo(Held):
    """Every byte goes back as it comes, up to the bound of bytes, for as long as the peer talks.

    What waits to be written is bounded by the same bound: a peer that never reads costs no more.
    """

    def _take(self, data: bytes) -> None:
        self._shared.counters["bytes echoed"] += len(data)
        self._transport.write(data)


class Handshake(Held):
    """One TLS 1.3 handshake with session tickets, then silence until somebody says goodbye."""

    def __init__(self, shared: Shared, context: ssl.SSLContext) -> None:
        super().__init__(shared)
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._done = False
        self._muted = False
        self._ends = ("", "")
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._last_due = 0.0

    def _first_seconds(self) -> float:
        return self._shared.limits.handshake_seconds

    def _admitted(self) -> None:
        peer = self._transport.get_extra_info("peername")
        own = self._transport.get_extra_info("sockname")
        self._ends = (peer[0], own[0])
        self._muted = self._shared.delays.lost(*self._ends)
        if self._muted:
            self._arm(MUTED_SECONDS, self._expire)

    def _take(self, data: bytes) -> None:
        received = self._loop.time()
        if self._muted:
            return
        self._incoming.write(data)
        leaving = self._advance()
        flight = self._outgoing.read()
        if flight or leaving:
            due = received + self._shared.delays.seconds(*self._ends)
            self._schedule(due, flight, leaving)

    def _advance(self) -> bool:
        """Feed the state machine; True when the connection is over after the pending bytes."""
        try:
            if not self._done:
                self._tls.do_handshake()
                self._shaken()
            while self._tls.read(4096):
                pass
        except ssl.SSLWantReadError:
            return False
        except ssl.SSLError:
            self._shared.counters["bad record" if self._done else "no handshake"] += 1
            return True
        self._say_goodbye()
        return True

    def _shaken(self) -> None:
        self._done = True
        self._shared.counters["resumed" if self._tls.session_reused else "full"] += 1
        self._arm(self._shared.limits.idle_seconds, self._leave)

    def _say_goodbye(self) -> None:
        """Put our close_notify among the outgoing bytes (RFC 8446 section 6.1)."""
        with contextlib.suppress(ssl.SSLError):  # says that the peer's own has not come yet
            self._tls.unwrap()

    def _leave(self) -> None:
        self._shared.counters["expired"] += 1
        self._say_goodbye()
        self._release(self._outgoing.read(), leaving=True)

    def _schedule(self, due: float, flight: bytes, leaving: bool) -> None:
        """Release it when it is due, but never before the flight that came first."""
        if not self._waiting and due <= self._loop.time():
            self._release(flight, leaving)
            return
        self._waiting.append((flight, leaving))
        self._last_due = max(due, self._last_due)
        self._loop.call_at(self._last_due, self._release_next)

    def _release_next(self) -> None:
        self._release(*self._waiting.popleft())

    def _release(self, flight: bytes, leaving: bool) -> None:
        if self._transport.is_closing():
            return
        if flight:
            self._transport.write(flight)
        if leaving:
            self._transport.close()
