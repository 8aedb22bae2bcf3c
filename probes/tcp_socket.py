"""A stamped TCP socket in an asyncio loop: the real `TcpChannel`. Sockets come from `network`.

Stamps are switched on once the connection stands: the kernel counts the bytes that it stamps from
there, so the key of a send stamp is the offset of its last byte.
"""

import asyncio
import contextlib
import errno
import os
import socket
import struct
from collections.abc import Callable

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import QueuedError, RoundTrip, TcpListener

READ_BYTES = 65_536
READS_PER_WAKE = 64
LINGER_SECONDS = 1.0
SYN_SENT = 2
ICMP_MAY_SAY_WHY = frozenset(
    {
        errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ECONNREFUSED, errno.ENOPROTOOPT,
        errno.EOPNOTSUPP, errno.EHOSTDOWN, errno.ENONET, errno.EACCES, errno.EPROTO,
        errno.ETIMEDOUT,
    }
)  # fmt: skip
TCP_INFO_BYTES = 256
_RTT_OFFSET = 8 + 4 * 15
_RETRANSMITS_OFFSET = 8 + 4 * 23


class StampedTcpSocket:
    """See `channels.TcpChannel`. Owns the socket, whose connect call has been made.

    `closed` is called when the socket is gone, which may be a moment after `finish`.
    """

    def __init__(
        self,
        sock: socket.socket,
        listener: TcpListener,
        closed: "Callable[[StampedTcpSocket], None]",
    ) -> None:
        self._socket = sock
        # The number, not the object: asyncio would ask the kernel for its addresses to describe it.
        self._descriptor = sock.fileno()
        self._listener: TcpListener | None = listener
        self._closed = closed
        self._pending = bytearray()
        self._connected = False
        self._icmp: QueuedError | None = None
        self._linger: asyncio.TimerHandle | None = None
        self._loop = asyncio.get_running_loop()
        self._loop.add_writer(self._descriptor, self._writable)
        self._loop.add_reader(self._descriptor, self._readable)

    def round_trip(self) -> RoundTrip | None:
        """See `channels.TcpChannel.round_trip`."""
        try:
            info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
            (rtt_us,) = struct.unpack_from("@I", info, _RTT_OFFSET)
            (retransmits,) = struct.unpack_from("@I", info, _RETRANSMITS_OFFSET)
        except (OSError, struct.error):
            return None
        return RoundTrip(rtt_us * 1_000, retransmits)

    def send(self, data: bytes) -> None:
        """See `channels.TcpChannel.send`."""
        self._pending += data
        self._write()
        if self._connected:
            self._drain_stamps()  # mostly it is there already, and spares a wake-up

    def finish(self) -> None:
        """See `channels.TcpChannel.finish`."""
        self._listener = None
        if not self._connected or self._socket.fileno() < 0:
            self.close()
            return
        stamps.switch_on(self._socket, 0)  # nobody looks at them any more
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
            return
        self._linger = self._loop.call_later(LINGER_SECONDS, self.close)

    def close(self) -> None:
        """See `channels.TcpChannel.close`."""
        self._listener = None
        if self._linger is not None:
            self._linger.cancel()
        if self._socket.fileno() >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._descriptor)
                self._loop.remove_writer(self._descriptor)
            self._socket.close()
            self._closed(self)

    def _writable(self) -> None:
        if self._connected:
            self._write()
            return
        code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            self._fail(OSError(code, os.strerror(code)))
            return
        if self._state() == SYN_SENT:
            # An ICMP error that does not end the attempt wakes the loop too, until it is read.
            self._icmp = self._icmp_error() or self._icmp
            return
        self._connected = True
        self._loop.remove_writer(self._descriptor)
        if not stamps.switch_on(self._socket, stamps.STREAM_STAMPS):
            stamps.switch_on(self._socket, stamps.DATAGRAM_STAMPS)
        if self._listener is not None:
            self._listener.connected()

    def _state(self) -> int:
        return self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)[0]

    def _write(self) -> None:
        try:
            while self._pending:
                del self._pending[: self._socket.send(self._pending)]
        except BlockingIOError:
            self._loop.add_writer(self._descriptor, self._writable)
            return
        except OSError as error:
            self._fail(error)
            return
        if self._connected and self._socket.fileno() >= 0:
            self._loop.remove_writer(self._descriptor)

    def _readable(self) -> None:
        if not self._connected:
            self._writable()  # an error wakes reader and writer alike
            return
        self._drain_stamps()
        for _ in range(READS_PER_WAKE):
            if self._socket.fileno() < 0 or not self._read_once():
                return

    def _read_once(self) -> bool:
        """Read once; false where nothing more is there."""
        try:
            data, messages, _, _ = self._socket.recvmsg(READ_BYTES, stamps.CONTROL_BYTES)
        except BlockingIOError:
            return False
        except OSError as error:
            self._fail(error)
            return False
        stamp = stamps.read_control(messages).stamp_unix_ns
        listener = self._listener
        if listener is not None:
            listener.received(data, stamp)
        if data:
            return True
        if listener is None:
            self.close()
        elif self._socket.fileno() >= 0:
            self._loop.remove_reader(self._descriptor)  # readable for ever from here on
        return False

    def _drain_stamps(self) -> None:
        for _ in range(READS_PER_WAKE):
            control = self._read_error_queue()
            if control is None:
                return
            if self._listener is None or control.sent_key is None:
                continue
            if control.stamp_unix_ns is not None:
                self._listener.sent(control.sent_key, control.stamp_unix_ns)

    def _read_error_queue(self) -> stamps.Control | None:
        with contextlib.suppress(OSError):
            _, messages, _, _ = self._socket.recvmsg(0, stamps.CONTROL_BYTES, stamps.MSG_ERRQUEUE)
            return stamps.read_control(messages)
        return None

    def _fail(self, error: OSError) -> None:
        icmp = self._icmp_error() or self._icmp if error.errno in ICMP_MAY_SAY_WHY else None
        listener = self._listener
        self.close()
        if listener is not None:
            listener.failed(error, icmp)

    def _icmp_error(self) -> QueuedError | None:
        """The ICMP error that killed the connection, where there was one (ip(7), IP_RECVERR)."""
        for _ in range(READS_PER_WAKE):
            control = self._read_error_queue()
            if control is None:
                return None
            if control.icmp is not None:
                return QueuedError(*control.icmp, "", b"", None)
        return None
