"""A stamped TCP socket in an asyncio loop: the real `TcpChannel`. Sockets come from `network`.

Stamps are switched on with the first send: the kernel counts the bytes that it stamps from there,
so the key of a send stamp is the offset of its last byte.
"""

import asyncio
import contextlib
import errno
import os
import select
import socket
import struct
from collections.abc import Callable
from dataclasses import replace

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import (
    PLAIN_TCP,
    AcknowledgementListener,
    QueuedError,
    RoundTrip,
    TcpListener,
    TcpOptions,
)
from pathbudget.probes.tcp_info import TCP_INFO_BYTES, TcpInfo, parse_tcp_info
from pathbudget.probes.tcp_reactor import READ, READ_WRITE, TcpReactor

READ_BYTES = 65_536
READS_PER_WAKE = 64
LINGER_SECONDS = 1.0
SYN_SENT, CLOSED = 2, 7
ICMP_MAY_SAY_WHY = frozenset(
    {
        errno.EHOSTUNREACH, errno.ENETUNREACH, errno.ECONNREFUSED, errno.ENOPROTOOPT,
        errno.EOPNOTSUPP, errno.EHOSTDOWN, errno.ENONET, errno.EACCES, errno.EPROTO,
        errno.ETIMEDOUT,
    }
)  # fmt: skip
_RTT = struct.Struct("@I")
_RTT_OFFSET, _RETRANSMITS_OFFSET, _MIN_RTT_OFFSET = 68, 100, 148
_NEVER = 0xFFFFFFFF
USUAL_MSS, LEAST_MSS = 1_448, 48
LONGEST_CONGESTION = 16
"""Octets of a name (TCP_CA_NAME_MAX)."""
SEGMENTS_PER_LOOK = 32
STAMPS_PER_WAKE = 16_384
"""More than the queue below holds."""
STAMP_QUEUE_BYTES = 4 << 20
"""Send stamps wait in the receive buffer: of a megabyte upload there are more than the usual one
holds.
"""
_READABLE = select.EPOLLIN | select.EPOLLERR | select.EPOLLHUP | select.EPOLLRDHUP


def read_tcp_info(info: bytes) -> RoundTrip | None:
    """What a struct tcp_info says of the handshake; None where it is too short.

    The smallest round trip is taken where the kernel has one: right after the handshake it is the
    one sample that there is, in whole microseconds, not smoothed.
    """
    try:
        (rtt_us,) = _RTT.unpack_from(info, _RTT_OFFSET)
        (retransmits,) = _RTT.unpack_from(info, _RETRANSMITS_OFFSET)
    except struct.error:
        return None
    if len(info) >= _MIN_RTT_OFFSET + 4:
        (smallest_us,) = _RTT.unpack_from(info, _MIN_RTT_OFFSET)
        rtt_us = smallest_us if 0 < smallest_us != _NEVER else rtt_us
    return RoundTrip(rtt_us * 1_000, retransmits)


def read_congestion(sock: socket.socket) -> str | None:
    """The name of the congestion control that this connection has. Raises OSError."""
    name = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, LONGEST_CONGESTION)
    return name.partition(b"\0")[0].decode("ascii", "replace") or None


class StampedTcpSocket:
    """See `channels.TcpChannel`. Owns the socket, whose connect call has been made.

    `closed` is called when the socket is gone, which may be a moment after `finish`.
    """

    def __init__(
        self,
        sock: socket.socket,
        sent_ns: int,
        listener: TcpListener,
        reactor: TcpReactor,
        closed: "Callable[[StampedTcpSocket], None]",
        options: TcpOptions = PLAIN_TCP,
    ) -> None:
        self._socket = sock
        self._descriptor = sock.fileno()
        self._sent_ns = sent_ns
        self._listener: TcpListener | None = listener
        self._reactor = reactor
        self._closed = closed
        self._options = options
        self._pending = bytearray()
        self._connected = False
        self._settling = False
        """The listener is being told, and `_info` is of now."""
        self._stamped = False
        self._mss = self._segments = 0
        self._info = b""
        self._congestion: str | None = None
        self._icmp: QueuedError | None = None
        self._linger: asyncio.TimerHandle | None = None
        reactor.add(self._descriptor, self._ready)

    @property
    def local_port(self) -> int | None:
        """See `channels.TcpChannel.local_port`."""
        with contextlib.suppress(OSError):
            port: int = self._socket.getsockname()[1]
            return port or None
        return None

    @property
    def sent_ns(self) -> int:
        """See `channels.TcpChannel.sent_ns`."""
        return self._sent_ns

    def round_trip(self) -> RoundTrip | None:
        """See `channels.TcpChannel.round_trip`."""
        if self._connected and not self._settling and self._socket.fileno() >= 0:
            with contextlib.suppress(OSError):
                self._read_info()
        return read_tcp_info(self._info)

    def info(self) -> TcpInfo | None:
        """See `channels.TcpChannel.info`."""
        if self._socket.fileno() >= 0:
            with contextlib.suppress(OSError):
                self._read_info()
                self._congestion = read_congestion(self._socket)
        known = parse_tcp_info(self._info)
        return known and replace(known, congestion=self._congestion)

    def send(self, data: bytes) -> None:
        """See `channels.TcpChannel.send`."""
        if not self._stamped:
            self._begin_stamps()
        self._pending += data
        self._write()
        if self._connected:
            self._drain_stamps()  # mostly it is there already, and spares a wake-up

    def _begin_stamps(self) -> None:
        self._stamped = True
        more = stamps.TX_ACK if self._options.acknowledgements else 0
        if not stamps.switch_on(self._socket, stamps.STREAM_STAMPS | more):
            stamps.switch_on(self._socket, stamps.DATAGRAM_STAMPS | more)
        if self._options.segments:
            stamps.enlarge_receive_buffer(self._socket, STAMP_QUEUE_BYTES)

    def finish(self) -> None:
        """See `channels.TcpChannel.finish`."""
        self._listener = None
        if not self._connected or self._socket.fileno() < 0:
            self.close()
            return
        if self._stamped:
            stamps.switch_on(self._socket, 0)  # nobody looks at them any more
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
            return
        self._linger = self._reactor.loop.call_later(LINGER_SECONDS, self.close)

    def close(self) -> None:
        """See `channels.TcpChannel.close`."""
        self._listener = None
        if self._linger is not None:
            self._linger.cancel()
        if self._socket.fileno() >= 0:
            self._reactor.forget(self._descriptor)
            self._socket.close()
            self._closed(self)

    def _ready(self, events: int) -> None:
        if not self._connected:
            self._settle()
            if not self._connected:
                return
        elif events & select.EPOLLOUT:
            self._write()
        if events & _READABLE and self._socket.fileno() >= 0:
            self._readable(events)

    def _settle(self) -> None:
        """Something has happened to the attempt: what?"""
        self._read_info()
        state = self._info[0]
        if state in (SYN_SENT, CLOSED):
            code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            if code:
                self._fail(OSError(code, os.strerror(code)))
                return
        if state == SYN_SENT:
            # An ICMP error that does not end the attempt wakes the loop too, until it is read.
            self._icmp = self._icmp_error() or self._icmp
            return
        self._connected = self._settling = True
        self._acknowledge_at_once()
        if self._listener is not None:
            self._listener.connected()
        self._settling = False
        if not self._pending and self._socket.fileno() >= 0:
            self._reactor.watch(self._descriptor, READ)

    def _read_info(self) -> None:
        self._info = self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)

    def _write(self) -> None:
        waiting = bool(self._pending)
        self._mss = 0  # it may have changed since
        try:
            while self._pending:
                del self._pending[: self._send_some()]
                self._make_room_for_stamps()
        except BlockingIOError:
            self._reactor.watch(self._descriptor, READ_WRITE)
            return
        except OSError as error:
            self._fail(error)
            return
        if waiting and self._connected and self._socket.fileno() >= 0:
            self._reactor.watch(self._descriptor, READ)

    def _send_some(self) -> int:
        """As much as the options let go at once; returns what the kernel took of it."""
        pending = self._pending
        if not self._options.segments:
            return self._socket.send(pending)
        size = self._segment_bytes()
        if len(pending) <= size:
            return self._socket.send(pending)
        # A record of its own is a segment of its own: what follows is not appended to it.
        return self._socket.send(pending[:size], socket.MSG_EOR)

    def _make_room_for_stamps(self) -> None:
        """Read stamps while much is written: their queue would overflow before the next wake-up."""
        if self._options.segments:
            self._segments += 1
            if self._segments % SEGMENTS_PER_LOOK == 0 and self._connected:
                self._drain_stamps()

    def _segment_bytes(self) -> int:
        if not self._mss:
            known = self.info()
            self._mss = max(LEAST_MSS, known.mss or 0) if known is not None else USUAL_MSS
        return self._mss

    def _acknowledge_at_once(self) -> None:
        if self._options.quick_ack:  # the kernel forgets it with time
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)

    def _readable(self, events: int) -> None:
        if events & select.EPOLLERR:
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
        if self._stamped:
            # What this answers has left before it came, so its stamps are there by now: first them.
            self._drain_stamps()
        listener = self._listener
        if listener is not None:
            listener.received(data, stamps.read_control(messages).stamp_unix_ns)
        if data:
            if self._socket.fileno() >= 0:
                self._acknowledge_at_once()
            return True
        if listener is None:
            self.close()
        elif self._socket.fileno() >= 0:
            self._reactor.watch(self._descriptor, 0)  # readable for ever from here on
        return False

    def _drain_stamps(self) -> None:
        for _ in range(STAMPS_PER_WAKE):
            messages = self._read_error_queue()
            if messages is None:
                return
            control = stamps.read_control(messages)
            if control.sent_key is not None and control.stamp_unix_ns is not None:
                self._tell_stamp(control.sent_key, control.stamp_unix_ns, messages)

    def _tell_stamp(
        self, last_byte: int, unix_ns: int, messages: list[tuple[int, int, bytes]]
    ) -> None:
        listener = self._listener
        if listener is None:
            return
        if not (self._options.acknowledgements and stamps.is_acknowledgement(messages)):
            listener.sent(last_byte, unix_ns)
        elif isinstance(listener, AcknowledgementListener):
            listener.acknowledged(last_byte, unix_ns)

    def _read_error_queue(self) -> list[tuple[int, int, bytes]] | None:
        with contextlib.suppress(OSError):
            return self._socket.recvmsg(0, stamps.CONTROL_BYTES, stamps.MSG_ERRQUEUE)[1]
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
            messages = self._read_error_queue()
            if messages is None:
                return None
            control = stamps.read_control(messages)
            if control.icmp is not None:
                return QueuedError(*control.icmp, "", b"", None)
        return None
