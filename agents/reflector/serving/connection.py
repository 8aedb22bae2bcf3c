"""One TCP connection of HTTPS: records from the socket through TLS to the version ALPN chose."""

from collections.abc import Callable
from dataclasses import dataclass, field
from socket import socket

from OpenSSL import SSL

from pathbudget.agents.reflector.serving.framing import (
    RECORD_HEADER,
    FramingError,
    Units,
    record_length,
)
from pathbudget.agents.reflector.serving.http1 import Http1
from pathbudget.agents.reflector.serving.http2 import Http2
from pathbudget.agents.reflector.serving.limits import Patience
from pathbudget.agents.reflector.serving.moments import Came, came_now
from pathbudget.agents.reflector.serving.pages import Pages
from pathbudget.agents.reflector.serving.tcp_socket import TcpSocket
from pathbudget.agents.reflector.serving.tls_server import TlsError, TlsServer
from pathbudget.agents.reflector.serving.wire import SECOND_NS, Version, overdue


@dataclass(slots=True)
class Shared:
    """What all connections of one reflector have in common."""

    pages: Pages
    context: SSL.Context
    leave: Callable[[str], None]
    """Told the address of every connection that is gone."""
    open: "set[SecureConnection]" = field(default_factory=set["SecureConnection"])


class SecureConnection:
    """See `tcp_socket.TcpListener` for the side of the network, `wire.Wire` for that of HTTP."""

    def __init__(self, shared: Shared, sock: socket, address: str) -> None:
        self._shared = shared
        self._pages = shared.pages
        self._limits = shared.pages.limits
        self._address = address
        self._units = Units(RECORD_HEADER, record_length)
        self._tls = TlsServer(shared.context)
        self._version: Version | None = None
        self._began_ns = self.now_ns()
        self._patience = Patience(self._began_ns)
        self._received = 0
        self.early = False
        shared.open.add(self)
        self._socket = TcpSocket(sock, self, self._limits.backlog_bytes)

    def wanted(self) -> int:
        """A record's header, then the rest of it: so both ends of it get a stamp of their own."""
        return self._units.wanted

    def arrived(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """See `tcp_socket.TcpListener.arrived`."""
        came = came_now(self._pages.clock, kernel_unix_ns)
        self._received += len(data)
        if self._received > self._limits.connection_bytes:
            self.abort("over_bytes")
            return
        try:
            for record, began, ended in self._units.feed(data, came, came):
                self._take(record, began, ended)
        except FramingError:
            self.abort("no_tls")
        except TlsError:
            self._send()
            self._tls.close(politely=False)
            self._count("bad_tls")
            self._socket.finish()
        except Exception:  # noqa: BLE001
            # Whatever a client made a library do is the end of that client alone.
            self.abort("faults")

    def finished(self) -> None:
        """See `tcp_socket.TcpListener.finished`."""
        self._part()

    def gone(self, reason: str) -> None:
        """See `tcp_socket.TcpListener.gone`."""
        self._tls.close(politely=False)
        self._shared.open.discard(self)
        self._count(reason if self._tls.open else f"{reason}_in_handshake")
        self._shared.leave(self._address)
        if self._version is not None:
            self._version.closed()
            self._version = None  # no circle stays behind: the collector comes seldom here

    def write(self, data: bytes, left: Callable[[int], None] | None = None) -> None:
        """See `wire.Wire.write`."""
        if not self._socket.open or not self._tls.may_write:
            return
        try:
            self._tls.write(data)
        except TlsError:
            self.abort("bad_tls")
            return
        self._socket.write(self._tls.outgoing(), left)

    def stamps(self) -> bool:
        """See `wire.Wire.stamps`."""
        return self._socket.stamps()

    def full(self) -> bool:
        """See `wire.Wire.full`."""
        return self._socket.full

    def finish(self) -> None:
        """See `wire.Wire.finish`."""
        self._part()

    def abort(self, reason: str) -> None:
        """See `wire.Wire.abort`."""
        self._socket.abort(reason)

    def now_ns(self) -> int:
        """See `wire.Wire.now_ns`."""
        return self._pages.clock.monotonic_ns()

    def expired(self, now_ns: int) -> str:
        """Which of its times is up, as a counter's name; nothing while it may go on."""
        stalled_ns = self._socket.progress_ns
        if stalled_ns and now_ns - stalled_ns > self._limits.stalled_seconds * SECOND_NS:
            return "stalled"
        version = self._version
        phase, since_ns = ("", 0) if version is None else (version.phase, version.since_ns)
        return overdue(self._limits, now_ns, self._began_ns, phase, since_ns)

    def _take(self, record: bytes, began: Came, ended: Came) -> None:
        if not self._socket.open:
            return
        plain = self._feed(record)
        if plain:
            if self._version is None:
                self._version = self._choose()
            self._version.receive(plain, began, ended)
        elif self._tls.open and self._patience.ends_with(1, self.now_ns()):
            self.abort("over_patience")
        self.early = False
        if self._tls.ended:
            self._part()

    def _feed(self, record: bytes) -> bytes:
        was_open = self._tls.open
        plain = self._tls.feed(record)
        self._send()
        self.early = bool(plain) and not was_open
        if self._tls.open and not was_open:
            self._count("resumed" if self._tls.resumed else "full")
            if self._tls.early:
                self._count("early_data")
            if self._version is None:
                self._version = self._choose()
        return plain

    def _choose(self) -> Version:
        if self._tls.protocol == b"h2":
            return Http2(self._pages, self)
        return Http1(self._pages, self)

    def _send(self) -> None:
        self._socket.write(self._tls.outgoing())

    def _part(self) -> None:
        """Say goodbye, and end when all is sent."""
        if self._socket.open:
            self._tls.close(politely=True)
            self._send()
            self._socket.finish()

    def _count(self, word: str) -> None:
        self._pages.counts[word] += 1
