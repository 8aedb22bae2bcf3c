"""Packets in and out of one stamped socket, whatever the protocol; the way of one call per packet.

`message_batch.py` does the same with many packets per call. Both are used through `Packets`; what
the kernel says never makes them raise, except that a send it refuses is an OSError.
"""

import contextlib
import errno
import socket
from collections.abc import Sequence
from typing import Protocol

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import QueuedError
from pathbudget.probes.record import AddressFamily

SocketAddress = tuple[str, int] | tuple[str, int, int, int]
Ancillary = tuple[tuple[int, int, bytes], ...]

Packet = tuple[bytes, SocketAddress, Ancillary]
"""One packet to send: payload, where to, control messages."""

Received = tuple[bytes, str, int, str, int | None, int | None, int | None]
"""One packet that came, with the fields of `channels.Datagram` in their order."""

READS_PER_WAKE = 20_000
QUOTED_BYTES = 1_024
AGAIN = frozenset({errno.EAGAIN, errno.EWOULDBLOCK})
"""Nothing there; anything else but this is the error of an earlier packet, handed over once."""
GONE = frozenset({errno.EBADF, errno.ENOTSOCK})


class Packets(Protocol):
    """The two queues of a socket and the way out of it."""

    def send(self, packets: Sequence[Packet], start: int) -> int:
        """Send from `start` on; how many went, one at least.

        Raises:
            OSError: the first of them was refused, and none was sent.
        """
        ...

    def receive(self, into: list[Received], most: int = READS_PER_WAKE) -> None:
        """Everything that has come, or the first `most` of it."""
        ...

    def receive_errors(self, sent: list[tuple[int, int]], errors: list[QueuedError]) -> None:
        """Everything on the error queue: (kernel's key, stamp) of what left, and ICMP errors."""
        ...


def socket_address(address: str, port: int, family: AddressFamily) -> SocketAddress:
    """What socket calls take for a numeric address. Raises OSError where it is none."""
    kind = socket.AF_INET if family is AddressFamily.IPV4 else socket.AF_INET6
    with contextlib.suppress(OSError, ValueError):
        socket.inet_pton(kind, address)
        return address, port
    # A zone index, or a way of writing it that only the resolver knows.
    found = socket.getaddrinfo(address, port, kind, flags=socket.AI_NUMERICHOST)[0][4]
    if len(found) == 4:
        return found
    return str(found[0]), port


class SinglePackets:
    """See `Packets`. One system call for each, on any system that Python runs on."""

    def __init__(self, sock: socket.socket, data_bytes: int) -> None:
        self._socket = sock
        self._data_bytes = data_bytes

    def send(self, packets: Sequence[Packet], start: int) -> int:
        """See `Packets.send`."""
        payload, destination, ancillary = packets[start]
        if ancillary:
            self._socket.sendmsg((payload,), ancillary, 0, destination)
        else:
            self._socket.sendto(payload, destination)
        return 1

    def receive(self, into: list[Received], most: int = READS_PER_WAKE) -> None:
        """See `Packets.receive`."""
        for _ in range(most):
            try:
                payload, messages, _, sender = self._socket.recvmsg(
                    self._data_bytes, stamps.CONTROL_BYTES
                )
            except OSError as error:
                if error.errno in AGAIN or error.errno in GONE:
                    return
                continue
            stamp, ttl, _, _, traffic_class, local = stamps.read_control(messages)
            port = int(sender[1])
            into.append((payload, str(sender[0]), port, local, ttl, traffic_class, stamp))

    def receive_errors(self, sent: list[tuple[int, int]], errors: list[QueuedError]) -> None:
        """See `Packets.receive_errors`."""
        for _ in range(READS_PER_WAKE):
            try:
                quoted, messages, _, destination = self._socket.recvmsg(
                    QUOTED_BYTES, stamps.CONTROL_BYTES, stamps.MSG_ERRQUEUE
                )
            except OSError as error:
                if error.errno in AGAIN or error.errno in GONE:
                    return
                continue
            control = stamps.read_control(messages)
            sort_error(control, quoted, str(destination[0]) if destination else "", sent, errors)


def sort_error(
    control: stamps.Control,
    quoted: bytes,
    destination: str,
    sent: list[tuple[int, int]],
    errors: list[QueuedError],
) -> None:
    """Put one message of the error queue where it belongs; what is neither is passed over."""
    if control.icmp is not None:
        errors.append(QueuedError(*control.icmp, destination, quoted, control.stamp_unix_ns))
    elif control.sent_key is not None and control.stamp_unix_ns is not None:
        sent.append((control.sent_key, control.stamp_unix_ns))
