"""TCP sockets of HTTPS: who comes is taken in, bytes come and go with the kernel's stamps.

A receive stamp is that of the packet that held the last byte which was read, so a reader that asks
for just so much learns when that byte came. A send stamp is asked for write by write (a control
message, Linux timestamping.rst), for the chunks of streams alone: everything else costs no more.
"""

import asyncio
import errno
import socket
import struct
from collections import deque
from collections.abc import Callable
from typing import Protocol

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.packets import AGAIN
from pathbudget.probes.record import AddressFamily

BACKLOG = 512
ACCEPTS_PER_WAKE = 32
READS_PER_WAKE = 16
"""Two for a record: then it is the turn of others, STAMP among them."""
READ_BYTES = 65_536
RESET_ON_CLOSE = struct.pack("ii", 1, 0)
"""SO_LINGER on, 0 seconds: closing sends RST."""
RECEIVING = stamps.RX_SOFTWARE | stamps.SOFTWARE
SENDING = RECEIVING | stamps.OPT_ID | stamps.OPT_TSONLY | stamps.OPT_ID_TCP
_ASK = (socket.SOL_SOCKET, stamps.SO_TIMESTAMPING, struct.pack("@I", stamps.TX_SOFTWARE))
_KEYS = 1 << 32
LINGER_SECONDS = 2.0
"""How long a connection that we end stays, so that what was written last is not lost by a reset."""

Left = Callable[[int], None]


def listening_socket(address: str, port: int, family: AddressFamily) -> socket.socket:
    """Listen. What it accepts is stamped from the first packet on. Raises OSError."""
    kind = socket.AF_INET if family is AddressFamily.IPV4 else socket.AF_INET6
    found = socket.getaddrinfo(
        address, port, kind, socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST | socket.AI_PASSIVE
    )
    listening = socket.socket(kind, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if kind == socket.AF_INET6:
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stamps.switch_on(listening, RECEIVING)
        listening.setblocking(False)
        listening.bind(found[0][4])
        listening.listen(BACKLOG)
    except BaseException:
        listening.close()
        raise
    return listening


class Acceptor:
    """Hands out who comes: `taken` gets the socket and the address. Owns the listening socket.

    Where the process may open no more files it waits a moment: else it would be woken for ever.
    """

    def __init__(
        self, listening: socket.socket, taken: Callable[[socket.socket, str], None]
    ) -> None:
        self._listening = listening
        self._taken = taken
        self._loop = asyncio.get_running_loop()
        self.port = int(listening.getsockname()[1])
        self.refusals = 0
        """How often the kernel had no file for who came."""
        self._watch()

    def close(self) -> None:
        """Take nobody in any more."""
        if self._listening.fileno() >= 0:
            self._loop.remove_reader(self._listening)
            self._listening.close()

    def _watch(self) -> None:
        if self._listening.fileno() >= 0:
            self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        for _ in range(ACCEPTS_PER_WAKE):
            try:
                sock, peer = self._listening.accept()
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    self.refusals += 1
                    self._loop.remove_reader(self._listening)
                    self._loop.call_later(0.1, self._watch)
                if error.errno != errno.ECONNABORTED:
                    return
                continue
            sock.setblocking(False)
            self._taken(sock, str(peer[0]))


def reset(sock: socket.socket) -> None:
    """Turn somebody away, so that he knows at once."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
    sock.close()


class TcpListener(Protocol):
    """Who owns a `TcpSocket`."""

    def wanted(self) -> int:
        """How many bytes to read next."""
        ...

    def arrived(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """Bytes came; the stamp is that of the packet with the last of them."""

    def finished(self) -> None:
        """The other side sends no more."""

    def gone(self, reason: str) -> None:
        """The connection is no more; nothing else is told. `reason` is a word for a counter."""


class Nobody:
    """Stands for a listener that has been told the last word: no circle of references is left."""

    def wanted(self) -> int:
        """See `TcpListener.wanted`."""
        return READ_BYTES

    def arrived(self, data: bytes, kernel_unix_ns: int | None) -> None:
        """See `TcpListener.arrived`."""

    def finished(self) -> None:
        """See `TcpListener.finished`."""

    def gone(self, reason: str) -> None:
        """See `TcpListener.gone`."""


NOBODY = Nobody()


class TcpSocket:
    """One accepted connection in the event loop. Owns the socket."""

    def __init__(self, sock: socket.socket, listener: TcpListener, backlog_bytes: int) -> None:
        self._socket = sock
        self._listener: TcpListener = listener
        self._most = backlog_bytes
        self._loop = asyncio.get_running_loop()
        self._out = bytearray()
        self._written = 0  # bytes that were given to `write`
        self._sent = 0  # bytes that the kernel has taken
        self._leaving: deque[tuple[int, Left]] = deque()
        self._reading = self._flushing = False
        self._ending: asyncio.TimerHandle | None = None
        self._peer_ended = False
        self.progress_ns = 0
        """When the kernel last took something while more was waiting; 0 where nothing waits."""
        self.open = True
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stamps.switch_on(sock, RECEIVING)
        self._stamping = stamps.switch_on(sock, SENDING)
        self._watch(reading=True)

    def write(self, data: bytes, left: Left | None = None) -> None:
        """Send all of it, as the kernel takes it; `left` gets the stamp of its last byte."""
        if not self.open or not data:
            return
        self._written += len(data)
        if left is not None and self._stamping:
            self._leaving.append((self._written, left))
        self._out += data
        if not self._flushing:
            self._flush()

    @property
    def full(self) -> bool:
        """Whether so much waits that nothing should be added."""
        return len(self._out) > self._most

    def stamps(self) -> bool:
        """Tell every `left` what the kernel has said; false where it says nothing."""
        while self._leaving and self.open:
            try:
                _, messages, _, _ = self._socket.recvmsg(
                    0, stamps.CONTROL_BYTES, stamps.MSG_ERRQUEUE
                )
            except OSError:
                break
            control = stamps.read_control(messages)
            if control.sent_key is not None and control.stamp_unix_ns is not None:
                self._tell(control.sent_key, control.stamp_unix_ns)
        return self._stamping

    def finish(self) -> None:
        """End it once all is sent; what still comes is thrown away, for a moment."""
        if self.open and self._ending is None:
            self._ending = self._loop.call_later(LINGER_SECONDS, self._drop, "closed")
            if not self._out:
                self._half_close()

    def abort(self, reason: str) -> None:
        """End it with a reset."""
        if self.open:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_ON_CLOSE)
            self._drop(reason)

    def _watch(self, *, reading: bool) -> None:
        """Read, or leave what comes in the kernel's buffer."""
        reading = reading and not self._peer_ended
        if reading != self._reading and self.open:
            self._reading = reading
            if reading:
                self._loop.add_reader(self._socket, self._readable)
            else:
                self._loop.remove_reader(self._socket)

    def _readable(self) -> None:
        self.stamps()
        for _ in range(READS_PER_WAKE):
            if not self.open or not self._reading:
                return
            wanted = READ_BYTES if self._ending else self._listener.wanted()
            try:
                data, messages, _, _ = self._socket.recvmsg(wanted, stamps.CONTROL_BYTES)
            except OSError as error:
                if error.errno not in AGAIN:
                    self._drop("reset")
                elif not self._leaving:
                    self._empty_error_queue()
                return
            if not data:
                self._ended()
                return
            if not self._ending:
                self._listener.arrived(data, stamps.read_control(messages).stamp_unix_ns)

    def _ended(self) -> None:
        if self._ending:
            self._drop("closed")
            return
        self._watch(reading=False)
        self._peer_ended = True
        self._listener.finished()

    def _empty_error_queue(self) -> None:
        """A stamp that nobody waits for would wake the loop for ever."""
        try:
            while True:
                self._socket.recvmsg(0, stamps.CONTROL_BYTES, stamps.MSG_ERRQUEUE)
        except OSError:
            return

    def _flush(self) -> None:
        ask = (_ASK,) if self._leaving and self._leaving[-1][0] > self._sent else ()
        try:
            count = self._socket.sendmsg((self._out,), ask)
        except OSError as error:
            if error.errno not in AGAIN:
                self._drop("reset")
                return
            count = 0
        self._sent += count
        del self._out[:count]
        self._wait_for_room(taken=count > 0)

    def _wait_for_room(self, *, taken: bool) -> None:
        waiting = bool(self._out)
        if taken or not waiting or not self.progress_ns:
            self.progress_ns = round(self._loop.time() * 1e9) if waiting else 0
        if waiting and not self._flushing:
            self._loop.add_writer(self._socket, self._flush)
        elif self._flushing and not waiting:
            self._loop.remove_writer(self._socket)
        self._flushing = waiting
        self._watch(reading=not self.full)
        if self._ending and not waiting:
            self._half_close()

    def _half_close(self) -> None:
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError:
            self._drop("reset")
        if self._peer_ended:
            self._drop("closed")

    def _tell(self, key: int, stamp_unix_ns: int) -> None:
        """The kernel numbers bytes from 0, modulo 2**32: all up to `key` have left by then."""
        while self._leaving:
            ends, left = self._leaving[0]
            if (key + 1 - ends) % _KEYS >= _KEYS // 2:
                return
            self._leaving.popleft()
            left(stamp_unix_ns)

    def _drop(self, reason: str) -> None:
        if not self.open:
            return
        if reason == "reset" and self._peer_ended:
            reason = "closed"  # who has left takes no goodbye
        self.open = False
        if self._ending:
            self._ending.cancel()
        if self._reading:
            self._loop.remove_reader(self._socket)
        if self._flushing:
            self._loop.remove_writer(self._socket)
        self._socket.close()
        listener, self._listener = self._listener, NOBODY
        listener.gone(reason)
