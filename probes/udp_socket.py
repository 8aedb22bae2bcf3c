"""A stamped UDP socket in an asyncio loop: the real `DatagramChannel`. Sockets come from `network`.

Not connected, so that one socket serves any number of peers. Source address and DSCP of a single
datagram travel as control messages with it (ip(7), RFC 3542).
"""

import functools
import socket
import struct
from collections.abc import Callable, Sequence

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import Datagram, DatagramBatch, Outgoing
from pathbudget.probes.failures import from_refused_call
from pathbudget.probes.packets import (
    AGAIN,
    GONE,
    QUOTED_BYTES,
    READS_PER_WAKE,
    Ancillary,
    Packet,
    SocketAddress,
    socket_address,
    sort_error,
)
from pathbudget.probes.record import AddressFamily, Failure, Stage
from pathbudget.probes.stamped_socket import StampedSocket

DATAGRAM_BYTES = 65_536
AT_ONCE = 64
"""Packets of one batch at most."""
PEERS_REMEMBERED = 16_384
FEW = 4
"""So many stamps are read one by one."""
_STAMP = struct.Struct("@ll")
_ERRORS = frozenset({stamps.IP_RECVERR, stamps.IPV6_RECVERR})
_ABOUT = struct.Struct("@4xB7xI")
"""Origin and key in a struct sock_extended_err."""
_new = tuple.__new__  # what a NamedTuple's own constructor calls in the end


class StampedUdpSocket(StampedSocket):
    """See `channels.DatagramChannel`. Owns the socket."""

    def __init__(
        self,
        sock: socket.socket,
        family: AddressFamily,
        listener: Callable[[DatagramBatch], None],
    ) -> None:
        super().__init__(sock, family, data_bytes=DATAGRAM_BYTES, error_queue=True, headers=True)
        self._listener = listener
        self._kind = int(sock.family)
        self._port = int(sock.getsockname()[1])
        self._asked = 0

    @property
    def port(self) -> int:
        """See `channels.DatagramChannel.port`."""
        return self._port

    def send(self, datagram: Outgoing) -> int | Failure:
        """See `channels.DatagramChannel.send`. The short way, for who sends one by one."""
        payload, address, port, local, dscp = datagram
        try:
            there = _destination(address, port, self._kind)
            if local or dscp is not None:
                ancillary = _ancillary(self._kind, local, dscp)
                self._socket.sendmsg((payload,), ancillary, 0, there)
            else:
                self._socket.sendto(payload, there)
        except OSError as error:
            self._count_anew(error)
            return self.send_all((datagram,))[0]
        key = self._count.sent
        self._count.sent = key + 1
        return key

    def send_all(self, datagrams: Sequence[Outgoing]) -> list[int | Failure]:
        """See `channels.DatagramChannel.send_all`."""
        packets: list[Packet] = []
        unsendable: list[tuple[int, Failure]] = []
        for index, (payload, address, port, local, dscp) in enumerate(datagrams):
            try:
                there = _destination(address, port, self._kind)
                ancillary = _ancillary(self._kind, local, dscp) if local or dscp is not None else ()
            except OSError as error:
                failure = from_refused_call(error, Stage.SEND, self._family)
                unsendable.append((index, failure))
            else:
                packets.append((payload, there, ancillary))
        outcomes = self._send_packets(packets)
        for index, failure in unsendable:
            outcomes.insert(index, failure)
        return outcomes

    def poll(self) -> None:
        """See `channels.DatagramChannel.poll`. Some at a time: who answers the first of many need
        not wait until all of them have been read.
        """
        for _ in range(READS_PER_WAKE // AT_ONCE):
            received = self._take_packets(AT_ONCE)
            sent, errors = self._take_errors()
            if received or sent or errors:
                batch = DatagramBatch(sent, [_new(Datagram, one) for one in received], errors)
                self._listener(batch)
            if len(received) < AT_ONCE:
                return

    def sent_stamps(self) -> list[tuple[int, int]]:
        """See `channels.DatagramChannel.sent_stamps`."""
        pending, self._asked = self._count.sent - self._asked, self._count.sent
        if pending > FEW:
            self._read_errors()
        else:
            self._read_few()
        stamped, self._stamped = self._stamped, []
        return stamped

    def _read_few(self) -> None:
        """Read the error queue up to the stamp of the last send, one by one: for a few of them that
        is faster than with many slots.
        """
        last = self._count.sent - 1
        for _ in range(READS_PER_WAKE):
            try:
                quoted, messages, _, destination = self._socket.recvmsg(
                    QUOTED_BYTES, stamps.CONTROL_BYTES, stamps.MSG_ERRQUEUE
                )
            except OSError as error:
                if error.errno in AGAIN or error.errno in GONE:
                    return
                continue
            found = _read_stamp(messages)
            if found is None:
                by_kernel: list[tuple[int, int]] = []
                control = stamps.read_control(messages)
                where = str(destination[0]) if destination else ""
                sort_error(control, quoted, where, by_kernel, self._errors)
            else:
                by_kernel = [found]
            stamped = self._count.keys(by_kernel)
            self._stamped += stamped
            if stamped and stamped[-1][0] == last:
                return


def _read_stamp(messages: list[tuple[int, int, bytes]]) -> tuple[int, int] | None:
    """The kernel's key and stamp, where the control messages are those of a stamp, as usual."""
    if len(messages) != 2:
        return None
    (level, kind, stamp), (_, other, about) = messages
    if kind != stamps.SCM_TIMESTAMPING or level != socket.SOL_SOCKET or other not in _ERRORS:
        return None
    if len(about) < _ABOUT.size or len(stamp) < _STAMP.size:
        return None
    origin, key = _ABOUT.unpack_from(about)
    seconds, nanoseconds = _STAMP.unpack_from(stamp)
    if origin != stamps.ORIGIN_TIMESTAMPING or not (seconds or nanoseconds):
        return None
    return key, seconds * 1_000_000_000 + nanoseconds


@functools.lru_cache(PEERS_REMEMBERED)
def _destination(address: str, port: int, kind: int) -> SocketAddress:
    # By a number, because looking up an enumeration runs its own code every time.
    family = AddressFamily.IPV4 if kind == socket.AF_INET else AddressFamily.IPV6
    return socket_address(address, port, family)


@functools.lru_cache(PEERS_REMEMBERED)
def _ancillary(family: int, local: str, dscp: int | None) -> Ancillary:
    messages: list[tuple[int, int, bytes]] = []
    if local:
        messages.append(stamps.leave_from(family, local))
    if dscp is not None:
        messages.append(stamps.of_class(family, dscp << 2))
    return tuple(messages)
