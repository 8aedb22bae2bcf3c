"""A stamped ICMP socket in an asyncio loop: the real `IcmpChannel`. Sockets come from `network`.

Both queues are emptied at every wake-up (an undrained error queue wakes the loop for ever), the
error queue first, so that the stamp of a request is known before its reply is looked at.
"""

import asyncio
import socket
import struct
from collections.abc import Callable

from pathbudget.probes import kernel_stamps as stamps
from pathbudget.probes.channels import Arrival, IcmpBatch, QueuedError
from pathbudget.probes.failures import from_refused_call
from pathbudget.probes.icmp_wire import strip_ipv4
from pathbudget.probes.record import AddressFamily, Failure, Stage

MESSAGE_BYTES = 9_216
"""More than a jumbo frame: no longer request is sent."""
PENDING_ERRORS = 3
READS_PER_WAKE = 20_000
BUFFER_BYTES = 4 << 20
SOL_RAW, ICMP_FILTER = 255, 1
IPPROTO_ICMPV6, ICMP6_FILTER = 58, 1
_HEARD_V4 = (0, 3, 11, 12)
"""Echo reply, unreachable, time exceeded, parameter problem."""
_HEARD_V6 = (129, 1, 2, 3, 4)
_KEYS = 1 << 32


def hear_only_answers(sock: socket.socket, family: AddressFamily) -> None:
    """Let the kernel drop what is no answer to an echo request (raw sockets get everything)."""
    if family is AddressFamily.IPV4:
        dropped = 0xFFFFFFFF
        for heard in _HEARD_V4:
            dropped &= ~(1 << heard)
        sock.setsockopt(SOL_RAW, ICMP_FILTER, struct.pack("@I", dropped))
        return
    words = [0xFFFFFFFF] * 8
    for heard in _HEARD_V6:
        words[heard >> 5] &= ~(1 << (heard & 31))
    sock.setsockopt(IPPROTO_ICMPV6, ICMP6_FILTER, struct.pack("@8I", *words))


SocketAddress = tuple[str, int] | tuple[str, int, int, int]


def socket_address(address: str, port: int, family: AddressFamily) -> SocketAddress:
    """What socket calls take for a numeric address. Raises OSError where it is none."""
    kind = socket.AF_INET if family is AddressFamily.IPV4 else socket.AF_INET6
    found = socket.getaddrinfo(address, port, kind, flags=socket.AI_NUMERICHOST)[0][4]
    if len(found) == 4:
        return found
    return str(found[0]), port


def hear_everything_about(sock: socket.socket, family: AddressFamily, *, privileged: bool) -> None:
    """TTL of the answers, ICMP errors (a raw socket receives those as messages), large buffers."""
    if family is AddressFamily.IPV4:
        sock.setsockopt(socket.SOL_IP, stamps.IP_RECVTTL, 1)
    else:
        sock.setsockopt(socket.IPPROTO_IPV6, stamps.IPV6_RECVHOPLIMIT, 1)
    if not privileged and family is AddressFamily.IPV4:
        sock.setsockopt(socket.SOL_IP, stamps.IP_RECVERR, 1)
    elif not privileged:
        sock.setsockopt(socket.IPPROTO_IPV6, stamps.IPV6_RECVERR, 1)
    stamps.enlarge_buffers(sock, BUFFER_BYTES)


class StampedIcmpSocket:
    """See `channels.IcmpChannel`. Owns the socket."""

    def __init__(
        self,
        sock: socket.socket,
        family: AddressFamily,
        listener: Callable[[IcmpBatch], None],
        *,
        privileged: bool,
    ) -> None:
        self._socket = sock
        self._family = family
        self._listener = listener
        self._privileged = privileged
        self._strips_header = privileged and family is AddressFamily.IPV4
        self._sent = 0
        self._key_base = 0
        self._destinations: dict[str, SocketAddress] = {}
        sock.setblocking(False)
        stamps.switch_on(sock, stamps.DATAGRAM_STAMPS)
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(sock.fileno(), self.poll)

    @property
    def privileged(self) -> bool:
        """See `channels.IcmpChannel.privileged`."""
        return self._privileged

    def send(self, message: bytes, address: str) -> int | Failure:
        """See `channels.IcmpChannel.send`.

        A call may be refused because of an ICMP error about an earlier request: the kernel hands
        that over with the next call, whatever it is. Nothing was sent then, so it is made again.
        """
        refusal: OSError | None = None
        for _ in range(1 if self._privileged else PENDING_ERRORS):
            try:
                destination = self._destinations.get(address) or self._destination(address)
                self._socket.sendto(message, destination)
            except OSError as error:
                refusal = error
                self._count_anew()
            else:
                key = self._sent
                self._sent += 1
                return key
        assert refusal is not None
        return from_refused_call(refusal, Stage.SEND, self._family)

    def poll(self) -> None:
        """See `channels.IcmpChannel.poll`."""
        if self._socket.fileno() < 0:
            return
        batch = IcmpBatch()
        self._drain_errors(batch)
        self._drain_messages(batch)
        # A stamp may have come while the messages were read.
        self._drain_errors(batch)
        if batch.sent or batch.arrivals or batch.errors:
            self._listener(batch)

    def close(self) -> None:
        """See `channels.IcmpChannel.close`."""
        if self._socket.fileno() >= 0:
            if not self._loop.is_closed():
                self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _destination(self, address: str) -> SocketAddress:
        """A socket address; a zone index (``fe80::1%eth0``) has to be looked up once."""
        destination = socket_address(address, 0, self._family)
        self._destinations[address] = destination
        return destination

    def _count_anew(self) -> None:
        """After a refused send the kernel may or may not have counted it: start its count at 0."""
        self.poll()
        stamps.switch_on(self._socket, stamps.DATAGRAM_STAMPS & ~stamps.OPT_ID)
        stamps.switch_on(self._socket, stamps.DATAGRAM_STAMPS)
        self._key_base = self._sent

    def _key(self, kernel_key: int) -> int:
        """The kernel counts modulo 2**32; the latest send that fits is meant."""
        counted = self._sent - self._key_base
        return self._sent - (counted - kernel_key) % _KEYS

    def _drain_errors(self, batch: IcmpBatch) -> None:
        for _ in range(READS_PER_WAKE):
            try:
                quoted, messages, _, destination = self._socket.recvmsg(
                    1024, stamps.CONTROL_BYTES, stamps.MSG_ERRQUEUE
                )
            except BlockingIOError:
                return
            except OSError:
                continue  # SO_ERROR of an earlier packet, handed over once
            control = stamps.read_control(messages)
            if control.icmp is not None:
                there = str(destination[0]) if destination else ""
                batch.errors.append(
                    QueuedError(*control.icmp, there, quoted, control.stamp_unix_ns)
                )
            elif control.sent_key is not None and control.stamp_unix_ns is not None:
                batch.sent.append((self._key(control.sent_key), control.stamp_unix_ns))

    def _drain_messages(self, batch: IcmpBatch) -> None:
        for _ in range(READS_PER_WAKE):
            try:
                data, messages, _, sender = self._socket.recvmsg(
                    MESSAGE_BYTES, stamps.CONTROL_BYTES
                )
            except BlockingIOError:
                return
            except OSError:
                continue
            control = stamps.read_control(messages)
            ttl = control.ttl
            if self._strips_header:
                stripped = strip_ipv4(data)
                if stripped is None:
                    continue
                data, ttl = stripped
            batch.arrivals.append(Arrival(data, str(sender[0]), ttl, control.stamp_unix_ns))
