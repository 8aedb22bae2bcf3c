"""The TCP channel of the fake network, with a real TLS server behind it where a path has one."""

import contextlib
import errno
import functools
import os
import ssl

from pathbudget.probes.channels import (
    PLAIN_TCP,
    AcknowledgementListener,
    QueuedError,
    RoundTrip,
    TcpListener,
    TcpOptions,
)
from pathbudget.probes.fake_path import FakeHost, FakePath
from pathbudget.probes.fake_segments import tell_reset
from pathbudget.probes.tcp_info import TcpInfo

MSS, INITIAL_WINDOW = 1_448, 10


class FakeTcpChannel:
    """See `channels.TcpChannel`. Packets travel half a round trip each way, none is lost but the
    first (`FakePath.lost`), which then never gets an answer. Its congestion window is no limit: all
    of a `send` leaves at once.
    """

    def __init__(
        self,
        host: FakeHost,
        path: FakePath,
        listener: TcpListener,
        place: tuple[str, int],
        local_port: int,
        options: TcpOptions = PLAIN_TCP,
    ) -> None:
        self._host = host
        self._options = options
        self._place = place
        self._local_port = local_port
        self._sent_ns = host.clock.monotonic_ns()
        self._path = path
        self._listener: TcpListener | None = listener
        self._sent_bytes = 0
        self._server = FakeTlsServer(path.tls) if path.tls is not None else None
        number = path.next_number()
        self._round_trip_ns = path.round_trip(number)
        if path.unreachable is not None:
            host.clock.call_in(self._round_trip_ns, self._refused)
        elif not path.lost(number):
            host.clock.call_in(self._round_trip_ns, self._connected)

    @property
    def local_port(self) -> int | None:
        """See `channels.TcpChannel.local_port`."""
        return self._local_port

    @property
    def sent_ns(self) -> int:
        """See `channels.TcpChannel.sent_ns`."""
        return self._sent_ns

    def round_trip(self) -> RoundTrip | None:
        """See `channels.TcpChannel.round_trip`."""
        # The kernel counts whole microseconds.
        return RoundTrip(self._round_trip_ns // 1_000 * 1_000, self._path.retransmits)

    def info(self) -> TcpInfo:
        """See `channels.TcpChannel.info`."""
        trip = self.round_trip()
        return TcpInfo(
            mss=MSS,
            cwnd=INITIAL_WINDOW,
            rtt_ns=None if trip is None else trip.rtt_ns,
            min_rtt_ns=None if trip is None else trip.rtt_ns,
            retransmits=self._path.retransmits,
            bytes_sent=self._sent_bytes,
        )

    def send(self, data: bytes) -> None:
        """See `channels.TcpChannel.send`."""
        clock, now = self._host.clock, self._host.clock.unix_ns()
        first = self._sent_bytes
        self._sent_bytes += len(data)
        last_byte = self._sent_bytes - 1
        step = MSS if self._options.segments else max(1, len(data))
        for end in (*range(first + step - 1, last_byte, step), last_byte):
            if self._host.send_stamps:
                clock.call_in(0, functools.partial(self._tell_sent, end, now))
            if self._host.send_stamps and self._options.acknowledgements:
                tell = functools.partial(self._tell_acknowledged, end)
                clock.call_in(self._round_trip_ns, tell)
        clock.call_in(self._round_trip_ns // 2, lambda: self._at_server(data))

    def finish(self) -> None:
        """See `channels.TcpChannel.finish`."""
        self._listener = None

    def close(self) -> None:
        """See `channels.TcpChannel.close`."""
        self._listener = None

    def _connected(self) -> None:
        if self._path.refused:
            tell_reset(self._host, self._place, self._local_port)
            self._fail(errno.ECONNREFUSED)
        elif self._listener is not None:
            for hear in tuple(self._host.hear_handshakes):
                hear(self._place, self._local_port)
            self._listener.connected()

    def _refused(self) -> None:
        assert self._path.unreachable is not None
        icmp_type, code, responder = self._path.unreachable
        error = QueuedError(icmp_type, code, responder, "", b"", None)
        self._fail(errno.EHOSTUNREACH, error)

    def _fail(self, code: int, icmp: QueuedError | None = None) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.failed(OSError(code, os.strerror(code)), icmp)

    def _tell_sent(self, last_byte: int, unix_ns: int) -> None:
        if self._listener is not None:
            self._listener.sent(last_byte, unix_ns)

    def _tell_acknowledged(self, last_byte: int) -> None:
        if isinstance(self._listener, AcknowledgementListener):
            self._listener.acknowledged(last_byte, self._host.clock.unix_ns())

    def _at_server(self, data: bytes) -> None:
        back = self._host.clock.call_in
        half = self._round_trip_ns // 2
        if _reached(self._path.resets_after, self._sent_bytes):
            back(half, lambda: self._fail(errno.ECONNRESET))
        elif _reached(self._path.closes_after, self._sent_bytes):
            back(half, lambda: self._receive(b""))
        elif self._path.says is not None:
            words = self._path.says
            back(half, lambda: self._receive(words))
        elif self._path.echoes:
            back(half, lambda: self._receive(data))
        elif self._server is not None:
            flight = self._server.receive(data)
            if flight:
                back(half, lambda: self._receive(flight))

    def _receive(self, data: bytes) -> None:
        stamp = self._host.clock.unix_ns() if self._host.receive_stamps else None
        if self._listener is not None:
            self._listener.received(data, stamp)


class FakeTlsServer:
    """The server side of a TLS connection, in memory. Bytes in, bytes out."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_side=True)
        self._complete = False

    def receive(self, data: bytes) -> bytes:
        """Take the client's bytes; returns what the server says to them."""
        self._incoming.write(data)
        with contextlib.suppress(ssl.SSLError):
            if not self._complete:
                self._tls.do_handshake()
                self._complete = True
            self._tls.read(4096)
        return self._outgoing.read()


def _reached(limit: int | None, count: int) -> bool:
    return limit is not None and count >= limit
